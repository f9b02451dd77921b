#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The time estimate of a plan beside the time that the run takes, for every benchmark, default and quick.

Prints a line per benchmark: the estimate, the median of the runs, their ratio, and the phases of the last run.

usage: estimates.py BUILD [--runs=3] [--only=latency,matrix] [--set=size=1-64 ...]
"""
import argparse
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


def row(daemon, runs, spec):
    estimate = daemon.post("/v1/runs?dry_run=true", spec).json["plan"]["estimate_s"]
    took = []
    for _ in range(runs):
        run = daemon.run(**spec)
        assert run["state"] == "succeeded", run
        took.append(seconds(run))
    real = statistics.median(took)
    name = spec["benchmark"] + (" quick" if spec["quick"] else "")
    print(f"{name:18} estimate {estimate:6.1f} s  run {real:6.1f} s ({min(took):.1f} to {max(took):.1f})  "
          f"estimate/run {estimate / real:.2f}  {phases(run)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--set", action="append", default=[])
    args = parser.parse_args()
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
