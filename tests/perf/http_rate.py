#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests a second and p99 of the daemon beside a bare libmicrohttpd "hello", and what an idle
daemon costs. Needs wrk. The servers take turns, round by round, so that a busy machine hits both.

usage: http_rate.py BUILD [--rounds=5] [--seconds=3] [--idle=60]
"""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from conftest import Daemon  # noqa: E402

UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3}


def cpu_s(pid):
    """Seconds that a process had a CPU, all its threads together."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wrk(url, seconds):
    out = subprocess.run(["wrk", "-t1", "-c16", f"-d{seconds}s", "--latency", url],
                         capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in out:
        raise SystemExit(f"{url}: errors\n{out}")
    p99, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", out).groups()
    count = int(re.search(r"(\d+) requests in", out).group(1))
    return float(re.search(r"Requests/sec:\s+([\d.]+)", out).group(1)), float(p99) * UNITS[unit], count


def compare(urls, rounds, seconds):
    """urls: {name: (pid, url)}. CPU a request is what a busy machine changes least."""
    got = {name: [] for name in urls}
    for _ in range(rounds):
        for name, (pid, url) in urls.items():
            before = cpu_s(pid)
            rate, p99, count = wrk(url, seconds)
            got[name].append((rate, p99, (cpu_s(pid) - before) / count * 1e6))
    middle = {name: [statistics.median(v) for v in zip(*values)] for name, values in got.items()}
    bare = middle["bare hello"]
    print(f"{'':24}{'requests/s':>12}{'p99 ms':>9}{'of bare':>9}{'CPU us':>9}{'of bare':>9}")
    for name, (rate, p99, cpu) in middle.items():
        print(f"{name:24}{rate:12.0f}{p99:9.2f}{rate / bare[0]:9.0%}{cpu:9.1f}{bare[2] / cpu:9.0%}")


def memory(pid):
    """KiB: resident, its own for good, and pages of files that nobody else maps at the moment."""
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return tuple(int(re.search(rf"^{name}:\s+(\d+)", text, re.M).group(1))
                 for name in ("Rss", "Private_Dirty", "Private_Clean"))


class Bare:
    """http_bare of a build: the least that libmicrohttpd can do."""

    def __init__(self, build):
        program = next(p for p in (build / "tests/perf/http_bare", build / "http_bare") if p.exists())
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def switches(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return sum(int(n) for n in re.findall(r"voluntary_ctxt_switches:\s+(\d+)", text))


def written(pid):
    return int(re.search(r"^wchar: (\d+)", pathlib.Path(f"/proc/{pid}/io").read_text(), re.M).group(1))


def idle(daemon, seconds):
    pid = daemon.process.pid
    time.sleep(1)  # connections of the load close
    before = switches(pid), written(pid)
    time.sleep(seconds)
    print("idle for %d s: RSS %d KiB, private %d KiB (and %d clean)" % (seconds, *memory(pid)), end="")
    print(f", wake-ups {switches(pid) - before[0]}, bytes written {written(pid) - before[1]}")


def stored_run(daemon):
    run = daemon.post("/v1/runs", {"benchmark": "latency", "size": "1", "cpus": "0"}, Prefer="wait=60")
    return f"/v1/runs/{run.json['id']}" if run.status == 200 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    for name, value in (("rounds", 5), ("seconds", 3), ("idle", 60)):
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    bench = args.build / "bench" / "numa_bench"
    env = {"NUMAPROBE_BENCH": str(bench)} if bench.exists() else {}
    with tempfile.TemporaryDirectory() as home:
        daemon = Daemon(args.build / "daemon" / "numaprobed", home, env).start()
        bare = Bare(args.build)
        try:
            idle(daemon, args.idle)
            pid = daemon.process.pid
            urls = {"bare hello": (bare.process.pid, f"http://127.0.0.1:{bare.port}/"),
                    "/healthz": (pid, f"http://127.0.0.1:{daemon.port}/healthz")}
            run = stored_run(daemon)
            if run:
                urls["GET " + run] = pid, f"http://127.0.0.1:{daemon.port}{run}"
            else:
                print("no run could be made: only /healthz is compared")
            compare(urls, args.rounds, args.seconds)
            idle(daemon, min(args.idle, 10))
        finally:
            bare.stop()
            daemon.stop()


if __name__ == "__main__":
    main()
