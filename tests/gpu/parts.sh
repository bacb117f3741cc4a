# SPDX-License-Identifier: Apache-2.0
# The parts of tests/gpu/run, which sources this. Each function part_NAME tries one part, with
# `try`, `probe` and `script`, and says with `say` what passed.

part_environment() {
    {
        echo "date: $(date -u '+%Y-%m-%d %H:%M UTC')"
        echo "machine: $(uname -srm), $(nproc) cores, $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)"
        echo "system: $(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release 2>/dev/null), user $(id -u)"
        echo "gpu: $(gpu_of product)"
        echo "driver: $(gpu_of driver)"
        echo "load: $(cut -d' ' -f1-3 /proc/loadavg)"
        [ -z "$mock" ] || echo "MOCK DRIVER: no number here means anything"
    } >"$files/machine.txt"
    cat "$files/machine.txt"
    ! command -v nvidia-smi >/dev/null 2>&1 || timeout 20 nvidia-smi -q >"$files/nvidia-smi.txt" 2>&1
    LD_LIBRARY_PATH=$daemon_path timeout 30 cli/wattshare doctor >"$files/doctor.txt" 2>&1
    [ -z "$opened" ] || say PASS environment "environment.csv, machine.txt"
}

# The suite, in each of the device's ways; faults and a worker's end at any moment; memory that
# another process goes on with; two GPUs, where there are.
part_conformance() {
    # shellcheck disable=SC2086 # $driver is two words or none
    {
        for kind in cuda-tickets worker cuda; do
            try "conformance-$kind" 60 tests/device/conformance $kind $driver
        done
        try worker-ends 40 tests/device/worker worker $driver
        try memory-kept 20 tests/device/keep cuda $driver
        try conformance-cuda-unfenced 60 tests/device/conformance cuda-unfenced $driver
        try two-gpus 40 tests/device/pair cuda $driver
    }
}

# ---- whole programs, natively and through wattshare ----

