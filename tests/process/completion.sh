#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the completion of `wattshare` in bash, and in fish and zsh where they are here. It fails if
# verbs, options, their arguments, or what follows them are not completed.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
file=$build/tools/completion/wattshare
[ -f "$file" ] || fail "no $file"
bash -n "$file" || fail "bash can't read it"

# complete WORDS…: what the last word may become, in one line.
complete() {
    bash --norc -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _wattshare; echo "${COMPREPLY[*]}"' _ "$file" "$@"
}
is() { # is WANT WORDS…
    want=$1
    shift
    got=$(complete "$@")
    [ "$got" = "$want" ] || fail "\"$*\" completes to \"$got\", not to \"$want\""
}
is "status" wattshare sta
is "top trace" wattshare t
is "profile profiles" wattshare prof
is "--json" wattshare status --j
is "list show export import remove" wattshare profiles ""
is "--batch" wattshare top --b
is "" wattshare run --task ""
is "--private" wattshare run --p
is "" wattshare status --private
mkdir "$tmp/files"
touch "$tmp/files/trace.json"
(cd "$tmp/files" && is "trace.json" wattshare trace --out tr) || exit 1
case " $(complete wattshare run -- tru) " in *" true "*) ;; *) fail "behind -- no command is completed" ;; esac
is "suspend busy" wattshare sim --mode ""
is "code paper all-sms one-sm" wattshare gen --reading "" # of gcaps and of stgm
is "show" wattshare policy sh
# Words that the program itself is asked for.
is "gcaps gcaps-alg1 gcaps-driver" "$wattshare" policy show gcaps
is "" "$wattshare" policy gcaps
is "all" "$wattshare" experiment al
is "own-sbeet" "$wattshare" experiment own-sb
export WATTSHARE_CATALOG="$src/conf/gpu.d"
is "t400,rtx3070" "$wattshare" run --gpus t400,rtx307
is "t400" "$wattshare" fit --gpu t4
start_daemon --gpus t400
task=seen client "$cuda/drv_matmul" 16 2 >"$tmp/out" || fail "a client"
is "seen" "$wattshare" run --task s
ok "verbs, options, their arguments, and what follows them are completed"

for name in $("$wattshare" --print-words experiments); do
    "$wattshare" experiment --list | grep -q "^ *$name " || fail "there is no experiment $name"
done
if command -v fish >/dev/null; then
    complete_fish() {
        HOME=$tmp PATH="$build/cli:$PATH" fish --no-config -c "source $build/tools/completion/wattshare.fish; complete -C '$1'" | cut -f 1 | tr '\n' ' '
    }
    [ "$(complete_fish 'wattshare sta')" = "status " ] || fail "fish: verbs: $(complete_fish 'wattshare sta')"
    [ "$(complete_fish 'wattshare run --gpus t4')" = "t400 " ] || fail "fish: GPUs: $(complete_fish 'wattshare run --gpus t4')"
    [ "$(complete_fish 'wattshare status --js')" = "--json " ] || fail "fish: options: $(complete_fish 'wattshare status --js')"
    ok "fish"
else
    echo "not tried: fish is not here" >&2
fi
if command -v zsh >/dev/null; then
    # What the script hands to compadd, zsh's own command for it.
    complete_zsh() {
        PATH="$build/cli:$PATH" zsh -f -c 'compadd() { shift; print -- $@ }; _files() { print FILES }
            words=("$@"); CURRENT=$#; source '"$build/tools/completion/_wattshare" _ "$@"
    }
    case " $(complete_zsh wattshare '') " in *" status "*) ;; *) fail "zsh: verbs" ;; esac
    case " $(complete_zsh wattshare run --gpus '') " in *" t400 "*) ;; *) fail "zsh: GPUs" ;; esac
    case " $(complete_zsh wattshare status --) " in *" --json "*) ;; *) fail "zsh: options" ;; esac
    [ "$(complete_zsh wattshare trace --out '')" = FILES ] || fail "zsh: files"
    ok "zsh"
else
    echo "not tried: zsh is not here" >&2
fi
