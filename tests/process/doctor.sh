#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Plants a fault for each check of `wattshare doctor`, in a folder that stands for the machine, in
# the mock driver, or in limits. It fails if the check does not name it, or names one where there is
# none.
. "${srcdir:-.}/tests/process/lib.sh"
root=$tmp/root
mkdir -p "$root/dev/shm" "$root/tmp"
export WS_DOCTOR_ROOT="$root" ASAN_OPTIONS=detect_leaks=0
none=ipc://$tmp/none

# finding STATUS STATE CHECK TEXT [VARIABLE=VALUE…]: what that check says, with those variables; as
# the user $as, if that is set
finding() {
    want=$1 line=$(printf '%-4s  %-13s' "$2" "$3") text=$4
    shift 4
    r=0
    # shellcheck disable=SC2086 # words
    ${as:+setpriv --reuid $as --regid $as ${groups:---clear-groups}} env "$@" LD_LIBRARY_PATH="${driver_path:-$tmp}" "$wattshare" doctor --socket "${socket:-$none}" >"$tmp/out" 2>"$tmp/err" || r=$?
    [ $r = "$want" ] || { cat "$tmp/out" "$tmp/err"; fail "doctor ended with status $r, not $want"; }
    grep -F -A 1 -e "$line" "$tmp/out" | tr '\n' ' ' | grep -qF -e "$text" || { cat "$tmp/out" "$tmp/err"; fail "no '$line … $text'"; }
    ok "$line: $text"
}

# a machine without a GPU: nothing is bad
finding 0 note "device files" "software GPUs work"
finding 0 note driver "libcuda.so.1"
finding 0 good energy "no real GPU"
finding 0 good MPS "not running"
finding 0 good libraries "no library"
finding 0 note daemon "systemctl start wattshared"
finding 0 good toolkit "there is no CUDA toolkit" PATH=/usr/bin:/bin
finding 0 good compiler "there is no LLVM"
"$wattshare" doctor --json --socket "$none" >"$tmp/json" || fail "doctor --json"
[ "$(grep -c '"check":' "$tmp/json")" = 15 ] || { cat "$tmp/json"; fail "15 checks are expected"; }
run 2 '' doctor x

# device files, and none of the driver's libraries
touch "$root/dev/nvidiactl" "$root/dev/nvidia-uvm"
finding 1 bad "device files" "/dev/nvidia0 cannot be opened"
mkdir "$root/dev/nvidia0"
finding 1 bad "device files" "/dev/nvidia0 cannot be opened: Is a directory"
rmdir "$root/dev/nvidia0"
touch "$root/dev/nvidia0"
finding 1 good "device files" "can be opened"
finding 1 bad driver "install the driver's libraries"
mv "$root/dev/nvidia0" "$root/dev/nvidia3" # what a container may have of several
finding 1 good "device files" "can be opened"
mv "$root/dev/nvidia3" "$root/dev/nvidia0"
# A device cgroup forbids what the file's mode allows; so does this attribute.
if chattr +i "$root/dev/nvidia0" 2>/dev/null; then
    r=0
    (finding 1 bad "device files" "start it with --gpus all") || r=1
    chattr -i "$root/dev/nvidia0"
    [ $r = 0 ] || exit 1
fi

