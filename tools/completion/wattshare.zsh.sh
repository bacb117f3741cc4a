#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# wattshare.zsh.sh TABLE: writes the completion of the command `wattshare` for zsh; TABLE as for
# wattshare.sh.
set -eu
awk -F '\t' '
function given(kind) { # what follows an option or the verb, as a command of zsh
    if (kind ~ /^words./)
        return "compadd -- " substr(kind, 7)
    if (kind ~ /^ask/) {
        split(kind, part, " ")
        return "compadd -- ${(f)\"$(wattshare --print-words " part[2] " 2>/dev/null)\"}"
    }
    return kind == "file" ? "_files" : ":"
}
!($1 in seen) {
    seen[$1] = 1
    verbs = verbs " " $1
}
$2 == "arguments" { follows[$1] = follows[$1] given($3) "; " }
$2 != "arguments" && !(($1, $2) in told) {
    told[$1, $2] = 1
    options[$1] = options[$1] " " $2
    if ($3 != "none")
        arguments = arguments "    \"" $1 " " $2 "\") " given($3) "; return ;;\n"
}
END {
    print "#compdef wattshare"
    print "# made from the tables of the verbs of wattshare(1)"
    print "_wattshare() {"
    print "    local verb=$words[2] i"
    print "    if (( CURRENT == 2 )); then"
    print "        compadd --" verbs " --help --version"
    print "        return"
    print "    fi"
    print "    # Behind -- stands another command with arguments of its own."
    print "    for (( i = 3; i < CURRENT; i++ )); do"
    print "        if [[ $words[i] == -- ]]; then"
    print "            shift $i words"
    print "            (( CURRENT -= i ))"
    print "            _normal"
    print "            return"
    print "        fi"
    print "    done"
    print "    case \"$verb $words[CURRENT-1]\" in"
    printf "%s", arguments
    print "    esac"
    print "    case \"$verb:$words[CURRENT]\" in"
    n = split(substr(verbs, 2), v, " ")
    for (i = 1; i <= n; i++) {
        print "    " v[i] ":-*) compadd --" options[v[i]] " ;;"
        print "    " v[i] ":*) " follows[v[i]] ";;"
    }
    print "    esac"
    print "}"
    print "_wattshare \"$@\""
}' "$1" | sed 's/; ;;/ ;;/'
