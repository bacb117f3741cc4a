// SPDX-License-Identifier: Apache-2.0
// A camera's pipeline as a periodic program that knows wattshare.h: it waits for its release, takes
// a picture, smooths it and finds edges on two streams, and asks what the job took. Its pictures
// must be right under any daemon, and without one that tells it periods.
#include <vector>
#include "../../frontend/wattshare.h"
#include "work.cuh"
#define WORK "periodic"

static const int W = 160, H = 96;

__global__ void smooth(const unsigned char *in, unsigned char *out)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= W || y >= H)
        return;
    int sum = 0, n = 0;
    for (int j = max(y - 1, 0); j <= min(y + 1, H - 1); j++)
        for (int i = max(x - 1, 0); i <= min(x + 1, W - 1); i++, n++)
            sum += in[j * W + i];
    out[y * W + x] = (unsigned char)(sum / n);
}

__global__ void edges(const unsigned char *in, unsigned *count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < W * H && i % W && abs(in[i] - in[i - 1]) > 32)
        atomicAdd(count, 1);
}

static unsigned char pixel(int frame, int i)
{
    unsigned v = (unsigned)(i * 2654435761u) ^ (unsigned)(frame * 40503u);
    return (unsigned char)(v >> 13);
}

static unsigned want(const std::vector<unsigned char> &in, std::vector<unsigned char> &out)
{
    unsigned count = 0;
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            int sum = 0, n = 0;
            for (int j = y - 1; j <= y + 1; j++)
                for (int i = x - 1; i <= x + 1; i++)
                    if (i >= 0 && j >= 0 && i < W && j < H)
                        sum += in[j * W + i], n++;
            out[y * W + x] = (unsigned char)(sum / n);
        }
    for (int i = 0; i < W * H; i++)
        count += i % W && abs(in[i] - in[i - 1]) > 32;
    return count;
}

int main(int argc, char **argv)
{
    long frames = work_arg(argc, argv, 1, 4, 100000) % 64 + 2;
    std::vector<unsigned char> in(W * H), out(W * H), cpu(W * H);
    unsigned char *d_in, *d_out;
    unsigned *d_count, count;
    uint64_t release = 0, last = 0;
    cudaStream_t s[2];
    cudaEvent_t there;
    CHECK(cudaMalloc(&d_in, W * H));
    CHECK(cudaMalloc(&d_out, W * H));
    CHECK(cudaMalloc(&d_count, sizeof *d_count));
    CHECK(cudaEventCreateWithFlags(&there, cudaEventDisableTiming));
    for (int i = 0; i < 2; i++)
        CHECK(cudaStreamCreate(&s[i]));
    for (int f = 0; f < frames; f++) {
        int r = wattshare_wait_period(&release);
        if (r != WATTSHARE_OK && r != WATTSHARE_NONE && r != WATTSHARE_ABSENT)
            return work_fail(WORK, "waiting gave %d", r);
        if (r == WATTSHARE_OK && f && release <= last)
            return work_fail(WORK, "a release at %llu after %llu", (unsigned long long)release,
                             (unsigned long long)last);
        last = release;
        bool marked = wattshare_job_begin(20000000) == WATTSHARE_OK;
        if (r == WATTSHARE_OK && !marked)
            return work_fail(WORK, "a job does not begin");
        for (int i = 0; i < W * H; i++)
            in[i] = pixel(f, i);
        CHECK(cudaMemcpyAsync(d_in, in.data(), W * H, cudaMemcpyHostToDevice, s[0]));
        CHECK(cudaEventRecord(there, s[0]));
        CHECK(cudaStreamWaitEvent(s[1], there, 0));
        smooth<<<dim3((W + 31) / 32, (H + 7) / 8), dim3(32, 8), 0, s[0]>>>(d_in, d_out);
        CHECK(cudaMemsetAsync(d_count, 0, sizeof *d_count, s[1]));
        edges<<<(W * H + 127) / 128, 128, 0, s[1]>>>(d_in, d_count);
        CHECK(cudaMemcpyAsync(out.data(), d_out, W * H, cudaMemcpyDeviceToHost, s[0]));
        CHECK(cudaMemcpyAsync(&count, d_count, sizeof count, cudaMemcpyDeviceToHost, s[1]));
        if (marked) { // waits for both streams
            struct wattshare_job job;
            if (wattshare_job_end() || wattshare_job_stats(&job))
                return work_fail(WORK, "a job does not end");
            if (job.deadline_ns != 20000000 || job.end_ns < job.release_ns || !job.energy_uj ||
                job.response_ns != job.end_ns - job.release_ns ||
                job.met != (job.response_ns <= job.deadline_ns) ||
                (r == WATTSHARE_OK && job.release_ns != release))
                return work_fail(WORK, "job %d: released %llu, ended %llu, met %d", f,
                                 (unsigned long long)job.release_ns, (unsigned long long)job.end_ns,
                                 (int)job.met);
        } else {
            CHECK(cudaDeviceSynchronize());
        }
        unsigned n = want(in, cpu);
        if (count != n || out != cpu)
            return work_fail(WORK, "picture %d: %u edges, not %u%s", f, count, n,
                             out != cpu ? ", and smoothed wrong" : "");
    }
    for (int i = 0; i < 2; i++)
        CHECK(cudaStreamDestroy(s[i]));
    CHECK(cudaEventDestroy(there));
    CHECK(cudaFree(d_in));
    CHECK(cudaFree(d_out));
    CHECK(cudaFree(d_count));
    return work_pass(WORK);
}
