#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests every verb of `wattshare` by its table of options. It fails if --help, the manual page or
# bash's completion leaves an option out, if --help or the completion names another one, or if a
# wrong option is not refused with exit status 2 and the right ones.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
export ASAN_OPTIONS=detect_leaks=0
completion=$build/tools/completion/wattshare

# The options that are named in what is read.
options_in() {
    grep -o -e '--[a-z][a-z-]*' | sort -u
}
# The manual page as text. A verb without a page of its own has one that refers to another's (".so
# man1/…").
page_of() {
    page=$build/man/wattshare-$1.1
    [ -f "$page" ] || fail "no manual page wattshare-$1(1)"
    other=$(sed -n 's,^\.so man1/,,p' "$page")
    sed 's/\\fB//g; s/\\fI//g; s/\\fR//g; s/\\fP//g; s/\\-/-/g' "$build/man/${other:-wattshare-$1.1}"
}
completed() {
    bash --norc -c '. "$1"; COMP_WORDS=(wattshare "$2" --); COMP_CWORD=2; COMPREPLY=(); _wattshare; printf "%s\n" "${COMPREPLY[@]}"' _ \
        "$completion" "$1" | sort -u
}
same() { # same WHAT FILE FILE
    cmp -s "$2" "$3" || { diff "$2" "$3" >&2 || true; fail "$1"; }
}

"$wattshare" --print-completion >"$tmp/table"
"$wattshare" --help >"$tmp/all" || fail "--help: status $?"
verbs=$(cut -f 1 "$tmp/table" | uniq)
[ "$(echo "$verbs" | wc -w)" = 22 ] || fail "22 verbs are expected, not: $verbs"
for v in $verbs; do
    grep -q "^  $v  *[a-z]" "$tmp/all" || fail "wattshare --help does not say what $v does"
    sed -n "s/^$v	\(--[a-z-]*\)	.*/\1/p" "$tmp/table" | sort -u >"$tmp/options"
    "$wattshare" "$v" --help >"$tmp/help" 2>&1 || fail "$v --help: status $?"
    grep -q "^  wattshare $v" "$tmp/help" || fail "$v --help has no usage"
    [ "$v" != gen ] || for paper in edl gcaps sbeet stgm; do
        "$wattshare" gen --paper $paper --help >>"$tmp/help" || fail "gen --paper $paper --help: status $?"
    done
    sed '/^Examples:/,/^See /d' "$tmp/help" | sed -n 's/^  \(--[a-z-]*\).*/\1/p' | sort -u >"$tmp/named"
    same "options of $v in its --help" "$tmp/options" "$tmp/named"
    completed "$v" >"$tmp/named"
    same "options of $v that bash completes" "$tmp/options" "$tmp/named"
    page_of "$v" >"$tmp/page"
    options_in <"$tmp/page" >"$tmp/named"
    comm -23 "$tmp/options" "$tmp/named" >"$tmp/missing"
    [ ! -s "$tmp/missing" ] || fail "wattshare-$v(1) does not name $(tr '\n' ' ' <"$tmp/missing")"
    grep -q "^wattshare $v" "$tmp/page" || fail "wattshare-$v(1) has no synopsis of it"
    run 2 "$v has no option '--no-such-option'; it has .*--help" "$v" --no-such-option
    run 2 "$v has no option '-z'" "$v" -z
done
run 2 "^  run  *[a-z]"
run 0 "^  run  *[a-z]" -h
run 2 "unknown command 'frob'.* run .*see wattshare --help" frob
run 2 "unknown command 'statsu'; did you mean 'status'?" statsu
run 2 "no option '--josn'; .*did you mean 'json'?" status --josn
run 2 "no policy 'gcpas'; did you mean 'gcaps'?" policy show gcpas
run 2 "needs a value: --out FILE" trace --out
run 2 "takes no value" status --json=yes
