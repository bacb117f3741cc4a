// SPDX-License-Identifier: Apache-2.0
// The program of search.cu with the driver API: the same kernel from ptx/search.ptx.
#include "drv.h"
#include "search.h"

int main(int argc, char **argv)
{
    long n = work_arg(argc, argv, 1, SEARCH_SIZE_KIB, SEARCH_MAX_KIB) * 1024;
    long iterations = work_arg(argc, argv, 2, 1, 1000000);
    char *text = work_alloc((size_t)n);
    struct search_word w[SEARCH_WORDS];
    struct search_result want, r;
    uint32_t *places = work_alloc(4 * SEARCH_PLACES), *want_places = work_alloc(4 * SEARCH_PLACES),
             length = (uint32_t)n;
    CUdeviceptr d_text, d_r, d_places, d_words;
    size_t words_bytes;
    search_words(w);
    search_fill(text, n);
    search_cpu(text, n, w, &want, want_places);
    drv_begin();
    CUmodule m = drv_module(WORK);
    CUfunction f = drv_function(m, "search");
    DRV(module_get_global(&d_words, &words_bytes, m, "search_w"));
    if (words_bytes != sizeof(w))
        return work_fail(WORK, "search_w has %zu bytes, not %zu", words_bytes, sizeof(w));
    DRV(mem_alloc(&d_text, (size_t)n));
    DRV(mem_alloc(&d_r, sizeof(r)));
    DRV(mem_alloc(&d_places, 4 * SEARCH_PLACES));
    DRV(memcpy_htod(d_words, w, sizeof(w)));
    for (long it = 0; it < iterations; it++) {
        DRV(memcpy_htod(d_text, text, (size_t)n));
        DRV(memset_d8(d_r, 0, sizeof(r)));
        DRV(memset_d8(d_r + offsetof(struct search_result, first), 0xff, sizeof(r.first)));
        drv_launch(f, 512, SEARCH_BLOCK, 0, NULL, &d_text, &length, &d_r, &d_places);
        DRV(memcpy_dtoh(&r, d_r, sizeof(r)));
        DRV(memcpy_dtoh(places, d_places, 4 * SEARCH_PLACES));
        if (search_check(&r, places, &want, want_places))
            return 1;
    }
    DRV(mem_free(d_text));
    DRV(mem_free(d_r));
    DRV(mem_free(d_places));
    DRV(module_unload(m));
    drv_end();
    return work_pass("drv_" WORK);
}
