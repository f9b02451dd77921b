#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: builds the container image without an engine (buildah, chroot isolation), starts the daemon in it,
# and asks it; then again as an engine would that is strict: the root read-only, no capability, and Docker's
# filter of memory policies. Needs root, buildah and debootstrap; a Debian base is made, not fetched.
# usage: build.sh SOURCE_ROOT RELEASE
set -eu
source=$1 release=$2
for tool in buildah debootstrap curl; do
    command -v "$tool" >/dev/null || { echo "1..0 # SKIP no $tool"; exit 0; }
done
[ "$(id -u)" -eq 0 ] || { echo "1..0 # SKIP needs root"; exit 0; }
# What is mounted here goes with us, whatever ends us.
[ -n "${NUMAPROBE_OWN_MOUNTS:-}" ] ||
    exec env NUMAPROBE_OWN_MOUNTS=yes unshare --mount --propagation private sh "$0" "$@"

work=$(mktemp -d /var/tmp/numaprobe-image.XXXXXX)
container='' daemon=''
cleanup() {
    [ -z "$daemon" ] || kill -TERM "-$daemon" 2>/dev/null || true
    [ -z "$container" ] || build_ah rm "$container" >/dev/null 2>&1 || true
    build_ah rmi --all --force >/dev/null 2>&1 || true
    rm -rf "$work"
}
build_ah() { BUILDAH_ISOLATION=chroot buildah --root "$work/store" --runroot "$work/run" "$@"; }
trap cleanup EXIT
trap 'exit 130' INT TERM

number=0
tap() { # tap STATUS WHAT
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then echo "ok $number - $2"; else echo "not ok $number - $2"; fi
}
give_up() {
    tap 1 "$1"
    sed 's/^/# /' "$work/log" | tail -n 30
    echo "1..$number"
    exit 1
}

mkdir "$work/base"
debootstrap --variant=minbase --include=ca-certificates "$release" "$work/base/rootfs" >"$work/log" 2>&1 ||
    give_up "a Debian base"
tar -C "$work/base/rootfs" -cf "$work/base/rootfs.tar" .
rm -rf "$work/base/rootfs"
printf 'FROM scratch\nADD rootfs.tar /\nCMD ["bash"]\n' >"$work/base/Dockerfile"
build_ah bud -q -t "docker.io/library/debian:$release-slim" -f "$work/base/Dockerfile" "$work/base" >"$work/log" 2>&1 ||
    give_up "a Debian base"
build_ah bud --layers --pull-never --build-arg "DEBIAN=$release-slim" -t localhost/numaprobe:test -f "$source/Dockerfile" "$source" >"$work/log" 2>&1 ||
    give_up "the image builds"
tap 0 "the image builds"

image=$(build_ah inspect --type image localhost/numaprobe:test)
case $image in *'"User": "numaprobe"'*) tap 0 "it does not run as root" ;; *) tap 1 "it does not run as root" ;; esac

container=$(build_ah from --pull-never localhost/numaprobe:test)
# A group of its own: buildah, what it puts between, and the daemon end together.
BUILDAH_ISOLATION=chroot setsid buildah --root "$work/store" --runroot "$work/run" run "$container" -- \
    numaprobed --admission=warn --listen=127.0.0.1:0 >"$work/daemon" 2>&1 &
daemon=$!
address=
tries=0
while [ -z "$address" ] && [ "$tries" -lt 100 ] && kill -0 "$daemon" 2>/dev/null; do
    tries=$((tries + 1))
    sleep 0.1
    address=$(sed -n 's/.*event=ready .*listen=\(127\.0\.0\.1:[0-9]*\).*/\1/p' "$work/daemon" | head -n 1)
done
cp "$work/daemon" "$work/log"
[ -n "$address" ] || give_up "the daemon starts in it"
tap 0 "the daemon starts in it"
result=0
curl -fsS "http://$address/v1/node" >"$work/log" 2>&1 || result=1
tap "$result" "it answers"
result=0
build_ah run --env "NUMAPROBE_URL=http://$address" "$container" -- numaprobe node >"$work/log" 2>&1 || result=1
tap "$result" "its health check passes"
result=0
build_ah run "$container" -- numaprobe run --size=256K >"$work/log" 2>&1 || result=1
tap "$result" "it probes"
[ "$result" -eq 0 ] || sed 's/^/# /' "$work/log"
kill -TERM "-$daemon"
wait "$daemon" || true
result=0
tries=0
while pgrep -g "$daemon" >"$work/log"; do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ] || { result=1 && break; }
    sleep 0.1
done
tap "$result" "it ends when it is told to"
[ "$result" -eq 0 ] || sed 's/^/# /' "$work/log"
daemon=

