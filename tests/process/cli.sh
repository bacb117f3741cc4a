#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests how `wattshare` itself behaves: exit statuses, messages, environment, signals, private
# daemons, and programs that cannot be preloaded. It fails if a status or a message differs from the
# one expected, or if a private daemon outlives its command.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
export ASAN_OPTIONS=detect_leaks=0
run_preload=$asan
run 0 '^wattshare [0-9]' --version
run 0 '^usage' --help
run 2 'standard output is not a terminal; use --batch' top
run 2 '^usage'
run 2 "unknown command 'frob'" frob
run 2 "frob" run --frob -- true
run 2 "needs a program" run
run 2 "frob" status --frob
run 2 "takes no 'x'" status x
run 2 "goes with --private" run --gpus t400 -- true
run 2 "only one of them" run --private --socket ipc:///x -- true

# no daemon
run 69 "ipc://$tmp/none" status --socket "ipc://$tmp/none"
run 69 'run --private -- true' run --socket "ipc://$tmp/none" -- true
run 69 'start one: systemctl start wattshared, or wattshared' status --socket "ipc://$tmp/none"
run 69 '"nonsense://x" is no endpoint of a daemon: use ipc:///PATH or tcp://' status --socket nonsense://x
run 69 "\"$tmp/none\" is no endpoint of a daemon" run --socket "$tmp/none" -- true
run 69 "tcp needs keys" status --socket tcp://127.0.0.1:1
grep -q "no answer" "$tmp/out" && { cat "$tmp/out"; fail "missing keys are said to be a missing daemon"; }
run 127 "not found" run --private -- no-such-program-at-all
r=0
LD_PRELOAD="${asan:+$asan:}$build/frontend/libwattshare.so" WATTSHARE_SOCKET="ipc://$tmp/none" timeout 100 "$cuda/drv_aes" 1 >"$tmp/out" 2>&1 || r=$?
[ $r = 1 ] && grep -q "ipc://$tmp/none" "$tmp/out" || { cat "$tmp/out"; fail "a program without a daemon: status $r"; }
ok "a program without a daemon gets CUDA errors, and the endpoint is named"

# programs that can't be preloaded
printf 'int main(void) { return 0; }\n' >"$tmp/x.c"
gcc -static -o "$tmp/static" "$tmp/x.c" 2>/dev/null && run 126 "statically" run --private -- "$tmp/static"
gcc -o "$tmp/dynamic" "$tmp/x.c"
cp "$tmp/dynamic" "$tmp/setuid"
if [ "$(id -u)" != 0 ]; then
    chmod u+s "$tmp/setuid"
    run 126 "setuid" run --private -- "$tmp/setuid"
fi

