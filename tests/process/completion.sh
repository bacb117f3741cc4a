#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests bash's completion of `wattshare`. It fails if a verb or an option is not completed, or if a
# verb has no manual page.
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
# All verbs are there, and each with the options that its usage line names.
"$wattshare" --help | sed -n 's/^  wattshare \([a-z][a-z]*\).*/\1/p' >"$tmp/verbs"
[ "$(wc -l <"$tmp/verbs")" -ge 14 ] || fail "too few verbs"
while read -r v; do
    case " $(complete wattshare "") " in *" $v "*) ;; *) fail "no completion of $v" ;; esac
    "$wattshare" --help | sed -n "s/^  wattshare $v //p" | grep -o -e '--[a-z][a-z-]*' | sort -u >"$tmp/options" || true
    complete wattshare "$v" -- | tr ' ' '\n' | grep . | sort -u >"$tmp/completed" || true
    cmp -s "$tmp/options" "$tmp/completed" || { diff "$tmp/options" "$tmp/completed" >&2 || true; fail "options of $v"; }
    [ -f "$build/man/wattshare-$v.1" ] || [ -f "$src/man/wattshare-$v.1" ] || fail "no manual page wattshare-$v(1)"
done <"$tmp/verbs"
ok "$(wc -l <"$tmp/verbs") verbs, their options, their pages"
