# SPDX-License-Identifier: Apache-2.0
"""A plugin for pytest (-p one_each): of the forms that each test function has for its parameters, one runs. A suite of tens of
thousands of forms then ends in an hour. The choice is random, and the same each time (SEED in the environment: another one)."""
import os, random, re


def function(nodeid):
    """Without what tells forms apart: "[…]", and "_param_7_{…}" in the names of classes (CuPy)."""
    return re.sub(r"\[.*", "", re.sub(r"_param_\d+_\{.*?\}(?=::)", "", nodeid))


def pytest_collection_modifyitems(items):
    choice = random.Random(int(os.environ.get("SEED", "1")))
    forms = {}
    for i in items:
        if not i.get_closest_marker("slow"):
            forms.setdefault(function(i.nodeid), []).append(i)
    kept = {id(choice.choice(f)) for f in forms.values()}
    items[:] = [i for i in items if id(i) in kept]