start_daemon() {
    WATTSHARE_SOCKET=ipc://$tmp/sock
    export WATTSHARE_SOCKET
    LD_LIBRARY_PATH=$daemon_path backend/wattshared --socket "$WATTSHARE_SOCKET" --gpus cuda:0 >>"$files/daemon.log" 2>&1 &
    daemon_pid=$!
    i=0
    while ! cli/wattshare status >/dev/null 2>&1; do
        i=$((i + 1))
        [ $i -lt 300 ] && kill -0 "$daemon_pid" 2>/dev/null || { say FAIL daemon "did not start: daemon.log"; return 1; }
        sleep 0.1
    done
}
stop_daemon() {
    kill "$daemon_pid"
    wait "$daemon_pid" || say FAIL daemon "ended with status $?"
    daemon_pid=
}
now_ms() { date +%s%3N; }
timed() { # timed N COMMAND…: milliseconds, or "failed"; out.N gets what it prints
    to=$tmp/out.$1
    shift
    t=$(now_ms)
    if timeout -k 2 20 "$@" >"$to" 2>&1; then echo $(($(now_ms) - t)); else echo failed; fi
}
programs() {
    for p in tests/cuda/drv_matmul tests/cuda/drv_aes tests/cuda/drv_sort tests/cuda/drv_search tests/cuda/drv_blackscholes \
        tests/cuda/drv_montecarlo tests/cuda/drv_histogram tests/cuda/drv_stencil; do
        [ ! -x $p ] || echo $p
    done
    # Not drv_graph: it waits for values in the GPU's memory, which proxied programs cannot.
    # With the shared runtime where the machine has it.
    [ -n "$short" ] || for p in tests/cuda/nv/*_static tests/cuda/nv/*_shared; do
        case $p in
        *sassonly_*) ;; # the part sass
        *_shared) [ ! -x "$p" ] || ! ldd "$p" 2>/dev/null | grep -q 'libcudart.* => /' || echo "$p" ;;
        *fault_static | *logs_static | *cdp_static | *signals_static | *asserting_static) ;; # wrong on purpose: they destroy the context
        *) [ ! -x "$p" ] || echo "$p" ;;
        esac
    done
}
# one_program N PROGRAM: natively and through wattshare; leaves line.N for programs.csv, and wrong.N
# or alien.N.
one_program() {
    native=-
    [ -n "$mock" ] || native=$(timed "$1" "$2")
    proxied=$(timed "$1" cli/wattshare run -- "$2")
    ratio=-
    case $native$proxied in
    *[!0-9]*) ;;
    *) ratio=$(awk "BEGIN { printf \"%.3f\", $proxied / ($native + 0.001) }") ;;
    esac
    echo "$2,$native,$proxied,$ratio" >"$tmp/line.$1"
    # What this GPU or toolkit does not run anyway says nothing of us.
    if [ "$native" = failed ]; then
        touch "$tmp/alien.$1"
    elif [ "$proxied" = failed ]; then
        { echo "== $2"; tail -n 3 "$tmp/out.$1"; } >"$tmp/wrong.$1"
    fi
}
count() { # count KIND: of the files that one_program left
    set -- "$tmp/$1".*
    [ -e "$1" ] || set --
    echo $#
}
# The first ones alone, so that their times can be compared; of the others several at once.
part_programs() {
    start_daemon || return
    rm -f "$tmp"/line.* "$tmp"/wrong.* "$tmp"/alien.*
    n_tried=0 n_late=0 pids=
    for p in $(programs); do
        [ "$(left)" -gt 15 ] || { n_late=$((n_late + 1)); continue; }
        n_tried=$((n_tried + 1))
        one_program $n_tried "$p" &
        pids="$pids $!"
        [ $n_tried -gt 8 ] && [ $((n_tried % 6)) != 0 ] || { for i in $pids; do wait "$i"; done; pids=; }
    done
    for i in $pids; do wait "$i"; done
    stop_daemon
    { echo "program,native_ms,proxied_ms,ratio"; cat "$tmp"/line.*; } >"$files/programs.csv"
    n_wrong=$(count wrong) n_alien=$(count alien)
    [ $n_late = 0 ] || { cut=1; say "NOT TRIED" "programs for which no time was left" "$n_late"; }
    [ "$n_alien" = 0 ] || say "NOT TRIED" "programs that fail natively" "$n_alien: programs.csv"
    if [ "$n_wrong" = 0 ]; then say PASS programs "$((n_tried - n_alien)) proxied"; else
        cat "$tmp"/wrong.* >"$files/programs.log"
        say FAIL programs "$n_wrong of $n_tried proxied ones: programs.log"
    fi
    script sass 20
}

# What one client does wrong, and what the others notice of it.
part_isolation() {
    script isolation 60
}

part_preempt() {
    probe preempt 60
    probe sms 20
    probe green 20
    probe forms 30
}

part_power() {
    probe energy 40
    probe power 90
}

part_overhead() {
    probe launch 20
    probe copy 30
    probe memory 20
    script overhead 60
    if [ -x bench/bench_worker ]; then
        # shellcheck disable=SC2086
        try worker 60 bench/bench_worker ${driver:-libcuda.so.1 libnvidia-ml.so.1} $seconds
    else
        say "NOT TRIED" worker "bench/bench_worker is not here: make bench/bench_worker"
    fi
}

# ---- many small clients: one after another, time-sliced, under MPS, and through wattshare ----

work="tests/cuda/drv_aes 64 20" # size, rounds
together() { # together N COMMAND…
    n_left=$1 pids= wrong=0
    shift
    while [ "$n_left" -gt 0 ]; do
        timeout -k 2 60 "$@" >/dev/null 2>&1 &
        pids="$pids $!"
        n_left=$((n_left - 1))
    done
    for p in $pids; do wait "$p" || wrong=1; done
    return $wrong
}
clients() { # clients HOW N COMMAND…: a line of clients.csv. Status 1: one of them failed.
    how=$1 n=$2 ok=0
    shift 2
    t=$(now_ms)
    together "$n" "$@" || ok=1
    echo "$n,$how,$(($(now_ms) - t))" >>"$files/clients.csv"
    return $ok
}
one_after_another() { # one_after_another N COMMAND…
    n=$1 ok=0
    shift
    t=$(now_ms)
    for _ in $(seq "$n"); do timeout -k 2 60 "$@" >/dev/null 2>&1 || ok=1; done
    echo "$n,native one after another,$(($(now_ms) - t))" >>"$files/clients.csv"
    return $ok
}
mps() {
    [ -z "$mock" ] && command -v nvidia-cuda-mps-control >/dev/null 2>&1 || { say "NOT TRIED" mps "no nvidia-cuda-mps-control"; return; }
    export CUDA_MPS_PIPE_DIRECTORY="$tmp/mps" CUDA_MPS_LOG_DIRECTORY="$tmp/mps"
    mkdir -p "$tmp/mps"
    if timeout -k 2 20 nvidia-cuda-mps-control -d >/dev/null 2>&1; then
        bad=
        # shellcheck disable=SC2086 # words
        for n in 1 2 4 8; do clients MPS $n $work || bad=1; done
        if [ -z "$bad" ]; then say PASS mps; else say "NOT TRIED" mps "clients fail under it"; fi
        echo quit | timeout -k 2 20 nvidia-cuda-mps-control >/dev/null 2>&1
    else
        say "NOT TRIED" mps "it does not start here"
    fi
    unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
}
# shellcheck disable=SC2086 # words
part_consolidation() {
    probe fused 60
    start_daemon || return
    echo "clients,how,ms" >"$files/clients.csv"
    bad=
    for n in 1 2 4 8; do
        [ -z "$short" ] || [ $n -le 2 ] || continue
        if [ -z "$mock" ]; then
            one_after_another $n $work || bad=1
            clients "native time-sliced" $n $work || bad=1
        fi
        clients wattshare $n cli/wattshare run -- $work || bad=1
    done
    if [ -z "$bad" ]; then say PASS clients; else say FAIL clients clients.csv; fi
    cli/wattshare status >"$files/status.txt" 2>&1
    cli/wattshare status --json >"$files/status.json" 2>&1
    if grep -q '"energy_uj"' "$files/status.json"; then say PASS accounts "status.json: joules of each client and of the board"; else
        say FAIL accounts
    fi
    stop_daemon
    mps # last: its server keeps a context of its own
}

# ---- the GPU as a catalog entry, its kernels as profiles ----

value() { # value SECTION WHAT UNIT: the figure
    [ ! -f "$files/$1.csv" ] || sed -n "s|^$1,$2,\\([0-9.e+-]*\\),$3\$|\\1|p" "$files/$1.csv"
}
whole() { # whole FIGURE FACTOR: as a whole number; nothing if there is no figure, or it is negative
    [ -z "$1" ] || awk "BEGIN { v = $1 * $2; if (v >= 1) printf \"%d\", v }"
}
part_models() {
    probe mwp 60
    probe profiles 60
    probe calibrate 90
    WS_STATIC_MW= WS_DYNAMIC_MW= WS_IDLE_MW=
    if [ -z "$(whole "$(value power 'fit: each active SM' W)" 1000)" ]; then
        say "NOT TRIED" "powers of the catalog entry" "no fit in which active SMs take power: guesses stay"
    else
        WS_DYNAMIC_MW=$(whole "$(value power 'fit: each active SM over none at all' W)" 1000)
        WS_IDLE_MW=$(whole "$(value power 'fit: each idle SM while others are active' W)" 1000)
        # What is powered with nothing active is the idle context's, and the idle SMs'.
        if [ -n "$WS_IDLE_MW" ]; then WS_STATIC_MW=$(whole "$(value power 'context idle' W)" 1000); else
            WS_STATIC_MW=$(whole "$(value power 'fit: powered, nothing active' W)" 1000)
            WS_IDLE_MW=1
        fi
    fi
    WS_MEMORY_NS=$(whole "$(value mwp 'catalog: memory_latency_ns' ns)" 1)
    WS_MEMORY_MB_PER_S=$(whole "$(value mwp 'catalog: memory_mb_per_s' MB/s)" 1)
    export WS_STATIC_MW WS_DYNAMIC_MW WS_IDLE_MW WS_MEMORY_NS WS_MEMORY_MB_PER_S
    probe catalog 20
    if [ -s "$files/catalog.csv" ]; then
        mv "$files/catalog.csv" "$files/catalog.conf"
        { # for models/mwp_cwp.h, which derives what a catalog does not have
            echo "# MWP-CWP, measured:"
            for v in n_sms:SMs freq_ghz:GHz bandwidth_gb_per_s:GB/s mem_latency_cycles:cycles depart_uncoal_cycles:cycles \
                depart_coal_cycles:cycles issue_cycles:cycles; do
                echo "#   ${v%%:*} = $(value mwp "${v%%:*}" "${v#*:}")"
            done
        } >>"$files/catalog.conf"
        if backend/wattshared --catalog "$files/catalog.conf" --gpus "$(sed -n 's/^gpu \(.*\) {$/\1/p' "$files/catalog.conf")" --check 2>"$tmp/error"; then
            say PASS "catalog entry" "catalog.conf, which the daemon takes"
        else
            say FAIL "catalog entry" "$(tail -n 1 "$tmp/error")"
        fi
    fi
    if [ -s "$files/profiles.csv" ]; then
        if cli/wattshare profiles import "$tmp/profiles.db" "$files/profiles.csv" >"$tmp/import" 2>&1 && cli/wattshare profiles list "$tmp/profiles.db" >"$files/profiles.txt" 2>&1; then
            say PASS "kernel profiles" "profiles.csv, which wattshare profiles imports"
        else
            say FAIL "kernel profiles" "$(tail -n 1 "$tmp/import")"
        fi
    fi
    # The models of power and time, fitted to what was measured here; with the mock driver: tried.
    if [ -s "$files/catalog.conf" ] && [ -s "$files/calibrate.csv" ]; then
        name=$(sed -n 's/^gpu \(.*\) {$/\1/p' "$files/catalog.conf")
        if cli/wattshare fit --gpu "$name" --entry "$files/catalog.conf" --source "tests/gpu/run, $date" "$files/calibrate.csv" >"$files/fit.txt" 2>&1 &&
            grep -q '^    calibrated = ' "$files/catalog.conf" &&
            backend/wattshared --catalog "$files/catalog.conf" --gpus "$name" --check 2>>"$files/fit.txt"; then
            say PASS calibration "$(sed -n 's/^calibrated = //p' "$files/fit.txt"): fit.txt, catalog.conf"
        else
            say FAIL calibration "$(tail -n 1 "$files/fit.txt")"
        fi
    else
        say "NOT TRIED" calibration "it needs the part calibrate and the catalog entry"
    fi
}

part_gate() {
    script gate 90
}
