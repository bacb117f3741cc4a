#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes ptx/passes/sampler.inc of ptx/passes/sampler.cu: tools/sampler.py NVCC, in the source folder. With --stamp: prints what the first line must say.

Each function becomes a row SAMPLER(name, text), so that only those a module needs are read. The stamp is a digest of the sources, so that
a test can tell that the text is of the source as it stands, without a compiler."""
import hashlib
import re
import subprocess
import sys
import tempfile

SOURCES = ("ptx/passes/sampler.cu", "ptx/passes/sampler.h", "base/texture.h")


def stamp():
    h = hashlib.sha256()
    for name in SOURCES:
        with open(name, "rb") as f:
            h.update(f.read())
    return h.hexdigest()


def compile_ptx(nvcc):
    with tempfile.NamedTemporaryFile(suffix=".ptx") as out:
        subprocess.run([nvcc, "-ptx", "-arch=compute_75", "-fmad=false", "-rdc=true", "-O3", "-I.", SOURCES[0], "-o", out.name], check=True)
        return out.read().decode()


def functions(text):
    text = re.sub(r"//.*", "", text)
    parts = re.split(r"^(?=(?:\.visible )?\.func)", text, flags=re.M)[1:]
    for part in parts:
        name = re.match(r"(?:\.visible )?\.func\s+(?:\(.*?\)\s*)?(\w+)\(", part).group(1)
        part = part.replace(".visible ", "", 1).replace(name + "_param_", "p")
        lines = [re.sub(r"\s+", " ", line).strip() for line in part.splitlines()]
        yield name, [line for line in lines if line]


def main():
    if sys.argv[1:] == ["--stamp"]:
        print(stamp())
        return
    out = ["/* SPDX-License-Identifier: Apache-2.0 */",
           "/* Made by tools/sampler.py of ptx/passes/sampler.cu.", " * " + stamp() + " */"]
    for name, lines in functions(compile_ptx(sys.argv[1])):
        out.append("SAMPLER(%s," % name)
        row = "   "
        for line in lines:
            row += ' "%s\\n"' % line.replace('"', '\\"')
            if len(row) > 90:
                out.append(row)
                row = "   "
        out.append(row + ")")
    with open("ptx/passes/sampler.inc", "w") as f:
        f.write("\n".join(out) + "\n")


main()
