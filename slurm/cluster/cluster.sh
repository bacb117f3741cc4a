# SPDX-License-Identifier: Apache-2.0
# A private Slurm cluster on this machine, in a folder of its own: munge, slurmctld, and for each
# node a slurmd and a wattshared with software GPUs. For scripts to source; needs root, no systemd.
#
# The script sets $build (the top of a build tree) and may set $catalog (the folder of GPU
# descriptions). It may set $cluster_kinds: then all GPUs of a node are of one of these kinds, the
# first nodes' of the first one, and wattshared.conf has no `gpus`. cluster_start makes the folder
# $cluster; cluster_stop ends every process and removes it. Only processes that the folder names are
# ended.

# cluster_missing: prints what is not installed; nothing if all is there.
cluster_missing() {
    for c in slurmctld slurmd srun scontrol munged; do
        PATH=$PATH:/usr/sbin:/sbin command -v $c >/dev/null || printf '%s ' $c
    done
}

# cluster_ends: from now on the cluster ends with the script, by whatever end
cluster_ends() {
    trap 'trap "" INT TERM; cluster_stop' EXIT
    trap 'exit 130' INT TERM
}

# cluster_needed NAME: ends the script NAME with a message if no cluster can be started here; else
# as cluster_ends
cluster_needed() {
    missing=$(cluster_missing)
    [ "$(id -u)" = 0 ] || { echo "$1: only root can start slurmd" >&2; exit 1; }
    [ -z "$missing" ] || { echo "$1: not installed: $missing(slurmctld slurmd slurm-client munge)" >&2; exit 1; }
    cluster_ends
}

