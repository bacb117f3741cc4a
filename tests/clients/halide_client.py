# SPDX-License-Identifier: Apache-2.0
"""Halide: schedules compiled to PTX inside the process (LLVM) and run by the driver API; the same algorithm on its CPU target says
what is right."""
import sys

try:
    import halide as hl
except ImportError as e:
    print(f"SKIP: no python3-halide: {e}")
    sys.exit(77)

x, y, xi, yi = hl.Var("x"), hl.Var("y"), hl.Var("xi"), hl.Var("yi")
host = hl.Target("host")
gpu = hl.Target("host-cuda")


def fill(w, h):
    b = hl.Buffer(hl.Float(32), [w, h])
    for j in range(h):
        for i in range(w):
            b[i, j] = float((i * 37 + j * 101) % 256) / 16
    return b


def tiled(f, target):
    if target is gpu:
        f.gpu_tile(x, y, xi, yi, 16, 8)
    return f


def blur(image, target):
    e = hl.BoundaryConditions.repeat_edge(image)
    bx, by = hl.Func("bx"), hl.Func("by")
    bx[x, y] = (e[x - 1, y] + e[x, y] + e[x + 1, y]) / 3.0
    by[x, y] = (bx[x, y - 1] + bx[x, y] + bx[x, y + 1]) / 3.0
    tiled(by, target)
    if target is gpu:
        bx.compute_at(by, x).gpu_threads(x, y)
    return by


def curves(image, target):
    f = hl.Func("curves")
    f[x, y] = hl.sqrt(image[x, y]) + hl.exp(-image[x, y]) * hl.sin(image[x, y]) + hl.select(image[x, y] > 8.0, 1.0, -1.0)
    return tiled(f, target)


def columns(image, target):
    f, r = hl.Func("columns"), hl.RDom([(0, 40)])
    f[x, y] = 0.0
    f[x, y] += image[x, r] * hl.f32(y + 1)
    if target is gpu:
        f.gpu_tile(x, y, xi, yi, 16, 4)
        f.update().gpu_tile(x, y, xi, yi, 16, 4)
    return f


image = fill(64, 48)
for make in (blur, curves, columns):
    results = []
    for target in (host, gpu):
        out = make(image, target).realize([64, 48], target)
        out.copy_to_host()
        results.append(out)
    worst = max(abs(results[0][i, j] - results[1][i, j]) / (1 + abs(results[0][i, j])) for j in range(48) for i in range(64))
    if not worst <= 1e-5:
        sys.exit(f"FAIL halide: {make.__name__} is off by {worst}")
print("PASS halide 3 checks")
