// SPDX-License-Identifier: Apache-2.0
// Computes an LU decomposition in tiles (diagonal, perimeter, interior), Gaussian elimination with
// one launch for each column, and eigenvalues of a tridiagonal matrix by bisection, all in double.
// Fails if a result differs from the host's.
#include <math.h>
#include <vector>
#include "work.cuh"
#define WORK "factor"

enum { B = 16 };
__global__ void diagonal(double *m, int n, int o)
{
    __shared__ double s[B][B];
    int t = threadIdx.x;
    for (int i = 0; i < B; i++)
        s[i][t] = m[(o + i) * n + o + t];
    __syncthreads();
    for (int i = 0; i < B - 1; i++) {
        if (t > i) {
            for (int j = 0; j < i; j++)
                s[t][i] -= s[t][j] * s[j][i];
            s[t][i] /= s[i][i];
        }
        __syncthreads();
        if (t > i)
            for (int j = 0; j < i + 1; j++)
                s[i + 1][t] -= s[i + 1][j] * s[j][t];
        __syncthreads();
    }
    for (int i = 1; i < B; i++)
        m[(o + i) * n + o + t] = s[i][t];
}

__global__ void perimeter(double *m, int n, int o)
{
    __shared__ double d[B][B], row[B][B], col[B][B];
    int t = threadIdx.x % B, at = o + (blockIdx.x + 1) * B;
    for (int i = 0; i < B; i++)
        if (threadIdx.x < B) {
            d[i][t] = m[(o + i) * n + o + t];
            row[i][t] = m[(o + i) * n + at + t];
        } else {
            col[i][t] = m[(at + i) * n + o + t];
        }
    __syncthreads();
    if (threadIdx.x < B) {
        for (int i = 1; i < B; i++)
            for (int j = 0; j < i; j++)
                row[i][t] -= d[i][j] * row[j][t];
    } else {
        for (int i = 0; i < B; i++) {
            for (int j = 0; j < i; j++)
                col[t][i] -= col[t][j] * d[j][i];
            col[t][i] /= d[i][i];
        }
    }
    __syncthreads();
    for (int i = 0; i < B; i++)
        if (threadIdx.x < B)
            m[(o + i) * n + at + t] = row[i][t];
        else
            m[(at + i) * n + o + t] = col[i][t];
}

__global__ void interior(double *m, int n, int o)
{
    __shared__ double row[B][B], col[B][B];
    int x = o + (blockIdx.x + 1) * B, y = o + (blockIdx.y + 1) * B;
    row[threadIdx.y][threadIdx.x] = m[(o + threadIdx.y) * n + x + threadIdx.x];
    col[threadIdx.y][threadIdx.x] = m[(y + threadIdx.y) * n + o + threadIdx.x];
    __syncthreads();
    double sum = 0;
    for (int k = 0; k < B; k++)
        sum += col[threadIdx.y][k] * row[k][threadIdx.x];
    m[(y + threadIdx.y) * n + x + threadIdx.x] -= sum;
}

__global__ void multipliers(double *f, const double *a, int n, int t)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n - 1 - t)
        f[i + t + 1] = a[n * (i + t + 1) + t] / a[n * t + t];
}

__global__ void eliminate(const double *f, double *a, double *b, int n, int t)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n - t || y >= n - 1 - t)
        return;
    a[n * (y + t + 1) + x + t] -= f[y + t + 1] * a[n * t + x + t];
    if (x == 0)
        b[y + t + 1] -= f[y + t + 1] * b[t];
}

// How many eigenvalues lie below x: sign changes of the Sturm sequence.
__device__ int below(const double *d, const double *e, int n, double x)
{
    int count = 0;
    double q = d[0] - x;
    for (int i = 0;;) {
        count += q < 0;
        if (++i == n)
            return count;
        q = d[i] - x - e[i - 1] * e[i - 1] / (q != 0 ? q : 1e-300);
    }
}

