# SPDX-License-Identifier: Apache-2.0
"""What the object files of a build tree say about the source: who calls whom, and who is called by nobody.

Symbols come from nm, so the figures hold for what is linked, whatever the headers say. A file's name here is its path
in the source tree; the object files of one source that is compiled twice count as one.
"""
import collections
import os
import re
import subprocess

from circles import circles

NM_BATCH = 200  # object files for one call of nm


class Objects:
    """What the object files of a build tree define and use, by source file."""

    def __init__(self):
        self.functions = collections.defaultdict(set)  # source file -> external functions that it defines
        self.uses = collections.defaultdict(set)  # source file -> symbols that it leaves undefined
        self.exported = set()  # symbols that a program outside finds in a shared library or executable


def source_of(top, build, path):
    """The source file of an object file, or None. Automake puts the archive's name and '-' before the file's."""
    folder, name = os.path.split(os.path.relpath(path, build))
    stem = name[: -len(".o")]
    while True:
        source = os.path.join(folder, stem + ".c")
        if os.path.exists(os.path.join(top, source)) or os.path.exists(os.path.join(build, source)):
            return source
        if "-" not in stem:
            return None
        stem = stem.split("-", 1)[1]


def nm(options, paths):
    """Yields (file, symbol, kind) as nm prints them for @paths."""
    for i in range(0, len(paths), NM_BATCH):
        out = subprocess.run(["nm", "-A", "--format=posix", *options, *paths[i : i + NM_BATCH]], capture_output=True, text=True)
        for line in out.stdout.splitlines():
            path, _, rest = line.partition(": ")
            words = rest.split()
            if len(words) >= 2:
                yield path, words[0], words[1]


def read_uncompiled(top, rooms, compiled):
    """Yields (source file, names) of what @build has no object files of, as where Slurm's headers are missing: names that
    stand in the text count as used.
    """
    for room in rooms:
        for folder, _, names in os.walk(os.path.join(top, room)):
            for name in names:
                path = os.path.join(folder, name)
                source = os.path.relpath(path, top)
                if name.endswith(".c") and source not in compiled:
                    with open(path, encoding="utf-8") as f:
                        yield source, set(re.findall(r"\bws_\w+", f.read()))


def read_objects(top, build, rooms):
    """Reads the object files and shared libraries of @rooms in @build. An object file whose source is gone is left out."""
    sources, shared = {}, []
    for room in rooms:
        for folder, _, names in os.walk(os.path.join(build, room)):
            for name in names:
                path = os.path.join(folder, name)
                if name.endswith(".o") and (source := source_of(top, build, path)):
                    sources[path] = source
                elif re.search(r"\.so(\.\d+)*$", name):
                    shared.append(path)
    objects = Objects()
    for path, symbol, kind in nm(["-g"], sorted(sources)):
        if kind in "TW":
            objects.functions[sources[path]].add(symbol)
        elif kind in "Uvw":
            objects.uses[sources[path]].add(symbol)
    for source, names in read_uncompiled(top, rooms, set(sources.values())):
        objects.uses[source] |= names
    objects.exported = {symbol.split("@")[0] for _, symbol, _ in nm(["-D", "--defined-only"], sorted(shared))}
    return objects


def largest_circle(objects, room):
    """The files of the largest group in @room that call each other in a circle. Data, a policy's table say, is no call."""
    inside = {s for s in {*objects.functions, *objects.uses} if s.split(os.sep)[0] == room}
    where = collections.defaultdict(set)
    for source in inside:
        for name in objects.functions[source]:
            where[name].add(source)
    graph = {}
    for source in inside:
        wanted = objects.uses[source] - objects.functions[source]
        graph[source] = {target for name in wanted for target in where.get(name, ())} - {source}
    found = circles(graph)
    return found[0] if found else []


def uncalled(objects):
    """(file, function) of each external function that no other source file of the rooms uses and no library exports."""
    used = collections.defaultdict(set)
    for source, names in objects.uses.items():
        for name in names:
            used[name].add(source)
    return sorted(
        (source, name)
        for source, names in objects.functions.items()
        for name in names
        if not used[name] - {source} and name not in objects.exported and name != "main"
    )