# cluster_kind_of I N-NODES: the kind of GPU of node I; nothing where kinds are not set
cluster_kind_of() {
    [ -n "${cluster_kinds:-}" ] || return 0
    # shellcheck disable=SC2086 # kinds are words
    i=$1 n=$2 && set -- $cluster_kinds
    shift $(((i - 1) * $# / n))
    echo "$1"
}

# cluster_node I N-NODES SHARDS-PER-GPU: the line of slurm.conf
cluster_node() {
    kind=$(cluster_kind_of "$1" "$2")
    echo "NodeName=n$1 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=$((cluster_port + $1)) CPUs=8 Sockets=1 CoresPerSocket=8" \
        "ThreadsPerCore=1 RealMemory=4000 Gres=gpu:2,shard:$((2 * $3)) ${kind:+Feature=$kind }State=${cluster_state:-UNKNOWN}"
}

# cluster_conf N-NODES SHARDS-PER-GPU: writes the configuration of Slurm
cluster_conf() {
    n=$1 shards=$2 host=$(hostname -s)
    cat >"$cluster/etc/slurm.conf" <<EOF
ClusterName=wattshare
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$cluster/munge/socket
SlurmctldPort=$cluster_port
StateSaveLocation=$cluster/state
SlurmdSpoolDir=$cluster/spool/%n
SlurmctldPidFile=$cluster/run/slurmctld.pid
SlurmdPidFile=$cluster/run/slurmd-%n.pid
SlurmctldLogFile=$cluster/log/slurmctld.log
SlurmdLogFile=$cluster/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,bf_interval=1
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MinJobAge=3600
PlugStackConfig=$cluster/etc/plugstack.conf
GresTypes=gpu,shard
${cluster_more:-}
$(cluster_power_conf)
$(for i in $(seq "$n"); do cluster_node "$i" "$n" "$shards"; done)
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE OverSubscribe=YES State=UP
EOF
    # Slurm asks for a file of each GPU. Null devices stand for GPUs that are software.
    cat >"$cluster/etc/gres.conf" <<EOF
NodeName=n[1-$n] Name=gpu File=$cluster/dev/gpu[0-1]
NodeName=n[1-$n] Name=shard Count=$((2 * shards))
EOF
    # Nothing here needs control groups, and a container may have none. Of Slurm's plugins for them,
    # only this one begins without.
    echo "CgroupPlugin=cgroup/v1" >"$cluster/etc/cgroup.conf"
    for g in 0 1; do mknod "$cluster/dev/gpu$g" c 1 3; done
    # Each node has a daemon of its own here; %n is the name of the node.
    echo "${cluster_plugin:-required $build/slurm/spank/wattshare.so} socket=ipc://$cluster/%n/sock wattshare=$build/cli/wattshare ledger=$cluster/ledger" \
        >"$cluster/etc/plugstack.conf"
}

# A key and a daemon for munge, under the user munge where there is one.
cluster_munge() {
    head -c 128 /dev/urandom >"$cluster/munge/key"
    chmod 0400 "$cluster/munge/key"
    chown -R munge "$cluster/munge"
    runuser -u munge -- munged --key-file="$cluster/munge/key" --socket="$cluster/munge/socket" \
        --pid-file="$cluster/munge/pid" --log-file="$cluster/munge/log" --seed-file="$cluster/munge/seed"
}

# cluster_daemon NODE: the node's wattshared; returns when it serves
cluster_daemon() {
    node=$1
    mkdir -p "$cluster/$node"
    chmod 0755 "$cluster/$node"
    rm -f "$cluster/$node/ready"
    mkfifo "$cluster/$node/ready"
    kind=$(cluster_kind_of "${node#n}" "$n_nodes")
    { [ -z "$kind" ] || echo "gpus = {\"$kind\", \"$kind\"}"; cat "$cluster/etc/wattshared.conf"; } >"$cluster/$node/conf"
    "$build/backend/wattshared" --config "$cluster/$node/conf" --socket "ipc://$cluster/$node/sock" \
        --ready-fd 9 9>"$cluster/$node/ready" >>"$cluster/log/wattshared-$node.log" 2>&1 &
    echo $! >"$cluster/run/wattshared-$node.pid"
    [ -n "$(timeout 60 head -c1 "$cluster/$node/ready" | od -An -tx1)" ] || {
        tail -n 20 "$cluster/log/wattshared-$node.log" >&2
        return 1
    }
}

# cluster_plans: planner.conf comes on standard input; before cluster_start
cluster_plans() {
    cluster_planner_conf=$(cat)
    cluster_more="${cluster_more:-}
JobSubmitPlugins=lua"
}

# cluster_power_saving SECONDS: nodes without jobs for so long are switched off, which means that
# their slurmd and their wattshared end; before cluster_start. $cluster/power gets a line for each
# time: "on NODE" with the second, and "off NODE" with what the node's GPUs have used, as
# cluster_used has it.
cluster_power_saving() {
    cluster_suspend_s=$1
}

# The lines of slurm.conf, and the programs that they name.
cluster_power_conf() {
    [ -n "${cluster_suspend_s:-}" ] || return 0
    for program in suspend resume; do
        printf '#!/bin/sh\nWATTSHARE_POWER=%s/etc/power exec %s/slurm/power/wattshare-%s "$@"\n' "$cluster" "$build" $program \
            >"$cluster/etc/$program"
    done
    cat >"$cluster/etc/power" <<EOF
#!/bin/sh
set -eu
cluster=$cluster build=$build n_nodes=$n_nodes cluster_kinds='${cluster_kinds:-}'
export SLURM_CONF=$SLURM_CONF PATH=$PATH
. $(cd "${srcdir:-$src}" && pwd)/slurm/cluster/cluster.sh
echo \$\$ >"$cluster/run/power-\$2.pid"
"cluster_switch_\$1" "\$2" >>"$cluster/log/power.log" 2>&1
rm -f "$cluster/run/power-\$2.pid"
EOF
    chmod 0755 "$cluster/etc/suspend" "$cluster/etc/resume" "$cluster/etc/power"
    echo "SuspendTime=$cluster_suspend_s"
    echo "SuspendTimeout=10"
    echo "ResumeTimeout=60"
    echo "SuspendRate=0"
    echo "ResumeRate=0"
    echo "SuspendProgram=$cluster/etc/suspend"
    echo "ResumeProgram=$cluster/etc/resume"
}

cluster_switch_on() { # cluster_switch_on NODE
    echo "on $1 $(date +%s)" >>"$cluster/power"
    cluster_daemon "$1" </dev/null
    cluster_slurmd "$1" -b # as if the machine was booted, which slurmctld waits for
}

cluster_switch_off() { # cluster_switch_off NODE
    cluster_end "$cluster/run/slurmd-$1.pid"
    echo "off $1 $(cluster_used "$1")" >>"$cluster/power"
    cluster_end "$cluster/run/wattshared-$1.pid"
}

cluster_status() { # cluster_status NODE: as JSON
    "$build/cli/wattshare" status --json --socket "ipc://$cluster/$1/sock"
}

# cluster_sum FIELD: the sum of a field of all GPUs of the status that comes on standard input
cluster_sum() {
    tr -d ' \n' | tr ',{}' '[\n*]' |
        awk -F: -v f="\"$1\"" '/^"gpus":/ { on = 1 } /^"clients":/ { exit } on && $1 == f { s += $2 } END { printf "%d\n", s }'
}

# cluster_used NODE: the energy of the node's GPUs since its daemon was started, and the part of it
# when they were idle, in uJ
cluster_used() {
    used=$(cluster_status "$1")
    echo "$(echo "$used" | cluster_sum energy_uj) $(echo "$used" | cluster_sum idle_uj)"
}

# cluster_planner: the planner, whose socket slurmctld is told; returns when it listens
cluster_planner() {
    rm -f "$cluster/planner"
    "$build/slurm/planner/wattshare-planner" --config "$cluster/etc/planner.conf" --socket "$cluster/planner" \
        >>"$cluster/log/planner.log" 2>&1 &
    echo $! >"$cluster/run/planner.pid"
    cluster_wait 300 "the planner" test -S "$cluster/planner"
}

# cluster_slurmctld: where there are plans, with the script that asks for them
cluster_slurmctld() {
    WATTSHARE_PLANNER=$build/slurm/planner/wattshare-planner WATTSHARE_PLANNER_SOCKET=$cluster/planner slurmctld
}

# cluster_slurmd NODE [OPTION…]
cluster_slurmd() {
    slurmd_node=$1
    shift
    mkdir -p "$cluster/spool/$slurmd_node"
    slurmd -N "$slurmd_node" "$@" || {
        echo "cluster: slurmd does not start; the end of its log:" >&2
        tail -n 5 "$cluster/log/slurmd-$slurmd_node.log" >&2
        return 1
    }
}

# cluster_ports: sets $cluster_port, the first of 20 ports that no other cluster here has.
# They are below those that Linux gives to connections. The script, and whatever it leaves running,
# holds a lock that says that they are taken.
cluster_ports() {
    mkdir -m 0700 /run/wattshare-cluster 2>/dev/null || [ -d /run/wattshare-cluster ]
    slot=$(($$ % 1000))
    for _ in $(seq 1000); do
        exec 8>"/run/wattshare-cluster/$slot"
        if flock -n 8; then break; fi
        slot=$(((slot + 1) % 1000))
    done
    cluster_port=$((10000 + slot * 20))
}

# cluster_start N-NODES SHARDS-PER-GPU: wattshared.conf comes on standard input
cluster_start() {
    n_nodes=$1 shards=$2
    PATH=$PATH:/usr/sbin:/sbin
    cluster=$(mktemp -d /tmp/wattshare-cluster.XXXXXX)
    chmod 0755 "$cluster"
    mkdir "$cluster/etc" "$cluster/munge" "$cluster/state" "$cluster/spool" "$cluster/run" "$cluster/log" "$cluster/dev"
    cluster_ports
    SLURM_CONF=$cluster/etc/slurm.conf
    export SLURM_CONF
    cat >"$cluster/etc/wattshared.conf"
    cluster_conf "$n_nodes" "$shards"
    cluster_munge
    for i in $(seq "$n_nodes"); do cluster_daemon "n$i"; done
    if [ -n "${cluster_planner_conf:-}" ]; then
        echo "$cluster_planner_conf" >"$cluster/etc/planner.conf"
        cp "${srcdir:-$src}/slurm/planner/job_submit.lua" "$cluster/etc"
    fi
    cluster_slurmctld
    for i in $(seq "$n_nodes"); do cluster_slurmd "n$i"; done
    cluster_wait 600 "nodes" sh -c "[ \$(sinfo -h -N -o %T | grep -c idle) = $n_nodes ]"
    [ -z "${cluster_planner_conf:-}" ] || cluster_planner
}

# cluster_wait TENTHS WHAT COMMAND…: until the command succeeds
cluster_wait() {
    tenths=$1 what=$2
    shift 2
    while ! "$@" >/dev/null 2>&1; do
        tenths=$((tenths - 1))
        [ "$tenths" -gt 0 ] || {
            echo "cluster: gave up waiting for $what" >&2
            return 1
        }
        sleep 0.1
    done
}

# The number that a file of a process holds, if that process is one of this cluster's.
cluster_pid() {
    pid=$(cat "$1" 2>/dev/null) || return 1
    cat "/proc/$pid/environ" "/proc/$pid/cmdline" 2>/dev/null | tr '\0' ' ' | grep -q "$cluster/" || return 1
    echo "$pid"
}

cluster_end() { # cluster_end PID-FILE…: ends these, and waits for it
    for f in "$@"; do
        pid=$(cluster_pid "$f") && kill "$pid" 2>/dev/null
        for _ in $(seq 100); do
            cluster_pid "$f" >/dev/null || break
            sleep 0.05
        done
        pid=$(cluster_pid "$f") && kill -9 "$pid" 2>/dev/null
    done
    true
}

cluster_stop() {
    [ -n "${cluster:-}" ] || return 0
    scancel --partition=main 2>/dev/null || true
    cluster_wait 300 "jobs to end" sh -c '[ -z "$(squeue -h)" ]' || true
    cluster_end "$cluster/run/planner.pid"
    cluster_end "$cluster"/run/slurmctld.pid # first: it could switch nodes on
    cluster_end "$cluster"/run/power-*.pid
    cluster_end "$cluster"/run/slurmd-*.pid
    cluster_end "$cluster"/run/wattshared-*.pid
    cluster_end "$cluster/munge/pid"
    rm -rf "$cluster"
    cluster=
}
