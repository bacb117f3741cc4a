#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# wattshare.fish.sh TABLE: writes fish's completion of the command `wattshare`; TABLE as for
# wattshare.sh.
set -eu
awk -F '\t' '
function given(kind) { # what follows an option or the verb, as arguments of fish
    if (kind ~ /^words/)
        return "-f -a \047" substr(kind, 7) "\047"
    if (kind ~ /^ask/) {
        split(kind, part, " ")
        return "-f -a \047(wattshare --print-words " part[2] " 2>/dev/null)\047"
    }
    return kind == "file" ? "-F" : "-f"
}
BEGIN {
    print "# fish completion of wattshare(1); made from the tables of its verbs"
    print "complete -c wattshare -f"
    print "complete -c wattshare -n __fish_use_subcommand -l version"
}
!($1 in seen) {
    seen[$1] = 1
    print "complete -c wattshare -n __fish_use_subcommand -a " $1
}
$2 == "arguments" && $3 != "words" {
    print "complete -c wattshare -n \047__fish_seen_subcommand_from " $1 "\047 " given($3)
}
$2 != "arguments" && !(($1, $2) in told) {
    told[$1, $2] = 1
    takes = $3 == "none" ? "" : " -r " given($3)
    print "complete -c wattshare -n \047__fish_seen_subcommand_from " $1 "\047 -l " substr($2, 3) takes
}
END {
    print "complete -c wattshare -n \047__fish_seen_subcommand_from run profile\047 -a \047(__fish_complete_subcommand --fcs-skip=2)\047"
}' "$1"
