// SPDX-License-Identifier: Apache-2.0
#include "tests/lib/hard_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void kernels(void *out, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        fprintf(out, ".visible .entry k%u(){ret;}\n", k);
}

static void globals(void *out, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        fprintf(out, ".global .u32 g%u;\n", k);
    fputs(".visible .entry k(){.reg .u64 %a;\n", out);
    for (uint32_t k = 0; k < n; k++)
        fprintf(out, "mov.u64 %%a,g%u;\n", k);
    fputs("ret;}\n", out);
}

static void constants(void *out, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        fprintf(out, ".const .u32 c%u;\n", k);
    kernels(out, n);
}

static void labels(void *out, uint32_t n)
{
    fputs(".visible .entry k(){.reg .pred %p;\n", out);
    for (uint32_t k = 0; k < n; k++)
        fprintf(out, "l%u: @%%p bra l%u;\n", k, (k * 7919u + 13) % n);
    fputs("ret;}\n", out);
}

static void loops(void *out, uint32_t n)
{
    fputs(".visible .entry k(){.reg .pred %p<9>; .reg .u32 %r<9>;\n", out);
    for (uint32_t k = 0; k < n; k++)
        fprintf(out, "l%u:\n", k);
    for (uint32_t k = 0; k < n; k++)
        fprintf(out, "add.u32 %%r1,%%r1,1; setp.lt.u32 %%p1,%%r1,9; @%%p1 bra l%u;\n", n - 1 - k);
    fputs("ret;}\n", out);
}

static void loops_apart(void *out, uint32_t n)
{
    fprintf(out, ".visible .entry k(){.reg .pred %%p<%u>; .reg .u32 %%r<%u>;\n", n, n);
    for (uint32_t k = 0; k < n; k++)
        fprintf(out,
                "mov.u32 %%r%u,0;\nl%u: add.u32 %%r%u,%%r%u,1; setp.lt.u32 %%p%u,%%r%u,9; "
                "@%%p%u bra l%u;\n",
                k, k, k, k, k, k, k, k);
    fputs("ret;}\n", out);
}

static void registers(void *out, uint32_t n)
{
    fprintf(out, ".visible .entry k(){.reg .u32 %%r<%u>;\n", n + 1);
    for (uint32_t k = 0; k < n; k++)
        fprintf(out, "add.u32 %%r%u,%%r%u,1;\n", k + 1, k);
    fputs("ret;}\n", out);
}

static void registers_back(void *out, uint32_t n)
{
    fprintf(out, ".visible .entry k(){.reg .pred %%p; .reg .u32 %%r<%u>;\nl:\n", n + 1);
    for (uint32_t k = n; k-- > 0;)
        fprintf(out, "add.u32 %%r%u,%%r%u,1;\n", k + 1, k);
    fputs("setp.ne.u32 %p,%r1,0; @%p bra l;\nret;}\n", out);
}

static void instructions(void *out, uint32_t n)
{
    fputs(".visible .entry k(){.reg .u32 %r<9>;\n", out);
    for (uint32_t k = 0; k < n; k++)
        fprintf(out, "mad.lo.u32 %%r%u,%%r1,%%r2,%%r3;\n", k % 7);
    fputs("ret;}\n", out);
}

static void immediates(void *out, uint32_t n)
{
    fputs(".visible .entry k(){.reg .u32 %r;\n", out);
    for (uint32_t k = 0; k < n; k++)
        fprintf(out, "add.u32 %%r,%%r,%u;\n", k * 2654435761u);
    fputs("ret;}\n", out);
}

/* Each function calls the last one twice. */
static void calls_twice(void *out, uint32_t n)
{
    fputs(".func f0(){ret;}\n", out);
    for (uint32_t k = 1; k < n; k++)
        fprintf(out, ".func f%u(){call f%u;call f%u;ret;}\n", k, k - 1, k - 1);
    fprintf(out, ".visible .entry k(){call f%u;ret;}\n", n - 1);
}

/* The same in the other order: what is called stands behind the caller. */
static void calls_ahead(void *out, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        fprintf(out, ".func f%u();\n", k);
    for (uint32_t k = n; k-- > 1;)
        fprintf(out, ".func f%u(){call f%u;call f%u;ret;}\n", k, k - 1, k - 1);
    fprintf(out, ".func f0(){ret;}\n.visible .entry k(){call f%u;ret;}\n", n - 1);
}

static void recursion(void *out, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        fprintf(out, ".func f%u();\n", k);
    for (uint32_t k = 0; k < n; k++)
        fprintf(out, ".func f%u(){call f%u;call f%u;ret;}\n", k, (k + 1) % n, k / 2);
    fputs(".visible .entry k(){call f0;ret;}\n", out);
}

static void indirect(void *out, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        fprintf(out,
                ".func f%u(){.reg .u64 %%a; mov.u64 %%a,f%u;\np: .callprototype _ ();\n"
                "call %%a,p;ret;}\n",
                k, k ? k - 1 : 0);
    fprintf(out, ".visible .entry k(){call f%u;ret;}\n", n - 1);
}

