// SPDX-License-Identifier: Apache-2.0
// Walks graphs: breadth-first search with one launch for each level and a flag that the host reads
// back; shortest paths through a grid with a ghost zone in shared memory; sequence alignment along
// anti-diagonals. Fails if a result differs from the CPU's.
#include <algorithm>
#include <vector>
#include "work.cuh"
#define WORK "graphwalk"

struct node {
    int first, degree;
};

__global__ void visit(const node *nodes, const int *edges, bool *frontier, bool *updating, const bool *visited, int *cost, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || !frontier[i])
        return;
    frontier[i] = false;
    for (int k = nodes[i].first; k < nodes[i].first + nodes[i].degree; k++)
        if (!visited[edges[k]]) {
            cost[edges[k]] = cost[i] + 1;
            updating[edges[k]] = true;
        }
}

__global__ void settle(bool *frontier, bool *updating, bool *visited, bool *again, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && updating[i]) {
        frontier[i] = visited[i] = *again = true;
        updating[i] = false;
    }
}

static int search()
{
    const int n = 3000, degree = 4;
    std::vector<node> nodes(n);
    std::vector<int> edges, want(n, -1), got(n), queue;
    for (int i = 0; i < n; i++) {
        nodes[i] = {(int)edges.size(), (int)(work_random(i) % (2 * degree))};
        for (int k = 0; k < nodes[i].degree; k++)
            edges.push_back(work_random(i * 16 + k + n) % n);
    }
    want[0] = 0;
    queue.push_back(0);
    for (size_t q = 0; q < queue.size(); q++)
        for (int k = 0; k < nodes[queue[q]].degree; k++) {
            int to = edges[nodes[queue[q]].first + k];
            if (want[to] < 0) {
                want[to] = want[queue[q]] + 1;
                queue.push_back(to);
            }
        }
    node *dn;
    int *de, *dc;
    bool *flags, again;
    CHECK(cudaMalloc(&dn, n * sizeof *dn));
    CHECK(cudaMalloc(&de, edges.size() * sizeof *de));
    CHECK(cudaMalloc(&dc, n * sizeof *dc));
    CHECK(cudaMalloc(&flags, 3 * n + 1));
    CHECK(cudaMemcpy(dn, nodes.data(), n * sizeof *dn, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(de, edges.data(), edges.size() * sizeof *de, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(dc, 0xff, n * sizeof *dc));
    CHECK(cudaMemset(dc, 0, sizeof *dc));
    CHECK(cudaMemset(flags, 0, 3 * n + 1));
    CHECK(cudaMemset(flags, 1, 1));
    CHECK(cudaMemset(flags + 2 * n, 1, 1));
    do {
        again = false;
        CHECK(cudaMemcpy(flags + 3 * n, &again, 1, cudaMemcpyHostToDevice));
        visit<<<(n + 255) / 256, 256>>>(dn, de, flags, flags + n, flags + 2 * n, dc, n);
        settle<<<(n + 255) / 256, 256>>>(flags, flags + n, flags + 2 * n, flags + 3 * n, n);
        CHECK(cudaMemcpy(&again, flags + 3 * n, 1, cudaMemcpyDeviceToHost));
    } while (again);
    CHECK(cudaMemcpy(got.data(), dc, n * sizeof(int), cudaMemcpyDeviceToHost));
    if (got != want)
        return work_fail(WORK, "levels of a search differ");
    CHECK(cudaFree(dn));
    CHECK(cudaFree(de));
    CHECK(cudaFree(dc));
    CHECK(cudaFree(flags));
    return 0;
}

enum { WIDE = 256, HEIGHT = 20 };
__global__ void paths(int rows, const int *wall, const int *from, int *to, int cols, int first)
{
    __shared__ int prev[WIDE], next[WIDE];
    int tx = threadIdx.x, small = WIDE - 2 * rows, x = blockIdx.x * small - rows + tx;
    bool inside = x >= 0 && x < cols, mine = false;
    if (inside)
        prev[tx] = from[x];
    __syncthreads();
    for (int i = 0; i < rows; i++) {
        mine = false;
        if (tx >= i + 1 && tx <= WIDE - i - 2 && inside) {
            mine = true;
            int best = min(prev[tx], min(x > 0 ? prev[tx - 1] : prev[tx], x < cols - 1 ? prev[tx + 1] : prev[tx]));
            next[tx] = best + wall[(first + i) * cols + x];
        }
        __syncthreads();
        if (i == rows - 1)
            break;
        if (mine)
            prev[tx] = next[tx];
        __syncthreads();
    }
    if (mine)
        to[x] = next[tx];
}

static int find_paths()
{
    const int cols = 2000, rows = 61;
    std::vector<int> wall(cols * rows), want, got(cols);
    for (size_t i = 0; i < wall.size(); i++)
        wall[i] = work_random(i) % 10;
    want.assign(wall.begin(), wall.begin() + cols);
    for (int r = 1; r < rows; r++) {
        std::vector<int> now(cols);
        for (int x = 0; x < cols; x++)
            now[x] = wall[r * cols + x] + std::min(want[x], std::min(want[std::max(x - 1, 0)], want[std::min(x + 1, cols - 1)]));
        want = now;
    }
    int *dw, *d[2], at = 0;
    CHECK(cudaMalloc(&dw, wall.size() * sizeof(int)));
    CHECK(cudaMalloc(&d[0], cols * sizeof(int)));
    CHECK(cudaMalloc(&d[1], cols * sizeof(int)));
    CHECK(cudaMemcpy(dw, wall.data(), wall.size() * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d[0], dw, cols * sizeof(int), cudaMemcpyDeviceToDevice));
    for (int r = 1; r < rows; r += HEIGHT, at ^= 1) {
        int step = std::min((int)HEIGHT, rows - r), small = WIDE - 2 * step;
        paths<<<(cols + small - 1) / small, WIDE>>>(step, dw, d[at], d[!at], cols, r);
        CHECK_LAUNCH();
    }
    CHECK(cudaMemcpy(got.data(), d[at], cols * sizeof(int), cudaMemcpyDeviceToHost));
    if (got != want)
        return work_fail(WORK, "paths through a grid differ");
    CHECK(cudaFree(dw));
    CHECK(cudaFree(d[0]));
    CHECK(cudaFree(d[1]));
    return 0;
}

enum { B = 16 };
__global__ void align(const int *reference, int *items, int n, int penalty, int diagonal, bool lower)
{
    __shared__ int t[B + 1][B + 1], r[B][B];
    int bx = lower ? n / B - 1 - blockIdx.x : (int)blockIdx.x, by = diagonal - bx, tx = threadIdx.x, w = n + 1;
    int base = by * B * w + bx * B;
    for (int y = 0; y < B; y++)
        r[y][tx] = reference[base + w * (y + 1) + tx + 1];
    if (tx == 0)
        t[0][0] = items[base];
    t[tx + 1][0] = items[base + w * (tx + 1)];
    t[0][tx + 1] = items[base + tx + 1];
    __syncthreads();
    for (int m = 0; m < 2 * B - 1; m++) {
        int y = m - tx;
        if (y >= 0 && y < B)
            t[y + 1][tx + 1] = max(t[y][tx] + r[y][tx], max(t[y + 1][tx], t[y][tx + 1]) - penalty);
        __syncthreads();
    }
    for (int y = 0; y < B; y++)
        items[base + w * (y + 1) + tx + 1] = t[y + 1][tx + 1];
}

static int align_all()
{
    const int n = 160, w = n + 1, penalty = 10;
    std::vector<int> reference(w * w), items(w * w), got(w * w);
    for (int i = 0; i < w * w; i++)
        reference[i] = (int)(work_random(i) % 21) - 10;
    for (int i = 1; i < w; i++)
        items[i] = items[i * w] = -i * penalty;
    int *dr, *di;
    CHECK(cudaMalloc(&dr, w * w * sizeof(int)));
    CHECK(cudaMalloc(&di, w * w * sizeof(int)));
    CHECK(cudaMemcpy(dr, reference.data(), w * w * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(di, items.data(), w * w * sizeof(int), cudaMemcpyHostToDevice));
    for (int d = 0; d < 2 * (n / B) - 1; d++) {
        bool lower = d >= n / B;
        align<<<lower ? 2 * (n / B) - 1 - d : d + 1, B>>>(dr, di, n, penalty, d, lower);
    }
    CHECK(cudaMemcpy(got.data(), di, w * w * sizeof(int), cudaMemcpyDeviceToHost));
    for (int y = 1; y < w; y++)
        for (int x = 1; x < w; x++)
            items[y * w + x] = std::max(items[(y - 1) * w + x - 1] + reference[y * w + x],
                                        std::max(items[y * w + x - 1], items[(y - 1) * w + x]) - penalty);
    if (got != items)
        return work_fail(WORK, "alignments differ");
    CHECK(cudaFree(dr));
    CHECK(cudaFree(di));
    return 0;
}

int main()
{
    return search() || find_paths() || align_all() ? 1 : work_pass(WORK);
}
