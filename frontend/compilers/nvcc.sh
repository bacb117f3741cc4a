#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Stands in for NVIDIA's nvcc in programs that call it to compile kernels and load what it makes, as
# PyCUDA does. Where it is asked for machine code (--cubin), the real nvcc is asked for PTX instead,
# under the name that the machine code would have had: a module is loaded from it just the same.
# Everything else is left to the real nvcc, the next one in PATH.
here=$(cd "$(dirname "$0")" && pwd)
real=
old_ifs=$IFS
IFS=:
for dir in $PATH; do
    if [ -x "$dir/nvcc" ] && [ "$(cd "$dir" && pwd)" != "$here" ]; then
        real=$dir/nvcc
        break
    fi
done
IFS=$old_ifs
if [ -z "$real" ]; then
    echo "nvcc (wattshare's stand-in): there is no other nvcc in PATH" >&2
    exit 127
fi
cubin=
named=
source=
for arg; do
    shift
    case $arg in
    -cubin | --cubin)
        cubin=yes
        arg=--ptx
        ;;
    -o | -o?* | --output-file | --output-file=*) named=yes ;;
    -*) ;;
    *.cu) source=$arg ;;
    esac
    set -- "$@" "$arg"
done
if [ -n "$cubin" ] && [ -z "$named" ] && [ -n "$source" ]; then
    set -- "$@" -o "$(basename "$source" .cu).cubin"
fi
exec "$real" "$@"
