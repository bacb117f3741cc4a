// SPDX-License-Identifier: Apache-2.0
/* Calls the functions of the runtime that have other parameters since CUDA 13, or that take
 * structures which are larger since, as programs built before CUDA 13 do. It is plain C, with the
 * older prototypes written out, and is linked with rt12_stub.c as the shared libcudart.so.12, and
 * as a static runtime of which only the symbols count. Fails if a function is not read in its older
 * form. */
#include <stdint.h>

#define PROGRAM "rt12"
#include "tests/cuda/rt_older.h"

typedef struct graph *Graph;
typedef struct node *Node;
typedef struct stream *Stream;
struct location {
    int type, id;
};
struct attributes {
    int order;
    struct location from, to;
    unsigned flags;
};
struct memset_params {
    void *dst;
    size_t pitch;
    unsigned value, element;
    size_t width, height;
};
struct pointer_attributes { /* 24 bytes; CUDA 13 has 88 */
    int type, device;
    void *device_pointer, *host_pointer;
};
struct channels {
    int x, y, z, w, format;
};
struct resource_desc { /* 64 bytes; CUDA 13 has 144, and flags at their end */
    int type;
    union {
        void *array;
        long long space[7];
    };
};
struct view_desc { /* 48 bytes; CUDA 13 has 112, of which the last must be zero */
    int format;
    size_t width, height, depth;
    unsigned levels[2], layers[2];
};
struct texture_desc {
    int words[18];
};
struct node_params { /* CUDA 12.2's: 256 bytes */
    int type, reserved[3];
    union {
        struct memset_params memset;
        long long space[29];
    };
    long long reserved2;
};

void **__cudaRegisterFatBinary(void *);
int cudaThreadSynchronize(void);
int cudaMalloc(void **, size_t);
int cudaMallocManaged(void **, size_t, unsigned);
int cudaMemcpy(void *, const void *, size_t, int);
int cudaDeviceSynchronize(void);
int cudaStreamCreate(Stream *);
int cudaStreamSynchronize(Stream);
int cudaGraphCreate(Graph *, unsigned);
int cudaGraphAddEmptyNode(Node *, Graph, const Node *, size_t);
int cudaGraphInstantiate(void **, Graph, unsigned long long);
int cudaGraphLaunch(void *, Stream);
int cudaStreamBeginCapture(Stream, int);
int cudaStreamEndCapture(Stream, Graph *);
int cudaMemsetAsync(void *, int, size_t, Stream);
/* What CUDA 13 changed, as it was: */
int cudaGraphAddDependencies(Graph, const Node *, const Node *, size_t);
int cudaGraphRemoveDependencies(Graph, const Node *, const Node *, size_t);
int cudaGraphGetEdges(Graph, Node *, Node *, size_t *);
int cudaGraphNodeGetDependencies(Node, Node *, size_t *);
int cudaGraphNodeGetDependentNodes(Node, Node *, size_t *);
int cudaGraphAddNode(Node *, Graph, const Node *, size_t, struct node_params *);
int cudaStreamGetCaptureInfo(Stream, int *, unsigned long long *);
int cudaStreamUpdateCaptureDependencies(Stream, Node *, size_t, unsigned);
int cudaMemAdvise(const void *, size_t, int, int);
int cudaMemPrefetchAsync(const void *, size_t, int, Stream);
int cudaPointerGetAttributes(struct pointer_attributes *, const void *);
int cudaMallocArray(void **, const struct channels *, size_t, size_t, unsigned);
int cudaCreateTextureObject(unsigned long long *, const struct resource_desc *,
                            const struct texture_desc *, const struct view_desc *);
int cudaGetTextureObjectResourceDesc(struct resource_desc *, unsigned long long);
int cudaGetTextureObjectResourceViewDesc(struct view_desc *, unsigned long long);
int cudaMemcpyBatchAsync(void **, void **, size_t *, size_t, struct attributes *, size_t *, size_t,
                         size_t *, Stream);

enum { N = 1 << 16, INVALID_VALUE = 1, INVALID_DEVICE = 101 };

static void graphs(void)
{
    Graph g;
    Node n[4], from[8], to[8], *none = NULL;
    size_t k;
    NO(cudaGraphCreate(&g, 0));
    for (int i = 0; i < 3; i++)
        NO(cudaGraphAddEmptyNode(&n[i], g, NULL, 0));
    NO(cudaGraphAddDependencies(g, n, n + 1, 2)); /* 0 → 1 → 2 */
    NO(cudaGraphGetEdges(g, NULL, NULL, &k));
    IS(k, 2);
    k = 8;
    NO(cudaGraphGetEdges(g, from, to, &k));
    IS(k, 2);
    IS(from[0] == n[0] ? to[0] == n[1] : from[0] == n[1] && to[0] == n[2], 1);
    NO(cudaGraphNodeGetDependencies(n[2], none, &k));
    IS(k, 1);
    NO(cudaGraphNodeGetDependencies(n[2], from, &k));
    IS(from[0] == n[1], 1);
    k = 8;
    NO(cudaGraphNodeGetDependentNodes(n[0], to, &k));
    IS(k, 1);
    IS(to[0] == n[1], 1);
    NO(cudaGraphRemoveDependencies(g, n, n + 1, 1));
    NO(cudaGraphGetEdges(g, NULL, NULL, &k));
    IS(k, 1);

    unsigned *d, h[4] = {0};
    struct node_params p = {.type = 2};
    void *exec;
    NO(cudaMalloc((void **)&d, 16));
    p.memset = (struct memset_params){d, 0, 0xabcd1234, 4, 4, 1};
    NO(cudaGraphAddNode(&n[3], g, n + 1, 2, &p));
    NO(cudaGraphGetEdges(g, NULL, NULL, &k));
    IS(k, 3);
    NO(cudaGraphInstantiate(&exec, g, 0));
    NO(cudaGraphLaunch(exec, NULL));
    NO(cudaMemcpy(h, d, 16, 2));
    for (int i = 0; i < 4; i++)
        IS(h[i], 0xabcd1234);
}

