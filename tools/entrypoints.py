#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes frontend/interpose/entrypoints.def: one row per entry point that a CUDA toolkit declares or exports.

usage: tools/entrypoints.py CUDA_DIR [> frontend/interpose/entrypoints.def]

Run when a new toolkit adds names. Rows that the committed table has and the toolkit has not (older toolkits) are kept. A row is
DONE if a file in a folder of frontend/ defines the name with one of the façades' macros, else NONE. Driver rows carry what cuGetProcAddress
needs: the name asked for and the first version of CUDA (1000 * major + 10 * minor) that answers with this symbol."""
import glob, os, re, subprocess, sys

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEF = os.path.join(HERE, "frontend", "interpose", "entrypoints.def")
ROW = re.compile(r"^WS_(RT|DRV|NVRTC)\((\w+), (\w+), \w+(?:, (\w+), (\d+), (\d))?\)", re.M)
# A function defined by a macro of frontend/facade.h, at the start of a line: WS_RT_API(cudaX, …),
# WS_BOTH_API(cudaX, cuX, …), …
DEFINITION = re.compile(r"^WS_(?:(BOTH)|RT|DRV|NVRTC)_\w+\(\s*(\w+),(?:\s*(cu\w+),)?(?:\s*(_pt\w+),)?", re.M)
HEADERS = {"RT": ["cuda_runtime_api.h", "cuda_profiler_api.h", "cuda_gl_interop.h", "cuda_egl_interop.h", "cuda_vdpau_interop.h",
                  "crt/host_runtime.h", "crt/device_functions.h"],
           "DRV": ["cuda.h", "cudaProfiler.h", "cudaGL.h", "cudaEGL.h", "cudaVDPAU.h"]}
# Where the header has no chapters, or its last one has ended before: pattern of the name ->
# chapter.
CHAPTERS = [(r"__cuda", "registration"), (r"cud?a?EGL|cudaGraphics.*E[gG][lL]|cudaEventCreateFromEGL", "egl"), (r"cudaG[lL]|cudaGraphicsGL", "gl"),
            (r"cudaVDPAU|cudaGraphicsVDPAU", "vdpau"), (r"cudaGraph(?!ics)|cuGraph(?!ics)", "graph"), (r"cudaGetExportTable", "driver_entry_point")]
# Names that the headers have for code on the device or as inline helpers: no host library has them.
NOT_HOST = {"cudaGetParameterBuffer", "cudaGetParameterBufferV2", "cudaLaunchDevice", "cudaLaunchDeviceV2", "cudaCGGetIntrinsicHandle",
            "cudaCGSynchronize", "cudaCGSynchronizeGrid", "cudaCGGetSize", "cudaCGGetRank", "cudaGraphSetConditional", "cudaWGLGetDevice", "cuWGLGetDevice",
            "cuGetProcAddress_v2_ptsz"}


def read(path):
    with open(path, errors="replace") as f:
        return f.read()


def exports(path):
    out = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    return {w[2].split("@")[0] for w in map(str.split, out.splitlines()) if len(w) == 3 and w[1] in "TWi"}


def chapter(group):
    return re.sub(r"^CUDA(RT)?_*", "", group).lower() or "other"


def declared(kind, path):
    """Names that a header declares, with the chapter of the manual that they stand under."""
    text = re.sub(r"^[ \t]*\*.*$", lambda m: m.group() if "defgroup" in m.group() else "", read(path), flags=re.M)
    prefix = r"CUDARTAPI|CUDARTAPI_CDECL|__STDCALL__" if kind == "RT" else r"CUDAAPI"
    token = re.compile(r"defgroup (\w+)|\b(?:%s)\s+((?:__)?cu\w+)\s*\(|^extern\s+[\w\s\*]*?\b(__cuda\w+)\s*\(" % prefix, re.M)
    group, names = "", {}
    for m in token.finditer(text):
        if m.group(1):
            group = m.group(1)
            continue
        name = m.group(2) or m.group(3)
        ok = name.startswith(("cuda", "__cuda")) if kind == "RT" else re.match(r"cu[A-Z]", name)
        if ok and name not in NOT_HOST:
            names.setdefault(name, chapter(group))
    return names


def renamed(path):
    """Names that a header's macros put in the place of those that it declares: #define cuX cuX_v2, or
    __CUDA_API_PTDS(cuX_v2), which is cuX_v2 or cuX_v2_ptds."""
    macro = re.compile(r"^[ \t]*#[ \t]*define[ \t]+cu\w+[ \t]+(?:__CUDA(?:RT)?_API_(PTDS|PTSZ)\((cu\w+)\)|(cu\w+))[ \t]*$", re.M)
    names = set()
    for kind, variant, name in macro.findall(read(path)):
        names |= {variant, variant + "_" + kind.lower()} if variant else {name}
    return {n for n in names if re.match(r"cu[A-Z]|cuda[A-Z]", n)} - NOT_HOST


def split(symbol):
    """cuMemcpyHtoD_v2_ptds -> (cuMemcpyHtoD, 2, 1)"""
    m = re.match(r"(\w+?)(?:_v(\d+))?(_pt[sd][sdz])?$", symbol)
    return m.group(1), int(m.group(2) or 1), int(bool(m.group(3)))


def versions(cuda):
    """(name, stream variant) -> versions of its typedefs, ascending"""
    out = {}
    for h in glob.glob(os.path.join(cuda, "include", "cuda*Typedefs.h")):
        for m in re.finditer(r"\*\s*PFN_(\w+?)_v(\d+)(_pt[sd][sdz])?\)", read(h)):
            out.setdefault((m.group(1), int(bool(m.group(3)))), set()).add(int(m.group(2)))
    return {k: sorted(v) for k, v in out.items()}


def introductions(symbols, cuda):
    """symbol -> version. The n-th newest symbol of a name belongs to its n-th newest typedef: what has none is reached by no version."""
    ver, by, out = versions(cuda), {}, {}
    for s in symbols:
        base, n, pt = split(s)
        by.setdefault((base, pt), []).append((n, s))
    for (base, pt), v in by.items():
        known = ver.get((base, pt), [])
        for (n, s), version in zip(sorted(v, reverse=True), sorted(known, reverse=True)):
            out[s] = version
    return out


def main():
    cuda = sys.argv[1]
    rows, chapters = {}, {}
    for kind, headers in HEADERS.items():
        for h in headers:
            path = os.path.join(cuda, "include", h)
            if os.path.exists(path):
                for name, ch in declared(kind, path).items():
                    rows.setdefault(name, kind)
                    chapters.setdefault(name, ch)
                for name in renamed(path):
                    rows.setdefault(name, kind)
    for name in exports(os.path.join(cuda, "lib64", "libcudart.so")):
        if name.startswith(("cuda", "__cuda")):
            rows.setdefault(name, "RT")
    stubs = glob.glob(os.path.join(cuda, "lib*", "stubs", "libcuda.so"))
    for name in exports(stubs[0]) if stubs else ():
        rows.setdefault(name, "DRV")
    versioned = introductions([s for s, k in rows.items() if k == "DRV"], cuda)
    old = read(DEF) if os.path.exists(DEF) else ""
    for m in ROW.finditer(old):
        kind, name, ch = m.group(1, 2, 3)
        rows.setdefault(name, kind)
        chapters.setdefault(name, ch)
        if m.group(4) and int(m.group(5)):
            versioned.setdefault(name, int(m.group(5)))
    done = {n for n, k in rows.items() if k == "NVRTC"}  # all of them stand for functions that exist elsewhere
    for path in glob.glob(os.path.join(HERE, "frontend", "*", "*.c")):
        for m in DEFINITION.finditer(read(path)):
            both, first, second, suffix = m.groups()
            names = [first, second] if both else [first]
            done.update(n + s for n in names for s in ("", suffix or ""))
    print(old.split("\nWS_")[0].rstrip("\n") if old else "// SPDX-License-Identifier: Apache-2.0")
    for name in sorted(rows, key=lambda s: s.encode()):
        kind, state = rows[name], "DONE" if name in done else "NONE"
        base, _, pt = split(name)
        ch = next((c for pattern, c in CHAPTERS if re.match(pattern, name)), None) or chapters.get(base) or chapters.get(name) or "other"
        if kind == "DRV":
            print(f"WS_DRV({name}, {ch}, {state}, {base}, {versioned.get(name, 0)}, {pt})")
        else:
            print(f"WS_{kind}({name}, {ch}, {state})")


main()
