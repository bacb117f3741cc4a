// SPDX-License-Identifier: Apache-2.0
// Searches a text for words: byte loads, early exits (divergence), atomics on global memory, words
// in constant memory. Fails if the places or their number differ from the CPU's.
#include "search.h"
#include "work.cuh"

extern "C" {
__constant__ struct search_word search_w[SEARCH_WORDS];

__global__ void search(const char *text, uint32_t n, struct search_result *r, uint32_t *places)
{
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        for (uint32_t k = 0; k < SEARCH_WORDS; k++) {
            uint32_t length = search_w[k].length, j = 0;
            if (i + length > n)
                continue;
            while (j < length && text[i + j] == search_w[k].text[j])
                j++;
            if (j < length)
                continue;
            atomicAdd(&r->count[k], 1);
            atomicMin(&r->first[k], i);
            if (k) {
                uint32_t p = atomicAdd(&r->n_places, 1);
                if (p < SEARCH_PLACES)
                    places[p] = i * SEARCH_WORDS + k;
            }
        }
}
}

int main(int argc, char **argv)
{
    long n = work_arg(argc, argv, 1, SEARCH_SIZE_KIB, SEARCH_MAX_KIB) * 1024;
    long iterations = work_arg(argc, argv, 2, 1, 1000000);
    char *text = (char *)work_alloc(n), *d_text;
    struct search_word w[SEARCH_WORDS];
    struct search_result want, r, *d_r;
    uint32_t *places = (uint32_t *)work_alloc(4 * SEARCH_PLACES),
             *want_places = (uint32_t *)work_alloc(4 * SEARCH_PLACES), *d_places;
    search_words(w);
    search_fill(text, n);
    search_cpu(text, n, w, &want, want_places);
    CHECK(cudaMalloc(&d_text, n));
    CHECK(cudaMalloc(&d_r, sizeof *d_r));
    CHECK(cudaMalloc(&d_places, 4 * SEARCH_PLACES));
    CHECK(cudaMemcpyToSymbol(search_w, w, sizeof w));
    for (long it = 0; it < iterations; it++) {
        CHECK(cudaMemcpy(d_text, text, n, cudaMemcpyHostToDevice));
        CHECK(cudaMemset(d_r, 0, sizeof *d_r));
        CHECK(cudaMemset(d_r->first, 0xff, sizeof d_r->first));
        search<<<512, SEARCH_BLOCK>>>(d_text, (uint32_t)n, d_r, d_places);
        CHECK_LAUNCH();
        CHECK(cudaMemcpy(&r, d_r, sizeof r, cudaMemcpyDeviceToHost));
        CHECK(cudaMemcpy(places, d_places, 4 * SEARCH_PLACES, cudaMemcpyDeviceToHost));
        if (search_check(&r, places, &want, want_places))
            return 1;
    }
    CHECK(cudaFree(d_text));
    CHECK(cudaFree(d_r));
    CHECK(cudaFree(d_places));
    return work_pass(WORK);
}
