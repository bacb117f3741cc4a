#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests what doc/containers.md says: a program in a container that gets the mounts and variables of
# the CDI file. It fails if the program's work is not done by the daemon outside, or if the daemon
# does not know the process by its number on the host. Where podman cannot start containers only the
# file is looked at.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
# What the file says, with the build tree's library and the test's socket: options of podman.
python3 - "$src/conf/containers/wattshare.cdi.json.in" "$build/frontend" "$tmp" >"$tmp/options" <<'EOF' || fail "the CDI file"
import json, sys
text = open(sys.argv[1]).read().replace("@wslibdir@", sys.argv[2])
d = json.loads(text)
assert d["cdiVersion"] == "0.5.0" and d["kind"] == "wattshare.org/gpu", d
assert [x["name"] for x in d["devices"]] == ["all"], d
edits = d["devices"][0]["containerEdits"]
# The folder has one name inside and outside: the daemon tells programs where its other socket is.
for e in edits["env"]:
    print("-e", e.replace("/run/wattshare/wattshared.sock", sys.argv[3] + "/sock"))
for m in edits["mounts"]:
    assert m["hostPath"] == m["containerPath"], m
    path = m["hostPath"].replace("/run/wattshare", sys.argv[3])
    print("-v", path + ":" + path + (":ro" if "ro" in m["options"] else ""))
EOF
[ "$(grep -c . "$tmp/options")" = 5 ] || { cat "$tmp/options"; fail "the CDI file has not three variables and two mounts"; }
ok "the CDI file"
command -v podman >/dev/null || { echo "skipped: a container: there is no podman here" >&2; exit 0; }
[ -z "$asan" ] || { echo "skipped: a container: the library is built for AddressSanitizer" >&2; exit 0; }
container() { # container OPTION… -- COMMAND…: in a copy-on-write view of this machine's own files
    options=
    while [ "$1" != -- ]; do
        options="$options $1"
        shift
    done
    shift
    # shellcheck disable=SC2086
    timeout 300 podman --log-level=error --cgroup-manager=cgroupfs ${runtime:+--runtime $runtime} run --rm --network=none \
        --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 $options --rootfs /:O "$@"
}
runtime=
container -- /bin/true >"$tmp/podman" 2>&1 || { # Podman's own choice may not run where its other one does.
    runtime=$(command -v runc || ls /usr/sbin/runc 2>/dev/null || true)
    [ -n "$runtime" ] && container -- /bin/true >"$tmp/podman" 2>&1
} || { echo "skipped: a container: $(tail -n 1 "$tmp/podman")" >&2; exit 0; }
start_daemon --gpus t400
before=$(status_value n_kernels)
# shellcheck disable=SC2046
container $(cat "$tmp/options") -e WATTSHARE_TASK=inside -v "$cuda:/programs:ro" -- /programs/drv_matmul 32 50 >"$tmp/out" 2>&1 ||
    { cat "$tmp/out"; fail "a program in a container"; }
[ $(($(status_value n_kernels) - before)) = 50 ] || { cat "$tmp/out"; fail "the container's kernels did not run in the daemon"; }
"$wattshare" status | grep -q ' inside .*ended' || { "$wattshare" status; fail "the container's program is not in the status"; }
ok "a program in a container"
