#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run by `make installcheck`, and so by distcheck. It fails if what was installed does not work from
# its prefix without the build tree. Arguments: bindir sbindir wslibdir mandir
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
export ASAN_OPTIONS=detect_leaks=0
for f in "$1/wattshare" "$2/wattshared" "$3/libwattshare.so" "$3/wattshare-ptxas" "$4/man1/wattshare.1" "$4/man8/wattshared.8" "$4/man5/wattshared.conf.5"; do
    [ -r "$f" ] || fail "$f is not installed"
done
ok "the parts are installed"
LD_PRELOAD=$asan timeout -k 5 300 "$1/wattshare" run --private --gpus t400 -- "$cuda/drv_matmul" 64 >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "the installed wattshare"; }
grep -q '^PASS' "$tmp/out" || { cat "$tmp/out"; fail "no PASS"; }
ok "the installed wattshare runs a program"
LD_PRELOAD= "$1/wattshare" run --private --gpus t400 -- sh -c 'tr "\0" "\n" <"/proc/$$/environ"' | grep "^LD_PRELOAD=$3/" >/dev/null || fail "the preloaded library is not the installed one"
ok "the installed library is preloaded"
