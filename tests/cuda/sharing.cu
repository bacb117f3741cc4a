// SPDX-License-Identifier: Apache-2.0
// Usage: sharing [-] ROUNDS. A process whose memory and event another one imports by handles. In
// every second round the importer kills itself in the middle of its work; the memory must stay
// right. tests/process/kills.sh kills the exporter itself; then the importer ends too, after some
// more work on the memory that it still has.
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#define RT(x)                                                                                      \
    do {                                                                                           \
        cudaError_t e_ = (x);                                                                      \
        if (e_ != cudaSuccess) {                                                                   \
            std::printf("FAIL sharing: line %d: %s: %s\n", __LINE__, #x, cudaGetErrorString(e_));  \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)
enum { N = 1 << 16 };

__global__ void add(uint32_t *p, uint32_t n, uint32_t v)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i] += v;
}

struct handles {
    cudaIpcMemHandle_t memory;
    cudaIpcEventHandle_t event;
};

static bool parent_lives()
{
    pollfd p = {0, POLLIN, 0};
    return poll(&p, 1, 0) == 0;
}

/* Adds 1 to the first half again and again; the second half is the exporter's. */
static int import(bool die, unsigned seed)
{
    handles h;
    uint32_t *p;
    cudaEvent_t e;
    if (read(0, &h, sizeof h) != sizeof h)
        return 1;
    srand(seed);
    RT(cudaIpcOpenMemHandle((void **)&p, h.memory, cudaIpcMemLazyEnablePeerAccess));
    RT(cudaIpcOpenEventHandle(&e, h.event));
    for (int i = 0; i < 3; i++) {
        add<<<N / 2 / 256, 256>>>(p, N / 2, 1);
        RT(cudaEventRecord(e));
        RT(cudaStreamWaitEvent(0, e, 0));
        RT(cudaDeviceSynchronize());
    }
    if (die) {
        for (int i = rand() % 8; i; i--)
            add<<<N / 2 / 256, 256>>>(p, N / 2, 0);
        usleep(unsigned(rand()) % 1000);
        raise(SIGKILL);
    }
    while (parent_lives()) /* until it is killed, or closes our input */
        usleep(1000);
    add<<<N / 2 / 256, 256>>>(p, N / 2, 0);
    RT(cudaDeviceSynchronize());
    RT(cudaIpcCloseMemHandle(p));
    RT(cudaEventDestroy(e));
    return 0;
}

static void round(const char *self, int r, uint32_t *p, const handles &h)
{
    extern char **environ;
    int in[2], status;
    pid_t pid;
    char seed[16];
    bool die = r % 2;
    posix_spawn_file_actions_t a;
    if (pipe(in))
        std::exit(1);
    std::snprintf(seed, sizeof seed, "%d", r + int(getpid()));
    char *const argv[] = {(char *)self, (char *)"import", (char *)(die ? "die" : "live"), seed, nullptr};
    posix_spawn_file_actions_init(&a);
    posix_spawn_file_actions_adddup2(&a, in[0], 0);
    posix_spawn_file_actions_addclose(&a, in[1]);
    posix_spawn_file_actions_addclose(&a, in[0]);
    if (posix_spawn(&pid, "/proc/self/exe", &a, nullptr, argv, environ))
        std::exit(1);
    posix_spawn_file_actions_destroy(&a);
    close(in[0]);
    if (write(in[1], &h, sizeof h) != sizeof h)
        std::exit(1);
    for (int i = 0; i < 20; i++) {
        add<<<N / 2 / 256, 256>>>(p + N / 2, N / 2, 1);
        if (i % 4 == 0)
            RT(cudaDeviceSynchronize());
        usleep(500);
    }
    close(in[1]);
    if (waitpid(pid, &status, 0) != pid ||
        (die ? !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL : status != 0)) {
        std::printf("FAIL sharing: the importer ended with %#x\n", status);
        std::exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc > 3 && !std::strcmp(argv[1], "import"))
        return import(!std::strcmp(argv[2], "die"), unsigned(std::atoi(argv[3])));
    int rounds = argc > 2 ? std::atoi(argv[2]) : 4;
    std::vector<uint32_t> host(N);
    handles h;
    uint32_t *p;
    cudaEvent_t e;
    signal(SIGPIPE, SIG_IGN);
    RT(cudaMalloc(&p, N * sizeof *p));
    RT(cudaMemset(p, 0, N * sizeof *p));
    RT(cudaEventCreateWithFlags(&e, cudaEventDisableTiming | cudaEventInterprocess));
    RT(cudaIpcGetMemHandle(&h.memory, p));
    RT(cudaIpcGetEventHandle(&h.event, e));
    RT(cudaDeviceSynchronize());
    for (int r = 0; r < rounds; r++) {
        round(argv[0], r, p, h);
        RT(cudaMemcpy(host.data(), p, N * sizeof *p, cudaMemcpyDeviceToHost));
        for (uint32_t i = 0; i < N; i++)
            if (host[i] != uint32_t(r + 1) * (i < N / 2 ? 3 : 20)) {
                std::printf("FAIL sharing: round %d, word %u: %u\n", r, i, host[i]);
                return 1;
            }
    }
    RT(cudaFree(p));
    RT(cudaEventDestroy(e));
    std::printf("PASS sharing\n");
}
