#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how easy the source is to take over, and prints each figure beside its limit.

usage: tools/house.py [--build DIR] [--show MEASURE] [--tighten] [--self-test]

The limits stand in tools/house.limits, with the values that are wished for. Exit status: 0; 1 if a figure is above its
limit. Limits go down only: after a change that improves a figure, --tighten writes the new figure as the limit. --show
prints every place that a measure counts; `all` stands for every measure. `make lint` calls this as lint-house.
"""
import argparse
import math
import os
import re
import statistics
import sys

sys.dont_write_bytecode = True  # the source folder may be read-only, and is not for caches
import doc_paths
import house_objects
import house_text as text
from house_text import ROOMS

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHOWN = 12  # places printed of a measure that is above its limit
FUNCTION_LINES = 60
HEADER_LINES = 300
FILE_LINES = 1000
FOLDER_FILES = 40
README_LINES = 25

# Folders that hold one case a file, so that a listing is the index: no README, any number of files.
CASES = ("tests/corpus/*", "tests/ptx/*", "tests/ptx_run", "tests/reference", "tests/cuda", "tests/cuda/*", ".ci", "debian*", "doc*", "bench/results")
# Text that quotes what must not be written.
QUOTES = ("tools/house*", "CONTRIBUTING.md")

# Phrases that a reader has to read twice, with what to write instead.
BANNED = {
    "gone on with": "resumed",
    "goes on with": "resumes",
    "of nobody's": "of no client",
    "one alike": "an equal one",
    "a message that is none": "a malformed message",
    "is no terminal": "is not a terminal",
    "short cut": "ring",
    "side socket": "handoff socket",
}


class Measure:
    """One figure: a value, the places that it counts, and how it is written."""

    def __init__(self, name, value, places=(), unit=""):
        self.name, self.value, self.places, self.unit = name, value, list(places), unit

    def written(self, value):
        return f"{value:.2f}" if isinstance(value, float) else str(value)


def lost_paths(tree):
    """Paths in documents that do not exist (tools/doc_paths.py)."""
    documents = doc_paths.Tree(tree.top)
    names = sorted(n for n in documents.files if n.endswith(".md"))
    return [f"{n}:{line}: no such path: {word}" for n in names for line, word in documents.wrong(n)]


def measure_text(tree):
    functions = text.all_functions(tree)
    long = text.long_functions(tree, FUNCTION_LINES)
    lengths = [n for *_, n in functions] or [0]
    repeated, n_repeated, n_lines = text.repeated_lines(tree)
    yield Measure("long-functions-percent", round(100 * len(long) / max(1, len(functions)), 2), long)
    yield Measure("median-function", round(statistics.median(lengths)))
    found = {
        "long-headers": text.long_files(tree, (".h",), HEADER_LINES),
        "long-files": text.long_files(tree, (".c", ".h", ".inc"), FILE_LINES),
        "full-folders": text.full_folders(tree, FOLDER_FILES, CASES),
    }
    for name, places in found.items():
        yield Measure(name, len(places), places)
    yield Measure("repeated-lines-percent", round(100 * n_repeated / max(1, n_lines), 2), repeated)
    found = {
        "ladders": text.ladders(tree),
        "torn-declarations": text.torn_declarations(tree),
        "bare-sizeof": text.bare_sizeof(tree),
        "structs-twice": text.structs_twice(tree),
        "gone-parameters": text.gone_parameters(tree),
        "folders-without-readme": text.folders_without_readme(tree, CASES),
        "long-readmes": text.long_readmes(tree, README_LINES),
        "unnamed-files": text.unnamed_files(tree, CASES),
        "wide-prose": text.wide_prose(tree),
        "lost-paths": lost_paths(tree),
        "banned-phrases": text.banned_phrases(tree, BANNED, QUOTES),
    }
    for name, places in found.items():
        yield Measure(name, len(places), places)


def measure_objects(tree, build):
    objects = house_objects.read_objects(tree.top, build, ROOMS)
    if not objects.functions:
        print(f"lint: {build} has no object files, so circles and callers are not measured", file=sys.stderr)
        return
    for room in ROOMS:
        circle = house_objects.largest_circle(objects, room)
        yield Measure(f"circle-{room}", len(circle), circle)
    words = {}  # identifier -> "tests" or "benches", where one of these names it
    for name in tree.files:
        if name.startswith(("tests/", "bench/")) and name.endswith((".c", ".h", ".cu", ".sh", ".mk")):
            words.update(dict.fromkeys(re.findall(r"\w+", tree.source(name).code), name.split("/")[0]))
    nobody, own_file, tests = [], [], []
    for source, name in house_objects.uncalled(objects):
        if not os.path.exists(os.path.join(tree.top, source)):
            continue  # generated
        called_here = len(re.findall(rf"\b{name}\b", tree.source(source).code)) > 1
        if not called_here and name not in words:
            nobody.append(f"{source}: nobody calls {name}()")
        elif not called_here:
            tests.append(f"{source}: only {words[name]}/ calls {name}()")
        elif name not in words:
            own_file.append(f"{source}: only its own file calls {name}(), which can be static")
    yield Measure("no-callers", len(nobody), nobody)
    yield Measure("only-tests-call", len(tests), tests)
    yield Measure("could-be-static", len(own_file), own_file)


def read_limits(path):
    """Rows "name limit wished"; '#' begins a comment. Returns {name: (limit, wished)}."""
    limits = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            words = line.split("#")[0].split()
            if words:
                limits[words[0]] = (float(words[1]), float(words[2]))
    return limits


def tightened(value):
    """The limit for a figure: a share is rounded up to 0.05 %, as it moves with every function that is added or removed."""
    return math.ceil(value * 20 - 1e-9) / 20 if isinstance(value, float) else value


def tighten(path, measures):
    """Writes each figure below its limit as the new limit; the rest of the file stays as it is."""
    values = {m.name: m for m in measures}
    with open(path, encoding="utf-8") as f:
        lines = f.readlines()
    for i, line in enumerate(lines):
        row = re.match(r"(\S+)(\s+)([\d.]+)", line)
        measure = values.get(row.group(1)) if row else None
        if measure and tightened(measure.value) < float(row.group(3)):
            new = measure.written(tightened(measure.value)).ljust(len(row.group(3)))
            lines[i] = row.group(1) + row.group(2) + new + line[row.end() :]
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(lines)


def judge(measures, limits, out):
    """Prints the table and, of each figure above its limit, the first places. Returns how many are above."""
    print(f"{'measure':26}{'now':>8}{'limit':>8}{'wished':>8}", file=out)
    broken = []
    for m in measures:
        limit, wished = limits.get(m.name, (0.0, 0.0))
        above = m.value > limit
        note = "  ABOVE THE LIMIT" if above else "  below its limit: --tighten" if tightened(m.value) < limit else ""
        number = "{:.2f}" if isinstance(m.value, float) else "{:.0f}"
        print(f"{m.name:26}{m.written(m.value):>8}{number.format(limit):>8}{number.format(wished):>8}{note}", file=out)
        if above:
            broken.append(m)
    for m in broken:
        print(f"{m.name}:", file=out)
        for place in m.places[:SHOWN]:
            print(f"  {place}", file=out)
        if len(m.places) > SHOWN:
            print(f"  … {len(m.places)} in all; tools/house.py --show {m.name}", file=out)
    return len(broken)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--top", default=HERE, help="the source tree")
    parser.add_argument("--build", help="the build tree (build/test)")
    parser.add_argument("--show", metavar="MEASURE", help="print every place that this measure counts")
    parser.add_argument("--tighten", action="store_true", help="write figures below their limit as the new limits")
    parser.add_argument("--self-test", action="store_true", help="see each measure fail on a small planted tree")
    args = parser.parse_args()
    if args.self_test:
        import house_test

        return house_test.run()
    tree = text.Tree(args.top)
    measures = [*measure_text(tree), *measure_objects(tree, args.build or os.path.join(args.top, "build", "test"))]
    if args.show:
        for m in measures:
            if args.show in (m.name, "all"):
                print("\n".join(f"{m.name}: {place}" for place in m.places))
        return 0
    limits = os.path.join(args.top, "tools", "house.limits")
    broken = judge(measures, read_limits(limits), sys.stdout)
    if args.tighten:
        tighten(limits, measures)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