static void capture(void)
{
    Stream s;
    Graph g;
    void *d;
    int status = 7;
    unsigned long long id = 0;
    NO(cudaStreamCreate(&s));
    NO(cudaMalloc(&d, 64));
    NO(cudaStreamGetCaptureInfo(s, &status, &id));
    IS(status, 0);
    NO(cudaStreamBeginCapture(s, 0));
    NO(cudaMemsetAsync(d, 1, 64, s));
    NO(cudaStreamGetCaptureInfo(s, &status, &id));
    IS(status, 1);
    IS(id != 0, 1);
    NO(cudaStreamUpdateCaptureDependencies(s, NULL, 0, 1)); /* what comes depends on nothing */
    NO(cudaMemsetAsync(d, 2, 64, s));
    NO(cudaStreamEndCapture(s, &g));
    size_t k = 9;
    NO(cudaGraphGetEdges(g, NULL, NULL, &k));
    IS(k, 0);
}

static void memory(void)
{
    char *m, *d, *h = malloc(N), *back = calloc(1, N);
    Stream s;
    NO(cudaStreamCreate(&s));
    NO(cudaMallocManaged((void **)&m, N, 1));
    NO(cudaMemAdvise(m, N, 3, -1)); /* preferred: the host */
    NO(cudaMemAdvise(m, N, 3, 0));
    IS(cudaMemAdvise(m, N, 3, 99), INVALID_DEVICE);
    NO(cudaMemPrefetchAsync(m, N, 0, s));
    NO(cudaMemPrefetchAsync(m, N, -1, s));
    NO(cudaMemPrefetchAsync(m, N, 0, NULL));
    IS(cudaMemPrefetchAsync(m, N, 99, s), INVALID_DEVICE);
    NO(cudaMalloc((void **)&d, N));
    for (int i = 0; i < N; i++)
        h[i] = (char)(i * 7 % 127);
    struct attributes a = {.order = 1};
    void *dst[] = {d, d + N / 2}, *src[] = {h, h + N / 2};
    size_t sizes[] = {N / 2, N / 2}, first = 0, failed = 5;
    NO(cudaMemcpyBatchAsync(dst, src, sizes, 2, &a, &first, 1, &failed, s));
    sizes[1] = 0;
    int code = cudaMemcpyBatchAsync(dst, src, sizes, 2, &a, &first, 1, &failed, s);
    IS(code, INVALID_VALUE);
    IS(failed, 1);
    NO(cudaStreamSynchronize(s));
    NO(cudaMemcpy(back, d, N, 2));
    IS(memcmp(back, h, N), 0);
}

static void structures(void)
{
    GUARDED(struct pointer_attributes) a;
    GUARDED(struct resource_desc) r = {.s = {.type = 0}}, r2;
    GUARDED(struct view_desc) v = {.s = {.format = 0x16, .width = 8, .height = 8}}, v2;
    struct texture_desc t = {{0}};
    struct channels c = {.x = 32, .format = 2};
    unsigned long long texture;
    int local = 0;
    GUARD(a);
    NO(cudaPointerGetAttributes(&a.s, &local));
    IS(a.s.type, 0);
    IS(a.s.host_pointer == &local, 1);
    WHOLE(a);

    GUARD(r);
    GUARD(r2);
    GUARD(v);
    GUARD(v2);
    NO(cudaMallocArray(&r.s.array, &c, 8, 8, 0));
    NO(cudaCreateTextureObject(&texture, &r.s, &t, &v.s));
    NO(cudaGetTextureObjectResourceDesc(&r2.s, texture));
    IS(r2.s.array == r.s.array, 1);
    WHOLE(r2);
    NO(cudaGetTextureObjectResourceViewDesc(&v2.s, texture));
    IS(v2.s.width, 8);
    WHOLE(v2);
}

int main(int argc, char **argv)
{
    if (argc > 5)
        __cudaRegisterFatBinary(argv); /* so that it is linked */
    NO(cudaThreadSynchronize());
    graphs();
    capture();
    memory();
    structures();
    NO(cudaDeviceSynchronize());
    puts("PASS rt12");
    return 0;
}
