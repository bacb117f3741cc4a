# SPDX-License-Identifier: Apache-2.0
"""Sees each measure of house.py fail: plants small trees with a known number of faults and compares."""
import io
import os
import subprocess
import sys
import tempfile

import house
import house_text as text

FUNCTION = "int {name}(int a)\n{{\n{body}    return a;\n}}\n"
RUN = "".join(f"    first_{i}(a, {i});\n" for i in range(text.RUN_LINES))

# Measure -> (the files of a tree, what is measured in it). Every other measure of text must be 0 in
# that tree, unless ALSO says so.
TEXT = {
    "long-functions-percent": ({"base/a.c": FUNCTION.format(name="f", body="".join(f"    a += {i};\n" for i in range(60)))}, 100.0),
    "long-headers": ({"base/a.h": "".join(f"int a{i};\n" for i in range(301))}, 1),
    "long-files": ({"base/a.c": "".join(f"int a{i};\n" for i in range(1001))}, 1),
    "full-folders": ({f"base/sub/f{i}.txt": "" for i in range(41)}, 1),
    "repeated-lines-percent": (
        {"base/a.c": FUNCTION.format(name="f", body=RUN), "base/b.c": FUNCTION.format(name="g", body=RUN + "    a--;\n")},
        round(100 * 2 * (1 + text.RUN_LINES) / (2 * (4 + text.RUN_LINES) + 1), 2),  # with the line "{" before
    ),
    "ladders": (
        {
            "base/a.c": "int x = a ? 1 : b ? 2 : c ? 3 : 4;\nint y = a ? (b ? 1 : (c ? 2 : 3)) : 4;\n"
            "int z = f(a ? 1 : 2, b ? 1 : 2, c ? 1 : 2);\nint w = (a ? 1 : 0) | (b ? 2 : 0) | (c ? 4 : 0);\n"
        },
        2,
    ),
    "torn-declarations": ({"base/a.h": "struct a {\n    bool\n        open; /* long */\n    const char\n        *name;\n    int n;\n};\n"}, 2),
    "bare-sizeof": ({"base/a.c": "int x = sizeof a;\nint y = sizeof(a);\nint z = sizeof *a; /* sizeof a */\n"}, 2),
    "structs-twice": ({"base/a.c": "struct part {\n    int a;\n};\nstruct part p;\n", "base/b.c": "struct part {\n    int b;\n};\n"}, 1),
    "gone-parameters": (
        {"base/a.h": "/* Adds @a to @gone. */\nint add(int a, int b);\n\n/* Of a @list. */\nint n(int *list);\n\nint m(int k); /* @k and @l */\n"},
        2,
    ),
    "folders-without-readme": ({"base/sub/a.c": "", "cli/a.c": "", "ptx/README.md": "ptx\n", "tests/corpus/x/a": ""}, 2),
    "long-readmes": ({"base/README.md": "a\n" * 26}, 1),
    "unnamed-files": ({"base/README.md": "`alloc.c` and `decode_*.c`\n", "base/alloc.c": "", "base/decode_a.c": "", "base/other.c": ""}, 1),
    "wide-prose": ({"base/README.md": "`a.c` " + "x" * 95 + "\n| " + "y" * 120 + "\n", "base/a.c": "int a; // " + "z" * 101 + "\n"}, 2),
    "lost-paths": ({"base/README.md": "`base/a.c`, `base/gone.c`, `./dev t a/b`, `./dev t a/gone` and [x](no.md)\n", "base/a.c": "", "tests/unit/a/test_b.c": ""}, 3),
    "banned-phrases": ({"base/README.md": "stopped and gone\non with\n"}, 1),
}
ALSO = {"folders-without-readme"}  # most trees have no README


def plant(folder, files):
    for name, content in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(content)


def check(what, got, want):
    if got != want:
        print(f"FAIL: {what}: {got} measured, {want} planted")
    return got != want


def test_text():
    failures = 0
    for name, (files, want) in TEXT.items():
        with tempfile.TemporaryDirectory() as folder:
            plant(folder, files)
            for m in house.measure_text(text.Tree(folder)):
                if m.name == name:
                    failures += check(name, m.value, want)
                    failures += check(f"{name}: places are listed", bool(m.places), True)
                elif m.name not in ALSO and m.name != "median-function":
                    failures += check(f"{m.name} in the tree of {name}", m.value, 0)
    return failures


def test_objects():
    """Two files in a circle, a third that they call; callers in tests only, in the own file only, nowhere."""
    files = {
        "base/a.c": "int b(void);\nint c(void);\nint a(void)\n{\n    return b() + c();\n}\n",
        "base/b.c": "int a(void);\nint b(void)\n{\n    return a();\n}\n",
        "base/c.c": "int dead(void)\n{\n    return 1;\n}\nint tested(void)\n{\n    return 2;\n}\n"
        "int own(void)\n{\n    return 3;\n}\nint c(void)\n{\n    return own();\n}\n",
        "tests/t.c": "int tested(void);\n",
    }
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        plant(folder, files)
        build = os.path.join(folder, "build")
        os.makedirs(os.path.join(build, "base"))
        for name in "abc":
            target = os.path.join(build, "base", f"libbase_a-{name}.o")
            subprocess.run(["cc", "-c", os.path.join(folder, "base", name + ".c"), "-o", target], check=True)
        found = {m.name: m for m in house.measure_objects(text.Tree(folder), build)}
        failures += check("circle-base", found["circle-base"].places, ["base/a.c", "base/b.c"])
        failures += check("circle-ptx", found["circle-ptx"].value, 0)
        failures += check("no-callers", found["no-callers"].places, ["base/c.c: nobody calls dead()"])
        failures += check("only-tests-call", found["only-tests-call"].places, ["base/c.c: only tests/ calls tested()"])
        failures += check("could-be-static", len(found["could-be-static"].places), 1)
    return failures


def test_limits():
    """A figure above its limit is told and counted; one below it becomes the limit, one above it never does."""
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "limits")
        plant(folder, {"limits": "# head\nladders   83  0 # why\nlong-files 4  0\nrepeated 0.95 0.5\n"})
        measures = [house.Measure("ladders", 56, ["x"]), house.Measure("long-files", 5, ["big.c: 1200 lines"]), house.Measure("repeated", 0.71)]
        out = io.StringIO()
        failures += check("figures above their limits", house.judge(measures, house.read_limits(path), out), 1)
        failures += check("the place is printed", "big.c: 1200 lines" in out.getvalue(), True)
        failures += check("a figure without a limit is above it", house.judge([house.Measure("new", 1)], {}, io.StringIO()), 1)
        house.tighten(path, measures)
        with open(path, encoding="utf-8") as f:
            failures += check("tightened", f.read(), "# head\nladders   56  0 # why\nlong-files 4  0\nrepeated 0.75 0.5\n")
    return failures


def run():
    failures = test_text() + test_objects() + test_limits()
    print("house.py --self-test:", f"{failures} failures" if failures else "each measure counts what was planted", file=sys.stderr)
    return 1 if failures else 0
