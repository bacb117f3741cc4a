// SPDX-License-Identifier: Apache-2.0
// Solves a diagonally dominant system by Jacobi's method three times: launched by hand; by one exec
// whose kernel's arguments are set for each step; and by a capture of each step that updates the
// exec. Fails if the three and the CPU do not give the same numbers.
#include <math.h>
#include "work.cuh"
#define WORK "graphjacobi"
#define FAIL(...) return work_fail(WORK, __VA_ARGS__)

// y = (b - (A - D) x) / D, and the sum of |y - x|; integers in doubles where it matters keep sums exact in any order.
__global__ void step(const float *a, const double *b, const double *x, double *y, double *change,
                     int n)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n)
        return;
    double sum = b[row];
    for (int k = 0; k < n; k++)
        if (k != row)
            sum -= (double)a[(size_t)row * n + k] * x[k];
    y[row] = sum / (double)a[(size_t)row * n + row];
    if (fabs(y[row] - x[row]) > 1e-9)
        atomicAdd(change, 1.0);
}

static int n;
static float *a;
static double *b;

static void cpu_step(const double *x, double *y, int *changes)
{
    *changes = 0;
    for (int row = 0; row < n; row++) {
        double sum = b[row];
        for (int k = 0; k < n; k++)
            if (k != row)
                sum = fma(-(double)a[(size_t)row * n + k], x[k], sum);
        y[row] = sum / (double)a[(size_t)row * n + row];
        *changes += fabs(y[row] - x[row]) > 1e-9;
    }
}

enum how { BY_HAND, SET_PARAMS, UPDATE };
enum { STEPS_MAX = 200 };

// Return: steps until nothing changes; the result in @out.
static int solve(enum how how, float *da, double *db, double *dx[2], double *dchange, double *out)
{
    cudaStream_t s;
    cudaGraph_t g = NULL;
    cudaGraphExec_t e = NULL;
    cudaGraphNode_t kernel = NULL;
    double *change; // pinned
    int steps = 0;
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cudaMallocHost(&change, sizeof(double)));
    CHECK(cudaMemsetAsync(dx[0], 0, n * sizeof(double), s));
    do {
        double *x = dx[steps & 1], *y = dx[~steps & 1];
        int blocks = (n + 63) / 64;
        bool capture = how == UPDATE || (how == SET_PARAMS && !e);
        if (capture)
            CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
        if (how != SET_PARAMS || capture) {
            CHECK(cudaMemsetAsync(dchange, 0, sizeof(double), s));
            step<<<blocks, 64, 0, s>>>(da, db, x, y, dchange, n);
            CHECK_LAUNCH();
            CHECK(cudaMemcpyAsync(change, dchange, sizeof(double), cudaMemcpyDeviceToHost, s));
        }
        if (capture) {
            cudaGraph_t next;
            CHECK(cudaStreamEndCapture(s, &next));
            if (!e) {
                cudaGraphNode_t nodes[3];
                size_t count = 3;
                g = next;
                CHECK(cudaGraphGetNodes(g, nodes, &count));
                for (size_t i = 0; i < count; i++) {
                    cudaGraphNodeType type;
                    CHECK(cudaGraphNodeGetType(nodes[i], &type));
                    if (type == cudaGraphNodeTypeKernel)
                        kernel = nodes[i];
                }
                CHECK(cudaGraphInstantiate(&e, g, 0));
            } else {
                cudaGraphExecUpdateResultInfo info;
                CHECK(cudaGraphExecUpdate(e, next, &info));
                CHECK(cudaGraphDestroy(next));
            }
        } else if (how == SET_PARAMS) {
            cudaKernelNodeParams p;
            CHECK(cudaGraphKernelNodeGetParams(kernel, &p));
            if (p.func != (void *)step)
                exit(work_fail(WORK, "a captured kernel has another name"));
            void *args[] = {&da, &db, &x, &y, &dchange, &n};
            p.kernelParams = args;
            CHECK(cudaGraphExecKernelNodeSetParams(e, kernel, &p));
        }
        if (e)
            CHECK(cudaGraphLaunch(e, s));
        CHECK(cudaStreamSynchronize(s));
        steps++;
    } while (*change && steps < STEPS_MAX);
    CHECK(cudaMemcpyAsync(out, dx[steps & 1], n * sizeof(double), cudaMemcpyDeviceToHost, s));
    CHECK(cudaStreamSynchronize(s));
    if (e) {
        CHECK(cudaGraphExecDestroy(e));
        CHECK(cudaGraphDestroy(g));
    }
    CHECK(cudaFreeHost(change));
    CHECK(cudaStreamDestroy(s));
    return steps;
}

int main(int argc, char **argv)
{
    n = (int)work_arg(argc, argv, 1, 96, 2048);
    long iterations = work_arg(argc, argv, 2, 1, 10000);
    static const char *const names[] = {"by hand", "parameters set", "updated"};
    a = (float *)work_alloc((size_t)n * n * sizeof(float));
    b = (double *)work_alloc(n * sizeof(double));
    double *x[2], *out = (double *)work_alloc(n * sizeof(double)), *db, *dx[2], *dchange;
    float *da;
    int steps = 0, changes;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n; k++)
            a[(size_t)i * n + k] = (float)(work_random((uint64_t)i * n + k) % 7);
        a[(size_t)i * n + i] = 16.0f * n;
        b[i] = (double)(work_random(i) % 1000);
    }
    for (int i = 0; i < 2; i++) {
        x[i] = (double *)work_alloc(n * sizeof(double));
        CHECK(cudaMalloc(&dx[i], n * sizeof(double)));
    }
    memset(x[0], 0, n * sizeof(double));
    do {
        cpu_step(x[steps & 1], x[~steps & 1], &changes);
        steps++;
    } while (changes && steps < STEPS_MAX);
    CHECK(cudaMalloc(&da, (size_t)n * n * sizeof(float)));
    CHECK(cudaMalloc(&db, n * sizeof(double)));
    CHECK(cudaMalloc(&dchange, sizeof(double)));
    CHECK(cudaMemcpy(da, a, (size_t)n * n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(db, b, n * sizeof(double), cudaMemcpyHostToDevice));
    for (long it = 0; it < iterations; it++)
        for (int how = BY_HAND; how <= UPDATE; how++) {
            int got = solve((enum how)how, da, db, dx, dchange, out);
            if (got != steps)
                FAIL("%s: %d steps, not %d", names[how], got, steps);
            for (int i = 0; i < n; i++)
                if (fabs(out[i] - x[steps & 1][i]) > 1e-12 * fabs(out[i]))
                    FAIL("%s: x[%d] = %.17g, not %.17g", names[how], i, out[i], x[steps & 1][i]);
        }
    return work_pass(WORK);
}
