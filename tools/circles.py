#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds the files of a folder that call each other in a circle, and headers that are too long.

The graph comes from the objects of a build, so it holds what is linked and not what is included: there is an arrow from file A
to file B if A uses a function or a variable that B defines. Files that reach each other along arrows are a circle (a strongly
connected component). Such files can be understood, tested and changed only together.

    tools/circles.py --build build/test backend --limit 8
    tools/circles.py --build build/test backend --why backend/client/stream.c backend/wire/out.c
    tools/circles.py --build build/test backend --rooms

Exit status: 0, 1 if a circle or a header is larger than its limit, 2 if there is nothing to measure.
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys


def source_of(obj, build):
    """backend/wire/libbackend_a-out.o -> backend/wire/out.c"""
    rel = obj.relative_to(build)
    name = re.sub(r"^(lib)?\w+-(?=[^-]+\.o$)", "", rel.name)
    return str(rel.with_name(name).with_suffix(".c"))


def symbols(objects):
    """The symbols that each object defines for others, and those that it needs."""
    defined, needed = {}, {}
    for source, obj in objects.items():
        out = subprocess.run(["nm", "-g", "-P", str(obj)], check=True, capture_output=True, text=True).stdout
        defined[source], needed[source] = set(), set()
        for line in out.splitlines():
            name, kind = line.split()[:2]
            (needed if kind in "Uwv" else defined)[source].add(name)
    return defined, needed


def graph_of(objects):
    """{source: {source that it uses: symbols}}"""
    defined, needed = symbols(objects)
    owner = {name: source for source, names in defined.items() for name in names}
    graph = {source: collections.defaultdict(set) for source in objects}
    for source, names in needed.items():
        for name in names:
            if owner.get(name, source) != source:
                graph[source][owner[name]].add(name)
    return graph


def circles(graph):
    """The strongly connected components with more than one file, the largest first (Tarjan 1972, without recursion)."""
    index, low, on_stack, stack, found = {}, {}, set(), [], []

    def enter(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        on_stack.add(v)
        return v, iter(sorted(graph[v]))

    for root in sorted(graph):
        if root in index:
            continue
        work = [enter(root)]
        while work:
            v, rest = work[-1]
            w = next(rest, None)
            if w is not None:
                if w not in index:
                    work.append(enter(w))
                elif w in on_stack:
                    low[v] = min(low[v], index[w])
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[v])
            if low[v] == index[v]:
                at = stack.index(v)
                part = stack[at:]
                del stack[at:]
                on_stack.difference_update(part)
                if len(part) > 1:
                    found.append(sorted(part))
    return sorted(found, key=lambda c: (-len(c), c))


def long_headers(top, folder, limit):
    lines = {p: len(p.read_text(encoding="utf-8").splitlines()) for p in sorted((top / folder).rglob("*.h"))}
    return [(n, p.relative_to(top)) for p, n in lines.items() if n > limit]


def print_why(graph, a, b):
    for x, y in ((a, b), (b, a)):
        print(f"{x} uses of {y}: {' '.join(sorted(graph[x].get(y, ()))) or 'nothing'}")


def print_rooms(graph):
    """Which rooms use which: the arrows between folders, with the number of symbols."""
    rooms = collections.Counter()
    for source, targets in graph.items():
        for target, names in targets.items():
            a, b = str(pathlib.Path(source).parent), str(pathlib.Path(target).parent)
            if a != b:
                rooms[a, b] += len(names)
    for (a, b), n in sorted(rooms.items()):
        print(f"{a} -> {b}: {n} symbols")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="the folder to measure, relative to the top of the tree")
    parser.add_argument("--build", required=True, type=pathlib.Path, help="a build tree in which `make all` has run")
    parser.add_argument("--limit", type=int, default=8, help="most files that a circle may have (default: 8)")
    parser.add_argument("--header-limit", type=int, default=300, help="most lines of a header (default: 300)")
    parser.add_argument("--why", nargs=2, metavar=("FILE", "FILE"), help="print the symbols that two files use of each other")
    parser.add_argument("--rooms", action="store_true", help="print which folders use which")
    parser.add_argument("--verbose", action="store_true", help="print the arrows inside each circle")
    args = parser.parse_args()

    top = pathlib.Path(__file__).resolve().parent.parent
    objects = {source_of(o, args.build): o for o in sorted((args.build / args.folder).rglob("*.o"))}
    objects = {s: o for s, o in objects.items() if (top / s).is_file()}  # no objects of files that are gone
    if not objects:
        print(f"circles: no objects of {args.folder} in {args.build}; run `make all` there", file=sys.stderr)
        return 2
    graph = graph_of(objects)
    if args.why:
        print_why(graph, *args.why)
        return 0
    if args.rooms:
        print_rooms(graph)
        return 0

    found = circles(graph)
    largest = len(found[0]) if found else 0
    print(f"circles: {args.folder}: {len(objects)} files, {len(found)} circles, the largest of {largest} files (limit {args.limit})")
    for circle in found:
        print(f"  {len(circle)}: {' '.join(circle)}")
        for a in circle if args.verbose else ():
            for b in sorted(set(graph[a]) & set(circle)):
                print(f"      {a} -> {b}: {' '.join(sorted(graph[a][b]))}")
    headers = long_headers(top, args.folder, args.header_limit)
    for n, path in headers:
        print(f"  {path}: {n} lines (limit {args.header_limit})")
    return 1 if largest > args.limit or headers else 0


if __name__ == "__main__":
    sys.exit(main())
