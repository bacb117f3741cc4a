#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# wattshare.sh VERBS.DEF: writes bash's completion of the command `wattshare` from the table of its verbs. The help text of a verb
# names its options; an option's argument stands behind it in capitals, a first word with bars (list|show) is a choice.
set -eu
sed -n 's/^WS_VERB("\([a-z]*\)", [a-z_]*, "\(.*\)")$/\1\t\2/p' "$1" | awk -F '\t' '
BEGIN {
    print "# bash completion of wattshare(1); made from cli/verbs.def by tools/completion/wattshare.sh"
    print "_wattshare()"
    print "{"
    print "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]} i words= files="
    print "    COMPREPLY=()"
}
{
    verbs = verbs (verbs ? " " : "") $1
    text = $2
    # options, and which of them want a file
    options = ""
    rest = text
    while (match(rest, /--[a-z][a-z-]*/)) {
        option = substr(rest, RSTART, RLENGTH)
        rest = substr(rest, RSTART + RLENGTH)
        if (index(" " options " ", " " option " ") == 0)
            options = options (options ? " " : "") option
        if (match(rest, /^ (FILE|OUT|STORE|FOLDER|LIST\|FILE)/))
            file[option] = 1
        else if (match(rest, /^ [A-Z]/))
            other[option] = 1
    }
    n = split(text, w, " ")
    choices = ""
    if (n > 1 && w[2] ~ /^[a-z]+(\|[a-z]+)+$/) {
        choices = w[2]
        gsub(/\|/, " ", choices)
    }
    cases = cases "    " $1 ")\n        words=\"" options "\"\n"
    if (text ~ /(FILE|PROGRAM|SAMPLES|STORE)/)
        cases = cases "        files=1\n"
    if (choices)
        cases = cases "        [ \"$COMP_CWORD\" = 2 ] && [[ $cur != -* ]] && words=\"" choices "\" files=\n"
    cases = cases "        ;;\n"
}
END {
    print "    if [ \"$COMP_CWORD\" = 1 ]; then"
    print "        mapfile -t COMPREPLY < <(compgen -W \"" verbs " --help --version\" -- \"$cur\")"
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
    print "    case $prev in"
    list = ""
    for (o in file) list = list (list ? " | " : "") o
    print "    " list ")"
    print "        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")"
    print "        return"
    print "        ;;"
    list = ""
    for (o in other) if (!(o in file)) list = list (list ? " | " : "") o
    print "    " list ")"
    print "        return"
    print "        ;;"
    print "    esac"
    print "    case $verb in"
    printf "%s", cases
    print "    esac"
    print "    case $words in *--*) [[ $cur = -* || -z $files ]] || words= ;; esac"
    print "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")"
    print "    [ -z \"$files\" ] || [[ $cur = -* ]] || mapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen -f -- \"$cur\")"
    print "}"
    print "complete -o filenames -F _wattshare wattshare"
}'
