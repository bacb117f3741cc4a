// SPDX-License-Identifier: Apache-2.0
// Computes depth from two pictures: for each pixel the shift with the least sum of absolute
// differences over a square, four bytes at once by a video instruction. The pictures are read
// through textures of 32-bit texels. Fails if a bit differs from the CPU's answer.
#define WORK "stereo"
#include "work.cuh"

enum { RADIUS = 4, SHIFTS = 16, TILE = 16 };

__device__ unsigned absolute_differences(unsigned a, unsigned b, unsigned c)
{
    unsigned d;
    asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}

__global__ void disparity(unsigned *best_shift, int w, int h, cudaTextureObject_t left,
                          cudaTextureObject_t right)
{
    __shared__ unsigned diff[TILE + 2 * RADIUS][TILE + 2 * RADIUS];
    int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * TILE + tx, y = blockIdx.y * TILE + ty;
    unsigned least = ~0u, best = 0;
    for (int shift = 0; shift < SHIFTS; shift++) {
        for (int j = ty; j < TILE + 2 * RADIUS; j += TILE)
            for (int i = tx; i < TILE + 2 * RADIUS; i += TILE) {
                int px = (int)blockIdx.x * TILE + i - RADIUS,
                    py = (int)blockIdx.y * TILE + j - RADIUS;
                unsigned a = tex2D<unsigned>(left, px, py),
                         b = tex2D<unsigned>(right, px - shift, py);
                diff[j][i] = absolute_differences(a, b, 0);
            }
        __syncthreads();
        unsigned sum = 0;
        for (int j = 0; j <= 2 * RADIUS; j++)
            for (int i = 0; i <= 2 * RADIUS; i++)
                sum += diff[ty + j][tx + i];
        if (sum < least) {
            least = sum;
            best = shift;
        }
        __syncthreads();
    }
    if (x < w && y < h)
        best_shift[y * w + x] = best;
}

// The other instructions of the family, each against plain C below.
__global__ void family(const unsigned *a, const unsigned *b, unsigned *out, int n)
{
    int i = threadIdx.x;
    unsigned x = a[i], y = b[i], r[8];
    asm("vadd4.u32.u32.u32.sat %0, %1, %2, %3;" : "=r"(r[0]) : "r"(x), "r"(y), "r"(0));
    asm("vsub2.s32.s32.s32.sat %0, %1, %2, %3;" : "=r"(r[1]) : "r"(x), "r"(y), "r"(0));
    asm("vavrg4.u32.u32.u32 %0, %1, %2, %3;" : "=r"(r[2]) : "r"(x), "r"(y), "r"(0));
    asm("vmax2.s32.s32.s32 %0, %1, %2, %3;" : "=r"(r[3]) : "r"(x), "r"(y), "r"(0));
    asm("vset4.u32.u32.gt %0, %1, %2, %3;" : "=r"(r[4]) : "r"(x), "r"(y), "r"(0));
    asm("vadd.s32.u32.s32 %0, %1.b1, %2.h1;" : "=r"(r[5]) : "r"(x), "r"(y));
    asm("vmad.u32.u32.u32.shr7 %0, %1.h0, %2.b3, %3;" : "=r"(r[6]) : "r"(x), "r"(y), "r"(i));
    r[7] = __vabsdiffu4(x, y);
    for (int k = 0; k < 8; k++)
        out[k * n + i] = r[k];
}
static int limit(int v, int low, int high)
{
    return v < low ? low : v > high ? high : v;
}
static int check_family(void)
{
    const int n = 256;
    unsigned a[n], b[n], got[8 * n], *d;
    for (int i = 0; i < n; i++) {
        a[i] = (unsigned)work_random(i);
        b[i] = (unsigned)work_random(i + n);
    }
    CHECK(cudaMalloc(&d, 10 * n * 4));
    CHECK(cudaMemcpy(d, a, n * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d + n, b, n * 4, cudaMemcpyHostToDevice));
    family<<<1, n>>>(d, d + n, d + 2 * n, n);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(got, d + 2 * n, 8 * n * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        unsigned want[8] = {0};
        for (int k = 0; k < 32; k += 8) {
            int x = a[i] >> k & 255, y = b[i] >> k & 255;
            want[0] |= (unsigned)limit(x + y, 0, 255) << k;
            want[2] |= (unsigned)((x + y + 1) / 2) << k;
            want[4] |= (unsigned)(x > y) << k;
            want[7] |= (unsigned)abs(x - y) << k;
        }
        for (int k = 0; k < 32; k += 16) {
            int x = (short)(a[i] >> k), y = (short)(b[i] >> k);
            want[1] |= (unsigned)(limit(x - y, -32768, 32767) & 0xffff) << k;
            want[3] |= (unsigned)((x > y ? x : y) & 0xffff) << k;
        }
        want[5] = (a[i] >> 8 & 255) + (short)(b[i] >> 16);
        want[6] = ((a[i] & 0xffff) * (b[i] >> 24) + i) >> 7;
        for (int k = 0; k < 8; k++)
            if (got[k * n + i] != want[k])
                return work_fail(WORK, "instruction %d of a %08x b %08x gave %08x, not %08x", k,
                                 a[i], b[i], got[k * n + i], want[k]);
    }
    CHECK(cudaFree(d));
    return 0;
}

