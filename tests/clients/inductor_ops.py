# SPDX-License-Identifier: Apache-2.0
"""usage: inductor_ops.py [SEED [SECONDS [OP…]]]. Of the operations that PyTorch's own tests go
through (OpInfo), or of those named, in a random order and until the seconds are over: the largest
of its first samples in float32, compiled by Inductor and run on the GPU, against the processor without compilation. A line "op NAME: …" for each: "right", "wrong", "machine code" (it calls one of PyTorch's own kernels or of
NVIDIA's libraries, which a software GPU cannot run), "not comparable" (random, or for one kind of device), "nothing to do" (Inductor made no kernel, or the
result is not on the GPU), or the error."""
import itertools, random, signal, sys, time
import torch
from torch._inductor import metrics
from torch.testing._internal.common_methods_invocations import op_db

# "invalid device": the launch of a kernel without PTX failed, PyTorch's sort() did not look, and
# CUB takes that thread's last error for one of its own cudaGetDevice().
LACKS = ("no kernel image", "invalid device ordinal", "CUBLAS", "CUSOLVER", "cusolver", "CUFFT", "cuFFT", "CUDNN", "cuDNN", "cusparse")
ONE_S = 90  # for one operation
SAMPLES = 16


def late(*_):
    raise TimeoutError(f"{ONE_S} s are over")


def elements(sample):
    return sample.input.numel() if isinstance(sample.input, torch.Tensor) else 0


def moved(x):
    return x.detach().cuda() if isinstance(x, torch.Tensor) else x


def same(a, b):
    try:
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4, equal_nan=True, check_device=False, check_stride=False)
    except AssertionError:
        return False
    return True


def verdict(op):
    sample = max(itertools.islice(op.sample_inputs("cpu", torch.float32), SAMPLES), key=elements)

    def on_cpu(seed):
        torch.manual_seed(seed)
        return op.op(sample.input, *sample.args, **sample.kwargs)

    if "empty" in op.name or "jiterator" in op.name or "_for_cpu" in op.name:
        return "not comparable"
    want = on_cpu(1)
    if not same(on_cpu(2), want):
        return "not comparable"
    torch.compiler.reset()
    metrics.reset()
    s = sample.transform(moved)
    got = torch.compile(op.op)(s.input, *s.args, **s.kwargs)
    leaves = [t for t in torch.utils._pytree.tree_leaves(got) if isinstance(t, torch.Tensor)]
    if not metrics.generated_kernel_count or not all(t.is_cuda and t.numel() for t in leaves):
        return "nothing to do"
    got = torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: t.cpu(), got)
    return "right" if same(got, want) else "wrong"


def main():
    seed, seconds = (int(v) for v in (sys.argv[1:3] + ["1", "600"][len(sys.argv[1:3]):]))
    ops = sorted((o for o in op_db if torch.float32 in o.dtypes and o.name in (sys.argv[3:] or (o.name,))), key=lambda o: (o.name, o.variant_test_name))
    random.Random(seed).shuffle(ops)
    signal.signal(signal.SIGALRM, late)
    end = time.monotonic() + seconds
    for n, op in enumerate(ops):
        if time.monotonic() > end:
            print(f"not run: {len(ops) - n}", flush=True)
            break
        signal.alarm(ONE_S)
        try:
            v = verdict(op)
        except Exception as e:
            text = f"{type(e).__name__}: {e}"
            v = "machine code" if any(w in text for w in LACKS) else "error: " + text.replace("\n", " ")[:200]
        signal.alarm(0)
        print(f"op {op.name}{'.' if op.variant_test_name else ''}{op.variant_test_name}: {v}", flush=True)


main()
