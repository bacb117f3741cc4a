# SPDX-License-Identifier: Apache-2.0
"""tinygrad: kernels generated as CUDA C, compiled by NVRTC, run by the driver API. Results against NumPy's."""
import numpy as np
from tinygrad import Device, Tensor, TinyJit, dtypes

rng = np.random.default_rng(3)
done = 0


def check(name, got, want, tolerance):
    global done
    got = np.asarray(got, dtype=np.float64)
    error = np.max(np.abs(got - want) / (1 + np.abs(want)))
    if got.shape != np.shape(want) or not error <= tolerance:
        raise SystemExit(f"FAIL tinygrad: {name}: {got.shape}, off by {error}")
    done += 1


if Device.DEFAULT != "CUDA":
    raise SystemExit(f"FAIL tinygrad: its device is {Device.DEFAULT}")
a, b = rng.standard_normal((40, 60), dtype=np.float32), rng.standard_normal((60, 24), dtype=np.float32)
check("matmul", (Tensor(a) @ Tensor(b)).numpy(), a @ b, 1e-4)
x = rng.standard_normal((3, 1000), dtype=np.float32)
check("sum of exp", Tensor(x).exp().sum(axis=1).numpy(), np.exp(x.astype(np.float64)).sum(axis=1), 1e-4)
check("softmax", Tensor(x).softmax().numpy(), np.exp(x) / np.exp(x).sum(axis=1, keepdims=True), 1e-5)
check("cumsum", Tensor(x).cumsum(axis=1).numpy(), np.cumsum(x.astype(np.float64), axis=1), 1e-4)
i = rng.integers(-1000, 1000, (100,)).astype(np.int32)
check("sort", Tensor(i).sort()[0].numpy(), np.sort(i), 0)
check("half", Tensor(x).cast(dtypes.half).realize().float().numpy(), x.astype(np.float16).astype(np.float32), 0)
check("half product", (Tensor(a).half() @ Tensor(b).half()).float().numpy(), a @ b, 2e-2)
image, kernel = rng.standard_normal((1, 3, 12, 12), dtype=np.float32), rng.standard_normal((4, 3, 3, 3), dtype=np.float32)
want = np.zeros((1, 4, 10, 10))
for r in range(10):
    for c in range(10):
        want[0, :, r, c] = (kernel * image[:, :, r:r + 3, c:c + 3]).sum(axis=(1, 2, 3))
check("convolution", Tensor(image).conv2d(Tensor(kernel)).numpy(), want, 1e-4)
w = Tensor(a).requires_grad_() if hasattr(Tensor, "requires_grad_") else Tensor(a)
((w * 2).tanh() * 3).sum().backward()
check("gradient", w.grad.numpy(), 6 / np.cosh(2 * a.astype(np.float64)) ** 2, 1e-4)


@TinyJit
def step(t):
    return (t * 2 + 1).relu().realize()


for k in range(4):  # the third time it is a graph
    check("jit", step(Tensor(a + k).realize()).numpy(), np.maximum(2 * (a + k) + 1, 0), 1e-6)
print(f"PASS tinygrad {done} checks")
