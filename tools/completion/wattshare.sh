#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# wattshare.sh TABLE: writes bash's completion of the command `wattshare`. TABLE is what
# `wattshare --print-completion` prints: lines of a verb, an option and what its argument is
# ("none", "file", "value", "words W…", "ask KIND"), or of a verb, "arguments" and what follows the
# options. Words of a KIND come from `wattshare --print-words KIND` when they are needed.
# Tabs separate the fields.
set -eu
awk -F '\t' '
function words_of(text) {
    sub(/^words */, "", text)
    return text
}
!($1 in seen) {
    seen[$1] = 1
    verb[++n_verbs] = $1
}
$2 == "arguments" && $3 == "file" { files[$1] = 1 }
$2 == "arguments" && $3 ~ /^ask/ {
    split($3, part, " ")
    asked[$1] = part[2]
    from[$1] = part[3]
}
$2 == "arguments" && $3 ~ /^words/ { first[$1] = words_of($3) }
$2 != "arguments" {
    key = $1 " " $2
    if (!(key in kind)) {
        options[$1] = options[$1] (options[$1] ? " " : "") $2
        order[$1, ++n_options[$1]] = key
    }
    if ($3 ~ /^ask/)
        asks[key] = substr($3, 5)
    kind[key] = $3 == "none" || $3 == "file" ? $3 : "value"
    # Two papers of gen may have an option of one name with other words.
    n = split(words_of($3), w, " ")
    for (i = 1; $3 ~ /^words/ && i <= n; i++)
        if (index(" " words[key] " ", " " w[i] " ") == 0)
            words[key] = words[key] (words[key] ? " " : "") w[i]
}
END {
    print "# bash completion of wattshare(1); made from the tables of its verbs by tools/completion/wattshare.sh"
    print "_wattshare()"
    print "{"
    print "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]} i words= first= files= ask= from= before="
    print "    COMPREPLY=()"
    all = ""
    for (i = 1; i <= n_verbs; i++)
        all = all verb[i] " "
    print "    if [ \"$COMP_CWORD\" = 1 ]; then"
    print "        mapfile -t COMPREPLY < <(compgen -W \"" all "--help --version\" -- \"$cur\")"
    print "        return"
    print "    fi"
    print "    # Behind -- stands another command with arguments of its own."
    print "    for ((i = 2; i < COMP_CWORD; i++)); do"
    print "        [ \"${COMP_WORDS[i]}\" = -- ] || continue"
    print "        if [ $((i + 1)) = \"$COMP_CWORD\" ]; then"
    print "            mapfile -t COMPREPLY < <(compgen -c -- \"$cur\")"
    print "        elif declare -F _command_offset >/dev/null; then"
    print "            _command_offset $((i + 1))"
    print "        else"
    print "            mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")"
    print "        fi"
    print "        return"
    print "    done"
    print "    # The argument of the option before."
    print "    if [[ $prev = --* ]]; then"
    print "        case \"$verb $prev\" in"
    for (i = 1; i <= n_verbs; i++)
        for (k = 1; k <= n_options[verb[i]]; k++) {
            key = order[verb[i], k]
            if (kind[key] == "file")
                print "        \"" key "\") files=1 ;;"
            else if (key in asks)
                print "        \"" key "\") ask=" asks[key] " ;;"
            else if (kind[key] == "value")
                print "        \"" key "\") words=\"" words[key] "\" ;;"
        }
    print "        *) prev= ;;"
    print "        esac"
    print "        if [ -n \"$prev\" ]; then"
    print "            # Of a list the part behind the last comma."
    print "            [[ $cur != *,* ]] || before=${cur%,*},"
    print "            [ -z \"$ask\" ] || mapfile -t COMPREPLY < <(compgen -P \"$before\" -W \"$(\"${COMP_WORDS[0]}\" --print-words $ask 2>/dev/null)\" -- \"${cur##*,}\")"
    print "            [ -z \"$words\" ] || mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")"
    print "            [ -z \"$files\" ] || mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")"
    print "            return"
    print "        fi"
    print "    fi"
    print "    case $verb in"
    for (i = 1; i <= n_verbs; i++) {
        v = verb[i]
        printf "    %s) words=\"%s\" first=\"%s\" files=%s ask=%s from=%d ;;\n", v, options[v], first[v], files[v], asked[v], from[v]
    }
    print "    esac"
    print "    if [[ $cur = -* ]]; then"
    print "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")"
    print "    elif [ -n \"$ask\" ] && [ \"$COMP_CWORD\" -gt \"$from\" ]; then"
    print "        [ \"$COMP_CWORD\" = 2 ] || first="
    print "        mapfile -t COMPREPLY < <(compgen -W \"$first $(\"${COMP_WORDS[0]}\" --print-words $ask 2>/dev/null)\" -- \"$cur\")"
    print "    elif [ -n \"$first\" ] && [ \"$COMP_CWORD\" = 2 ]; then"
    print "        mapfile -t COMPREPLY < <(compgen -W \"$first\" -- \"$cur\")"
    print "    elif [ -n \"$files\" ]; then"
    print "        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")"
    print "    elif [ -z \"$cur\" ]; then"
    print "        mapfile -t COMPREPLY < <(compgen -W \"$words\")"
    print "    fi"
    print "}"
    print "complete -o filenames -F _wattshare wattshare"
}' "$1"
