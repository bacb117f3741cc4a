// SPDX-License-Identifier: Apache-2.0
/* Random structured kernels: made from a seed, printed as PTX, and evaluated in C thread by thread,
 * without a word shared with the interpreter that is tested with them. */
#ifndef WS_TESTS_UNIT_EXEC_RANDOM_PROGRAM_H
#define WS_TESTS_UNIT_EXEC_RANDOM_PROGRAM_H

#include <stdint.h>

enum {
    RND_MAX_THREADS = 128,
    RND_OUT_BYTES = 80, /* what a thread leaves: 8 words, 4 double words, 4 floats */
    RND_OWN_BYTES = 64, /* memory that only one thread touches */
    RND_IN_BYTES = 4096,
    /* words that all threads of the grid work on, with operations whose order does not matter */
    RND_CELLS = 64,
};
struct rnd_program;
struct rnd_memory {
    uint8_t *out, *own, *in;
    uint32_t *cells;
};
struct rnd_program *rnd_new(uint64_t seed);
struct rnd_program *rnd_free(struct rnd_program *p);
/* Kernel "k"(out, own, in, cells). The text belongs to the program. */
const char *rnd_ptx(struct rnd_program *p);
void rnd_evaluate(const struct rnd_program *p, unsigned blocks, unsigned threads,
                  const struct rnd_memory *m);
/* splitmix64 */
uint64_t rnd_next(uint64_t *state);

#endif
