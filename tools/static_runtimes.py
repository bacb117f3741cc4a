#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes base/runtimes/static_runtimes.def: where the functions of NVIDIA's static CUDA runtimes are.

usage: tools/static_runtimes.py VERSION=FILE... [> base/runtimes/static_runtimes.def]

FILE is libcudart_static.a, or a wheel of PyPI that holds one (nvidia-cuda-runtime, and nvidia-cuda-runtime-cu12 from 12.9
on). The archive is one object file with one section of code, and its symbol table is public. A linker moves that section as a
whole and changes only what relocations name, so a stripped program holds the same bytes elsewhere. This script reads the symbols
and hashes bytes; it disassembles nothing, and nothing of the code is kept."""
import struct, sys, textwrap, zipfile

N_PROBES, PROBE_BYTES, SHORT = 16, 32, 14
SHT_SYMTAB, SHT_RELA, STT_FUNC = 2, 4, 2
# What a linker may rewrite around a relocation, in bytes from its place: most change 4 bytes; these
# change the instruction too.
R_X86_64_TLSGD, R_X86_64_TLSLD, R_X86_64_GOTTPOFF, R_X86_64_GOTPCRELX, R_X86_64_REX_GOTPCRELX = 19, 20, 22, 41, 42
REWRITTEN = {R_X86_64_TLSGD: (-4, 12), R_X86_64_TLSLD: (-3, 9), R_X86_64_GOTTPOFF: (-3, 4), R_X86_64_GOTPCRELX: (-2, 4),
             R_X86_64_REX_GOTPCRELX: (-3, 4)}
HEAD = """\
// SPDX-License-Identifier: Apache-2.0
/* NVIDIA's static CUDA runtimes, by what is public of them: the symbol table of libcudart_static.a.
 * tools/static_runtimes.py writes this file; don't edit.
 *
 *     WS_STATIC_RUNTIME(version, bytes of its code, probes)
 *     WS_STATIC_PROBE(place, hash)     the hash of 32 bytes that no linker changes
 *     WS_STATIC_FUNCTION(name, place in each of the runtimes)
 *
 * Functions begin at multiples of 16. The low four bits of a place are the function's size if that
 * is less than 14, or else 0. A place of 1 means that the runtime has no such function. */"""


def archived(data):
    """The object file in an archive, or in the archive in a wheel."""
    if data[:2] == b"PK":
        import io
        wheel = zipfile.ZipFile(io.BytesIO(data))
        data = wheel.read(next(n for n in wheel.namelist() if n.endswith("/libcudart_static.a")))
    at = 8
    while at < len(data):
        size = int(data[at + 48:at + 58])
        if data[at + 60:at + 64] == b"\x7fELF":
            return data[at + 60:at + 60 + size]
        at += 60 + size + size % 2
    sys.exit("no object file in the archive")


class Runtime:
    def __init__(self, version, path):
        with open(path, "rb") as f:
            self.elf = archived(f.read())
        self.version = version
        at, = struct.unpack_from("<Q", self.elf, 0x28)
        n, names = struct.unpack_from("<HH", self.elf, 0x3C)
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.elf, at + 64 * i) for i in range(n)]
        self.text = next(i for i, s in enumerate(self.sections) if self.string(names, s[0]) == ".text")
        self.code = self.contents(self.text)

    def contents(self, i):
        return self.elf[self.sections[i][4]:self.sections[i][4] + self.sections[i][5]]

    def string(self, table, at):
        begin = self.sections[table][4] + at
        return self.elf[begin:self.elf.index(b"\0", begin)].decode()

    def functions(self):
        """Places of the entry points that are in the section of code."""
        places = {}
        table = next(i for i, s in enumerate(self.sections) if s[1] == SHT_SYMTAB)
        for name, info, _, section, value, size in struct.iter_unpack("<IBBHQQ", self.contents(table)):
            name = self.string(self.sections[table][6], name)
            if info & 15 == STT_FUNC and info >> 4 and section == self.text and name.startswith(("cuda", "__cuda")):
                if value % 16:
                    sys.exit(f"{self.version}: {name} begins at no multiple of 16")
                places[name] = value | (size if size < SHORT else 0)
        return places

    def unchanged(self):
        """For each byte of the code, whether no linker changes it."""
        keep = bytearray(b"\1" * len(self.code))
        for i, s in enumerate(self.sections):
            if s[1] == SHT_RELA and s[7] == self.text:
                for at, info, _ in struct.iter_unpack("<QQq", self.contents(i)):
                    first, last = REWRITTEN.get(info & 0xFFFFFFFF, (0, 8))
                    keep[at + first:at + last] = bytes(last - first)
        return keep[:len(self.code)]

    def probes(self):
        """Places all over the code. The first is the one that is searched for: its bytes must occur once."""
        keep, found = self.unchanged(), []
        for at in range(0, len(self.code) - PROBE_BYTES, 16):
            piece = self.code[at:at + PROBE_BYTES]
            if all(keep[at:at + PROBE_BYTES]) and len(set(piece)) >= 20 and self.code.count(piece) == 1:
                found.append(at)
        return [found[i * len(found) // N_PROBES] for i in range(N_PROBES)]


def hashed(piece):
    h = 0
    for word, in struct.iter_unpack("<Q", piece):
        h = (h ^ word) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
        h ^= h >> 32
    return h


def row(macro, words):
    return "\n".join(textwrap.wrap(f"{macro}({', '.join(words)})", 100, subsequent_indent="    "))


def main():
    if len(sys.argv) < 2 or not all("=" in a for a in sys.argv[1:]):
        sys.exit(__doc__)
    runtimes = [Runtime(*a.split("=", 1)) for a in sys.argv[1:]]
    functions = [r.functions() for r in runtimes]
    print(HEAD)
    for r in runtimes:
        probes = [f"WS_STATIC_PROBE(0x{p:x}, 0x{hashed(r.code[p:p + PROBE_BYTES]):x})" for p in r.probes()]
        print(row("WS_STATIC_RUNTIME", [f'"{r.version}"', f"0x{len(r.code):x}"] + probes))
    for name in sorted(set().union(*functions)):
        print(row("WS_STATIC_FUNCTION", [name] + [f"0x{f.get(name, 1):x}" for f in functions]))


if __name__ == "__main__":
    main()
