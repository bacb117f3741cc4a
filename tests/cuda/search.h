/* SPDX-License-Identifier: Apache-2.0 */
/* Where words occur in a text: how often, where first, and the list of places. */
#ifndef WS_TESTS_CUDA_SEARCH_H
#define WS_TESTS_CUDA_SEARCH_H
#include "work.h"
#define WORK "search"
enum {
    SEARCH_SIZE_KIB = 4096,
    SEARCH_MAX_KIB = 1 << 19,
    SEARCH_WORDS = 4,
    SEARCH_LONGEST = 8,
    SEARCH_BLOCK = 256,
    SEARCH_PLACES = 1 << 16
};

struct search_word {
    uint32_t length;
    char text[SEARCH_LONGEST];
};
struct search_result {
    uint32_t count[SEARCH_WORDS], first[SEARCH_WORDS], n_places;
};

static inline void search_words(struct search_word w[SEARCH_WORDS])
{
    static const char *const words[SEARCH_WORDS] = {"abcab", "ddcbaa", "bcdabcd", "aaaaaaaa"};
    memset(w, 0, sizeof(struct search_word) * SEARCH_WORDS);
    for (int i = 0; i < SEARCH_WORDS; i++) {
        w[i].length = (uint32_t)strlen(words[i]);
        memcpy(w[i].text, words[i], w[i].length);
    }
}

static inline void search_fill(char *text, long n)
{
    for (long i = 0; i < n; i++)
        text[i] = (char)('a' + work_random((uint64_t)i) % 5);
}

static inline void search_cpu(const char *text, long n, const struct search_word *w,
                              struct search_result *r, uint32_t *places)
{
    memset(r, 0, sizeof(*r));
    for (int k = 0; k < SEARCH_WORDS; k++)
        r->first[k] = UINT32_MAX;
    for (long i = 0; i < n; i++)
        for (int k = 0; k < SEARCH_WORDS; k++)
            if (i + (long)w[k].length <= n && !memcmp(text + i, w[k].text, w[k].length)) {
                if (!r->count[k]++)
                    r->first[k] = (uint32_t)i;
                if (k && r->n_places < SEARCH_PLACES)
                    places[r->n_places] = (uint32_t)i * SEARCH_WORDS + (uint32_t)k;
                r->n_places += k != 0;
            }
}

static int search_compare(const void *a, const void *b)
{
    uint32_t x, y;
    memcpy(&x, a, 4);
    memcpy(&y, b, 4);
    return (x > y) - (x < y);
}

/* The kernel finds the places in no particular order. */
static inline int search_check(const struct search_result *r, uint32_t *places,
                               const struct search_result *want, const uint32_t *want_places)
{
    for (int k = 0; k < SEARCH_WORDS; k++)
        if (r->count[k] != want->count[k] || r->first[k] != want->first[k])
            return work_fail(WORK, "word %d: %u times, first at %u; not %u and %u", k, r->count[k],
                             r->first[k], want->count[k], want->first[k]);
    if (r->n_places != want->n_places)
        return work_fail(WORK, "%u places, not %u", r->n_places, want->n_places);
    if (want->n_places <= SEARCH_PLACES) {
        qsort(places, want->n_places, sizeof(*places), search_compare);
        for (uint32_t i = 0; i < want->n_places; i++)
            if (places[i] != want_places[i])
                return work_fail(WORK, "place %u is %u, not %u", i, places[i], want_places[i]);
    }
    return 0;
}
#endif
