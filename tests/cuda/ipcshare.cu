// SPDX-License-Identifier: Apache-2.0
/* Two processes: the parent passes memory and an event by handles through a pipe, and a pool, one
 * of its pointers and an object of physical memory by descriptors over a socket. The child is
 * forked before CUDA is used. Fails if one of them does not see what the other wrote. */
#include <cuda.h>
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#define EXPECT(call, want)                                                                         \
    do {                                                                                           \
        long e_ = (long)(call);                                                                    \
        if (e_ != (long)(want)) {                                                                  \
            printf("FAIL ipcshare: line %d: %s: %ld, not %ld\n", __LINE__, #call, e_,              \
                   (long)(want));                                                                  \
            exit(1);                                                                               \
        }                                                                                          \
        (void)cudaGetLastError();                                                                  \
    } while (0)
#define RT(call) EXPECT(call, cudaSuccess)
enum { N = 50000 };

__global__ void add(int *p, int n, int v)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        p[i] += v;
}

static void put(int fd, const void *p, size_t n)
{
    EXPECT(write(fd, p, n), n);
}
static void get(int fd, void *p, size_t n)
{
    for (char *at = (char *)p; n;) {
        ssize_t r = read(fd, at, n);
        if (r <= 0)
            exit(1); /* the other side has said why */
        at += r;
        n -= r;
    }
}
static void send_fd(int to, int fd)
{
    char byte = 0, control[CMSG_SPACE(sizeof fd)] = {};
    iovec iov = {&byte, 1};
    msghdr m = {};
    m.msg_iov = &iov;
    m.msg_iovlen = 1;
    m.msg_control = control;
    m.msg_controllen = sizeof control;
    cmsghdr *h = CMSG_FIRSTHDR(&m);
    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(h), &fd, sizeof fd);
    EXPECT(sendmsg(to, &m, 0), 1);
}
static int recv_fd(int from)
{
    char byte, control[CMSG_SPACE(sizeof(int))];
    iovec iov = {&byte, 1};
    msghdr m = {};
    m.msg_iov = &iov;
    m.msg_iovlen = 1;
    m.msg_control = control;
    m.msg_controllen = sizeof control;
    if (recvmsg(from, &m, 0) != 1)
        exit(1);
    int fd;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
    return fd;
}

