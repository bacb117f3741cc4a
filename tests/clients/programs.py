#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs test suites of others under wattshare, and counts: the table of doc/programs.md.

usage: tests/clients/programs.py [--seconds S] [SUITE...]

It fetches nothing. Run it with the Python that has the packages (a venv with warp-lang, numba-cuda, filecheck), with WATTSHARE
naming the command, and with a daemon running. A suite whose package is not there is skipped with the reason. A module of a suite
gets S seconds (default 300); what takes longer counts as not finished."""
import argparse, glob, importlib.util, json, os, re, shutil, subprocess, sys, tempfile

WATTSHARE = os.environ.get("WATTSHARE", "wattshare")
WARP = """array_reduce atomic runlength_encode reload sparse rand options struct func vec quat fast_math smoothstep static
conditional ctypes utils""".split()
NUMBA = "numba.cuda.tests"  # of it, what stands in these packages
NUMBA_PACKAGES = ("cudapy", "cudadrv", "nrt", "doc_examples")
# Of CuPy's tests, those that need none of NVIDIA's libraries, or seldom.
CUPY = "binary core core_tests/fusion creation functional indexing linalg logic manipulation math misc padding random sorting statistics".split()
# What CuPy raises where one of them fails: they are machine code, which a software GPU cannot run.
LIBRARIES = r"^E .*\b(CUBLASError|CuFFTError|CURANDError|CUSOLVERError|CuSparseError): "

# What `hashcat --benchmark` runs (6.2.6).
HASHCAT = (0, 100, 1400, 1700, 22000, 1000, 3000, 5500, 5600, 1500, 500, 3200, 1800, 7500, 13100, 15300, 15900, 7100, 11600, 12500, 13000,
           6211, 13400, 6800, 11300)


class Skip(Exception):
    pass


def under(argv, seconds, cwd=None):
    """What the command prints under `wattshare run`, and its status; None: not finished."""
    try:
        p = subprocess.run([WATTSHARE, "run", "--", *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           timeout=seconds, cwd=cwd, text=True, errors="replace")
    except subprocess.TimeoutExpired:
        return "", None
    return p.stdout, p.returncode


def need(package):
    if not importlib.util.find_spec(package):
        raise Skip(f"this Python has no {package}")


def unittests(modules, seconds):
    """Passed, failed, skipped, and modules that were not finished; each module in a process of its own."""
    passed = failed = skipped = 0
    unfinished = []
    for m in modules:
        out, status = under([sys.executable, "-m", "unittest", m], seconds)
        ran = re.search(r"^Ran (\d+) tests?", out, re.M)
        if status is None or not ran:
            unfinished.append(m.rsplit(".", 1)[1])
            continue
        n = {k: int(v) for k, v in re.findall(r"(failures|errors|skipped|expected failures)=(\d+)", out[ran.end():])}
        bad = n.get("failures", 0) + n.get("errors", 0)
        failed += bad
        skipped += n.get("skipped", 0)
        passed += int(ran.group(1)) - bad - n.get("skipped", 0)
        for line in re.findall(r"^(?:FAIL|ERROR): .*", out, re.M):
            print(f"  {line}", file=sys.stderr)
    return passed, failed, skipped, unfinished


def warp(seconds):
    need("warp")
    return unittests([f"warp.tests.test_{m}" for m in WARP], seconds)


def numba(seconds):
    need("numba_cuda")
    need("filecheck")
    places = importlib.util.find_spec("numba_cuda").submodule_search_locations
    folders = [os.path.join(places[0], *NUMBA.split("."), p) for p in NUMBA_PACKAGES]
    modules = [f"{NUMBA}.{os.path.basename(d)}.{f[:-3]}" for d in folders if os.path.isdir(d) for f in sorted(os.listdir(d))
               if f.startswith("test_") and f.endswith(".py")]
    return unittests(modules, seconds)


def of_libraries(out):
    """How many of the failures that pytest shows (--tb=short) come from NVIDIA's libraries."""
    shown = re.split(r"^_+ \S.* _+$", out.split("short test summary info")[0], flags=re.M)[1:]
    return sum(re.search(LIBRARIES, s, re.M) is not None for s in shown)


def cupy(seconds):
    """One form of each test function, by pytest; each file in a process of its own."""
    for package in ("cupy", "pytest", "hypothesis", "scipy"):
        need(package)
    tests = os.environ.get("CUPY_TESTS")
    if not tests:
        raise Skip("CUPY_TESTS does not name the folder tests of CuPy's source package")
    here = os.path.dirname(os.path.abspath(__file__))
    count = dict.fromkeys(("passed", "failed", "error", "skipped"), 0)
    libraries = 0
    unfinished = []
    for path in sorted(p for f in CUPY for p in glob.glob(os.path.join(tests, "cupy_tests", f"{f}_tests", "test_*.py"))):
        out, status = under(["env", f"PYTHONPATH={here}", sys.executable, "-m", "pytest", "-q", "-rfE", "--tb=short", "-p", "one_each",
                             "-p", "no:cacheprovider", path], seconds, cwd=tests)
        if status not in (0, 1):
            unfinished.append(os.path.basename(path)[:-3])
            continue
        for n, what in re.findall(r"(\d+) (passed|failed|error|skipped)", out.rsplit("\n", 2)[-2]):
            count[what] += int(n)
        libraries += of_libraries(out)
        for line in re.findall(r"^(?:FAILED|ERROR) .*", out, re.M):
            print(f"  {line}", file=sys.stderr)
    print(f"  of CuPy's failures {libraries} are NVIDIA's libraries'", file=sys.stderr)
    return count["passed"], count["failed"] + count["error"], count["skipped"], unfinished


