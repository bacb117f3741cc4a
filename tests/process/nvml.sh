#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests libnvidia-ml.so.1 of `wattshare run` and `wattshare smi`. It fails if either says something
# else than `wattshare status` while a program works, if a wrong call does not get NVML's code for
# it, if one of NVML's functions that nvidia-ml-py looks up is missing, or if a monitor that others
# wrote does not show the GPU and the program.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
user=$build/tests/process/nvml_user
library=$build/frontend/libwattshare-nvml.so
value() { # value NAME: of the first GPU
    sed -n "s/^$1 //p" "$tmp/said" | head -n 1
}
is() { # is NAME WANTED
    [ "$(value "$1")" = "$2" ] || { cat "$tmp/said" >&2; fail "$1 is '$(value "$1")', not '$2'"; }
}
run_plain() { # run_plain PROGRAM ARGUMENTS…: under wattshare run, of either build
    LD_PRELOAD=$asan ASAN_OPTIONS=detect_leaks=0 "$wattshare" run -- "$@"
}
watch() { # watch PID: what NVML says to a program under wattshare run
    run_plain "$user" "$1" >"$tmp/said" 2>&1 || { cat "$tmp/said" >&2; fail "nvml_user: status $?"; }
}
[ "$(nm -D --defined-only "$library" | grep -cv ' T nvml')" = 0 ] || fail "the library exports more than NVML's functions"
ok "$(nm -D --defined-only "$library" | wc -l) functions"

WATTSHARE_SOCKET=ipc://$tmp/nobody LD_LIBRARY_PATH=$build/frontend/wattshare-driver LD_PRELOAD="$asan" "$user" >"$tmp/said" || true
is init 9
start_daemon --gpus rtx3070,t400,xavier
LD_PRELOAD="${asan:+$asan:}$build/frontend/libwattshare.so" ASAN_OPTIONS=detect_leaks=0 WATTSHARE_TASK=heater \
    "$cuda/drv_matmul" 16 1000000 >"$tmp/heater" 2>&1 &
helper_pid=$!
i=0
until [ "$(status_value n_kernels)" -gt 20 ]; do
    i=$((i + 1))
    [ $i -lt 100 ] || { cat "$tmp/heater"; fail "the program does not begin"; }
    sleep 0.1
done

"$wattshare" status --json >"$tmp/before"
watch $helper_pid
"$wattshare" status --json >"$tmp/after"
python3 - "$tmp" $helper_pid <<'EOF' || { cat "$tmp/said" >&2; fail "NVML and wattshare status disagree"; }
import json, re, sys
tmp, pid = sys.argv[1], int(sys.argv[2])
gpus, gpu = [], None
for line in open(tmp + "/said"):
    name, *values = line.split(maxsplit=1)
    if name == "gpu":
        gpus.append({})
    elif gpus:
        gpus[-1].setdefault(name, values[0].strip() if values else "")
before, after = (json.load(open(tmp + "/" + f)) for f in ("before", "after"))
assert len(gpus) == len(before["gpus"]) == 3, gpus
for said, b, a in zip(gpus, before["gpus"], after["gpus"]):
    assert said["nvmlDeviceGetName"] == b["product"], said
    assert said["nvmlDeviceGetUUID"] == b["uuid"] and len(b["uuid"]) == 40, said
    total, free, used = map(int, said["memory"].split())
    assert total == b["memory_bytes"] and free + used == total, said
    assert used == b["memory_used_bytes"] == a["memory_used_bytes"], said
    assert int(said["nvmlDeviceGetNumGpuCores"]) == b["n_cores"] > 0, said
    for name in ("nvmlDeviceGetTotalEnergyConsumption", "field_energy"):
        assert b["energy_uj"] // 1000 <= int(said[name]), (said, b, a)
    assert said["nvmlDeviceGetTemperature"] == said["nvmlDeviceGetEccMode"] == "error 3", said
busy, idle, no_link = gpus
names = ["nvmlDeviceGet" + n for n in ("MaxPcieLinkGeneration", "GpuMaxPcieLinkGeneration",
         "CurrPcieLinkGeneration", "MaxPcieLinkWidth", "CurrPcieLinkWidth", "PcieSpeed",
         "PcieLinkMaxSpeed", "BusType", "PcieReplayCounter")]
for said, wanted in ((busy, "4 4 4 16 16 16000 4 2"), (idle, "3 3 3 16 16 8000 3 2"), (no_link, " ".join(8 * ["error 3"]))):
    assert [said[n] for n in names] == (re.findall("error 3|[0-9]+", wanted) + ["error 3"]), said
    assert said["throughput_2"] == "2 0", said
