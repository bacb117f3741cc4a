#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests `wattshare coverage`: statuses, messages, bad input, and what it finds missing. It fails if
# a program of tests/cuda is not fully covered, or if doc/coverage.md is not what the ledger says
# now.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
export ASAN_OPTIONS=detect_leaks=1
verb=coverage
if [ -x "$cuda/nv/coopgroups_static" ]; then
    run 0 '_Z8sum_gridPKiPxi *no *no *no *yes *no *line [0-9]*: %envreg' --rewrites "$cuda/nv/coopgroups_static"
    run 0 '"persistent": *true' --json --rewrites "$cuda/nv/saxpy_static"
    if command -v ptxas >/dev/null; then
        run 0 'fence+persistent *1 .* 0$' --ptxas "$cuda/nv/saxpy_static"
        run 0 '"change": *-*[0-9]' --json --ptxas "$cuda/nv/saxpy_static"
    fi
    expect 0 'no ptxas on the PATH' env PATH=/nowhere "$wattshare" coverage --ptxas "$cuda/nv/saxpy_static"
fi
run 2 'coverage needs a program'
run 0 '^  wattshare coverage' --help
run 2 frob --frob x
run 2 'from 10 to 999' --sm x "$src/tests/ptx/census.ptx"
run 2 'No such file' "$tmp/none"
run 2 'Is a directory' "$tmp"
run 2 'neither an ELF' "$src/tests/process/coverage.sh"
run 2 'no CUDA in it' /bin/ls
: >"$tmp/empty"
run 2 'empty' "$tmp/empty"
head -c 300 "$cuda/drv_matmul" >"$tmp/cut"
run 2 'damaged' "$tmp/cut"

# What is missing has its name, kernel and line.
printf '.version 8.0\n.target sm_90\n.address_size 64\n.visible .entry strange()\n{\n  .reg .b64 %%d<2>;\n  tcgen05.wait::ld.sync.aligned;\n  ret;\n}\n' >"$tmp/odd.ptx"
run 1 'missing opcode tcgen05.*kernel strange, line 7' "$tmp/odd.ptx"
printf '.version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\n  frobnicate.u32 1;\n}\n' >"$tmp/bad.ptx"
run 1 'frobnicate' "$tmp/bad.ptx"
printf '.version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\n  ret;\n}\n' >"$tmp/good.ptx"
run 0 'nothing is missing' "$tmp/good.ptx"
run 1 '"state": *"missing"' --json "$tmp/odd.ptx"
printf 'extern int cudaFrobnicate(void), cuInit(unsigned), cuGraphicsGLRegisterBuffer(void *, unsigned, int);
int main(void) { return cuInit(0) + cuGraphicsGLRegisterBuffer(0, 0, 0) + cudaFrobnicate(); }\n' >"$tmp/gl.c"
printf 'int cuInit, cuGraphicsGLRegisterBuffer, cudaFrobnicate;\n' >"$tmp/stub.c"
gcc -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$tmp/libcuda.so" "$tmp/stub.c"
gcc -o "$tmp/gl" "$tmp/gl.c" "$tmp/libcuda.so"
run 1 'missing entry point cuGraphicsGLRegisterBuffer (gl' "$tmp/gl"
run 1 'missing entry point cudaFrobnicate (unknown' "$tmp/gl"
printf 'char *names[] = {"cuInit", "cuGraphicsGLRegisterBuffer"}; int main(void) { return names[0][0]; }\n' >"$tmp/names.c"
gcc -o "$tmp/names" "$tmp/names.c"
run 1 'cuGraphicsGLRegisterBuffer (gl; possible' "$tmp/names"
printf 'int lib(void) { return cuInit(0); } ' >"$tmp/lib.c"
gcc -w -shared -fPIC -o "$tmp/libx.so" "$tmp/lib.c"
printf 'int lib(void); int main(void) { return lib(); }\n' >"$tmp/main.c"
# shellcheck disable=SC2016
gcc -o "$tmp/main" "$tmp/main.c" -L"$tmp" -lx -Wl,-rpath,'$ORIGIN' -Wl,--unresolved-symbols=ignore-all
run 0 'nothing is missing' "$tmp/main"
grep -q 'entry points *1 done' "$tmp/out" || { cat "$tmp/out"; fail "the library's use is not seen"; }
rm "$tmp/libx.so"
run 2 'no CUDA in it' "$tmp/main"

# Every program of tests/cuda, but those that are wrong on purpose, cdp (dynamic parallelism),
# drv_linkfile, half of whose code is in an object file that it links while it runs, sassonly,
# which is machine code alone, and facade_*, which call functions that are not supported on purpose.
[ ! -x "$cuda/nv/sassonly_static" ] || run 1 'machine code without PTX' "$cuda/nv/sassonly_static"
n=0
for p in "$cuda"/drv_* "$cuda"/nv/*_static "$cuda"/nv/*_shared; do
    [ -x "$p" ] && [ -f "$p" ] || continue
    case ${p##*/} in *.o | drv_badptx | drv_partial | drv_linkfile | cdp_static | sassonly_* | facade_*) continue ;; esac
    timeout -k 5 300 "$wattshare" coverage "$p" >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "coverage of ${p##*/}"; }
    n=$((n + 1))
done
[ $n -ge 8 ] || fail "only $n programs"
ok "nothing is missing in $n programs"
run 1 'frobnicate' "$cuda/drv_badptx"

if have_nvcc; then
    # With another opcode in its functions, the runtime is one that is not known.
    strip -o "$tmp/known" "$cuda/nv/saxpy_static"
    LC_ALL=C sed 's/\x48\x83\xec/\x48\x83\xed/g' "$tmp/known" >"$tmp/stripped"
    run 1 'CUDA runtime without symbols.*stripped' "$tmp/stripped"
    strip -o "$tmp/saxpy_static" "$cuda/nv/saxpy_static"
    "$wattshare" coverage --all "$cuda/nv/saxpy_static" >"$tmp/with" || fail "coverage of saxpy_static"
    "$wattshare" coverage --all "$tmp/saxpy_static" >"$tmp/without" || fail "coverage of saxpy_static, stripped"
    sed -i "s|$cuda/nv/||g" "$tmp/with"
    sed -i "s|$tmp/||g" "$tmp/without"
    diff "$tmp/with" "$tmp/without" || fail "a stripped runtime that is known calls something else"
    ok "of a stripped runtime that is known what is called"
    ! "$wattshare" coverage --all "$cuda/nv/saxpy_static" | grep -q cudaGraphLaunch || fail "a function that is linked in but not called counts"
    "$wattshare" coverage --all "$cuda/nv/saxpy_static" | grep -q 'cudaMemcpyFromSymbol' || fail "a function that is called is not seen"
    ok "of a static runtime what is called"
fi

timeout 300 "$build/tests/fuzz/fuzz_coverage" "$src/tests/corpus/coverage" "$src/tests/corpus/fatbin" "$cuda"/drv_* >/dev/null
ok "bad files are refused"

"$build/cli/ledger_doc" "$src/tests/ptx/census.ptx" "$src/tests/ptx/ops.ptx" "$src/tests/ptx/forms.ptx" >"$tmp/coverage.md"
diff "$src/doc/coverage.md" "$tmp/coverage.md" >"$tmp/diff" || { head -n 20 "$tmp/diff"; fail "doc/coverage.md is old: make doc-coverage"; }
ok "doc/coverage.md is current"