# with a daemon
start_daemon --gpus t400
run 0 'wattshared pid' status
run 0 '"gpus":' status --json
run 7 '' run -- sh -c 'exit 7'
run 0 "$build/frontend/libwattshare.so" run -- sh -c 'echo "$LD_PRELOAD"'
[ -n "$asan" ] || {
    LD_PRELOAD="$build/frontend/libwattshare.so" "$wattshare" run -- "$wattshare" run -- sh -c 'echo "$LD_PRELOAD"' | tr ': ' '\n\n' >"$tmp/preloaded"
    printf '%s\n' "$build/frontend/libwattshare.so" "$build/frontend/libwattshare-blas.so" | cmp -s - "$tmp/preloaded" ||
        { cat "$tmp/preloaded"; fail "LD_PRELOAD does not name both libraries once"; }
    ok "no duplicates in LD_PRELOAD"
}
run 0 '^t1$' run --task t1 -- sh -c 'echo "$WATTSHARE_TASK"'
# the stand-in for ptxas, called as Triton does
run 0 "^$build/frontend/wattshare-ptxas$" run -- sh -c 'echo "$TRITON_PTXAS_PATH"'
TRITON_PTXAS_PATH=/mine run 0 '^/mine$' run -- sh -c 'echo "$TRITON_PTXAS_PATH"'
echo '.version 8.0' >"$tmp/a.ptx"
"$build/frontend/wattshare-ptxas" -lineinfo -v --opt-level 3 --gpu-name=sm_86 "$tmp/a.ptx" -o "$tmp/a.o"
printf '\0' | cat "$tmp/a.ptx" - | cmp - "$tmp/a.o" || fail "wattshare-ptxas does not hand the PTX through, and a null behind it"
"$build/frontend/wattshare-ptxas" --version | grep -q 'release [0-9]*\.[0-9]*' || fail "wattshare-ptxas says no version"
! "$build/frontend/wattshare-ptxas" -v "$tmp/none.ptx" -o "$tmp/b.o" 2>/dev/null || fail "wattshare-ptxas takes a file that is not there"
ok "wattshare-ptxas"
# called as XLA does: by the path of another one
mkdir "$tmp/ptxas"
printf '#!/bin/sh\necho machine code >"$4"\n' >"$tmp/ptxas/ptxas"
chmod +x "$tmp/ptxas/ptxas"
run 0 '^PASS' run -- "$cuda/drv_ptxas" "$tmp/ptxas/ptxas"
run 0 '^1$' run -- sh -c 'echo "$JAX_SKIP_CUDA_CONSTRAINTS_CHECK"'
run 0 "^0\$" run -- sh -c 'echo "$TORCHINDUCTOR_SHAPE_PADDING"'
# the stand-in for nvcc, called as PyCUDA does; it must come before one that tells its arguments
mkdir "$tmp/nvcc"
printf '#!/bin/sh\necho "nvcc: $*"\n' >"$tmp/nvcc/nvcc"
chmod +x "$tmp/nvcc/nvcc"
(
    PATH=$tmp/nvcc:$PATH
    run 0 '^nvcc: --ptx -arch sm_86 -I/a b kernel.cu -o kernel.cubin$' run -- nvcc --cubin -arch sm_86 '-I/a b' kernel.cu
    run 0 '^nvcc: --ptx -o c d.cu$' run -- nvcc -cubin -o c d.cu
    run 0 '^nvcc: -c -o c d.cu$' run -- nvcc -c -o c d.cu
    # called as CuPy does to link: the object has PTX, and its fatbin is what is loaded
    run 0 '^nvcc: -gencode=arch=compute_86,code=sm_86 -c d.cu$' run -- nvcc -gencode=arch=compute_86,code=sm_86 -c d.cu
    run 0 '^nvcc: -gencode arch=compute_86,code=\[sm_86,compute_86\] -dc -o d.o d.cu$' run -- nvcc -gencode arch=compute_86,code=sm_86 -dc -o d.o d.cu
    echo 'a fatbin' >"$tmp/fatbin"
    : | as -o "$tmp/empty.o" -
    objcopy --add-section __nv_relfatbin="$tmp/fatbin" --set-section-flags __nv_relfatbin=alloc "$tmp/empty.o" "$tmp/one.o"
    run 0 '' run -- nvcc -arch=sm_86 --cubin --device-link "$tmp/one.o" -o "$tmp/linked.cubin"
    cmp "$tmp/fatbin" "$tmp/linked.cubin" || fail "the stand-in for nvcc does not link one object"
    run 1 'only one object can be linked to machine code, not 2' run -- nvcc --cubin -dlink "$tmp/one.o" "$tmp/empty.o" -o "$tmp/two.cubin"
    run 0 '^nvcc: --device-link one.o -o two.o$' run -- nvcc --device-link one.o -o two.o
    # who looks for the toolkit beside nvcc must not find the stand-in
    unset NVCC CUDA_PATH
    run 0 "^$build/frontend/wattshare-compilers/nvcc $tmp$" run -- sh -c 'echo "$NVCC $CUDA_PATH"'
    NVCC=/my/nvcc CUDA_PATH=/mine run 0 '^/my/nvcc /mine$' run -- sh -c 'echo "$NVCC $CUDA_PATH"'
)
[ -n "$asan" ] || {
    PATH=$tmp/nvcc:/usr/bin:/bin "$build/frontend/wattshare-compilers/nvcc" --version >"$tmp/out"
    grep -qx 'nvcc: --version' "$tmp/out" || fail "the stand-in for nvcc does not call the next one"
}
ok "the stand-in for nvcc"
run 0 "^$WATTSHARE_SOCKET" run -- sh -c 'echo "$WATTSHARE_SOCKET"'
stop_daemon
unset WATTSHARE_SOCKET

# private daemons
run 0 '^PASS' run --private --gpus t400 -- "$cuda/drv_aes" 16
run 9 '' run --private -- sh -c 'exit 9'
run 143 '' run --private -- sh -c 'kill -TERM $$'
run 0 '^ipc://' run --private -- sh -c 'echo "$WATTSHARE_SOCKET"'
run 0 'driver: 0' run --private -- sh -c 'for p in $(echo "$LD_PRELOAD" | tr : " "); do case $p in */libwattshare.so) cmp -s "$p" "${LD_LIBRARY_PATH%%:*}/libcuda.so.1"; echo driver: $? ;; esac; done'
WATTSHARE_PRIVATE=1 run 0 '^ipc://' run -- sh -c 'echo "$WATTSHARE_SOCKET"'
run 69 "no-such-gpu" run --private --gpus no-such-gpu -- true

# signals go to the program; what was started ends, also when we are killed
private() { # private SIGNAL WANTED
    LD_PRELOAD=$asan "$wattshare" run --private -- sh -c 'trap "exit 5" TERM; echo "$WATTSHARE_SOCKET" >"$0"; i=0; while [ $i -lt 1500 ]; do sleep 0.1; i=$((i+1)); done' "$tmp/sock_of" &
    p=$!
    i=0
    while [ ! -s "$tmp/sock_of" ]; do
        i=$((i + 1))
        [ $i -lt 600 ] || fail "the private daemon did not start"
        sleep 0.1
    done
    e=$(cat "$tmp/sock_of")
    d=$("$wattshare" status --json --socket "$e" | sed -n 's/^ *"pid": *\([0-9]*\),$/\1/p' | head -n 1)
    [ -n "$d" ] || fail "the private daemon gives no status"
    kill -"$1" $p
    r=0
    wait $p 2>/dev/null || r=$?
    [ $r = "$2" ] || fail "after SIG$1 wattshare's status is $r, not $2"
    i=0
    while alive "$d" || [ -e "$(dirname "${e#ipc://}")" ]; do
        i=$((i + 1))
        [ $i -lt 600 ] || fail "after SIG$1 the private daemon $d or its directory is left"
        sleep 0.1
    done
    rm -f "$tmp/sock_of"
    ok "SIG$1: nothing is left of a private daemon"
}
private TERM 5
private KILL 137
