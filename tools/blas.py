#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes frontend/blas/kernels.inc of frontend/blas/kernels.cu: tools/blas.py NVCC, in the source folder. With --stamp: prints what the
first lines must say.

Each type becomes a row BLAS_MODULE(type, text). The stamp is a digest of the sources, so that a test can tell that the text is of the
source as it stands, without a compiler."""
import hashlib
import re
import subprocess
import sys
import tempfile

SOURCES = ("frontend/blas/kernels.cu", "frontend/blas/kernels.h")
TYPES = ("F32", "F64", "C32", "C64", "F16", "BF16", "S8", "S32")


def stamp():
    h = hashlib.sha256()
    for name in SOURCES:
        with open(name, "rb") as f:
            h.update(f.read())
    return h.hexdigest()


def compile_ptx(nvcc, of):
    with tempfile.NamedTemporaryFile(suffix=".ptx") as out:
        subprocess.run([nvcc, "-ptx", "-arch=compute_75", "-std=c++17", "-O3", "-I.", "-DOF_" + of, SOURCES[0], "-o", out.name], check=True)
        return out.read().decode()


def lines(text):
    """Without comments, and for every GPU and driver: nothing here needs what came after sm_50."""
    text = re.sub(r"//.*", "", text)
    text = re.sub(r"\.version .*", ".version 6.4", text)
    text = re.sub(r"\.target .*", ".target sm_50", text)
    return [line for line in (re.sub(r"\s+", " ", line).strip() for line in text.splitlines()) if line]


def main():
    if sys.argv[1:] == ["--stamp"]:
        print(stamp())
        return
    out = ["/* SPDX-License-Identifier: Apache-2.0 */",
           "/* Made by tools/blas.py of frontend/blas/kernels.cu.", " * " + stamp() + " */"]
    for of in TYPES:
        out.append("BLAS_MODULE(%s," % of)
        row = "   "
        for line in lines(compile_ptx(sys.argv[1], of)):
            row += ' "%s\\n"' % line.replace('"', '\\"')
            if len(row) > 90:
                out.append(row)
                row = "   "
        out.append(row + ")")
    with open("frontend/blas/kernels.inc", "w") as f:
        f.write("\n".join(out) + "\n")


main()