# the driver, and what it says of its GPU
driver_path=$mock
finding 0 good driver "1 GPU"
finding 0 good driver "2 GPUs" WS_MOCK_GPUS=2
finding 1 bad driver "does not start: NO_DEVICE" WS_MOCK_GPUS=0
finding 1 bad driver "see nvidia-smi -L" WS_MOCK_GPUS=0
finding 1 bad driver "12.4" WS_MOCK_VERSION=12020
finding 1 bad driver "cuMemMap" WS_MOCK_WITHOUT=cuMemMap
finding 1 bad driver "no virtual memory management" WS_MOCK_NO_VMM=1
finding 0 good energy "can be read"
finding 0 note energy "no counter of energy" WS_MOCK_NVML_FAIL=nvmlDeviceGetTotalEnergyConsumption:3
finding 0 note energy "cannot be initialised" WS_MOCK_NVML_FAIL=nvmlInit_v2:9
finding 0 note energy "NVML knows no GPU" WS_MOCK_NVML_FAIL=nvmlDeviceGetHandleByIndex_v2:6
finding 0 good persistence "is on"
finding 0 note persistence "nvidia-persistenced" WS_MOCK_PERSISTENCE=0
finding 0 good MIG "not divided"
finding 0 note MIG "nvidia-smi -mig 0" WS_MOCK_MIG=1
finding 0 good "compute mode" "Default"
finding 1 bad "compute mode" "Prohibited" WS_MOCK_COMPUTE_MODE=2
finding 0 note "compute mode" "behind the gate" WS_MOCK_COMPUTE_MODE=3
mkdir "$tmp/half"
ln -s "$mock/libcuda.so.1" "$tmp/half/"
driver_path=$tmp/half finding 0 note energy "libnvidia-ml.so.1 is not there"
mkdir "$root/tmp/nvidia-mps"
touch "$root/tmp/nvidia-mps/control"
finding 0 note MPS "nvidia-cuda-mps-control"
finding 0 good MPS "not running" CUDA_MPS_PIPE_DIRECTORY=/elsewhere

# limits and shared memory
(ulimit -n 200 && finding 0 note "open files" "may open 200 files") || exit 1
(ulimit -l 64 && finding 0 note "locked memory" "may lock 64 KiB") || exit 1
rmdir "$root/dev/shm"
finding 0 note "shared memory" "mount a tmpfs"
mkdir "$root/dev/shm"
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=1m none "$root/dev/shm" 2>/dev/null; then
    r=0
    (finding 0 note "shared memory" "/dev/shm has 1 MiB") || r=1
    umount "$root/dev/shm"
    [ $r = 0 ] || exit 1
fi

# tools and libraries
mkdir -p "$root/usr/local/cuda/bin" "$root/usr/local/cuda/lib64"
printf '#!/bin/sh\n' >"$root/usr/local/cuda/bin/nvcc"
chmod 755 "$root/usr/local/cuda/bin/nvcc"
finding 0 good toolkit "the CUDA toolkit is there"
mkdir -p "$root/usr/lib/x86_64-linux-gnu"
touch "$root/usr/lib/x86_64-linux-gnu/libLLVM-15.so.1"
finding 0 good compiler "with LLVM 15"
touch "$root/usr/local/cuda/lib64/libcublas.so.12"
finding 0 note libraries "libcublas.so.12"

# users
mkdir "$root/etc"
finding 0 note group "there is no group wattshare"
echo 'wattshare:x:4242:' >"$root/etc/group"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    finding 0 good group "may use the service"
    chmod 755 "$tmp"
    chmod 600 "$root/dev/nvidia0"
    other=$(id -un 65534)
    as=65534
    finding 1 bad "device files" "give the user of wattshared access"
    chmod 666 "$root/dev/nvidia0"* "$root/dev/nvidiactl" "$root/dev/nvidia-uvm"
    finding 0 note group "usermod -a -G wattshare $other"
    echo "wattshare:x:4242:root,$other" >"$root/etc/group"
    finding 0 note group "newgrp wattshare"
    groups='--groups 4242' finding 0 good group "may use the service"
    as=
fi

# a daemon
start_daemon --gpus t400
socket=$WATTSHARE_SOCKET
finding 0 good daemon "with 1 GPU"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    as=65534
    chmod 600 "$tmp/sock"
    finding 1 bad daemon "not for this user"
    as=
fi
chmod 666 "$tmp/sock"
kill -KILL "$daemon_pid"
wait "$daemon_pid" || true
daemon_pid=
finding 0 note daemon "no daemon answers"