static void kernels_of_one(void *out, uint32_t n)
{
    fputs(".func f(){ret;}\n", out);
    for (uint32_t k = 0; k < n; k++)
        fprintf(out, ".visible .entry k%u(){call f;ret;}\n", k);
}

/* Each kernel comes to all functions. */
static void kernels_of_all(void *out, uint32_t n)
{
    fputs(".func f0(){ret;}\n", out);
    for (uint32_t k = 1; k < n; k++)
        fprintf(out, ".func f%u(){call f%u;ret;}\n", k, k - 1);
    for (uint32_t k = 0; k < n; k++)
        fprintf(out, ".visible .entry k%u(){call f%u;ret;}\n", k, n - 1);
}

static void refused_of_all(void *out, uint32_t n)
{
    fputs(".func f0(){ret;}\n", out);
    for (uint32_t k = 1; k < n; k++)
        fprintf(out, ".func f%u(){call f%u;ret;}\n", k, k - 1);
    for (uint32_t k = 0; k < n; k++)
        fprintf(out, ".visible .entry k%u()\n.reqnctapercluster 2\n{call f%u;ret;}\n", k, n - 1);
}

static void aliases(void *out, uint32_t n)
{
    fputs(".func f(){ret;}\n", out);
    for (uint32_t k = 0; k < n; k++)
        fprintf(out, ".func a%u();\n.alias a%u,f;\n", k, k);
    fputs(".visible .entry k(){\n", out);
    for (uint32_t k = 0; k < n; k++)
        fprintf(out, "call a%u;\n", k);
    fputs("ret;}\n", out);
}

static void params(void *out, uint32_t n)
{
    fputs(".visible .entry k(", out);
    for (uint32_t k = 0; k < n; k++)
        fprintf(out, "%s.param .u32 p%u", k ? ",\n" : "", k);
    fputs("){.reg .u32 %r;\n", out);
    for (uint32_t k = 0; k < n; k++)
        fprintf(out, "ld.param.u32 %%r,[p%u];\n", k);
    fputs("ret;}\n", out);
}

static void arguments(void *out, uint32_t n)
{
    fputs(".func f(", out);
    for (uint32_t k = 0; k < n && k < 4000; k++)
        fprintf(out, "%s.reg .u32 p%u", k ? ",\n" : "", k);
    fputs("){ret;}\n.visible .entry k(){.reg .u32 %r;\n", out);
    for (uint32_t j = 0; j < n; j += 4000) {
        fputs("call f,(", out);
        for (uint32_t k = 0; k < n && k < 4000; k++)
            fputs(k ? ",%r" : "%r", out);
        fputs(");\n", out);
    }
    fputs("ret;}\n", out);
}

static void locals(void *out, uint32_t n)
{
    fputs(".visible .entry k(){.reg .u32 %r;\n", out);
    for (uint32_t k = 0; k < n; k++)
        fprintf(out, ".local .u32 v%u;\n.shared .u32 s%u;\n", k, k);
    for (uint32_t k = 0; k < n; k++)
        fprintf(out, "ld.local.u32 %%r,[v%u];ld.shared.u32 %%r,[s%u];\n", k, k);
    fputs("ret;}\n", out);
}

static void blocks(void *out, uint32_t n)
{
    fputs(".visible .entry k(){\n", out);
    for (uint32_t k = 0; k < n; k++)
        fputs("{.reg .u32 %x; .local .u32 y; l: mov.u32 %x,1; bra l;}\n", out);
    fputs("ret;}\n", out);
}

static void initial_values(void *out, uint32_t n)
{
    fputs(".global .u32 g[] = {0", out);
    for (uint32_t k = 1; k < n; k++)
        fprintf(out, ",%u", k);
    fputs("};\n.visible .entry k(){ret;}\n", out);
}

static void addresses(void *out, uint32_t n)
{
    fputs(".global .u32 x;\n.global .u64 g[] = {x", out);
    for (uint32_t k = 1; k < n; k++)
        fprintf(out, ",x+%u", k);
    fputs("};\n.visible .entry k(){ret;}\n", out);
}

static void expression(void *out, uint32_t n)
{
    fputs(".global .u32 g = 1", out);
    for (uint32_t k = 0; k < n; k++)
        fprintf(out, "+(%u*(3-%u))", k, k);
    fputs(";\n.visible .entry k(){ret;}\n", out);
}

static void lines(void *out, uint32_t n)
{
    fputs(".file 1 \"a.cu\"\n.visible .entry k(){\n", out);
    for (uint32_t k = 0; k < n; k++)
        fprintf(out, ".loc 1 %u 1\n.pragma \"nounroll\";\nmembar.cta;\n", k);
    fputs("ret;}\n", out);
}

static void branch_tables(void *out, uint32_t n)
{
    fputs(".visible .entry k(){.reg .u32 %r;\nt: .branchtargets l0", out);
    for (uint32_t k = 1; k < n && k < 60000; k++)
        fprintf(out, ",l%u", k);
    fputs(";\n", out);
    for (uint32_t k = 0; k < n; k++)
        fprintf(out, "l%u: brx.idx %%r,t;\n", k);
    fputs("ret;}\n", out);
}

