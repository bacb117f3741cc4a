# SPDX-License-Identifier: Apache-2.0
"""What the text of the source says: lengths, repeated lines, forms that are hard to read, folders and their READMEs.

Each function takes a Tree and returns a list of findings, strings "file:line: what". C is read as clang-format leaves it:
a function's body begins with a line "{" and ends with a line "}".
"""
import bisect
import collections
import fnmatch
import os
import re
import subprocess

ROOMS = ("base", "protocol", "ptx", "models", "policy", "templates", "device", "backend", "frontend", "cli", "papers", "slurm")
C_SUFFIXES = (".c", ".h", ".inc", ".def")
PROSE_COLUMNS = 100
RUN_LINES = 6  # equal lines in a row that count as repeated

TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
LAYOUT = re.compile(r"[^\n]")
COMMENT = re.compile(r"//[^\n]*(?:\n[ \t]*//[^\n]*)*|/\*.*?\*/", re.S)


class Source:
    """One file: its text; its code, where comments and the insides of strings are blank; its comments as (line, text)."""

    def __init__(self, name, text):
        self.name, self.text = name, text
        self.lines = text.splitlines()
        self.comments = []
        self.strings = []
        self.starts = [0] + [m.end() for m in re.finditer("\n", text)]
        self.code = TOKEN.sub(self._blank, text) if name.endswith(C_SUFFIXES) else text
        self.code_lines = self.code.splitlines()

    def _blank(self, match):
        token = match.group()
        if token[0] == "/":
            self.comments.append((self.line_at(match.start()), token, match.end()))
            return LAYOUT.sub(" ", token)
        self.strings.append((self.line_at(match.start()), token))
        return token[0] + " " * (len(token) - 2) + token[-1]

    def line_at(self, offset):
        return bisect.bisect_right(self.starts, offset)


class Tree:
    """The files that git knows, or, outside a repository, all files that are not in a build folder."""

    def __init__(self, top):
        self.top = top
        self.files = self._names()
        self._sources = {}

    def _names(self):
        git = subprocess.run(["git", "-C", self.top, "ls-files"], capture_output=True, text=True)
        if git.returncode == 0 and git.stdout and os.path.exists(os.path.join(self.top, ".git")):
            return [n for n in git.stdout.splitlines() if os.path.exists(os.path.join(self.top, n))]
        found = []
        for folder, folders, names in os.walk(self.top):
            folders[:] = [f for f in folders if not f.startswith((".", "build", "autom4te", "_build"))]
            found += [os.path.relpath(os.path.join(folder, n), self.top) for n in names if not n.endswith("~")]
        return sorted(found)

    def source(self, name):
        if name not in self._sources:
            with open(os.path.join(self.top, name), encoding="utf-8", errors="replace") as f:
                self._sources[name] = Source(name, f.read())
        return self._sources[name]

    def production(self, suffixes=(".c", ".h", ".inc")):
        """The sources of the rooms that people write: what is installed, without tests, benches and tools."""
        sources = [self.source(n) for n in self.files if n.split("/")[0] in ROOMS and n.endswith(suffixes)]
        return [s for s in sources if not any(line.startswith("/* Made by tools/") for line in s.lines[:3])]

    def folders(self):
        """Folder -> the names of the files in it."""
        folders = collections.defaultdict(list)
        for name in self.files:
            folder, _, base = name.rpartition("/")
            folders[folder].append(base)
        return folders


# ---- lengths ----


def functions(source):
    """(line, name, lines) of each function of a source; lines from its name to its closing brace."""
    found, begin = [], None
    for i, line in enumerate(source.code_lines):
        if line == "{":
            begin = i
        elif line == "}" and begin is not None:
            head = begin
            while head > 0 and re.match(r"\s*\S", source.code_lines[head - 1]) and not source.code_lines[head - 1].rstrip().endswith((";", "}")):
                head -= 1
                if source.code_lines[head].startswith("#"):
                    head += 1
                    break
            name = re.search(r"(\w+)\s*\(", " ".join(source.code_lines[head:begin]))
            found.append((head + 1, name.group(1) if name else "?", i - head + 1))
            begin = None
    return found


def all_functions(tree):
    return [(s.name, *f) for s in tree.production((".c", ".inc", ".h")) for f in functions(s)]


def long_functions(tree, limit):
    return [f"{name}:{line}: {function}() has {n} lines" for name, line, function, n in all_functions(tree) if n > limit]


def long_files(tree, suffixes, limit):
    long = [(len(s.lines), s.name) for s in tree.production(suffixes) if len(s.lines) > limit]
    return [f"{name}: {n} lines" for n, name in sorted(long, reverse=True)]


def full_folders(tree, limit, exempt):
    full = [(len(names), f) for f, names in tree.folders().items() if len(names) > limit and not matches(f, exempt)]
    return [f"{folder or '.'}: {n} files" for n, folder in sorted(full, reverse=True)]


