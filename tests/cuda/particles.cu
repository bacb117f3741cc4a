// SPDX-License-Identifier: Apache-2.0
// Computes bodies that attract each other (float4, tiles in shared memory, rsqrtf), particles in
// boxes of neighbours, clusters of points (k-means), and nearest neighbours, in single precision.
// Fails if a result is outside of its tolerance from the host's double precision.
#include <math.h>
#include <float.h>
#include <vector>
#include "work.cuh"
#define WORK "particles"

__device__ float3 attract(float3 sum, float4 me, float4 other, float soft)
{
    float3 r = make_float3(other.x - me.x, other.y - me.y, other.z - me.z);
    float inverse = rsqrtf(r.x * r.x + r.y * r.y + r.z * r.z + soft), s = other.w * inverse * inverse * inverse;
    return make_float3(sum.x + r.x * s, sum.y + r.y * s, sum.z + r.z * s);
}

__global__ void bodies(const float4 *p, float4 *force, int n, float soft)
{
    extern __shared__ float4 tile[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = p[min(i, n - 1)];
    float3 sum = {0, 0, 0};
    for (int t = 0; t < n; t += blockDim.x) {
        tile[threadIdx.x] = t + threadIdx.x < n ? p[t + threadIdx.x] : make_float4(0, 0, 0, 0);
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < blockDim.x; k++)
            sum = attract(sum, me, tile[k], soft);
        __syncthreads();
    }
    if (i < n)
        force[i] = make_float4(sum.x, sum.y, sum.z, 0);
}

struct box {
    int n_neighbours;
    int neighbours[26];
};
__global__ void in_boxes(const box *boxes, const float4 *p, float4 *force, int per_box, float alpha)
{
    __shared__ float4 mine[64], theirs[64];
    int b = blockIdx.x, t = threadIdx.x;
    float4 sum = {0, 0, 0, 0};
    mine[t] = p[b * per_box + t];
    for (int k = 0; k <= boxes[b].n_neighbours; k++) {
        int other = k ? boxes[b].neighbours[k - 1] : b;
        __syncthreads();
        theirs[t] = p[other * per_box + t];
        __syncthreads();
        for (int j = 0; j < per_box; j++) {
            float dx = mine[t].x - theirs[j].x, dy = mine[t].y - theirs[j].y, dz = mine[t].z - theirs[j].z;
            float v = expf(-alpha * (dx * dx + dy * dy + dz * dz)) * theirs[j].w;
            sum.x += v * dx;
            sum.y += v * dy;
            sum.z += v * dz;
            sum.w += v;
        }
    }
    force[b * per_box + t] = sum;
}

__global__ void nearest_centre(const float4 *p, const float4 *centres, int *member, float *sums, int *counts, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, best = 0;
    float least = FLT_MAX;
    if (i >= n)
        return;
    for (int c = 0; c < k; c++) {
        float dx = p[i].x - centres[c].x, dy = p[i].y - centres[c].y, dz = p[i].z - centres[c].z;
        float d = dx * dx + dy * dy + dz * dz;
        if (d < least) {
            least = d;
            best = c;
        }
    }
    member[i] = best;
    atomicAdd(&counts[best], 1);
    atomicAdd(&sums[best], p[i].w);
}

static bool close(double got, double want)
{
    return fabs(got - want) <= 2e-4 * (1 + fabs(want));
}