static cudaTextureObject_t picture(const unsigned *pixels, int w, int h, unsigned **d)
{
    size_t pitch;
    cudaResourceDesc resource = {};
    cudaTextureDesc how = {};
    cudaTextureObject_t t;
    CHECK(cudaMallocPitch(d, &pitch, w * 4, h));
    CHECK(cudaMemcpy2D(*d, pitch, pixels, w * 4, w * 4, h, cudaMemcpyHostToDevice));
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = *d;
    resource.res.pitch2D.desc = cudaCreateChannelDesc<unsigned>();
    resource.res.pitch2D.width = w;
    resource.res.pitch2D.height = h;
    resource.res.pitch2D.pitchInBytes = pitch;
    how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
    how.filterMode = cudaFilterModePoint;
    how.readMode = cudaReadModeElementType;
    CHECK(cudaCreateTextureObject(&t, &resource, &how, NULL));
    return t;
}

static unsigned pixel(const unsigned *p, int x, int y, int w, int h)
{
    return p[limit(y, 0, h - 1) * w + limit(x, 0, w - 1)];
}
static unsigned cpu_disparity(const unsigned *l, const unsigned *r, int x, int y, int w, int h)
{
    unsigned least = ~0u, best = 0;
    for (int shift = 0; shift < SHIFTS; shift++) {
        unsigned sum = 0;
        for (int j = -RADIUS; j <= RADIUS; j++)
            for (int i = -RADIUS; i <= RADIUS; i++) {
                unsigned a = pixel(l, x + i, y + j, w, h), b = pixel(r, x + i - shift, y + j, w, h);
                for (int k = 0; k < 32; k += 8)
                    sum += (unsigned)abs((int)(a >> k & 255) - (int)(b >> k & 255));
            }
        if (sum < least) {
            least = sum;
            best = shift;
        }
    }
    return best;
}

int main(int argc, char **argv)
{
    int w = (int)work_arg(argc, argv, 1, 80, 1024), h = w * 3 / 5 + 1;
    unsigned *left = (unsigned *)work_alloc(w * h * 4), *right = (unsigned *)work_alloc(w * h * 4),
             *got = (unsigned *)work_alloc(w * h * 4), *d, *dl, *dr;
    if (check_family())
        return 1;
    for (int y = 0; y < h; y++) // a scene whose depth grows from left to right
        for (int x = 0; x < w; x++)
            right[y * w + x] = (unsigned)work_random(y * w + x);
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++)
            left[y * w + x] = pixel(right, x - 1 - 8 * x / w, y, w, h) ^
                              (unsigned)(work_random(y * w + x + 1000000) & 0x03030303);
    CHECK(cudaMalloc(&d, w * h * 4));
    cudaTextureObject_t tl = picture(left, w, h, &dl), tr = picture(right, w, h, &dr);
    disparity<<<dim3((w + TILE - 1) / TILE, (h + TILE - 1) / TILE), dim3(TILE, TILE)>>>(d, w, h, tl,
                                                                                        tr);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(got, d, w * h * 4, cudaMemcpyDeviceToHost));
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            unsigned want = cpu_disparity(left, right, x, y, w, h);
            if (got[y * w + x] != want)
                return work_fail(WORK, "shift at (%d, %d) is %u, not %u", x, y, got[y * w + x],
                                 want);
        }
    CHECK(cudaDestroyTextureObject(tl));
    CHECK(cudaDestroyTextureObject(tr));
    CHECK(cudaFree(d));
    CHECK(cudaFree(dl));
    CHECK(cudaFree(dr));
    return work_pass(WORK);
}
