#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# page.sh WATTSHARE: copies a manual page for scdoc(5) from standard input to standard output, and
# fills in what the verbs' tables of options say. A line "@synopsis VERB@", "@options VERB@" or
# "@examples VERB@" is replaced by what `WATTSHARE --print-man` prints of that verb.
set -eu
awk -v wattshare="$1" '
/^@[a-z]+ [a-z]+@$/ {
    gsub(/@/, "")
    command = wattshare " --print-man " $1 " " $2
    while ((command | getline line) > 0)
        print line
    if (close(command) != 0) {
        print "page.sh: " command " failed" | "cat >&2"
        exit 1
    }
    next
}
{ print }'
