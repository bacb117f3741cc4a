#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs programs whose device code is machine code without PTX. On the device for real GPUs without
# isolation they must work (the mock driver runs PTX in place of the machine code). With isolation,
# and on software GPUs, they must be refused with a message that says what would be accepted.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
mkdir "$tmp/ptx"
"$cuda/drv_machine" ptx "$tmp/ptx/step.ptx"
programs=drv/machine
if [ -x "$cuda/nv/sassonly_static" ]; then
    cp "$cuda/nv/sassonly.ptx" "$tmp/ptx/"
    programs="$programs static/sassonly shared/sassonly"
fi
start_mock() { # start_mock CONF-LINES
    printf '%s\n' "$1" >"$tmp/conf"
    WS_MOCK_MACHINE_CODE=$tmp/ptx LD_LIBRARY_PATH=$mock start_daemon --gpus cuda --config "$tmp/conf"
}
stop() {
    stop_daemon
    daemon_pid=
}
refused() { # refused TEXT: all programs are, with that text
    expect 0 "PASS drv_machine" client "$cuda/drv_machine" refused "$1"
    for p in $programs; do
        [ "$p" = drv/machine ] || expect 1 "cudaErrorNoKernelImageForDevice" client "$(client_path "$p")"
    done
}

# shellcheck disable=SC2086 # words
{
    start_mock 'isolation = none'
    alone $programs
    together $programs drv/matmul drv/stencil
    "$wattshare" status | grep -q "machine code without PTX: yes" || fail "status does not say that it is taken"
    stop
    grep -q "machine code: .* not stopped between blocks" "$tmp/daemon.log" || fail "the log does not say what can't be done with it"

    # Where launches may be stopped between blocks, these are not, and run on a part of the SMs by
    # green contexts alone. In the daemon itself.
    start_mock 'isolation = none
gpu_worker = no
policy = rr'
    alone $programs
    together $programs drv/matmul drv/stencil
    stop
}
start_mock 'isolation = fence'
refused "isolation = none"
alone drv/matmul
"$wattshare" status | grep -q "machine code without PTX: no" || fail "status does not say that it is not taken"
stop
grep -q "VIOLATION" "$tmp/daemon.log" && fail "the driver was used wrongly"
ok "the driver was used as it wants"

start_daemon --gpus rtx3070
refused "a software GPU runs PTX alone"
