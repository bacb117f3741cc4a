// SPDX-License-Identifier: Apache-2.0
/* Calls the functions of the runtime that have other parameters, or larger structures, since CUDA
 * 12, as programs built before CUDA 12 do. It is linked with rt11_stub.c as a static runtime, of
 * which only the symbols count. Fails if a function is not read in its older form, or if what lies
 * behind an older structure is read or written. */
#define PROGRAM "rt11"
#include "tests/cuda/rt_older.h"

typedef struct graph *Graph;
typedef struct node *Node;
struct properties {
    char name[256], words[472];
};
struct attributes {
    size_t bytes[3];
    int words[7];
};
struct texture_desc {
    int words[17];
};
struct channels {
    int x, y, z, w, format;
};
struct resource_desc {
    int type;
    void *array;
    long long space[6];
};

void **__cudaRegisterFatBinary(void *);
int cudaThreadSynchronize(void);
int cudaGetDeviceProperties(struct properties *, int);
int cudaFuncGetAttributes(struct attributes *, const void *);
int cudaLibraryLoadData(void **, const void *, void *, void *, unsigned, void *, void *, unsigned);
int cudaLibraryGetKernel(void **, void *, const char *);
int cudaMallocArray(void **, const struct channels *, size_t, size_t, unsigned);
int cudaCreateTextureObject(unsigned long long *, const struct resource_desc *,
                            const struct texture_desc *, const void *);
int cudaGetTextureObjectTextureDesc(struct texture_desc *, unsigned long long);
int cudaGraphCreate(Graph *, unsigned);
int cudaGraphAddEmptyNode(Node *, Graph, Node *, size_t);
int cudaGraphInstantiate(void **, Graph, Node *, char *, size_t);
int cudaGraphExecUpdate(void *, Graph, Node *, int *);
int cudaGetDriverEntryPoint(const char *, void **, unsigned long long, void *);

static void structures(void)
{
    static const char ptx[] = ".version 7.0\n.target sm_52\n.address_size 64\n"
                              ".visible .entry k() { ret; }\n";
    void *library, *kernel;
    GUARDED(struct properties) p;
    memset(&p, 0xa5, sizeof(p));
    NO(cudaGetDeviceProperties(&p.s, 0));
    IS(strlen(p.s.name) > 0 && strlen(p.s.name) < sizeof(p.s.name), 1);
    WHOLE(p);
    NO(cudaLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    NO(cudaLibraryGetKernel(&kernel, library, "k"));
    GUARDED(struct attributes) a;
    memset(&a, 0xa5, sizeof(a));
    NO(cudaFuncGetAttributes(&a.s, kernel));
    IS(a.s.words[0], 1024);
    WHOLE(a);

    GUARDED(struct texture_desc) t;
    GUARDED(struct texture_desc) t2;
    GUARDED(struct resource_desc) r;
    struct channels c = {.x = 32, .format = 2};
    unsigned long long texture;
    memset(&t, 0xa5, sizeof(t));
    memset(&t2, 0xa5, sizeof(t2));
    memset(&r, 0xa5, sizeof(r));
    memset(&t.s, 0, sizeof(t.s));
    r.s.type = 0;
    NO(cudaMallocArray(&r.s.array, &c, 8, 8, 0));
    NO(cudaCreateTextureObject(&texture, &r.s, &t.s, NULL));
    NO(cudaGetTextureObjectTextureDesc(&t2.s, texture));
    WHOLE(t2);
}

static void graphs(void)
{
    Graph g, other;
    Node n, bad = NULL;
    void *exec;
    char words[8];
    int result = -1;
    NO(cudaGraphCreate(&g, 0));
    NO(cudaGraphCreate(&other, 0));
    NO(cudaGraphAddEmptyNode(&n, g, NULL, 0));
    NO(cudaGraphInstantiate(&exec, g, &bad, words, sizeof(words)));
    NO(cudaGraphExecUpdate(exec, g, &bad, &result));
    IS(result, 0);
    IS(cudaGraphExecUpdate(exec, other, &bad, &result), 910);
    IS(result, 2); /* other nodes */
}

int main(int argc, char **argv)
{
    void *init;
    if (argc > 5)
        __cudaRegisterFatBinary(argv); /* so that it is linked */
    NO(cudaThreadSynchronize());
    structures();
    graphs();
    /* It has three parameters; the fourth is what happened to be in the register. */
    NO(cudaGetDriverEntryPoint("cuInit", &init, 0, (void *)8));
    puts("PASS rt11");
    return 0;
}
