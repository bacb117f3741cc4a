#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests bash's completion of `wattshare`. It fails if verbs, options, their arguments, or what
# follows them are not completed.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
file=$build/tools/completion/wattshare
[ -f "$file" ] || fail "no $file"
bash -n "$file" || fail "bash can't read it"

# complete WORDS…: what the last word may become, in one line.
complete() {
    bash --norc -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _wattshare; echo "${COMPREPLY[*]}"' _ "$file" "$@"
}
is() { # is WANT WORDS…
    want=$1
    shift
    got=$(complete "$@")
    [ "$got" = "$want" ] || fail "\"$*\" completes to \"$got\", not to \"$want\""
}
is "status" wattshare sta
is "top trace" wattshare t
is "profile profiles" wattshare prof
is "--json" wattshare status --j
is "list show export import remove" wattshare profiles ""
is "--batch" wattshare top --b
is "" wattshare run --task ""
is "--private" wattshare run --p
is "" wattshare status --private
mkdir "$tmp/files"
touch "$tmp/files/trace.json"
(cd "$tmp/files" && is "trace.json" wattshare trace --out tr) || exit 1
case " $(complete wattshare run -- tru) " in *" true "*) ;; *) fail "behind -- no command is completed" ;; esac
is "suspend busy" wattshare sim --mode ""
is "code paper all-sms one-sm" wattshare gen --reading "" # of gcaps and of stgm
is "show" wattshare policy sh
ok "verbs, options, their arguments, and what follows them are completed"
