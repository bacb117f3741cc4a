# SPDX-License-Identifier: Apache-2.0
"""Triton without PyTorch: kernels in Python, which Triton makes PTX of, and a stand-in for ptxas hands on. Results against NumPy's."""
import ctypes
import os
import sys

import numpy as np

try:
    import triton
    import triton.language as tl
except ImportError:
    print("SKIP: no triton")
    sys.exit(77)

cuda = ctypes.CDLL("libcuda.so.1")
TYPES = {"float32": "fp32", "float16": "fp16", "int32": "i32"}


def call(name, *args):
    code = getattr(cuda, name)(*args)
    if code:
        raise SystemExit(f"FAIL triton: {name} gave {code}")


class OnGpu:
    """What Triton asks of a tensor."""

    def __init__(self, array):
        address = ctypes.c_uint64()
        self.host = np.ascontiguousarray(array)
        self.dtype = TYPES[str(array.dtype)]
        call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(self.host.nbytes))
        self.address = address.value
        call("cuMemcpyHtoD_v2", address, self.host.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(self.host.nbytes))

    def data_ptr(self):
        return self.address

    def get(self):
        out = np.empty_like(self.host)
        call("cuCtxSynchronize")
        call("cuMemcpyDtoH_v2", out.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(self.address), ctypes.c_size_t(out.nbytes))
        return out


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@triton.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


@triton.jit
def matmul(a, b, c, n, TILE: tl.constexpr):
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)
    col = tl.program_id(1) * TILE + tl.arange(0, TILE)
    k = tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for first in range(0, n, TILE):
        x = tl.load(a + row[:, None] * n + (first + k)[None, :])
        y = tl.load(b + (first + k)[:, None] * n + col[None, :])
        total += tl.dot(x, y)
    tl.store(c + row[:, None] * n + col[None, :], total)


@triton.jit
def count(values, bins, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(bins + tl.load(values + i, mask=i < n, other=0), 1, mask=i < n)


def check(name, got, want, tolerance):
    error = np.max(np.abs(got.astype(np.float64) - want) / (1 + np.abs(want)))
    if not error <= tolerance:
        raise SystemExit(f"FAIL triton: {name}: off by {error}")


context = ctypes.c_void_p()
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
if "wattshare" not in os.environ.get("TRITON_PTXAS_PATH", ""):
    raise SystemExit("FAIL triton: wattshare run names no stand-in for ptxas")
rng = np.random.default_rng(7)
x, y = (rng.random(5000, dtype=np.float32) for _ in range(2))
out = OnGpu(np.zeros_like(x))
add[(5,)](OnGpu(x), OnGpu(y), out, x.size, BLOCK=1024)
check("add", out.get(), x + y, 0)

m = rng.random((37, 200), dtype=np.float32) * 8
out = OnGpu(np.zeros_like(m))
softmax[(37,)](OnGpu(m), out, 200, BLOCK=256)
e = np.exp(m.astype(np.float64) - m.max(axis=1, keepdims=True))
check("softmax", out.get(), e / e.sum(axis=1, keepdims=True), 1e-5)

for dtype, tolerance in ((np.float32, 5e-3), (np.float16, 1e-3)):  # TF32 has 10 bits of mantissa
    a, b = (rng.random((128, 128)).astype(dtype) for _ in range(2))
    out = OnGpu(np.zeros((128, 128), np.float32))
    matmul[(4, 4)](OnGpu(a), OnGpu(b), out, 128, TILE=32)
    check(f"matmul {dtype.__name__}", out.get(), a.astype(np.float64) @ b.astype(np.float64), tolerance)

values = rng.integers(0, 64, 4000, dtype=np.int32)
bins = OnGpu(np.zeros(64, np.int32))
count[(4,)](OnGpu(values), bins, values.size, BLOCK=1024)
check("atomic add", bins.get(), np.bincount(values, minlength=64), 0)
print("PASS triton: 5 kernels")