int main()
{
    const int boxes = 27, per_box = 64, n = boxes * per_box, k = 6;
    std::vector<float4> p(n), got(n), centres(k);
    std::vector<box> b(boxes);
    for (int i = 0; i < n; i++)
        p[i] = make_float4((work_random(4 * i) & 4095) / 1024.f, (work_random(4 * i + 1) & 4095) / 1024.f,
                           (work_random(4 * i + 2) & 4095) / 1024.f, (float)(work_random(4 * i + 3) & 7));
    for (int i = 0; i < boxes; i++) {
        b[i].n_neighbours = 0;
        for (int j = 0; j < boxes; j++)
            if (j != i && abs(i % 3 - j % 3) <= 1 && abs(i / 3 % 3 - j / 3 % 3) <= 1 && abs(i / 9 - j / 9) <= 1)
                b[i].neighbours[b[i].n_neighbours++] = j;
    }
    float4 *dp, *df, *dc;
    box *db;
    int *dm, *counts, members[n], n_members[k];
    float *sums, sum_of[k];
    CHECK(cudaMalloc(&dp, n * sizeof *dp));
    CHECK(cudaMalloc(&df, n * sizeof *df));
    CHECK(cudaMalloc(&dc, k * sizeof *dc));
    CHECK(cudaMalloc(&db, boxes * sizeof *db));
    CHECK(cudaMalloc(&dm, n * sizeof *dm));
    CHECK(cudaMalloc(&counts, k * sizeof *counts));
    CHECK(cudaMalloc(&sums, k * sizeof *sums));
    CHECK(cudaMemcpy(dp, p.data(), n * sizeof *dp, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(db, b.data(), boxes * sizeof *db, cudaMemcpyHostToDevice));
    const int some = 500;
    bodies<<<(some + 127) / 128, 128, 128 * sizeof(float4)>>>(dp, df, some, 0.01f);
    CHECK(cudaMemcpy(got.data(), df, some * sizeof *df, cudaMemcpyDeviceToHost));
    for (int i = 0; i < some; i++) {
        double x = 0, y = 0, z = 0, size = 0;
        for (int j = 0; j < some; j++) {
            double dx = p[j].x - p[i].x, dy = p[j].y - p[i].y, dz = p[j].z - p[i].z;
            double s = p[j].w / pow(dx * dx + dy * dy + dz * dz + (double)0.01f, 1.5);
            x += dx * s;
            y += dy * s;
            z += dz * s;
            size += fabs(dx * s) + fabs(dy * s) + fabs(dz * s);
        }
        if (fabs(got[i].x - x) > 1e-4 * size || fabs(got[i].y - y) > 1e-4 * size || fabs(got[i].z - z) > 1e-4 * size)
            return work_fail(WORK, "body %d: %g %g %g, not %g %g %g", i, got[i].x, got[i].y, got[i].z, x, y, z);
    }
    in_boxes<<<boxes, per_box>>>(db, dp, df, per_box, 0.5f);
    CHECK(cudaMemcpy(got.data(), df, n * sizeof *df, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i += 37) {
        double sum = 0;
        for (int m = -1; m < b[i / per_box].n_neighbours; m++)
            for (int j = 0; j < per_box; j++) {
                const float4 &o = p[(m < 0 ? i / per_box : b[i / per_box].neighbours[m]) * per_box + j];
                double dx = p[i].x - o.x, dy = p[i].y - o.y, dz = p[i].z - o.z;
                sum += exp(-0.5 * (dx * dx + dy * dy + dz * dz)) * o.w;
            }
        if (!close(got[i].w, sum))
            return work_fail(WORK, "potential %d is %g, not %g", i, got[i].w, sum);
    }
    for (int c = 0; c < k; c++)
        centres[c] = p[c * 100];
    CHECK(cudaMemcpy(dc, centres.data(), k * sizeof *dc, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(counts, 0, k * sizeof *counts));
    CHECK(cudaMemset(sums, 0, k * sizeof *sums));
    nearest_centre<<<(n + 255) / 256, 256>>>(dp, dc, dm, sums, counts, n, k);
    CHECK(cudaMemcpy(members, dm, sizeof members, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(n_members, counts, sizeof n_members, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(sum_of, sums, sizeof sum_of, cudaMemcpyDeviceToHost));
    for (int c = 0; c < k; c++) {
        int count = 0;
        double sum = 0;
        for (int i = 0; i < n; i++)
            if (members[i] == c) {
                count++;
                sum += p[i].w;
            }
        if (count != n_members[c] || sum != sum_of[c])
            return work_fail(WORK, "cluster %d: %d points of %g, not %d of %g", c, n_members[c], sum_of[c], count, sum);
    }
    for (int i = 0; i < n; i++) {
        double d[k];
        for (int c = 0; c < k; c++)
            d[c] = pow((double)p[i].x - centres[c].x, 2) + pow((double)p[i].y - centres[c].y, 2) + pow((double)p[i].z - centres[c].z, 2);
        for (int c = 0; c < k; c++)
            if (d[c] < d[members[i]] - 1e-5)
                return work_fail(WORK, "point %d is nearer to %d than to %d", i, c, members[i]);
    }
    CHECK(cudaFree(dp));
    CHECK(cudaFree(df));
    CHECK(cudaFree(dc));
    CHECK(cudaFree(db));
    CHECK(cudaFree(dm));
    CHECK(cudaFree(counts));
    CHECK(cudaFree(sums));
    return work_pass(WORK);
}
