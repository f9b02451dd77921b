#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether mpirun and numa_bench's own processes measure the same, and what a start by each costs.

Runs in pairs, one by each launcher, in random order within a pair; for each size the median of the ratios
mpi/processes with a bootstrap interval of 95 %. Then the time from request to result of the smallest run there is.

usage: launchers.py BUILD [--pairs=20] [--starts=20] [--size=32K,4M,64M]
"""
import argparse
import pathlib
import random
import statistics
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1] / "system"))
from conftest import Daemon  # noqa: E402

LAUNCHERS = ("mpi", "processes")


def medians(daemon, **spec):
    """{size: median over the ranks} of a run."""
    run = daemon.run(**spec)
    assert run["state"] == "succeeded", run
    [matrix] = daemon.get(f"/v1/runs/{run['id']}/matrix").json["matrices"]
    columns = zip(*matrix["cells"])
    return {size: statistics.median(cell["median"] for cell in column)
            for size, column in zip(matrix["cols"]["values"], columns)}


def interval(ratios, rng):
    resampled = sorted(statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(2000))
    return resampled[50], resampled[-51]


def compare(daemon, pairs, size, rng):
    ratios = {}
    for _ in range(pairs):
        found = {launcher: medians(daemon, launcher=launcher, size=size) for launcher in rng.sample(LAUNCHERS, 2)}
        for at, ns in found["mpi"].items():
            ratios.setdefault(at, []).append(ns / found["processes"][at])
    for at, list_ in ratios.items():
        low, high = interval(list_, rng)
        print(f"{at >> 10:8} KiB  mpi/processes {statistics.median(list_):.4f}  [{low:.4f}, {high:.4f}]  {pairs} pairs")


def starts(daemon, n):
    for launcher in LAUNCHERS:
        took = []
        for _ in range(n):
            began = time.monotonic()
            medians(daemon, launcher=launcher, size="32K", quick=True, cell_ms=10, min_samples=7)
            took.append(1000 * (time.monotonic() - began))
        print(f"{launcher:10} request to result: median {statistics.median(took):.0f} ms, {min(took):.0f} to {max(took):.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--size", default="32K,4M,64M")
    args = parser.parse_args()
    rng = random.Random(1)
    with tempfile.TemporaryDirectory(prefix="numaprobe-launchers.", dir="/tmp") as home:
        pathlib.Path(home).chmod(0o711)
        daemon = Daemon(args.build.resolve() / "daemon" / "numaprobed", home).start()
        try:
            compare(daemon, args.pairs, args.size, rng)
            starts(daemon, args.starts)
        finally:
            daemon.stop()


main()
