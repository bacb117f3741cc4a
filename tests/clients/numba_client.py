# SPDX-License-Identifier: Apache-2.0
"""numba-cuda: Python compiled to PTX by NVIDIA's libnvvm, linked by nvJitLink, run by the driver API. Results against NumPy's."""
import math

import numpy as np
from numba import cuda, float32, int32, uint32, vectorize
from numba.core.errors import NumbaPerformanceWarning
import warnings

warnings.simplefilter("ignore", NumbaPerformanceWarning)
TILE = 16
rng = np.random.default_rng(7)
done = 0


def check(name, got, want, tolerance=0.0):
    global done
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape or got.dtype != want.dtype:
        raise SystemExit(f"FAIL numba: {name}: {got.shape} {got.dtype}, not {want.shape} {want.dtype}")
    error = 0 if np.array_equal(got, want) else np.max(np.abs(got.astype(np.float64) - want) / (1 + np.abs(want)))
    if not error <= tolerance:
        raise SystemExit(f"FAIL numba: {name}: off by {error}")
    done += 1


@cuda.jit
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] += a * x[i]


@cuda.jit
def matmul(a, b, c):
    sa = cuda.shared.array((TILE, TILE), float32)
    sb = cuda.shared.array((TILE, TILE), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    row, col = cuda.blockIdx.y * TILE + ty, cuda.blockIdx.x * TILE + tx
    total = float32(0)
    for t in range((a.shape[1] + TILE - 1) // TILE):
        sa[ty, tx] = a[row, t * TILE + tx] if row < a.shape[0] and t * TILE + tx < a.shape[1] else 0
        sb[ty, tx] = b[t * TILE + ty, col] if col < b.shape[1] and t * TILE + ty < b.shape[0] else 0
        cuda.syncthreads()
        for k in range(TILE):
            total += sa[ty, k] * sb[k, tx]
        cuda.syncthreads()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = total


@cuda.jit
def histogram(values, bins):
    local = cuda.shared.array(256, int32)
    for k in range(cuda.threadIdx.x, 256, cuda.blockDim.x):
        local[k] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(local, values[i], 1)
    cuda.syncthreads()
    for k in range(cuda.threadIdx.x, 256, cuda.blockDim.x):
        cuda.atomic.add(bins, k, local[k])


@cuda.jit
def warp_sums(x, out):
    v = x[cuda.grid(1)]
    for step in (16, 8, 4, 2, 1):
        v += cuda.shfl_down_sync(0xffffffff, v, step)
    if cuda.laneid == 0:
        out[cuda.grid(1) // 32] = v


@cuda.jit
def votes(x, any_, all_, ballot):
    i = cuda.grid(1)
    p = x[i] > 0
    a, b, c = cuda.any_sync(0xffffffff, p), cuda.all_sync(0xffffffff, p), cuda.ballot_sync(0xffffffff, p)
    if cuda.laneid == 0:
        any_[i // 32], all_[i // 32], ballot[i // 32] = a, b, c


@cuda.jit
def maths(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = math.sin(x[i]) * math.exp(-x[i]) + math.sqrt(x[i]) / (1 + math.log1p(x[i])) + math.atan2(x[i], 2.0) \
            + math.pow(x[i], 1.5) + math.erf(x[i]) + math.lgamma(x[i] + 1)


@cuda.jit(device=True)
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@cuda.jit
def collatz_all(out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = collatz(i + 1)


@cuda.jit
def insertion(x):
    """local arrays, one row a thread"""
    row = cuda.grid(1)
    v = cuda.local.array(16, int32)
    if row >= x.shape[0]:
        return
    for k in range(16):
        v[k] = x[row, k]
    for k in range(1, 16):
        key, j = v[k], k - 1
        while j >= 0 and v[j] > key:
            v[j + 1] = v[j]
            j -= 1
        v[j + 1] = key
    for k in range(16):
        x[row, k] = v[k]


@vectorize(["float64(float64, float64)", "float32(float32, float32)"], target="cuda")
def hypotenuse(a, b):
    return math.sqrt(a * a + b * b)


@cuda.reduce
def total(a, b):
    return a + b


def collatz_host(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


x, y = rng.standard_normal(1000, dtype=np.float32), rng.standard_normal(1000, dtype=np.float32)
got = y.copy()
saxpy[8, 128](np.float32(2), x, got)
check("saxpy", got, 2 * x + y, 1e-6)

a, b = rng.standard_normal((50, 70), dtype=np.float32), rng.standard_normal((70, 33), dtype=np.float32)
c = cuda.device_array((50, 33), np.float32)
matmul[(3, 4), (TILE, TILE)](cuda.to_device(a), cuda.to_device(b), c)
check("matmul", c.copy_to_host(), a @ b, 1e-5)

values, bins = rng.integers(0, 256, 20000).astype(np.int32), np.zeros(256, np.int32)
histogram[4, 128](values, bins)
check("histogram", bins, np.bincount(values, minlength=256).astype(np.int32))

v, out = np.arange(256, dtype=np.int32), np.zeros(8, np.int32)
warp_sums[2, 128](v, out)
check("shuffles", out, v.reshape(8, 32).sum(axis=1).astype(np.int32))

p = rng.integers(-1, 2, 128).astype(np.int32)
p[:32], p[32:64] = 1, -1
r = [np.zeros(4, np.int32), np.zeros(4, np.int32), np.zeros(4, np.uint32)]
votes[1, 128](p, *r)
bits = (p > 0).reshape(4, 32)
check("any", r[0] != 0, bits.any(axis=1))
check("all", r[1] != 0, bits.all(axis=1))
check("ballot", r[2], (bits * (1 << np.arange(32, dtype=np.uint64))).sum(axis=1).astype(np.uint32))

x = np.linspace(0.01, 4, 500)
got = np.zeros_like(x)
maths[4, 128](x, got)
check("maths", got, np.array([math.sin(t) * math.exp(-t) + math.sqrt(t) / (1 + math.log1p(t)) + math.atan2(t, 2.0)
                              + math.pow(t, 1.5) + math.erf(t) + math.lgamma(t + 1) for t in x]), 1e-13)

got = np.zeros(300, np.int64)
collatz_all[3, 128](got)
check("device function", got, np.array([collatz_host(i + 1) for i in range(300)]))

m = rng.integers(-1000, 1000, (100, 16)).astype(np.int32)
got = m.copy()
insertion[1, 128](got)
check("local array", got, np.sort(m, axis=1))

u, w = rng.random(1000), rng.random(1000)
check("vectorize", hypotenuse(u, w), np.sqrt(u * u + w * w), 1e-15)
check("reduce", np.float64(total(u)), np.float64(u.sum()), 1e-12)

stream = cuda.stream()
start, stop = cuda.event(), cuda.event()
with cuda.pinned(u):
    start.record(stream)
    d = cuda.to_device(u, stream=stream)
    e = cuda.device_array_like(d, stream=stream)
    e.copy_to_device(d, stream=stream)
    stop.record(stream)
    got = e.copy_to_host(stream=stream)
    stream.synchronize()
check("streams", got, u)
if cuda.event_elapsed_time(start, stop) < 0:
    raise SystemExit("FAIL numba: events go backwards")
managed = cuda.managed_array(64, np.int32)
managed[:] = np.arange(64)
collatz_all[1, 64](managed)
cuda.synchronize()
check("managed memory", np.array(managed), np.array([collatz_host(i + 1) for i in range(64)], np.int32))
print(f"PASS numba {done} checks")
