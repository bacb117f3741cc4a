// SPDX-License-Identifier: Apache-2.0
// Makes random graphs of kernels, host functions, copies to pinned and to pageable memory, empty
// nodes and child graphs, and launches them from several threads at once. Each node takes the next
// number when it runs. Fails if numbers do not rise along every edge.
#include <pthread.h>
#include "work.cuh"
#define WORK "graphrandom"
#define FAIL(...) return work_fail(WORK, __VA_ARGS__)

enum { THREADS = 4, NODES_MAX = 48, LAUNCHES = 4 };
enum kind { KERNEL, HOST, COPY_PINNED, COPY_PAGEABLE, EMPTY, CHILD, KINDS };

__global__ void stamp(int *counter, int *mine)
{
    *mine = atomicAdd(counter, 1);
}

struct host {
    int *counter, *mine;
};
struct thread {
    pthread_t thread;
    uint64_t seed;
    int *pinned; // counter, then a stamp for each node and one for its child
    int pageable[NODES_MAX];
    struct host hosts[NODES_MAX];
    int failed;
};

static uint64_t next(struct thread *t)
{
    return work_random(t->seed++);
}

static void CUDART_CB stamp_host(void *data)
{
    struct host *h = (struct host *)data;
    *h->mine = __atomic_fetch_add(h->counter, 1, __ATOMIC_ACQ_REL);
}

static int add_kernel(cudaGraphNode_t *ret, cudaGraph_t g, int *counter, int *mine)
{
    cudaKernelNodeParams p = {};
    void *args[] = {&counter, &mine};
    p.func = (void *)stamp;
    p.gridDim = p.blockDim = dim3(1);
    p.kernelParams = args;
    CHECK(cudaGraphAddKernelNode(ret, g, NULL, 0, &p));
    return 0;
}

static int add(struct thread *t, cudaGraph_t g, enum kind kind, int i, cudaGraphNode_t *ret)
{
    int *counter = t->pinned, *mine = t->pinned + 1 + i;
    cudaHostNodeParams h = {stamp_host, &t->hosts[i]};
    cudaGraph_t child;
    cudaGraphNode_t inner, second;
    t->hosts[i] = {counter, mine};
    switch (kind) {
    case KERNEL:
        return add_kernel(ret, g, counter, mine);
    case HOST:
        CHECK(cudaGraphAddHostNode(ret, g, NULL, 0, &h));
        return 0;
    case COPY_PINNED: // what was the number then
        CHECK(cudaGraphAddMemcpyNode1D(ret, g, NULL, 0, mine, counter, sizeof(int), cudaMemcpyDefault));
        return 0;
    case COPY_PAGEABLE:
        CHECK(cudaGraphAddMemcpyNode1D(ret, g, NULL, 0, &t->pageable[i], counter, sizeof(int),
                                       cudaMemcpyDefault));
        return 0;
    case EMPTY:
        CHECK(cudaGraphAddEmptyNode(ret, g, NULL, 0));
        return 0;
    default: // its first kernel's number is kept beside that of its last one
        CHECK(cudaGraphCreate(&child, 0));
        add_kernel(&inner, child, counter, mine + NODES_MAX);
        add_kernel(&second, child, counter, mine);
        CHECK(cudaGraphAddDependencies(child, &inner, &second, NULL, 1));
        CHECK(cudaGraphAddChildGraphNode(ret, g, NULL, 0, child));
        CHECK(cudaGraphDestroy(child));
        return 0;
    }
}

// Return: false if @b can't have run behind @a.
static bool rises(const struct thread *t, const enum kind *kinds, int a, int b)
{
    const int *stamps = t->pinned + 1;
    bool a_reads = kinds[a] == COPY_PINNED || kinds[a] == COPY_PAGEABLE;
    bool b_reads = kinds[b] == COPY_PINNED || kinds[b] == COPY_PAGEABLE;
    int x = kinds[a] == COPY_PAGEABLE ? t->pageable[a] : stamps[a];
    int y = kinds[b] == COPY_PAGEABLE ? t->pageable[b]
            : kinds[b] == CHILD       ? stamps[b + NODES_MAX]
                                      : stamps[b];
    if (kinds[a] == EMPTY || kinds[b] == EMPTY) // paths through these are checked by what is at their ends
        return true;
    return a_reads ? y >= x : b_reads ? y > x : y > x;
}