static void prototypes(void *out, uint32_t n)
{
    fputs(".visible .entry k(){.reg .u64 %a;\n", out);
    for (uint32_t k = 0; k < n; k++)
        fprintf(out, "p%u: .callprototype _ ();\ncall %%a,p%u;\n", k, k);
    fputs("ret;}\n", out);
}

static void undefined(void *out, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        fprintf(out, ".extern .func e%u();\n.visible .entry k%u(){call e%u;ret;}\n", k, k, k);
}

static void unsupported(void *out, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        fprintf(out, ".visible .entry k%u()\n.reqnctapercluster 2\n{ret;}\n", k);
}

static void large_variable(void *out, uint32_t n)
{
    fprintf(out, ".global .b8 g[%llu];\n.visible .entry k(){ret;}\n", (unsigned long long)n << 20);
}

/* A loop that waits for memory, with many branches in it. */
static void waits(void *out, uint32_t n)
{
    fputs(".visible .entry k(.param .u64 a){.reg .pred %p<9>; .reg .u32 %r<9>; .reg .u64 %a;\n"
          "ld.param.u64 %a,[a];\nl:\n",
          out);
    for (uint32_t k = 0; k < n; k++)
        fprintf(out,
                "m%u: ld.volatile.global.u32 %%r1,[%%a]; setp.eq.u32 %%p1,%%r1,%u; "
                "@%%p1 bra m%u;\n",
                k, k, (k * 7919u + 13) % n);
    fputs("@%p1 bra l;\nret;}\n", out);
}

const struct hard_text hard_texts[] = {
    {"kernels", "empty kernels", kernels, HARD_LINEAR},
    {"globals", "global variables, all used by one kernel", globals, HARD_LINEAR},
    {"constants", "constant variables and as many kernels", constants, HARD_LINEAR},
    {"labels", "labels with branches to and fro", labels, HARD_LINEAR},
    {"loops", "loops within each other", loops, HARD_LINEAR},
    {"loops-apart", "loops one behind another", loops_apart, HARD_LINEAR},
    {"registers", "registers", registers, HARD_LINEAR},
    {"registers-back", "registers in one loop, used from the last to the first", registers_back,
     HARD_LINEAR},
    {"instructions", "instructions in one kernel", instructions, HARD_LINEAR},
    {"immediates", "different numbers", immediates, HARD_LINEAR},
    {"calls-twice", "functions that call the last one twice", calls_twice, HARD_LINEAR},
    {"calls-ahead", "the same, defined before what they call", calls_ahead, HARD_LINEAR},
    {"recursion", "functions that all come to each other", recursion, HARD_LINEAR},
    {"indirect", "functions whose address is taken, each calling through one", indirect,
     HARD_LINEAR},
    {"kernels-of-one", "kernels that call one function", kernels_of_one, HARD_LINEAR},
    {"kernels-of-all", "kernels that each come to as many functions", kernels_of_all, HARD_MEMORY},
    {"aliases", "aliases, each called", aliases, HARD_LINEAR},
    {"params", "parameters of a kernel", params, HARD_LINEAR},
    {"arguments", "arguments of calls", arguments, HARD_LINEAR},
    {"locals", "local and shared variables of a kernel", locals, HARD_LINEAR},
    {"blocks", "nested blocks that use one name", blocks, HARD_LINEAR},
    {"initial-values", "initial values", initial_values, HARD_LINEAR},
    {"addresses", "initial values that are addresses", addresses, HARD_LINEAR},
    {"expression", "terms of an expression", expression, HARD_LINEAR},
    {"lines", "lines of debug information and pragmas", lines, HARD_LINEAR},
    {"branch-tables", "branches that share a table of as many labels", branch_tables, HARD_MEMORY},
    {"prototypes", "call prototypes", prototypes, HARD_LINEAR},
    {"undefined", "kernels that call functions which nobody defines", undefined, HARD_LINEAR},
    {"unsupported", "kernels that can't run", unsupported, HARD_LINEAR},
    {"waits", "branches on memory in one loop", waits, HARD_LINEAR},
    {"large-variable", "MiB of one variable", large_variable, HARD_LINEAR},
    {"refused-of-all", "kernels that can't run and come to as many functions", refused_of_all,
     HARD_TIME},
    {NULL, NULL, NULL, HARD_LINEAR},
};

const struct hard_text *hard_text_find(const char *name)
{
    for (const struct hard_text *k = hard_texts; k->name; k++)
        if (!strcmp(k->name, name))
            return k;
    return NULL;
}

char *hard_text_make(const struct hard_text *kind, uint32_t n, size_t *ret_len)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, ret_len);
    if (!out)
        return NULL;
    fputs(".version 8.0\n.target sm_75\n.address_size 64\n", out);
    kind->write(out, n);
    if (fclose(out)) {
        free(text);
        return NULL;
    }
    return text;
}
