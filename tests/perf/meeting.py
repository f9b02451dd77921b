#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the contention that is measured depend on who has built its chain first?

Two ranks on two CPUs. In each round one of them is stopped (SIGSTOP) for a while just when both begin to
build, so that it builds, and finishes, later than the other; which one alternates. Printed is the latency
of the early and of the late rank, and the ratio of the medians with a bootstrap interval, for our method and
for --method=classic, in which nobody waits for anybody: there the early rank is measured against a
neighbour that is still shuffling, and the late one against nobody.

usage: meeting.py NUMA_BENCH [--size=64M] [--rounds=15] [--delay=0.3] [--share-cpu] [--seed=1]
"""
import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import tempfile
import time


def children(pid):
    while True:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            pids = [int(word) for word in f.read().split()]
        if len(pids) == 2:
            return pids


def one_round(options, method, late):
    """{rank: ns} of one run in which rank `late` is held up while it builds."""
    with tempfile.TemporaryDirectory() as folder:
        fifo = os.path.join(folder, "records")
        os.mkfifo(fifo)
        cpus = sorted(os.sched_getaffinity(0))[:2]
        cpus = [cpus[-1]] * 2 if options.share_cpu else cpus
        bench = subprocess.Popen([options.bench, "latency", "--np=2", f"--method={method}",
                                  "--oversubscribe",
                                  f"--bind={cpus[0]}:-1,{cpus[1]}:-1", f"--size={options.size}",
                                  f"--channel={fifo}"])
        medians = {}
        with open(fifo, encoding="ascii") as records:
            for line in records:
                record = json.loads(line)
                if record["rec"] == "progress" and record["phase"] == "populate":
                    victim = children(bench.pid)[late]
                    os.kill(victim, signal.SIGSTOP)
                    time.sleep(options.delay)
                    os.kill(victim, signal.SIGCONT)
                if record["rec"] == "cell":
                    medians[record["row"]] = record["median"]
        if bench.wait() != 0 or len(medians) != 2:
            raise SystemExit("numa_bench failed")
        return medians


def interval(early, late, seed):
    draw = random.Random(seed)
    ratios = sorted(statistics.median(draw.choices(early, k=len(early))) /
                    statistics.median(draw.choices(late, k=len(late))) for _ in range(4000))
    return ratios[100], ratios[-101]


def main():
    parse = argparse.ArgumentParser(description=__doc__,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("bench")
    parse.add_argument("--size", default="64M")
    parse.add_argument("--rounds", type=int, default=15)
    parse.add_argument("--delay", type=float, default=0.3, help="seconds")
    parse.add_argument("--seed", type=int, default=1)
    parse.add_argument("--share-cpu", action="store_true",
                       help="both ranks on one CPU: contention that every machine has")
    options = parse.parse_args()
    taken = {method: {"early": [], "late": []} for method in ("prp", "classic")}
    for number in range(options.rounds):
        for method, times in taken.items():
            late = number % 2
            medians = one_round(options, method, late)
            times["early"].append(medians[1 - late])
            times["late"].append(medians[late])
    print(f"{options.size}, {options.rounds} rounds, the late rank held up for {options.delay} s, "
          f"seed {options.seed}")
    print(f"{'method':10} {'early ns':>10} {'late ns':>10} {'early/late':>11} {'95 % interval':>18}")
    for method, times in taken.items():
        early, late = statistics.median(times["early"]), statistics.median(times["late"])
        low, high = interval(times["early"], times["late"], options.seed)
        print(f"{method:10} {early:10.2f} {late:10.2f} {early / late:11.3f} {low:9.3f} {high:8.3f}")


if __name__ == "__main__":
    main()