static int one(struct thread *t)
{
    int n = 2 + (int)(next(t) % (NODES_MAX - 2));
    unsigned density = 2 + (unsigned)(next(t) % 30);
    static __thread bool edge[NODES_MAX][NODES_MAX];
    enum kind kinds[NODES_MAX];
    cudaGraphNode_t nodes[NODES_MAX];
    cudaGraph_t g;
    cudaGraphExec_t e;
    cudaStream_t s;
    CHECK(cudaStreamCreateWithFlags(&s, next(t) & 1 ? cudaStreamNonBlocking : 0));
    CHECK(cudaGraphCreate(&g, 0));
    memset(edge, 0, sizeof edge);
    for (int i = 0; i < n; i++) {
        kinds[i] = (enum kind)(next(t) % 3 ? KERNEL : next(t) % KINDS);
        add(t, g, kinds[i], i, &nodes[i]);
    }
    for (int b = 1; b < n; b++)
        for (int a = 0; a < b; a++)
            if (next(t) % 100 < density) {
                CHECK(cudaGraphAddDependencies(g, &nodes[a], &nodes[b], NULL, 1));
                edge[a][b] = true;
            }
    for (int k = 0; k < n; k++) // through empty nodes
        if (kinds[k] == EMPTY)
            for (int a = 0; a < k; a++)
                for (int b = k + 1; edge[a][k] && b < n; b++)
                    edge[a][b] |= edge[k][b];
    CHECK(cudaGraphInstantiate(&e, g, 0));
    for (int i = 0; i < LAUNCHES; i++) {
        int stamped = 0;
        memset(t->pinned, 0, (1 + 2 * NODES_MAX) * sizeof(int));
        t->pinned[0] = 1;
        CHECK(cudaGraphLaunch(e, i ? s : cudaStreamPerThread));
        CHECK(cudaStreamSynchronize(i ? s : cudaStreamPerThread));
        for (int a = 0; a < n; a++)
            for (int b = a + 1; b < n; b++)
                if (edge[a][b] && !rises(t, kinds, a, b))
                    FAIL("seed %llu: node %d of kind %d did not wait for %d of kind %d",
                         (unsigned long long)t->seed, b, kinds[b], a, kinds[a]);
        for (int a = 0; a < n; a++)
            stamped += kinds[a] == CHILD ? 2 : kinds[a] == KERNEL || kinds[a] == HOST;
        if (t->pinned[0] != 1 + stamped)
            FAIL("seed %llu: %d of %d nodes ran", (unsigned long long)t->seed, t->pinned[0] - 1,
                 stamped);
    }
    CHECK(cudaGraphExecDestroy(e));
    CHECK(cudaGraphDestroy(g));
    CHECK(cudaStreamDestroy(s));
    return 0;
}

static int n_graphs;
static void *run(void *arg)
{
    struct thread *t = (struct thread *)arg;
    for (int i = 0; i < n_graphs && !t->failed; i++)
        t->failed = one(t);
    return NULL;
}

int main(int argc, char **argv)
{
    n_graphs = (int)work_arg(argc, argv, 1, 16, 100000);
    long iterations = work_arg(argc, argv, 2, 1, 10000);
    static struct thread t[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(cudaMallocHost(&t[i].pinned, (1 + 2 * NODES_MAX) * sizeof(int)));
    for (long it = 0; it < iterations; it++) {
        for (int i = 0; i < THREADS; i++) {
            t[i].seed = (uint64_t)(it * THREADS + i) << 32;
            pthread_create(&t[i].thread, NULL, run, &t[i]);
        }
        for (int i = 0; i < THREADS; i++) {
            pthread_join(t[i].thread, NULL);
            if (t[i].failed)
                return 1;
        }
    }
    return work_pass(WORK);
}
