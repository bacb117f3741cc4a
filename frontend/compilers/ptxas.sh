#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Stands in for NVIDIA's ptxas in programs that call it and load what it makes, as Triton does. The
# GPUs here execute PTX, so the PTX is handed through: a module is loaded from it as from machine
# code. Options about machine code have no effect.
#
# usage: wattshare-ptxas [OPTION...] FILE.ptx -o OUTPUT; wattshare-ptxas --version
out=elf.o
in=
while [ $# -gt 0 ]; do
    case $1 in
    --version | -V)
        echo "ptxas: wattshare's stand-in for the PTX optimizing assembler"
        echo "Cuda compilation tools, release 13.0, V13.0.0"
        exit 0
        ;;
    -o | --output-file)
        out=${2:-}
        [ $# -lt 2 ] || shift
        ;;
    --output-file=*) out=${1#*=} ;;
    -*) ;;
    *) [ ! -f "$1" ] || in=$1 ;; # else the value of an option
    esac
    shift
done
if [ -z "$in" ]; then
    echo "wattshare-ptxas: no input file" >&2
    exit 1
fi
# Text to be loaded ends with a null. Programs do not add one: machine code needs none.
cp -- "$in" "$out" && printf '\0' >>"$out"
