#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Stands in for NVIDIA's nvcc in programs that call it to compile kernels and load what it makes, as
# PyCUDA does. Where it is asked for machine code (--cubin), the real nvcc is asked for PTX instead,
# under the name that the machine code would have had: a module is loaded from it just the same.
# Where it is asked to link one object to machine code (--device-link, as CuPy does for cooperative
# kernels), the answer is the object's fatbin; the daemon links its PTX when the module is loaded.
# So objects that can be linked are made with PTX beside the machine code. Several can't be linked
# so.
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
link=
objects=0
object=
before=
relocatable=
case " $* " in
*" -dc "* | *" --device-c "* | *" -rdc=true "* | *" --relocatable-device-code=true "*) relocatable=yes ;;
esac
for arg; do
    shift
    case $before in -o | --output-file) named=$arg ;; esac
    before=$arg
    case $arg in
    -cubin | --cubin)
        cubin=yes
        arg=--ptx
        ;;
    -dlink | --device-link) link=yes ;;
    *arch=compute_*,code=sm_*)
        arch=${arg#*arch=}
        [ -z "$relocatable" ] || arg=${arg%code=*}code=[${arg##*code=},${arch%%,*}]
        ;;
    -o?*) named=${arg#-o} ;;
    --output-file=*) named=${arg#*=} ;;
    -*) ;;
    *.cu) source=$arg ;;
    *.o)
        if [ "$arg" != "$named" ]; then
            object=$arg
            objects=$((objects + 1))
        fi
        ;;
    esac
    set -- "$@" "$arg"
done
if [ -n "$cubin" ] && [ -n "$link" ]; then
    if [ "$objects" -ne 1 ]; then
        echo "nvcc (wattshare's stand-in): only one object can be linked to machine code, not $objects" >&2
        exit 1
    fi
    exec objcopy -O binary -j __nv_relfatbin -j .nv_fatbin "$object" "${named:-a_dlink.cubin}"
fi
if [ -n "$cubin" ] && [ -z "$named" ] && [ -n "$source" ]; then
    set -- "$@" -o "$(basename "$source" .cu).cubin"
fi
exec "$real" "$@"
