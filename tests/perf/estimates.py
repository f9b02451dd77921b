#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The time estimate of a plan beside the time that the run takes, for every benchmark, default and quick.

Prints a line per benchmark: the estimate, the shortest and the median run, the ratio of the estimate
to the shortest, the CPU time that the host stole meanwhile, and the phases of the shortest. Other work
on the machine makes runs longer, never shorter. With --realtime (root) the runs have a real-time
priority, and other programs wait.

usage: estimates.py BUILD [--runs=3] [--only=latency,matrix] [--set=size=1-64 ...] [--realtime]
"""
import argparse
import os
import pathlib
import statistics
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1] / "system"))
from conftest import Daemon  # noqa: E402


def seconds(run):
    return run["seconds"]


def phases(run):
    ms = run["phases_ms"]
    return " ".join(f"{name} {ms[name] / 1000:.1f}" for name in ms if ms[name] >= 50)


def stolen_s():
    with open("/proc/stat", encoding="ascii") as f:
        return int(f.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


def row(daemon, runs, spec):
    estimate = daemon.post("/v1/runs?dry_run=true", spec).json["plan"]["estimate_s"]
    took, stolen = [], stolen_s()
    for _ in range(runs):
        run = daemon.run(**spec)
        assert run["state"] == "succeeded", run
        took.append((seconds(run), phases(run)))
    least, where = min(took)
    stolen = stolen_s() - stolen
    name = spec["benchmark"] + (" quick" if spec["quick"] else "")
    print(f"{name:18} estimate {estimate:6.2f} s  run {least:6.2f} s (median "
          f"{statistics.median(t for t, _ in took):.2f})  estimate/run {estimate / least:.2f}  "
          f"stolen {stolen:.1f}  {where}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--realtime", action="store_true")
    args = parser.parse_args()
    if args.realtime:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    extra = dict(one.split("=", 1) for one in args.set)
    with tempfile.TemporaryDirectory(prefix="numaprobe-estimates.", dir="/tmp") as home:
        pathlib.Path(home).chmod(0o711)
        daemon = Daemon(args.build.resolve() / "daemon" / "numaprobed", home).start()
        try:
            known = [b["name"] for b in daemon.get("/v1/benchmarks").json["benchmarks"]]
            for name in args.only.split(",") if args.only else known:
                for quick in (False, True):
                    row(daemon, args.runs, {"benchmark": name, "quick": quick, **extra})
        finally:
            daemon.stop()


main()