sent, received = (list(map(int, busy["throughput_%d" % i].split())) for i in (0, 1))
assert sent[0] == received[0] == 0 and received[1] > sent[1] > 0, busy  # two matrices come, one goes
assert idle["throughput_0"] == idle["throughput_1"] == "0 0", idle
assert no_link["throughput_0"] == no_link["throughput_1"] == "3 0", no_link
for said, gpu in zip(gpus[:2], (0, 1)):
    code = list(map(int, said["link_bytes"].split()))
    b, a = before["gpus"][gpu], after["gpus"][gpu]
    assert code[0] == code[2] == 0, said
    assert b["bytes_out"] <= code[1] <= a["bytes_out"] and b["bytes_in"] <= code[3] <= a["bytes_in"], (said, b, a)
    assert (b["bytes_in"] > b["bytes_out"] > 0) == (gpu == 0), b
assert no_link["link_bytes"].split()[::2] == ["3", "3"], no_link
assert after["gpus"][0]["energy_uj"] > before["gpus"][0]["energy_uj"], "the program does not work"
assert int(busy["nvmlDeviceGetPowerUsage"]) > 0 and int(busy["field_power"]) > 0, busy
assert 0 < int(busy["utilization"]) <= 100 and idle["utilization"] == "0", (busy, idle)
client = [s["clients"][0] for s in (before, after)]
assert busy["process"].split() == [str(pid), str(client[0]["memory_bytes"])], (busy, client)
assert busy["processes"] == "0 1" and idle["processes"] == "0 0", (busy, idle)
assert busy["processes_size"] == "7" and idle["processes_size"] == "0", (busy, idle)
assert busy["fields"] == "0 0 0 0 3 3" and idle["fields"] == "0 0 6 0 3 3", (busy, idle)
own = [(c["busy_uj"] + c["idle_uj"]) // 1000 for c in client]
assert own[0] <= int(busy["field_process_energy"]) <= own[1], (own, busy)
EOF
ok "NVML says what wattshare status says"

# The counter is the integral of the power, of a GPU that works and of one that idles.
run_plain "$user" samples >"$tmp/samples"
"$wattshare" status --json >"$tmp/after"
python3 - "$tmp" <<'EOF' || fail "the energy counter is not the integral of the power"
import json, sys
status = json.load(open(sys.argv[1] + "/after"))
for gpu, g in enumerate(status["gpus"]):
    rows = [list(map(int, l.split()[2:])) for l in open(sys.argv[1] + "/samples") if l.startswith("sample %d " % gpu)]
    integral = sum((b[0] - a[0]) * (a[1] + b[1]) / 2e9 for a, b in zip(rows[3:], rows[4:]))
    counted = rows[-1][2] - rows[3][2]
    idle = (rows[-1][0] - rows[3][0]) * g["idle_mw"] / 1e9
    print("GPU %d: %d mJ counted, %.1f mJ integrated, %.1f mJ idle" % (gpu, counted, integral, idle))
    assert len(rows) == 30 and all(a[2] <= b[2] for a, b in zip(rows, rows[1:])), rows
    assert abs(counted - integral) < 0.05 * integral, rows
    assert idle * 0.97 < counted and (gpu == 0 or counted < idle * 1.03), (idle, counted)
    most = g["energy_uj"] + g["idle_mw"] * status["uptime_ns"] / 1e6
    assert rows[-1][2] * 1000 <= most, (rows, most)
EOF
ok "the energy counter is the integral of the power"
is early 1
is no_handle 2
is no_result 2
is no_gpu 2
is no_uuid 6
is place_1 "0 0000:01:00.0 1"
is place_2 "0 0000:01:00.0 1"
is shutdown "0 1"
ok "wrong calls get NVML's codes"

verb=smi
run 0 "NVIDIA GeForce RTX 3070 "
grep -q "$helper_pid .*drv_matmul" "$tmp/out" || { cat "$tmp/out"; fail "smi does not show the program"; }
run 0 "^GPU 1: NVIDIA T400 (UUID: GPU-" -L
run 0 "^0, NVIDIA GeForce RTX 3070, 8192$" --query-gpu index,name,memory.total --format csv,noheader,nounits
run 0 "^name, memory.total \[MiB\], temperature.gpu$" --query-gpu=name,memory.total,temperature.gpu --format=csv
grep -q '^NVIDIA T400, 2048 MiB, \[N/A\]$' "$tmp/out" || { cat "$tmp/out"; fail "smi --query-gpu with units"; }
run 0 "^$helper_pid, .*drv_matmul, " --query-compute-apps=pid,process_name,energy --format=csv,noheader
run 0 "Energy since .*: [0-9.]* J" -q --id 0
run 0 "^3, 16, 3, 16$" --query-gpu=pcie.link.gen.max,pcie.link.width.max,pcie.link.gen.current,pcie.link.width.current --format=csv,noheader --id 1
run 0 "^.N/A., .N/A.$" --query-gpu=pcie.link.gen.max,pcie.link.width.current --format=csv,noheader --id 2
run 2 "has no field 'colour'; it has .*utilization.gpu" --query-gpu=colour
run 2 "no GPU 7" --id 7
python3 - "$("$wattshare" smi --query-gpu=energy --format=csv,noheader,nounits --id 0)" "$("$wattshare" status --json)" <<'EOF' || fail "smi's energy"
import json, sys
said, status = float(sys.argv[1]), json.loads(sys.argv[2])
counted, idle = status["gpus"][0]["energy_uj"] / 1e6, status["gpus"][0]["idle_mw"] * status["uptime_ns"] / 1e12
assert 0.5 * idle < said <= counted + idle, (said, counted, idle)
EOF
unset verb
if [ -e /usr/bin/nvidia-smi ]; then
    echo "not tried: nvidia-smi under wattshare run: there is another one here" >&2
else
    PATH=/usr/bin:/bin run_plain sh -c 'nvidia-smi -L' >"$tmp/out" 2>&1 || true
    grep -q "^GPU 0: NVIDIA GeForce RTX 3070 (UUID" "$tmp/out" || { cat "$tmp/out"; fail "nvidia-smi under wattshare run"; }
    ok "nvidia-smi under wattshare run"
fi

# nvidia-ml-py, and monitors that use it.
venv=$build/tests/clients/nvml-venv
[ -n "$asan" ] || [ -e "$venv/complete" ] || { rm -rf "$venv" && python3 -m venv "$venv" &&
    timeout 120 "$venv/bin/pip" install --no-input --retries 1 nvidia-ml-py gpustat nvitop && : >"$venv/complete"; } >"$tmp/pip" 2>&1 || true
if [ -n "$asan" ]; then
    echo "skipped: nvidia-ml-py, gpustat, nvitop: Python is not built for AddressSanitizer" >&2
elif [ ! -e "$venv/complete" ]; then
    echo "skipped: nvidia-ml-py, gpustat, nvitop: $(tail -n 1 "$tmp/pip" 2>/dev/null)" >&2
else
    "$wattshare" run -- "$venv/bin/python" - $helper_pid <<'EOF' || fail "nvidia-ml-py"
import ctypes, re, sys
import pynvml
pynvml.nvmlInit()
library = ctypes.CDLL("libnvidia-ml.so.1")
names = set(re.findall(r'_nvmlGetFunctionPointer\("(\w+)"', open(pynvml.__file__).read()))
missing = sorted(n for n in names if not hasattr(library, n))
print(len(names), "functions; missing:", missing)
gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
assert pynvml.nvmlDeviceGetCudaComputeCapability(gpu) == (8, 6)
assert [p.pid for p in pynvml.nvmlDeviceGetComputeRunningProcesses(gpu)] == [int(sys.argv[1])]
assert pynvml.nvmlDeviceGetProcessUtilization(gpu, 0)[0].pid == int(sys.argv[1])
assert pynvml.nvmlDeviceGetMemoryInfo(gpu, version=pynvml.nvmlMemory_v2).total == 8 << 30
assert pynvml.nvmlDeviceGetAccountingStats(gpu, int(sys.argv[1])).isRunning == 1
assert pynvml.nvmlDeviceGetClockInfo(gpu, pynvml.NVML_CLOCK_SM) > 0
assert pynvml.nvmlDeviceGetPcieThroughput(gpu, pynvml.NVML_PCIE_UTIL_RX_BYTES) > 0
assert re.match(r"\d+\.\d", pynvml.nvmlSystemGetDriverVersion())
try:
    pynvml.nvmlDeviceGetTemperature(gpu, 0)
    sys.exit("a temperature that nobody knows")
except pynvml.NVMLError_NotSupported:
    pass
sys.exit(1 if missing else 0)
EOF
    ok "nvidia-ml-py finds all functions that it looks up"
    "$wattshare" run -- "$venv/bin/gpustat" --no-color -cp >"$tmp/out" 2>&1
    grep -q "RTX 3070.*8192 MB .*drv_matmul/$helper_pid" "$tmp/out" || { cat "$tmp/out"; fail "gpustat"; }
    ok "gpustat"
    TERM=xterm COLUMNS=100 LC_ALL=C.UTF-8 "$wattshare" run -- "$venv/bin/nvitop" -1 >"$tmp/out" 2>&1
    grep -q "$helper_pid C " "$tmp/out" && grep -q "RTX 3070" "$tmp/out" || { cat "$tmp/out"; fail "nvitop"; }
    ok "nvitop"
fi

kill $helper_pid
wait $helper_pid 2>/dev/null || true
helper_pid=
rm "$tmp/said"
mkfifo "$tmp/go"
run_plain "$user" lost <"$tmp/go" >"$tmp/said" 2>&1 &
helper_pid=$!
exec 8>"$tmp/go"
i=0
until grep -qs ^no_uuid "$tmp/said"; do
    i=$((i + 1))
    [ $i -lt 100 ] || fail "nvml_user does not get ready"
    sleep 0.1
done
stop_daemon
echo >&8
exec 8>&-
wait $helper_pid || fail "nvml_user without a daemon: status $?"
helper_pid=
grep -q "^nvmlDeviceGetPowerUsage error 15$" "$tmp/said" || { cat "$tmp/said"; fail "a daemon that has ended is not told"; }
ok "a daemon that has ended is a GPU that is lost"
