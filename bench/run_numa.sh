#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Starts one rank of numa_bench with its memory bound to a NUMA node; run it under srun or mpirun, in
# place of numa_bench.
set -eu

usage() {
    cat <<'USAGE'
usage: mpirun -np N run_numa.sh [--numa=WHICH] [--verbose] [--serial] [--] [NUMA_BENCH OPTION]...
       srun --mpi=pmix --nodes=1 --ntasks=N run_numa.sh ... (the same)

  --numa=3         memory of all ranks on NUMA node 3
  --numa=0,0,1,1   memory of rank 0 on node 0, of rank 1 on node 0, of rank 2 on node 1, ...
  --numa=auto      round-robin over the nodes that have memory
                   (without --numa: no binding)
  --verbose        print the binding and the command of each rank
  --serial         one rank at a time
  --               the options after it are for numa_bench (see numa_bench --help)

NUMA_BENCH in the environment names another program than numa_bench beside this script, in this folder or in PATH.
USAGE
}

fail() {
    # Every rank finds the same fault. Rank 0 reports it.
    [ "$rank" != 0 ] || printf 'run_numa.sh: %s\n' "$*" >&2
    exit 2
}

# A proxy of hydra's may be a task of srun: PMIX_RANK is then that of the proxy.
pmix=${PMIX_RANK:-}
[ -z "${PMI_RANK:-}" ] || [ "${SLURM_STEP_NUM_TASKS:-${PMI_SIZE:-}}" = "${PMI_SIZE:-}" ] || pmix=''
rank=${OMPI_COMM_WORLD_RANK:-${pmix:-${PMI_RANK:-${SLURM_PROCID:-0}}}}
numa='' verbose=false serial=false
while [ $# -gt 0 ]; do
    case $1 in
    --numa=?*) numa=${1#--numa=} ;;
    --numa=) fail '--numa takes a node, a list of nodes, or auto' ;;
    --numa) fail 'write --numa=VALUE' ;;
    --verbose) verbose=true ;;
    --serial) serial=true ;;
    --help | -h) usage && exit 0 ;;
    --) shift && break ;;
    *) fail "unknown option $1 (options of numa_bench go behind --)" ;;
    esac
    shift
done

# The node numbers of a kernel list such as 0-1,4
expand() {
    printf '%s\n' "$1" | tr ',' '\n' | while IFS=- read -r first last; do
        seq "$first" "${last:-$first}"
    done
}

# nth N WORD... : the word in place N, counted from 0; nothing if there are fewer
nth() {
    shift "$(($1 + 1))" 2>/dev/null || return 0
    printf '%s' "${1:-}"
}

node=''
case $numa in
'') ;;
auto)
    list=$(cat /sys/devices/system/node/has_memory 2>/dev/null || echo 0)
    # shellcheck disable=SC2046 # one word a node
    set -- $(expand "$list") -- "$@"
    count=0
    for word in "$@"; do
        [ "$word" != -- ] || break
        count=$((count + 1))
    done
    node=$(nth $((rank % count)) "$@")
    shift $((count + 1))
    ;;
*[!0-9,]* | ,* | *, | *,,*) fail "--numa=$numa: a node (3), a list of nodes (0,1,0,1), or auto" ;;
*,*)
    node=$(printf '%s' "$numa" | cut -d, -f$((rank + 1)))
    [ -n "$node" ] || { rank=0 && fail "--numa=$numa has no node for every rank"; }
    ;;
*) node=$numa ;;
esac

if [ -z "${NUMA_BENCH:-}" ]; then
    NUMA_BENCH=$(dirname -- "$0")/numa_bench
    [ -x "$NUMA_BENCH" ] || NUMA_BENCH=./numa_bench
    [ -x "$NUMA_BENCH" ] || NUMA_BENCH=numa_bench
fi

! $serial || set -- --serial "$@"
set -- "$NUMA_BENCH" "$@"
[ -z "$node" ] || set -- numactl "--membind=$node" "$@"
if $verbose; then
    if [ -n "$node" ]; then
        printf '[Rank %s] Binding to NUMA domain %s\n' "$rank" "$node"
    else
        printf '[Rank %s] No NUMA binding\n' "$rank"
    fi
    printf '[Rank %s] Executing: %s\n' "$rank" "$*"
fi
exec "$@"
