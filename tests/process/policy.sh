#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests `wattshare policy` and `wattshare explain`: looking, changing the policy while programs run,
# wrong names and options, and who may change it.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
export ASAN_OPTIONS=detect_leaks=0
run_preload=$asan
verb=policy
run 0 '^sbeet-mg ' list
[ "$(sed -n 's/ .*//;1p' "$tmp/out")" = wattshare ] || fail "our own policy is not the first"
run 0 'theta=1 ' show edl
run 0 'it has no options' show gcaps
run 2 "no policy 'best'" show best
run 2 "no policy 'best'" set best
run 2 'expected list, show' set
run 2 'expected list, show' list all
run 2 'expected list, show' frob
run 2 '' --frob
WATTSHARE_SOCKET=ipc://$tmp/none
export WATTSHARE_SOCKET
run 69 "no answer" show
run 69 "no answer" set gcaps
verb=explain
run 69 "no answer"
run 2 "'x' is no job's number" x
run 2 "'0' is no job's number" 0
run 2 "'-1' is no job's number" -- -1
run 2 "no job's number" 99999999999999999999999
run 2 "takes no '2'" 1 2

start_daemon --gpus rtx3070 --clock scaled
run 1 'there is no policy'
verb=policy
run 0 '^none$' show
run 0 '^gcaps$' set gcaps
client "$cuda/drv_aes" 16 3 >"$tmp/out" || fail "drv_aes"
verb=explain
run 0 'job [0-9]* (drv_aes): start on GPU 0 (rtx3070)'
run 0 'job 1 (drv_aes): '  1
run 1 'no such job' 123456789
verb=policy
run 1 "no option 'speed=3'" set edl speed=3
run 0 '^gcaps$' show
run 0 '^edl theta=0.9 servers=whole$' set edl theta=0.9 servers=whole
run 0 '^edl theta=0.9 servers=whole$' show
run 1 'theta=7: a number' set edl theta=7
run 1 'policy none has no options' set none a=b
grep -q "policy=edl" "$tmp/daemon.log" || fail "the log does not tell of the policy"

# From one to the other all the time, while programs run: all end, and right.
pids=
for w in drv_aes drv_matmul drv_histogram drv_search; do
    (client "$cuda/$w" 16 20 >"$tmp/$w.out" 2>&1) &
    pids="$pids $!"
done
i=0
while [ $i -lt 30 ]; do
    for p in gcaps none stgm wattshare sbeet-mg fifo rr consolidate none edl; do
        LD_PRELOAD=$asan "$wattshare" policy set $p >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "set $p"; }
        i=$((i + 1))
        sleep 0.02
    done
done
for pid in $pids; do
    wait "$pid" || { cat "$tmp"/drv_*.out; fail "a program while the policy changed"; }
done
[ "$(cat "$tmp"/drv_*.out | grep -c '^PASS')" = 4 ] || fail "a program is not right"
ok "$i policies while four programs ran"

# not for everybody
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    chmod 755 "$tmp"
    chmod 777 "$tmp/sock"
    r=0
    LD_PRELOAD=$asan setpriv --reuid 65534 --clear-groups "$wattshare" policy set gcaps >"$tmp/out" 2>&1 || r=$?
    [ $r = 1 ] && grep -q "only root, the daemon's user and the members of admin_group" "$tmp/out" || { cat "$tmp/out"; fail "another user: status $r"; }
    LD_PRELOAD=$asan setpriv --reuid 65534 --clear-groups "$wattshare" policy show >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "another user may not look"; }
    grep -q '^edl$' "$tmp/out" || fail "another user changed the policy"
    ok "another user may look and not change"
fi
wait_empty