__global__ void bisect(const double *d, const double *e, double *values, int n, double lo, double hi)
{
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= n)
        return;
    for (int i = 0; i < 100 && hi - lo > 1e-13; i++) {
        double mid = 0.5 * (lo + hi);
        if (below(d, e, n, mid) > k)
            hi = mid;
        else
            lo = mid;
    }
    values[k] = 0.5 * (lo + hi);
}

int main()
{
    const int n = 96;
    std::vector<double> a(n * n), got(n * n), b(n), x(n), d(n, 2.0), e(n, -1.0);
    for (int i = 0; i < n * n; i++)
        a[i] = (double)(work_random(i) & 1023) / 1024 + (i % (n + 1) ? 0 : n);
    for (int i = 0; i < n; i++)
        b[i] = (double)(work_random(i + n * n) & 1023);
    double *da, *db, *df;
    CHECK(cudaMalloc(&da, n * n * sizeof(double)));
    CHECK(cudaMalloc(&db, n * sizeof(double)));
    CHECK(cudaMalloc(&df, n * sizeof(double)));
    CHECK(cudaMemcpy(da, a.data(), n * n * sizeof(double), cudaMemcpyHostToDevice));
    for (int o = 0; o < n; o += B) {
        int rest = (n - o) / B - 1;
        diagonal<<<1, B>>>(da, n, o);
        if (!rest)
            break;
        perimeter<<<rest, 2 * B>>>(da, n, o);
        interior<<<dim3(rest, rest), dim3(B, B)>>>(da, n, o);
    }
    CHECK(cudaMemcpy(got.data(), da, n * n * sizeof(double), cudaMemcpyDeviceToHost));
    for (int y = 0; y < n; y++)
        for (int c = 0; c < n; c++) {
            double sum = 0;
            for (int k = 0; k <= (y < c ? y : c); k++)
                sum += (k == y ? 1 : got[y * n + k]) * got[k * n + c];
            if (!(fabs(sum - a[y * n + c]) < 1e-10 * n))
                return work_fail(WORK, "L U at %d, %d is %g, not %g", y, c, sum, a[y * n + c]);
        }
    CHECK(cudaMemcpy(da, a.data(), n * n * sizeof(double), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(db, b.data(), n * sizeof(double), cudaMemcpyHostToDevice));
    for (int t = 0; t < n - 1; t++) {
        multipliers<<<1, n>>>(df, da, n, t);
        eliminate<<<dim3((n - t + 15) / 16, (n - t + 15) / 16), dim3(16, 16)>>>(df, da, db, n, t);
    }
    std::vector<double> u(n * n), y(n);
    CHECK(cudaMemcpy(u.data(), da, n * n * sizeof(double), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(y.data(), db, n * sizeof(double), cudaMemcpyDeviceToHost));
    for (int i = n; i-- > 0;) {
        x[i] = y[i];
        for (int k = i + 1; k < n; k++)
            x[i] -= u[i * n + k] * x[k];
        x[i] /= u[i * n + i];
    }
    for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int k = 0; k < n; k++)
            sum += a[i * n + k] * x[k];
        if (!(fabs(sum - b[i]) < 1e-9 * (1 + fabs(b[i]))))
            return work_fail(WORK, "equation %d gives %g, not %g", i, sum, b[i]);
    }
    CHECK(cudaMemcpy(da, d.data(), n * sizeof(double), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(db, e.data(), n * sizeof(double), cudaMemcpyHostToDevice));
    bisect<<<3, 32>>>(da, db, df, n, 0.0, 4.0);
    CHECK(cudaMemcpy(x.data(), df, n * sizeof(double), cudaMemcpyDeviceToHost));
    for (int k = 0; k < n; k++) {
        double want = 2 - 2 * cos((k + 1) * M_PI / (n + 1));
        if (!(fabs(x[k] - want) < 1e-11))
            return work_fail(WORK, "eigenvalue %d is %.15g, not %.15g", k, x[k], want);
    }
    CHECK(cudaFree(da));
    CHECK(cudaFree(db));
    CHECK(cudaFree(df));
    return work_pass(WORK);
}
