#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Does what two pages tell a new user to do, with the sample program of the demo: the commands that
# `./quickstart demo` prints at its end, and the steps of doc/tutorial-sharing.md. It fails if a
# command fails, or if the tutorial's programs are not the tasks that it says they are.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
[ -z "$asan" ] || [ -n "${WS_TEST_ALL:-}" ] || skip "with sanitizers other tests run the same, in less time"
sample=$build/demo/sample

sed -n 's/^    \(build\/quick\/.*\)/\1/p' "$src/demo/next.txt" >"$tmp/commands"
[ "$(wc -l <"$tmp/commands")" -ge 4 ] || fail "demo/next.txt has too few commands"
while read -r command; do
    command=$(echo "$command" | sed "s|build/quick/profiles|$tmp/profiles|; s|build/quick/|$build/|g")
    LD_PRELOAD=$asan ASAN_OPTIONS=detect_leaks=0 WATTSHARE_CATALOG="$src/conf/gpu.d" sh -c "$command" \
        </dev/null >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "$command"; }
    [ -s "$tmp/out" ] || fail "$command prints nothing"
    case $command in *"run --private"*) grep -q 'all results right' "$tmp/out" || { cat "$tmp/out"; fail "$command"; } ;; esac
done <"$tmp/commands"
ok "what the demo tells to try next"

# Step 2's file; the paths are a user's own there, so here the programs get their tasks by name.
awk '/^\*\*2\./ {on = 1} /^\*\*3\./ {on = 0} on && /^    / {print substr($0, 5)}' \
    "$src/doc/tutorial-sharing.md" | sed "s|/tmp/share-energy.csv|$tmp/energy.csv|; /match_path = .*{/!s/match_path = \"[^\"]*\"//; s/match_path = \"[^\"]*\"//" >"$tmp/share.conf"
grep -q '^task "train"' "$tmp/share.conf" || fail "the tutorial has no configuration in its second step"
"$wattshared" --check --config "$tmp/share.conf" || fail "the tutorial's configuration is wrong"
start_daemon --config "$tmp/share.conf"
(task=train client "$sample" 20 2000 >"$tmp/train" 2>&1) &
pid=$!
task=camera client "$sample" 10 >"$tmp/camera" 2>&1 || { cat "$tmp/camera"; fail "camera"; }
wait $pid || { cat "$tmp/train"; fail "train"; }
grep -q '^sample: 10 jobs, all results right.* of 10 met' "$tmp/camera" || { cat "$tmp/camera"; fail "camera's jobs"; }
grep -q '^sample: 20 jobs, all results right' "$tmp/train" || { cat "$tmp/train"; fail "train's jobs"; }
ok "camera and train share the GPU: $(cat "$tmp/camera")"
"$wattshare" explain >"$tmp/out" || fail "explain"
"$wattshare" status >"$tmp/out" || fail "status"
for t in camera train; do grep -q "$t" "$tmp/out" || { cat "$tmp/out"; fail "status does not show $t"; }; done
"$wattshare" policy set gcaps || fail "policy set"
"$wattshare" policy show | head -n 1 | grep -q '^gcaps' || fail "the policy is not gcaps"
task=camera client "$sample" 3 >"$tmp/camera" 2>&1 || fail "camera under gcaps"
[ -s "$tmp/energy.csv" ] || fail "there is no energy log"
stop_daemon || fail "the daemon's end"
ok "another policy while it runs"