# ---- forms ----


def repeated_lines(tree):
    """Lines in runs of RUN_LINES and more that stand a second time. Returns (findings, repeated lines, all lines)."""
    texts, runs = [], collections.defaultdict(list)
    for source in tree.production((".c", ".h", ".inc")):
        lines = [(i + 1, re.sub(r"\s+", " ", code.strip())) for i, code in enumerate(source.code_lines)]
        strings = {line: text for line, text in source.strings}
        lines = [(i, code + strings.get(i, "")) for i, code in lines if code and not code.startswith("#include")]
        texts.append((source.name, lines))
        for at in range(len(lines) - RUN_LINES + 1):
            key = tuple(code for _, code in lines[at : at + RUN_LINES])
            if sum(len(code) > 2 for code in key) > RUN_LINES // 2:  # not a run of closing braces
                runs[key].append((len(texts) - 1, at))
    marked, twin = collections.defaultdict(set), {}
    for places in runs.values():
        for n, (file, at) in enumerate(places if len(places) > 1 else ()):
            marked[file].update(range(at, at + RUN_LINES))
            twin[file, at] = places[n - 1]
    findings = []
    for file, indices in marked.items():
        name, lines = texts[file]
        for at in sorted(i for i in indices if i - 1 not in indices):
            n = next(k for k in range(len(indices) + 1) if at + k not in indices)
            other, where = twin[file, at]
            findings.append(f"{name}:{lines[at][0]}: {n} lines as at {texts[other][0]}:{texts[other][1][where][0]}")
    return findings, sum(map(len, marked.values())), sum(len(s.lines) for s in tree.production((".c", ".h", ".inc")))


def ladders(tree, steps=3):
    """Expressions that choose with @steps or more ?: in one chain; a branch in brackets is a part of the chain."""
    found = []
    for source in tree.production():
        counts = [(0, 0)]  # at each depth of brackets: (questions of this expression, offset of the first)
        branches = [False]  # at each depth: the bracket is a branch of a ?:
        for match in re.finditer(r"[()\[\]{};,?]|(?<![=!<>+\-*/%&|^])=(?!=)", source.code):
            c = match.group()
            if c in "([{":
                counts.append((0, 0))
                branches.append(source.code[max(0, match.start() - 200) : match.start()].rstrip()[-1:] in ("?", ":") if c == "(" else False)
                continue
            n, first = counts[-1]
            if c == "?":
                counts[-1] = (n + 1, first or match.start())
                continue
            if c == ")" and branches[-1]:
                counts.pop()
                branches.pop()
                outer, outer_first = counts[-1]
                counts[-1] = (outer + n, outer_first or first)
                continue
            if n >= steps:
                found.append(f"{source.name}:{source.line_at(first)}: {n} ?: in one expression")
            counts[-1] = (0, 0)
            if c in ")]}" and len(counts) > 1:
                counts.pop()
                branches.pop()
    return found


TYPE_ONLY = re.compile(r"^\s+(?:(?:const|static|extern|unsigned|volatile|signed|_Atomic|struct|enum|union)\s+)*\w+(?:\s+const)?[\s*]*$")
NAME_FIRST = re.compile(r"^\s+(?:\*\s*(?:const\s+)?)*\w+(?:\[[^\]]*\])*\s*(?:;|=(?!=)|,|\[)")
NOT_A_TYPE = re.compile(r"^\s*(?:else|do|return|default|goto|break|continue|[A-Z0-9_]+)\s*$")


def torn_declarations(tree):
    """Declarations whose type stands on one line and whose name on the next, since a comment left no room."""
    found = []
    for source in tree.production((".c", ".h")):
        lines = source.code_lines
        for i in range(len(lines) - 1):
            if not TYPE_ONLY.match(lines[i]) or NOT_A_TYPE.match(lines[i]) or not NAME_FIRST.match(lines[i + 1]):
                continue
            before = next((line for line in reversed(lines[:i]) if line.strip()), "")
            # After an operator, a comma or an open bracket it is an expression that goes on.
            if re.search(r"(?:[;{}]|\*/|\w:|^#.*|^\s*\w+\))\s*$", before) or before.rstrip().endswith((";", "{", "}")):
                found.append(f"{source.name}:{i + 1}: {lines[i].strip()} / {lines[i + 1].strip()}")
    return found


def bare_sizeof(tree):
    """sizeof without parentheses."""
    return [
        f"{s.name}:{s.line_at(m.start())}: {s.lines[s.line_at(m.start()) - 1].strip()}"
        for s in tree.production()
        for m in re.finditer(r"\bsizeof\b(?!\s*\()|\bsizeof\s+\(", s.code)
    ]


