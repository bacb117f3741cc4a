#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints each path that a Markdown file of the tree names and that does not exist.

Usage: tools/doc_paths.py [TREE]. TREE is the top of the source tree, by default the parent of this script's folder. Exit status: 0
if every path exists, 1 if one does not.

A path is what stands in backquotes and begins with a folder of the tree's top (`device/soft/soft.c`), a bare file name in backquotes
(`soft.c`: some folder must have a file of that name), or the target of a link that does not lead out of the tree. A program that
the build makes may be named without its suffix (`bench/bench_sim`). Braces (`a.{c,h}`) and wildcards are understood; words in
capitals (`results/GPU-DATE`) stand for something else and are left out. After `./dev t` stands the name of a unit test.
"""
import fnmatch
import os
import re
import subprocess
import sys

SOURCE_SUFFIXES = ("", ".c", ".h", ".cu", ".sh", ".py", ".cc", ".in", ".scd")
# A file name without a folder is looked for everywhere if it ends in one of these.
BARE = re.compile(r"[a-z0-9_.-]+\.(c|h|cu|cuh|sh|py|def|mk|proto|ptx|gp|inc|map)")
PLACEHOLDER = re.compile(r"[A-Z]{2}|…|<|\$|(^|/)X\.|_X\.|_NAME")
# Names that the text gives as examples, or that others' programs have.
FOREIGN = {"cuda.h", "a.ptx", "out-a.ptx", "sys.path"}


def tracked(top):
    out = subprocess.run(["git", "-C", top, "ls-files"], capture_output=True, text=True)
    if out.returncode == 0 and out.stdout:
        return out.stdout.split("\n")[:-1]
    found = []
    for folder, _, files in os.walk(top):
        found += [os.path.relpath(os.path.join(folder, f), top) for f in files]
    return found


def braces(word):
    m = re.search(r"\{([^{}]*)\}", word)
    if not m:
        return [word]
    return [w for part in m[1].split(",") for w in braces(word[: m.start()] + part.strip() + word[m.end() :])]


class Tree:
    def __init__(self, top):
        self.top = top
        self.files = [f for f in tracked(top) if os.path.exists(os.path.join(top, f))]
        self.names = set(self.files)
        self.folders = {"/".join(f.split("/")[:i]) for f in self.files for i in range(1, f.count("/") + 1)}
        self.bases = {os.path.basename(f) for f in self.files}
        self.roots = {f.split("/")[0] for f in self.files if "/" in f}
        self.built = set()
        for f in self.files:
            if f.endswith(".mk") or f.endswith(".am"):
                with open(os.path.join(top, f), encoding="utf-8") as text:
                    self.built |= set(re.findall(r"[\w./-]+", text.read()))

    def has(self, path):
        path = os.path.normpath(path)
        if "*" in path:
            return any(fnmatch.fnmatch(f, path) for f in self.names | self.folders)
        if path in self.folders or path in self.built:
            return True
        return any(path + suffix in self.names for suffix in SOURCE_SUFFIXES)

    def wrong(self, md):
        """The paths in one file that don't exist, as (line number, word)."""
        here = os.path.dirname(md)
        with open(os.path.join(self.top, md), encoding="utf-8") as text:
            for n, line in enumerate(text, 1):
                for target in re.findall(r"\]\(([^)#\s]+)\)?", line):
                    if ":" not in target and not self.has(os.path.join(here, target)):
                        yield n, target
                for code in re.findall(r"`([^`]+)`", line):
                    code = re.sub(r"\./dev t (\w+)/(\w+)", r"tests/unit/\1/test_\2", code)
                    for word in code.split():
                        yield from ((n, w) for w in braces(word.strip(".,;:()'\"")) if self.is_wrong(here, w))

    def is_wrong(self, here, word):
        if word in FOREIGN or PLACEHOLDER.search(word) or "=" in word or "@" in word:
            return False
        if "/" in word:
            if word.split("/")[0] not in self.roots or word.startswith("/"):
                return False
            return not (self.has(word) or self.has(os.path.join(here, word)))
        return bool(BARE.fullmatch(word)) and "*" not in word and word not in self.bases and word not in self.built


def main():
    top = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    tree = Tree(top)
    n = 0
    for md in sorted(f for f in tree.files if f.endswith(".md")):
        for line, word in tree.wrong(md):
            print(f"{md}:{line}: no such path: {word}")
            n += 1
    return 1 if n else 0


if __name__ == "__main__":
    sys.exit(main())