#define FN(name) static decltype(&name) p_##name
FN(cuMemAddressReserve);
FN(cuMemAddressFree);
FN(cuMemCreate);
FN(cuMemRelease);
FN(cuMemMap);
FN(cuMemUnmap);
FN(cuMemSetAccess);
FN(cuMemExportToShareableHandle);
FN(cuMemImportFromShareableHandle);
template <class T> static void load(const char *name, T &f)
{
    cudaDriverEntryPointQueryResult q;
    RT(cudaGetDriverEntryPointByVersion(name, (void **)&f, 12000, cudaEnableDefault, &q));
    EXPECT(q, cudaDriverEntryPointSuccess);
}
static void load_all()
{
    RT(cudaFree(0));
    load("cuMemAddressReserve", p_cuMemAddressReserve);
    load("cuMemAddressFree", p_cuMemAddressFree);
    load("cuMemCreate", p_cuMemCreate);
    load("cuMemRelease", p_cuMemRelease);
    load("cuMemMap", p_cuMemMap);
    load("cuMemUnmap", p_cuMemUnmap);
    load("cuMemSetAccess", p_cuMemSetAccess);
    load("cuMemExportToShareableHandle", p_cuMemExportToShareableHandle);
    load("cuMemImportFromShareableHandle", p_cuMemImportFromShareableHandle);
}
enum { GRANULE = 2 << 20 };
static CUdeviceptr map(CUmemGenericAllocationHandle h)
{
    CUdeviceptr va;
    CUmemAccessDesc d = {};
    d.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    d.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    EXPECT(p_cuMemAddressReserve(&va, GRANULE, 0, 0, 0), 0);
    EXPECT(p_cuMemMap(va, GRANULE, 0, h, 0), 0);
    EXPECT(p_cuMemSetAccess(va, GRANULE, &d, 1), 0);
    return va;
}
static void check(const void *p, int first, int step)
{
    std::vector<int> h(N);
    RT(cudaMemcpy(h.data(), p, N * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < N; i++)
        EXPECT(h[i], first + i * step);
}

static int child(int s)
{
    cudaIpcMemHandle_t memory, wrong;
    cudaIpcEventHandle_t event;
    cudaMemPoolPtrExportData data;
    int *p, *again, *q;
    cudaEvent_t e;
    char ok = 1;
    load_all();
    /* memory and event: the parent's kernel is under way */
    get(s, &memory, sizeof memory);
    get(s, &event, sizeof event);
    RT(cudaIpcOpenMemHandle((void **)&p, memory, cudaIpcMemLazyEnablePeerAccess));
    RT(cudaIpcOpenMemHandle((void **)&again, memory, cudaIpcMemLazyEnablePeerAccess));
    EXPECT(again == p, 1);
    memcpy(&wrong, &memory, sizeof wrong);
    ((char *)&wrong)[20] ^= 1;
    EXPECT(cudaIpcOpenMemHandle((void **)&q, wrong, cudaIpcMemLazyEnablePeerAccess),
           cudaErrorInvalidResourceHandle);
    RT(cudaIpcOpenEventHandle(&e, event));
    RT(cudaStreamWaitEvent(0, e, 0));
    add<<<16, 128>>>(p, N, 1000);
    RT(cudaDeviceSynchronize());
    check(p, 1007, 1);
    EXPECT(cudaFree(p), cudaErrorInvalidValue); /* it is not ours */
    put(s, &ok, 1);
    get(s, &ok, 1); /* the parent has freed it: ours until we close it */
    check(p, 1007, 1);
    RT(cudaIpcCloseMemHandle(p));
    RT(cudaIpcCloseMemHandle(p));
    EXPECT(cudaIpcCloseMemHandle(p), cudaErrorInvalidValue);
    EXPECT(cudaMemcpy(&p, p, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    RT(cudaEventDestroy(e));
    /* a pool and a pointer of it */
    cudaMemPool_t pool;
    int fd = recv_fd(s);
    RT(cudaMemPoolImportFromShareableHandle(&pool, (void *)(uintptr_t)fd, cudaMemHandleTypePosixFileDescriptor, 0));
    close(fd);
    get(s, &data, sizeof data);
    RT(cudaMemPoolImportPointer((void **)&q, pool, &data));
    check(q, 3, 1);
    EXPECT(cudaMallocFromPoolAsync((void **)&again, 100, pool, 0), cudaErrorInvalidValue);
    add<<<16, 128>>>(q, N, 1);
    RT(cudaFreeAsync(q, 0));
    RT(cudaDeviceSynchronize());
    RT(cudaMemPoolDestroy(pool));
    put(s, &ok, 1);
    /* physical memory, which the parent has already given up */
    CUmemGenericAllocationHandle h;
    fd = recv_fd(s);
    EXPECT(p_cuMemImportFromShareableHandle(&h, (void *)(uintptr_t)0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), CUDA_ERROR_INVALID_VALUE);
    EXPECT(p_cuMemImportFromShareableHandle(&h, (void *)(uintptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), 0);
    close(fd);
    CUdeviceptr va = map(h);
    EXPECT(p_cuMemRelease(h), 0);
    check((void *)va, 11, 1);
    EXPECT(p_cuMemUnmap(va, GRANULE), 0);
    EXPECT(p_cuMemAddressFree(va, GRANULE), 0);
    return 0;
}

static void parent(int s)
{
    cudaIpcMemHandle_t memory;
    cudaIpcEventHandle_t event;
    cudaMemPoolPtrExportData data;
    int *p, *q;
    cudaEvent_t e, plain;
    char ok;
    std::vector<int> h(N);
    load_all();
    for (int i = 0; i < N; i++)
        h[i] = i;
    RT(cudaMalloc(&p, N * sizeof *p));
    RT(cudaMemcpy(p, h.data(), N * sizeof *p, cudaMemcpyHostToDevice));
    EXPECT(cudaEventCreateWithFlags(&e, cudaEventInterprocess), cudaErrorInvalidValue);
    RT(cudaEventCreate(&plain));
    EXPECT(cudaIpcGetEventHandle(&event, plain), cudaErrorInvalidValue);
    RT(cudaEventCreateWithFlags(&e, cudaEventInterprocess | cudaEventDisableTiming));
    RT(cudaIpcGetEventHandle(&event, e));
    RT(cudaIpcGetMemHandle(&memory, p));
    EXPECT(cudaIpcGetMemHandle(&memory, h.data()), cudaErrorInvalidValue);
    EXPECT(cudaIpcOpenMemHandle((void **)&q, memory, cudaIpcMemLazyEnablePeerAccess),
           cudaErrorDeviceUninitialized);
    for (int i = 0; i < 7; i++)
        add<<<16, 128>>>(p, N, 1);
    RT(cudaEventRecord(e, 0));
    RT(cudaEventQuery(e) == cudaErrorNotReady ? cudaSuccess : cudaSuccess);
    put(s, &memory, sizeof memory);
    put(s, &event, sizeof event);
    get(s, &ok, 1);
    check(p, 1007, 1);
    RT(cudaFree(p));
    put(s, &ok, 1);

    cudaMemPool_t pool;
    cudaMemPoolProps props = {};
    int fd;
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    props.handleTypes = cudaMemHandleTypePosixFileDescriptor;
    RT(cudaMemPoolCreate(&pool, &props));
    RT(cudaMemPoolExportToShareableHandle(&fd, pool, cudaMemHandleTypePosixFileDescriptor, 0));
    RT(cudaMallocFromPoolAsync((void **)&q, N * sizeof *q, pool, 0));
    RT(cudaMemcpy(q, h.data(), N * sizeof *q, cudaMemcpyHostToDevice));
    add<<<16, 128>>>(q, N, 3);
    RT(cudaDeviceSynchronize());
    RT(cudaMemPoolExportPointer(&data, q));
    EXPECT(cudaIpcGetMemHandle(&memory, q), cudaErrorInvalidValue);
    send_fd(s, fd);
    close(fd);
    put(s, &data, sizeof data);
    get(s, &ok, 1);
    check(q, 4, 1);
    RT(cudaFreeAsync(q, 0));
    RT(cudaMemPoolDestroy(pool));

    CUmemAllocationProp prop = {};
    CUmemGenericAllocationHandle handle;
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    EXPECT(p_cuMemCreate(&handle, GRANULE, &prop, 0), 0);
    EXPECT(p_cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(p_cuMemRelease(handle), 0);
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    EXPECT(p_cuMemCreate(&handle, GRANULE, &prop, 0), 0);
    CUdeviceptr va = map(handle);
    RT(cudaMemcpy((void *)va, h.data(), N * sizeof(int), cudaMemcpyHostToDevice));
    add<<<16, 128>>>((int *)va, N, 11);
    RT(cudaDeviceSynchronize());
    EXPECT(p_cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), 0);
    EXPECT(p_cuMemUnmap(va, GRANULE), 0);
    EXPECT(p_cuMemAddressFree(va, GRANULE), 0);
    EXPECT(p_cuMemRelease(handle), 0); /* the descriptor keeps it */
    send_fd(s, fd);
    close(fd);
}

int main()
{
    int s[2], status;
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
    pid_t pid = fork();
    if (!pid) {
        close(s[0]);
        exit(child(s[1]));
    }
    close(s[1]);
    parent(s[0]);
    EXPECT(waitpid(pid, &status, 0), pid);
    EXPECT(status, 0);
    printf("PASS ipcshare\n");
    return 0;
}