def structs_twice(tree):
    """Structs, unions and enums whose name is defined more than once."""
    where = collections.defaultdict(list)
    for source in tree.production():
        for m in re.finditer(r"\b(?:struct|union|enum)\s+(\w+)\s*\{", source.code):
            where[m.group(1)].append(f"{source.name}:{source.line_at(m.start())}")
    return [f"{places[0]}: {name} also at {' '.join(places[1:])}" for name, places in sorted(where.items()) if len(places) > 1]


def gone_parameters(tree):
    """@names in a comment that the declarations right after it do not have."""
    found = []
    for source in tree.production((".c", ".h")):
        for line, comment, end in source.comments:
            names = re.findall(r"(?<![\w@])@(\w+)", comment)
            if not names:
                continue
            own_line = not source.code_lines[line - 1].strip()
            after = source.code[end:] if own_line else source.code_lines[line - 1] + source.code[end:]
            # What follows up to an empty line or the end of a function: a group of declarations
            # shares its comment.
            scope = re.split(r"\n[ \t]*\n|\n\}", after.lstrip("\n") if own_line else after, maxsplit=1)[0]
            if not own_line:
                first = source.starts[line - 1]
                scope = source.code[max(0, first - 600) : first] + scope
            if "(" not in scope:
                continue
            known = set(re.findall(r"\w+", scope))
            found += [f"{source.name}:{line}: @{name} is no parameter" for name in dict.fromkeys(names) if name not in known]
    return found


# ---- folders and words ----


def matches(name, patterns):
    return any(fnmatch.fnmatch(name, p) for p in patterns)


def folders_without_readme(tree, exempt):
    return [f"{f}: no README.md" for f, names in sorted(tree.folders().items()) if f and "README.md" not in names and not matches(f, exempt)]


def long_readmes(tree, limit):
    names = [n for n in tree.files if n.endswith("/README.md")]
    return [f"{n}: {len(tree.source(n).lines)} lines" for n in names if len(tree.source(n).lines) > limit]


def unnamed_files(tree, exempt):
    """Files of the rooms that the README of their folder does not name: by name, by stem, or by a pattern (`decode_*.c`)."""
    found = []
    for folder, names in sorted(tree.folders().items()):
        if folder.split("/")[0] not in ROOMS or "README.md" not in names or matches(folder, exempt):
            continue
        text = tree.source(folder + "/README.md").text
        words = set(re.findall(r"[\w*.-]+", text))
        words |= {w.rstrip(".") for w in words}
        patterns = [w for w in words if "*" in w and len(w) > 2]
        stems = {os.path.splitext(w)[0] for w in words}
        for name in names:
            stem = os.path.splitext(name)[0]
            if name in ("README.md", "local.mk") or name in words or stem in stems or stem.removesuffix("_private") in stems:
                continue
            if not any(fnmatch.fnmatch(name, p) or fnmatch.fnmatch(stem, p) for p in patterns):
                found.append(f"{folder}/{name}: its README does not name it")
    return found


def wide_prose(tree):
    """Lines of prose above PROSE_COLUMNS: manual pages, Markdown outside tables and code, comments."""
    found = []
    for name in tree.files:
        if name.endswith((".md", ".scd")):
            fenced = False
            for i, line in enumerate(tree.source(name).lines):
                fenced ^= line.lstrip().startswith("```")
                if len(line) > PROSE_COLUMNS and not fenced and not line.startswith(("|", "![", "    ", "\t")):
                    found.append(f"{name}:{i + 1}: {len(line)} columns")
        elif name.endswith(C_SUFFIXES) and name.split("/")[0] in (*ROOMS, "tests", "bench", "demo"):
            source = tree.source(name)
            for line, comment, _ in source.comments:
                for i in range(line, line + comment.count("\n") + 1):
                    if len(source.lines[i - 1]) > PROSE_COLUMNS:
                        found.append(f"{name}:{i}: {len(source.lines[i - 1])} columns")
        elif name.endswith((".sh", ".mk", ".py", ".ac", ".am")) or name in ("dev", "quickstart"):
            for i, line in enumerate(tree.source(name).lines):
                if len(line) > PROSE_COLUMNS and line.lstrip().startswith("#"):
                    found.append(f"{name}:{i + 1}: {len(line)} columns")
    return list(dict.fromkeys(found))


def banned_phrases(tree, phrases, exempt):
    """Phrases that make a reader stop, wherever text stands: documents, comments, messages."""
    pattern = re.compile("|".join(rf"\b{re.escape(p)}\b".replace(r"\ ", r"[\s*]+") for p in phrases), re.I)
    found = []
    for name in tree.files:
        text = name.endswith((".md", ".scd", *C_SUFFIXES)) or name == "NEWS"
        if text and not matches(name, exempt) and name.split("/")[0] != "tests":
            source = tree.source(name)
            found += [f"{name}:{source.line_at(m.start())}: {' '.join(m.group().split())}" for m in pattern.finditer(source.text)]
    return found
