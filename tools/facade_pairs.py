#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the calls of CUDA's runtime (cudaX) and driver (cuX) that are written twice in frontend/.

usage: tools/facade_pairs.py [-v]

A pair is a cudaX and a cuX of one name, each defined by a macro of frontend/facade.h of its own. Both texts (parameters and body) are
cut into words; the prefix of CUDA's names, the two façades' macros of one meaning, and the names of variables are made the same. The
pair is alike if more than 85 % of the words are then the same, in the same order. Calls that both façades take from one definition
(WS_BOTH_API and its relatives) are no pairs. Prints "alike N of M pairs"; -v lists the pairs with their percentage first."""
import difflib, glob, os, re, sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEFINITION = re.compile(r"^WS_(?:RT|DRV)_(?:STREAM_)?API\((\w+),", re.M)
ALIKE = 0.85
# What differs between the façades by convention only: pattern -> what both become.
SAME = [(r"ws_rt_record\(|WS_RT_DONE\(|ws_(?:drv|rt)_error\(", "("), (r"\(void\)\w+;", ""), (r"WS_(?:RT|DRV)_", "WS_"),
        (r"\bc_?->device\b", "device"), (r"\(uintptr_t\)|\(void \*\)|\(uint64_t\)", ""), (r"\bws_(?:rt|drv)_", "ws_"),
        (r"\bcuda?([A-Z]\w*?)(?:_v\d)?\b", r"\1"), (r"\bcuda?_", "")]
C_NAME = re.compile(r"[A-Za-z_]\w*|\d\w*|\S")


def balanced(text, at, opening, closing):
    """The end of the bracket that opens at or after text[at]."""
    depth = 0
    for i in range(text.index(opening, at), len(text)):
        depth += (text[i] == opening) - (text[i] == closing)
        if not depth:
            return i + 1
    raise ValueError("a bracket does not end")


def definitions():
    out = {}
    for path in sorted(glob.glob(os.path.join(TOP, "frontend", "**", "*.c"), recursive=True)):
        with open(path) as f:
            text = f.read()
        for m in DEFINITION.finditer(text):
            start = balanced(text, m.start(), "(", ")")
            out[m.group(1)] = text[m.end():balanced(text, start, "{", "}")]
    return out


def words(text):
    for pattern, to in SAME:
        text = re.sub(pattern, to, text)
    return [w for w in C_NAME.findall(text) if w not in ("(", ")")]


def main():
    defined, n, alike = definitions(), 0, 0
    for name in sorted(defined):
        if not name.startswith("cuda"):
            continue
        other = next((d for d in ("cu" + name[4:], "cu" + name[4:] + "_v2", "cu" + name[4:] + "_v3") if d in defined), None)
        if not other:
            continue
        ratio = difflib.SequenceMatcher(None, words(defined[name]), words(defined[other]), autojunk=False).ratio()
        n += 1
        alike += ratio > ALIKE
        if "-v" in sys.argv:
            print(f"{100 * ratio:5.1f} %  {name}, {other}")
    print(f"alike {alike} of {n} pairs")


main()
