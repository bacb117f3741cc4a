#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The health check on a private Slurm cluster of two nodes: features, weights, and nodes that are
# taken out of service and back.
. "${srcdir:-$(dirname "$0")/../..}/tests/slurm/lib.sh"
cluster_start 2 4 <<EOF
catalog = {"$src/conf/gpu.d"}
gpus = {"t400", "t400"}
learn = "off"
shard_sms = 2
shard_memory_bytes = 1048576
EOF
mkdir "$cluster/bin"
ln -s "$build/cli/wattshare" "$cluster/bin/wattshare"
# As slurmd runs it, but now and not after a while.
check() {
    env -i PATH="$cluster/bin" SLURM_CONF="$SLURM_CONF" SLURMD_NODENAME="$1" PROFILES="$tmp/profiles" \
        WATTSHARE_SOCKET="ipc://$cluster/$1/sock" /bin/sh "$src/slurm/node/wattshare-node"
}
node() { scontrol show node -o "$1"; }
# These two kernels take half and an eighth of the energy on a t400: a quarter, on the geometric
# mean. Kernels on fewer SMs, and those that only one kind has, do not count.
head -n 1 "$src/conf/profiles/t400.csv" >"$tmp/csv"
row() { grep "^1,sbeet-mg:mmul,t400,.*,6,1," "$src/conf/profiles/t400.csv" | head -n 1 | awk -F, -v OFS=, -v h="$1" -v g="$2" -v s="$3" -v w="$4" \
    '{ $2 = h; $5 = h; $3 = g; $32 = s; for (i = 34; i <= 36; i++) $i = 100; $NF = w; print }'; }
{ row a gtx970 6 80; row b gtx970 6 160; row a t400 6 40; row b t400 6 20; row a t400 5 999; row c t400 6 7; } >>"$tmp/csv"
"$wattshare" profiles import "$tmp/profiles" "$tmp/csv" >"$tmp/out" 2>&1 || { cat "$tmp/out" "$tmp/csv"; fail "import"; }
check n1
node n1 | grep -q "AvailableFeatures=t400 ActiveFeatures=t400 .* Weight=250 " || { node n1; fail "features and weight of n1"; }
scontrol update NodeName=n2 AvailableFeatures=fast ActiveFeatures=fast
check n2
node n2 | grep -q "AvailableFeatures=fast,t400 ActiveFeatures=fast,t400 " || { node n2; fail "features of n2"; }
ok "features, weight"

kill -9 "$(cluster_pid "$cluster/run/wattshared-n1.pid")"
check n1
node n1 | grep -q "State=IDLE+DRAIN .*Reason=wattshare: the daemon does not answer" || { node n1; fail "n1 is in service without a daemon"; }
srun -w n2 true || fail "a job on the other node"
cluster_daemon n1
check n1
back() { node n1 | grep -q "State=IDLE "; }
cluster_wait 300 "n1 to be back in service" back
scontrol update NodeName=n1 State=DRAIN Reason="new fans"
check n1
node n1 | grep -q "State=IDLE+DRAIN .*Reason=new fans" || { node n1; fail "what somebody else has drained is back in service"; }
ok "drained and back"
