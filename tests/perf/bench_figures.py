#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Figures of numa_bench on this machine. See README.md for what each means.

usage: bench_figures.py NUMA_BENCH sweep|spinner|overlap [ROUNDS]
"""
import json
import os
import statistics
import subprocess
import sys
import time

ENV = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def start(bench, *options, cpu=None, ranks=None):
    command = [bench, "--json", *options]
    if cpu is not None:
        command = ["taskset", "-c", str(cpu), *command]
    if ranks:
        command = ["mpirun", "-np", str(ranks), "--bind-to", "core", *command]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=ENV, stdin=subprocess.DEVNULL)


def finish(process):
    out, _ = process.communicate()
    if process.returncode:
        sys.exit(f"numa_bench ended with {process.returncode}")
    return json.loads(out)


def sweep(bench, rounds):
    """1 MiB to 4 GiB, one rank, defaults: where the time goes."""
    runs = []
    for _ in range(rounds):
        result = finish(start(bench, "--size=1-4096", cpu=0))
        phases = result["phases_ms"]
        loose = sum(not c["converged"] for c in result["matrices"][0]["cells"][0])
        rest = sum(phases.values()) - phases["populate"]
        runs.append(rest)
        print(" ".join(f"{k} {v / 1000:.2f} s," for k, v in phases.items()),
              f"besides populating {rest / 1000:.2f} s; {loose} of 13 cells not within 1 %")
    print(f"besides populating, median of {rounds}: {statistics.median(runs) / 1000:.2f} s")


SPIN = "import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end: pass\n"


def spinner(bench, rounds):
    """A process that burns the rank's own CPU for one second of the four it samples."""
    options = ["--size=64", "--cell-ms=4000", "--precision=0.05"]
    ratios = []
    for _ in range(rounds):
        quiet = finish(start(bench, *options, cpu=0))["matrices"][0]["cells"][0][0]
        process = start(bench, *options, cpu=0)
        time.sleep(2)
        subprocess.run(["taskset", "-c", "0", sys.executable, "-c", SPIN], check=True)
        result = finish(process)
        cell = result["matrices"][0]["cells"][0][0]
        ratios.append(cell["median"] / quiet["median"])
        print(f"quiet {quiet['median']:.2f} ns ({quiet['disturbed']} of "
              f"{quiet['n'] + quiet['disturbed']} disturbed), with spinner {cell['median']:.2f} ns "
              f"({cell['disturbed']} of {cell['n'] + cell['disturbed']}; p99 {cell['p99']:.1f}), "
              f"ratio {ratios[-1]:.4f}")
    print(f"median ratio of {rounds}: {statistics.median(ratios):.4f}")


def overlap(bench, rounds):
    """Two ranks at once: the share of kept time in which both were chasing, as stored."""
    shares = []
    for _ in range(rounds):
        result = finish(start(bench, "--size=1-256", ranks=2))
        shares += [c["overlap"] for row in result["matrices"][0]["cells"] for c in row]
    shares.sort()
    print(f"{len(shares)} cells: least {shares[0]:.4f}, 10th percentile "
          f"{shares[len(shares) // 10]:.4f}, median {statistics.median(shares):.4f}; "
          f"{sum(s >= 0.95 for s in shares)} of them at least 0.95")


def main():
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    {"sweep": sweep, "spinner": spinner, "overlap": overlap}[sys.argv[2]](sys.argv[1], rounds)


if __name__ == "__main__":
    main()
