#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests tasks of the configuration. It fails if a program is not recognised as its task, if it gets
# more than the task may have, or if jobs that programs mark themselves are not accounted for as
# they say.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"

# wattshare.h in programs of other compilers' settings, without wattshare
for how in "${CC:-gcc} -std=c99 -pedantic-errors -D_POSIX_C_SOURCE=200809L" "${CC:-gcc} -std=gnu17 -O2" "g++ -x c++ -std=c++11 -pedantic-errors"; do
    # shellcheck disable=SC2086
    $how -Wall -Wextra -Werror -I"$src/frontend" -o "$tmp/alone" "$src/tests/process/alone_with_header.c" -ldl
    expect 0 "PASS alone" "$tmp/alone"
done

me=$(id -un)
cat >"$tmp/conf" <<EOF
gpus = {"rtx3070", "t400"}
catalog = {"$src/conf/gpu.d"}
task "by-path" { match_path = "*/drv_aes"  gpu = t400 }
task "by-env" { match_env = {"ROLE=cam*", "SITE"}  priority = 7  sms = "0-1,2"  gpu = rtx3070 }
task "by-user" { match_user = "$me"  match_path = "*/drv_search"  max_sms = 4 }
task "periodic" { period_ms = 5  deadline_ms = 4 }
task "others" { match_user = 4242 }
task "small" { memory_quota_bytes = 100000 }
task "mid" { memory_quota_bytes = 6000000 }
task "nowhere" { sms = "40"  }
EOF
start_daemon -c "$tmp/conf" --log-level info
field() { # field NAME: of the client that ended last
    "$wattshare" status --json | python3 -c 'import json,sys
c = max(json.load(sys.stdin)["clients"], key=lambda c: c["client"])
print(c[sys.argv[1]])' "$1"
}
is() { # is NAME VALUE
    [ "$(field "$1")" = "$2" ] || fail "$1 is '$(field "$1")', not '$2'"
    ok "$1 = $2"
}
client "$cuda/drv_aes" 2 >"$tmp/out" || fail "drv_aes"
is task by-path
is gpus '[1]'
client "$cuda/drv_matmul" 16 >"$tmp/out" || fail "drv_matmul"
is task drv_matmul
is priority 0
ROLE=camera SITE=2 client "$cuda/drv_smids" 3 >"$tmp/out" || { cat "$tmp/out"; fail "drv_smids"; }
is task by-env
is priority 7
is sms 0-2
ROLE=camera client "$cuda/drv_smids" 46 >"$tmp/out" || { cat "$tmp/out"; fail "drv_smids"; }
is task drv_smids
client "$cuda/drv_search" 16 >"$tmp/out" || fail "drv_search"
is task by-user
is sms '<=4'
task=by-user
export task
expect 0 "PASS drv_smids" client "$cuda/drv_smids" 4
unset task
task=mine client "$cuda/drv_aes" 2 >"$tmp/out" || fail "drv_aes"
is task mine
task=others client "$cuda/drv_matmul" 16 >"$tmp/out" || fail "drv_matmul"
is task drv_matmul
grep -q "says it is task others" "$tmp/daemon.log" || fail "a wrong claim is not in the log"
ok "a task of another user can't be claimed"

task=small
export task
expect 1 "CUDA_ERROR_OUT_OF_MEMORY" client "$cuda/drv_matmul" 256
grep -q 'memory: refused .* task=small .* more than its memory_quota_bytes = 100000' "$tmp/daemon.log" || fail "the log does not tell of the quota"
task=nowhere
CUDA_VISIBLE_DEVICES=t400 expect 1 "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES" client "$cuda/drv_matmul" 16
unset task
expect 0 "PASS drv_segments" client "$cuda/drv_segments" 20
is task periodic
if have_nvcc; then
    for k in static shared; do
        for t in by-user by-env nowhere-else; do # 4 SMs, 3, all
            task=$t
            expect 0 "PASS multiprocessors" client "$cuda/nv/multiprocessors_$k"
        done
        task=mid
        expect 0 "PASS memoryquota" client "$cuda/nv/memoryquota_$k" 0 6000000
        task=periodic
        expect 0 "PASS periodic" client "$cuda/nv/periodic_$k"
    done
    unset task
fi
stop_daemon

# what is wrong is said with file and line, and nothing starts
printf 'gpus = {"t400"}\ncatalog = {"%s"}\n\ntask a {\n  max_sms = 7\n}\n' "$src/conf/gpu.d" >"$tmp/wrong"
expect 1 "$tmp/wrong:5: task a: max_sms = 7" "$wattshared" --check -c "$tmp/wrong"
printf 'policy = "best"\n' >"$tmp/wrong"
expect 1 "$tmp/wrong:1: policy = \"best\" is not known; there are: none, wattshare, wattshare-servers, bcf" "$wattshared" --check -c "$tmp/wrong"
