#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A room includes only rooms below it (doc/architecture.md), and so do the rooms inside a room (its
# README.md). Prints each include that points up.
set -eu
top=${srcdir:-$(dirname "$0")/..}
cd "$top"
bad=0
allow() { # allow ROOM ROOMS-OR-HEADERS-IT-MAY-INCLUDE…
    room=$1
    shift
    pattern="^($room"
    for r in "$@"; do pattern="$pattern|$r"; done
    pattern="$pattern)(/|\$)"
    [ -d "$room" ] || return 0
    # Only includes that begin with one of our rooms count; system headers have none of these
    # prefixes.
    found=$(grep -rnE '^ *# *include *"(base|protocol|ptx|models|policy|templates|device|backend|papers|frontend|cli|slurm)/' \
        --include='*.c' --include='*.h' --include='*.inc' --include='*.def' "$room" |
        while IFS= read -r line; do
            target=$(printf '%s\n' "$line" | sed -E 's/.*"([^"]*)".*/\1/')
            printf '%s\n' "$target" | grep -qE "$pattern" || printf '%s\n' "$line"
        done)
    if [ -n "$found" ]; then
        printf '%s\n' "$found"
        bad=1
    fi
}
inside() { # inside ROOM INNER WHAT-IT-MAY-INCLUDE…: of ROOM's own files; those that stand in ROOM itself are for all of them
    room=$1
    inner=$2
    shift 2
    pattern="^$room/([^/]*|$inner/.*"
    for r in "$@"; do pattern="$pattern|$r"; done
    pattern="$pattern)\$"
    if [ ! -d "$room/$inner" ]; then
        echo "check_layers: there is no room $room/$inner" >&2
        bad=1
        return 0
    fi
    found=$(grep -rnE "^ *# *include *\"$room/" --include='*.c' --include='*.h' --include='*.def' "$room/$inner" |
        while IFS= read -r line; do
            target=$(printf '%s\n' "$line" | sed -E 's/.*"([^"]*)".*/\1/')
            printf '%s\n' "$target" | grep -qE "$pattern" || printf '%s\n' "$line"
        done)
    if [ -n "$found" ]; then
        printf '%s\n' "$found"
        bad=1
    fi
}
allow base
allow protocol base
allow ptx base
allow models base ptx
allow policy base models
allow templates base ptx models
# The software GPU takes the time and the energy that the fitted models say.
allow device base ptx models/event_limit.h models/event_power.h models/event_time.h models/event_terms.def models/events.h
allow backend base protocol ptx models policy templates device
# The daemon's rooms, from low to high (backend/README.md). What the configuration file says is read
# everywhere.
inside backend accounts
inside backend learn
inside backend steps 'accounts/.*'
inside backend code 'accounts/.*' 'learn/.*'
inside backend config 'accounts/.*' 'code/.*'
inside backend client 'accounts/.*' 'steps/.*' 'learn/.*' 'code/.*' 'config/.*' process/config.h
inside backend scheduling 'accounts/.*' 'steps/.*' 'learn/.*' 'code/.*' 'config/.*' 'client/.*' process/config.h
inside backend wire 'accounts/.*' 'steps/.*' 'learn/.*' 'code/.*' 'config/.*' 'client/.*' 'scheduling/.*' process/config.h
inside backend process 'accounts/.*' 'steps/.*' 'learn/.*' 'code/.*' 'config/.*' 'client/.*' 'scheduling/.*' 'wire/.*'
# The papers' half: simulators, generators, analyses and fits know nothing of the command; verbs and
# experiments use it.
allow papers/common base papers
allow papers/sim base models policy papers
allow papers/sets base models policy papers
allow papers/analysis base models policy papers
# What a fit writes is an entry of the catalog.
allow papers/fit base models device/fitted.h papers
allow papers/verbs base models policy protocol papers cli
allow papers/experiments base models policy protocol device/spec.h papers cli
allow papers/live base models policy protocol device papers cli
allow frontend base protocol
# The rooms of frontend: façades, what they share, the session, the channel. The gate has the
# channel only.
cuda="frontend/cuda_types.h frontend/cuda_device_prop.h frontend/errors.h frontend/errors.def"
shared="frontend/context frontend/memory frontend/module frontend/stream frontend/graph frontend/texture"
allow frontend/channel base protocol frontend/config.h
allow frontend/session base protocol frontend/channel frontend/config.h frontend/wattshare.h
for room in $shared; do allow $room base protocol frontend/session $cuda $shared; done
facade="$shared $cuda frontend/session frontend/facade.h frontend/interpose"
allow frontend/both base protocol $facade
allow frontend/compilers base protocol $facade
allow frontend/runtime base protocol $facade frontend/both
allow frontend/driver base protocol $facade frontend/both
allow frontend/interpose base protocol frontend/session frontend/compilers frontend/facade.h frontend/errors.h frontend/config.h
allow frontend/gate base protocol frontend/channel frontend/config.h frontend/interpose
allow frontend/nvml base protocol frontend/cuda_types.h
allow frontend/blas base
# cli: coverage asks the decoder (device) and reads the table of entry points
# (frontend/interpose/entrypoints.def, no code of it).
allow cli base protocol ptx models policy device frontend papers
# A plugin for Slurm, which runs the command and has no code of ours but the note that the planner
# leaves. The planner has the policies.
allow slurm/spank slurm/planner/note.h
allow slurm/planner base models policy slurm/hosts.h
# Files that share a hash table must agree on where its buckets are. Build trees are left out: a
# tarball that is being made there has all files again.
if grep -rnE '^ *# *include *<uthash\.h>' --include='*.c' --include='*.h' --exclude-dir=build --exclude-dir='wattshare-[0-9]*' . |
    grep -v '^\./base/table\.h:'; then
    echo "check_layers: include \"base/table.h\" instead" >&2
    exit 1
fi
[ "$bad" = 0 ] || { echo "check_layers: the includes above point up" >&2; exit 1; }