def one_by_one(rights):
    """Of a list of (name, whether it is right or None: not finished)."""
    return (sum(r is True for _, r in rights), sum(r is False for _, r in rights), 0, [n for n, r in rights if r is None])


def ffmpeg(seconds):
    """Each filter on the GPU against the same without one, or at least an answer of the right size."""
    if not shutil.which("ffmpeg"):
        raise Skip("no ffmpeg here")
    rights = []
    source = ["-f", "lavfi", "-i", "testsrc=size=64x48:rate=1:duration=2"]
    for name, chain in (("hwupload_cuda", ""), ("scale_cuda", ",scale_cuda=32:24"), ("yadif_cuda", ",yadif_cuda"),
                        ("thumbnail_cuda", ",thumbnail_cuda=2")):
        out, status = under(["ffmpeg", "-hide_banner", "-loglevel", "error", "-init_hw_device", "cuda=c:0", "-filter_hw_device", "c",
                             *source, "-vf", f"format=nv12,hwupload_cuda{chain},hwdownload,format=nv12", "-f", "framemd5", "-"], seconds)
        frames = re.findall(r"^0,.*, ([0-9a-f]{32})$", out, re.M)
        right = bool(status == 0 and frames)
        if name == "hwupload_cuda" and right:  # nothing has changed
            plain = subprocess.run(["ffmpeg", "-hide_banner", "-loglevel", "error", *source, "-vf", "format=nv12", "-f", "framemd5", "-"],
                                   stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
            right = frames == re.findall(r"^0,.*, ([0-9a-f]{32})$", plain.stdout, re.M)
        rights.append((name, None if status is None else right))
    return one_by_one(rights)


def example(mode):
    """Of a mode of hashcat: an example's hash, as the contents of a file, and the word that it is of."""
    p = subprocess.run(["hashcat", "--example-hashes", "--machine-readable", "-m", str(mode)], stdin=subprocess.DEVNULL,
                       capture_output=True, text=True, timeout=60)
    e = json.loads(p.stdout[p.stdout.index("{"):])[str(mode)]
    digest, is_file = e["example_hash"], "binary file only" in e["example_hash_format"]
    return bytes.fromhex(digest) if is_file else digest.encode(), e["example_pass"]


def hashcat(seconds):
    """Each mode finds the word of hashcat's own example among three, on the CUDA device. hashcat itself would enlarge its launches
    until they fill the GPU, by the time that the GPU says they take; on a software GPU that is minutes of the processor, so their
    size is given."""
    if not shutil.which("hashcat"):
        raise Skip("no hashcat here")
    rights = []
    for mode in HASHCAT:
        digest, word = example(mode)
        with tempfile.NamedTemporaryFile() as hashes, tempfile.NamedTemporaryFile("w", suffix=".txt") as words:
            hashes.write(digest)
            hashes.flush()
            words.write(f"letmein1\n{word}\nhello123\n")
            words.flush()
            out, status = under(["hashcat", "-d", "1", "-m", str(mode), "-a", "0", "--force", "-n", "1", "-u", "1024", "--potfile-disable",
                                 "--session", f"wattshare{os.getpid()}", "--quiet", "--outfile-format", "2", hashes.name, words.name],
                                seconds)
        right = None if status is None else status == 0 and word in out.split("\n")
        if right is False:
            print(f"  hashcat {mode}: {out[-300:]}", file=sys.stderr)
        rights.append((str(mode), right))

    return one_by_one(rights)


def inductor(seconds):
    """PyTorch's list of operations, compiled (inductor_ops.py). What calls machine code counts as skipped."""
    for package in ("torch", "triton", "expecttest"):
        need(package)
    here = os.path.dirname(os.path.abspath(__file__))
    out, status = under([sys.executable, os.path.join(here, "inductor_ops.py"), "1", str(int(seconds))], 2 * seconds + 120)
    verdicts = re.findall(r"^op (\S+): (right|wrong|machine code|not comparable|nothing to do|error.*)$", out, re.M)
    count = {v: sum(w == v for _, w in verdicts) for v in ("right", "machine code", "not comparable", "nothing to do")}
    bad = [f"{n}: {v}" for n, v in verdicts if v not in count]
    for line in bad:
        print(f"  {line}", file=sys.stderr)
    return count["right"], len(bad), len(verdicts) - count["right"] - len(bad), re.findall(r"^not run: \d+$", out, re.M) if status == 0 else ["the rest"]


SUITES = {"warp": warp, "numba": numba, "cupy": cupy, "inductor": inductor, "ffmpeg": ffmpeg, "hashcat": hashcat}


def main():
    p = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    p.add_argument("--seconds", type=float, default=300)
    p.add_argument("suites", nargs="*", default=list(SUITES), metavar="SUITE")
    a = p.parse_args()
    wrong = [s for s in a.suites if s not in SUITES]
    if wrong:
        sys.exit(f"no suite {wrong[0]}; there are {', '.join(SUITES)}")
    bad = 0
    print("| suite | passed | failed | skipped by itself | not finished |\n|---|---|---|---|---|", flush=True)
    for s in a.suites:
        try:
            passed, failed, skipped, unfinished = SUITES[s](a.seconds)
        except Skip as e:
            print(f"skipped: {s}: {e}", file=sys.stderr)
            continue
        bad += failed
        print(f"| {s} | {passed} of {passed + failed} | {failed} | {skipped} | {', '.join(unfinished) or 'none'} |", flush=True)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
