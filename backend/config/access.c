// SPDX-License-Identifier: Apache-2.0
/* What the configuration says of users: their limits, the keys by which they are known over tcp,
 * and which other users they can be. client/user.c counts what they have. */
#include "backend/config/access.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"

bool ws_access_uid(const char *name, uint32_t *ret)
{
    char *end;
    unsigned long v = strtoul(name, &end, 10);
    if (name[0] >= '0' && name[0] <= '9' && !*end && v < UINT32_MAX) {
        *ret = (uint32_t)v;
        return true;
    }
    struct passwd *p = getpwnam(name);
    if (p)
        *ret = p->pw_uid;
    return p != NULL;
}

int ws_access_add(struct ws_access *a, const struct ws_user_limits *l)
{
    struct ws_user_limits *v = ws_alloc_array(a->n_limits + 1, sizeof(*v));
    if (!v)
        return ws_raise(-ENOMEM);
    if (a->n_limits)
        memcpy(v, a->limits, a->n_limits * sizeof(*v));
    v[a->n_limits++] = *l;
    free(a->limits);
    a->limits = v;
    return 0;
}

/* Makes room for one more thing of @size bytes behind @n. Return: 0 or -ENOMEM. */
static int grow(void **things, size_t n, size_t size)
{
    if (n & (n - 1))
        return 0; /* no power of two: it is not full */
    void *v = ws_alloc_array(n ? 2 * n : 1, size);
    if (!v)
        return ws_raise(-ENOMEM);
    if (n)
        memcpy(v, *things, n * size);
    free(*things);
    *things = v;
    return 0;
}

static int add_allowed(struct ws_access *a, const struct ws_allowed *w)
{
    int r = grow((void **)&a->allowed, a->n_allowed, sizeof(*w));
    if (!r)
        a->allowed[a->n_allowed++] = *w;
    return r;
}

/* Return: 0, 1 (wrong, in @diags), -ENOMEM. */
static int allowed_line(struct ws_access *a, char *line, const char *path, uint32_t number,
                        struct ws_diags *diags)
{
    char name[WS_USER_NAME_BYTES], key[128], more[2];
    struct ws_allowed w;
    int n = sscanf(line, "%32s %127s %1s", name, key, more);
    if (n <= 0 || name[0] == '#')
        return 0;
    if (n < 2 || !ws_curve_decode(w.key, key) || (n == 3 && *more != '#')) {
        ws_diags_add(diags, path, number, 0,
                     "is no line of a list of allowed keys: use USER KEY, a public key of 40 "
                     "characters");
        return 1;
    }
    if (!ws_access_uid(name, &w.uid)) {
        ws_diags_add(diags, path, number, 0,
                     "there is no user \"%s\": use a name or a number of this machine", name);
        return 1;
    }
    return add_allowed(a, &w);
}

int ws_access_load(struct ws_access *a, const char *path, struct ws_diags *diags)
{
    char line[512];
    FILE *f;
    int wrong = 0, r = ws_file_open(&f, path, WS_FILE_TEXT_BYTES, NULL);
    if (r)
        return r;
    for (uint32_t number = 1; r >= 0 && fgets(line, sizeof(line), f); number++) {
        r = allowed_line(a, line, path, number, diags);
        wrong |= r > 0;
    }
    fclose(f);
    return r < 0 ? r : wrong;
}

int ws_access_load_subordinates(struct ws_access *a, const char *path)
{
    char line[512], name[WS_USER_NAME_BYTES];
    struct ws_subordinates v;
    FILE *f;
    int r = ws_file_open(&f, path, WS_FILE_TEXT_BYTES, NULL);
    if (r)
        return r;
    while (!r && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "%32[^:\n]:%" SCNu32 ":%" SCNu32, name, &v.first, &v.n) != 3 ||
            !ws_access_uid(name, &v.owner))
            continue;
        r = grow((void **)&a->subordinates, a->n_subordinates, sizeof(v));
        if (!r)
            a->subordinates[a->n_subordinates++] = v;
    }
    fclose(f);
    return r;
}

uint32_t ws_access_owner(const struct ws_access *a, uint32_t uid)
{
    for (size_t i = 0; i < a->n_subordinates; i++) {
        const struct ws_subordinates *v = &a->subordinates[i];
        if (uid >= v->first && uid - v->first < v->n)
            return v->owner;
    }
    return uid;
}

void ws_access_deinit(struct ws_access *a)
{
    free(a->limits);
    free(a->allowed);
    free(a->subordinates);
    *a = WS_ACCESS_NULL;
}

const struct ws_user_limits *ws_access_find(const struct ws_access *a, uint32_t uid)
{
    const struct ws_user_limits *all = NULL;
    for (size_t i = 0; i < a->n_limits; i++) {
        if (a->limits[i].everybody)
            all = &a->limits[i];
        else if (a->limits[i].uid == uid)
            return &a->limits[i];
    }
    return all;
}

const struct ws_allowed *ws_access_allows(const struct ws_access *a,
                                          const uint8_t key[WS_CURVE_KEY_BYTES])
{
    for (size_t i = 0; i < a->n_allowed; i++)
        if (!memcmp(a->allowed[i].key, key, WS_CURVE_KEY_BYTES)) /* public: no secret in its time */
            return &a->allowed[i];
    return NULL;
}
