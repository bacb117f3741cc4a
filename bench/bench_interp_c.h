// SPDX-License-Identifier: Apache-2.0
/* What the kernels of bench_interp.cu do, as loops in C: the baseline of bench_interp.c and the
 * check of its results. */
#ifndef WS_BENCH_INTERP_C_H
#define WS_BENCH_INTERP_C_H

void c_matmul(const float *x, const float *y, float *z, int n);
void c_alu(unsigned *out, int threads, int n);
void c_saxpy(float *y, const float *x, float k, int n);
void c_gather(float *out, const int *index, const float *in, int n);
void c_divergent(unsigned *out, int threads, int n);
void c_collatz(unsigned *out, int threads, int n);
void c_texture(float *out, const float *t, int linear, int n);
void c_arms(unsigned *out, int k, int n, int both, int threads);
void c_scatter(unsigned *out, const unsigned *in, int n);
void c_strided(float *out, const float *in, int width, int height);
void c_generic_ptr(float *out, const float *x, const float *y, int n);
void c_bytes(unsigned char *out, const unsigned char *in, int n);
void c_local_array(unsigned *out, const unsigned *in, int n, int threads);
void c_histogram(unsigned *bins, const unsigned *in, int n);
void c_one_address(unsigned *out, const unsigned *in, int n);
void c_float_atomics(float *out, const unsigned *in, int n);
void c_atomic_max(unsigned *out, const unsigned *in, int n);
void c_doubles(float *out, int n, int threads);
void c_divisions(unsigned *out, int n, int threads);
void c_longs(unsigned *out, int n, int threads);
void c_intrinsics(float *out, const float *in, int n, int threads);
void c_special(float *out, const float *in, int n, int threads);
void c_reduction(unsigned *out, const unsigned *in, int block, int n_blocks);
void c_ballots(unsigned *out, int n, int threads);
void c_calls(unsigned *out, int n, int indirect, int threads);
void c_tiny(float *out, const float *in, int n);

#endif
