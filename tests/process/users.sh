#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests what users can do to each other through a daemon that is not root, with two users. It fails
# if a program takes another user's task by its own word, if a user sees the programs of another
# one, or if a group of administrators has no effect. Needs root, to start programs as other users.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
[ "$(id -u)" = 0 ] || skip "needs root"
command -v setpriv >/dev/null || skip "needs setpriv"
daemon_uid=65531 alice=65532 bob=65533
admins=$(sed -n 's/^\([^:]*\):[^:]*:\([1-9][0-9]*\):.*/\1 \2/p' /etc/group | head -n 1) # any group but root's
[ -n "$admins" ] || skip "there is no group but root's"

# as USER COMMAND…
as() {
    uid=$1
    shift
    LD_PRELOAD=$asan ASAN_OPTIONS=detect_leaks=0 setpriv --reuid "$uid" --regid "$uid" ${groups:---clear-groups} "$@"
}
as "$daemon_uid" test -x "$wattshared" || skip "other users cannot read the build tree"
chmod 777 "$tmp"
touch "$tmp/daemon.log"
chmod 666 "$tmp/daemon.log"

# ---- tasks ----
cat >"$tmp/conf" <<END
gpus = {"t400"}
socket_mode = "0666"
admin_group = "${admins% *}"
task "camera" {
    match_path = {"/opt/cam/*", "$cuda/*"}
    memory_quota_bytes = 4096
}
task "kept" {
    match_path = "$cuda/*"
    match_user = "$bob"
}
END
printf '#!/bin/sh\nexec setpriv --reuid %s --regid %s --clear-groups "%s" "$@"\n' $daemon_uid $daemon_uid "$wattshared" >"$tmp/as-service"
chmod 755 "$tmp/as-service"
as "$daemon_uid" "$wattshared" --check -c "$tmp/conf" >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "the configuration is wrong"; }
grep -q "warning: task camera has match_path alone" "$tmp/out" || { cat "$tmp/out"; fail "--check does not warn of match_path alone"; }
! grep -q "task kept" "$tmp/out" || fail "--check warns of a task with match_user"
ok "--check warns of match_path alone"
wattshared=$tmp/as-service
start_daemon --config "$tmp/conf"
# Its path is its own word here, since the daemon may not look at it; so is --task.
as $alice "$wattshare" run -- "$cuda/drv_matmul" >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "alice's program"; }
as $alice "$wattshare" run --task camera -- "$cuda/drv_matmul" >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "alice's program that says it is camera"; }
[ "$(grep -c "would be task camera by its own word only.*add match_user" "$tmp/daemon.log")" = 1 ] || fail "the log does not say once why the task was not given"
! grep -q "client: hello .* task=camera" "$tmp/daemon.log" || fail "a program took a task by its own word"
as $bob "$wattshare" run -- "$cuda/drv_matmul" >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "bob's program"; }
grep -q "client: hello .* uid=$bob .* task=kept" "$tmp/daemon.log" || fail "the task whose user the kernel confirms was not given"
ok "a task needs the kernel's word"

# ---- who sees what ----
as $alice "$build/tests/process/session_client" sync >"$tmp/alice" 2>&1 & alice_pid=$!
as $bob "$build/tests/process/session_client" sync >"$tmp/bob" 2>&1 & bob_pid=$!
for f in alice bob; do
    i=0
    until grep -q ready "$tmp/$f"; do
        i=$((i + 1))
        [ $i -lt 1200 ] || { cat "$tmp/$f"; fail "$f's client"; }
        sleep 0.1
    done
done
sees() { # sees WHO UIDS: whose clients the status in $tmp/out shows
    found=$(sed -n 's/^ *"uid": *\([0-9]*\),*$/\1/p' "$tmp/out" | sort -u | tr '\n' ' ')
    [ "$found" = "$2" ] || { cat "$tmp/out"; fail "$1 sees the clients of: $found, not of: $2"; }
}
as $alice "$wattshare" status --json >"$tmp/out"
sees alice "$alice "
grep -q '"n_clients": *1' "$tmp/out" || { cat "$tmp/out"; fail "the others are not counted"; }
as $alice "$wattshare" status >"$tmp/out"
grep -q "clients of other users: 1" "$tmp/out" || { cat "$tmp/out"; fail "the others are not in the table"; }
grep -q "user $alice *clients *1 " "$tmp/out" || { cat "$tmp/out"; fail "the account is not in the table"; }
! grep -q "user $bob" "$tmp/out" || { cat "$tmp/out"; fail "alice sees bob's account"; }
for admin in 0 $daemon_uid; do
    as $admin "$wattshare" status --json >"$tmp/out"
    sees $admin "$alice $bob "
done
groups="--groups ${admins#* }"
as $alice "$wattshare" status --json >"$tmp/out"
sees "alice in admin_group" "$alice $bob "
as $alice "$wattshare" policy set rr >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "a member of admin_group may not set the policy"; }
groups=
! as $alice "$wattshare" policy set edl >"$tmp/out" 2>&1 || fail "everybody may set the policy"
ok "users see what is their own, administrators all"
kill $alice_pid $bob_pid
wait $alice_pid $bob_pid 2>/dev/null || true