# strict CALLS COMMAND... : in the image as with --read-only --cap-drop ALL --security-opt no-new-privileges, and
# a filter that refuses these calls ("none": no call that there is).
strict() {
    calls=$1
    shift
    # shellcheck disable=SC2016 # for the inner shell
    unshare --mount --pid --fork --kill-child=KILL --propagation private sh -eu -c '
        root=$1 state=$2 filter=$3 calls=$4
        shift 4
        mount --bind "$root" "$root"
        mount -o remount,bind,ro "$root"
        mount -t proc proc "$root/proc"
        mount --rbind /sys "$root/sys"
        mount --rbind /dev "$root/dev"
        mount -t tmpfs tmp "$root/tmp"
        mount -t tmpfs -o uid=780,mode=0711 run "$root/run/numaprobe"
        mount --bind "$state" "$root/var/lib/numaprobe"
        [ "$calls" = none ] || set -- "$filter" "$calls" "$@"
        exec env -i PATH="$PATH" STATE_DIRECTORY=/var/lib/numaprobe RUNTIME_DIRECTORY=/run/numaprobe "$@"
    ' strict "$mounted" "$work/state" "$source/tests/fakes/without_calls.py" "$calls" \
        chroot "$mounted" setpriv --reuid=780 --regid=numaprobe --clear-groups --no-new-privs --bounding-set=-all "$@"
}

# in_strict CALLS : a daemon that measures; what it thinks of the run is in $work/log
# shellcheck disable=SC2016 # for the shell in the image
in_strict() {
    strict "$1" sh -eu -c '
        numaprobed --admission=warn --listen= 2>/tmp/daemon &
        until [ -S /run/numaprobe/numaprobed.sock ]; do kill -0 $! || { cat /tmp/daemon; exit 1; }; done
        ! touch /etc/x 2>/dev/null
        numaprobe --url=unix:/run/numaprobe/numaprobed.sock -o json run --size=256K ||
            numaprobe --url=unix:/run/numaprobe/numaprobed.sock log 1
        kill $!
        wait
    ' >"$work/log" 2>&1
}

mounted=$(build_ah mount "$container")
install -d -o 780 -m 0750 "$work/state"
denied='memory policies are denied here'
# As Docker's filter does, the chroot forbids user namespaces: mpirun would listen where others reach it, so the ranks
# are started without it.
isolated='no network namespace'
result=0
in_strict none && grep -q '"move_pages"' "$work/log" && grep -q "$isolated" "$work/log" && ! grep -q "$denied" "$work/log" ||
    result=1
tap "$result" "with a read-only root and no capability it probes, and places memory"
[ "$result" -eq 0 ] || sed 's/^/# /' "$work/log"
result=0
rm -rf "$work/state" && install -d -o 780 -m 0750 "$work/state"
in_strict mbind,set_mempolicy,get_mempolicy,move_pages && grep -q '"numa_maps"' "$work/log" && grep -q "$denied" "$work/log" || result=1
tap "$result" "without SYS_NICE it probes, and says that memory is not bound"
[ "$result" -eq 0 ] || sed 's/^/# /' "$work/log"
build_ah umount "$container" >/dev/null

# The collector: an image of its own, without the programs of a node.
result=0
build_ah bud --layers --pull-never --build-arg "DEBIAN=$release-slim" --target fleet -t localhost/numaprobe-fleet:test \
    -f "$source/Dockerfile" "$source" >"$work/log" 2>&1 || result=1
tap "$result" "the collector's image builds"
[ "$result" -eq 0 ] || give_up "the collector's image"
image=$(build_ah inspect --type image localhost/numaprobe-fleet:test)
case $image in *'"User": "numaprobe-fleet"'*) tap 0 "nor does it run as root" ;; *) tap 1 "nor does it run as root" ;; esac
build_ah rm "$container" >/dev/null
container=$(build_ah from --pull-never localhost/numaprobe-fleet:test)
result=0
build_ah run "$container" -- sh -c '! command -v numaprobed && ! command -v mpirun' >"$work/log" 2>&1 || result=1
tap "$result" "it has no program of a node"
# shellcheck disable=SC2016 # for the shell in the image
build_ah run "$container" -- sh -eu -c '
    numaprobe-fleetd --listen=127.0.0.1:0 --nodes=localhost 2>/tmp/collector &
    until address=$(sed -n "s/.*event=ready listen=\([0-9.:]*\) .*/\1/p" /tmp/collector) && [ -n "$address" ]; do
        kill -0 $! || { cat /tmp/collector; exit 1; }
    done
    until curl -fsS "http://$address/readyz"; do kill -0 $!; done
    curl -fsS "http://$address/v1/fleet/outliers"
    kill $!
    wait
' >"$work/log" 2>&1 || result=1
tap "$result" "it starts, and serves what its processes read and store"
[ "$result" -eq 0 ] || sed 's/^/# /' "$work/log"
echo "1..$number"
