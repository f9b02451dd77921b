#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What clients see while every core is chased, and what the measured see of clients.

First: requests while runs go on on every core, how many failed and how long they took. Then the observer
effect: runs in pairs, one of the pair with a scrape of /metrics a second and an event stream, in random
order; the ratio of their medians with a bootstrap interval. Pairs of which neither is observed are the
null: their interval is what this machine could tell at all.

usage: under_load.py BUILD [--seconds=20] [--pairs=20] [--size=64]
"""
import argparse
import http.client
import pathlib
import random
import statistics
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1] / "system"))
from conftest import Daemon  # noqa: E402

GOALS_MS = {"/healthz": 20, "/metrics": 50}


class Asker(threading.Thread):
    """Asks for a path every `pause` s; keeps how long each took."""

    def __init__(self, daemon, path, pause):
        super().__init__(daemon=True)
        self.daemon_, self.path, self.pause = daemon, path, pause
        self.times, self.failed, self.over = [], 0, threading.Event()

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.daemon_.port, timeout=60)
        while not self.over.is_set():
            began = time.monotonic()
            try:
                connection.request("GET", self.path)
                answer = connection.getresponse()
                answer.read()
                self.failed += answer.status != 200
            except OSError:
                self.failed += 1
                connection.close()
            self.times.append(time.monotonic() - began)
            self.over.wait(self.pause)
        connection.close()


class Follower(threading.Thread):
    """Reads the events of a run to their end."""

    def __init__(self, daemon, run):
        super().__init__(daemon=True)
        self.daemon_, self.run_id, self.count = daemon, run, 0

    def run(self):
        for _ in self.daemon_.events(self.run_id):
            self.count += 1


def measure(daemon, spec, observed):
    """A run's median over its cells, in ns."""
    watchers = []
    answer = daemon.post("/v1/runs", spec)
    if answer.status != 202:
        raise SystemExit(f"no run: {answer.body.decode()}")
    run = answer.json["id"]
    if observed:
        watchers = [Follower(daemon, run), Asker(daemon, "/metrics", 1)]
    for w in watchers:
        w.start()
    state = daemon.wait(run)
    for w in watchers:
        if isinstance(w, Asker):
            w.over.set()
        w.join()
    if state["state"] != "succeeded":
        raise SystemExit(f"run {run}: {state['error']}")
    rows = daemon.get(f"/v1/runs/{run}/matrix").json["matrices"][0]["cells"]
    return statistics.median(cell["median"] for row in rows for cell in row)


def interval(ratios, rng):
    middles = sorted(statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(2000))
    return middles[49], middles[1949]


def observer(daemon, spec, pairs):
    rng = random.Random(1)
    ratios = {"observed": [], "null": []}
    for _ in range(pairs):
        for name in rng.sample(sorted(ratios), 2):
            first = rng.random() < 0.5
            one = measure(daemon, spec, name == "observed" and first)
            two = measure(daemon, spec, name == "observed" and not first)
            ratios[name].append(one / two if first else two / one)
    for name, values in ratios.items():
        lo, hi = interval(values, rng)
        print(f"{name:10} {100 * (statistics.median(values) - 1):+.3f} %, 95 % interval "
              f"{100 * (lo - 1):+.3f} to {100 * (hi - 1):+.3f} % ({len(values)} pairs)")


def load(daemon, spec, seconds):
    askers = [Asker(daemon, path, 0.05) for path in GOALS_MS]
    end, runs = time.monotonic() + seconds, 0
    for a in askers:
        a.start()
    while time.monotonic() < end:
        measure(daemon, spec, False)
        runs += 1
    for a in askers:
        a.over.set()
        a.join()
        times = sorted(a.times)
        print(f"{a.path:10} {len(times)} requests in {runs} runs: {a.failed} failed, median "
              f"{statistics.median(times) * 1e3:.2f} ms, p99 {times[int(len(times) * .99)] * 1e3:.2f} ms "
              f"(goal {GOALS_MS[a.path]}), slowest {times[-1] * 1e3:.1f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--size", default="64", help="MiB of each rank's chain")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        daemon = Daemon(args.build / "daemon" / "numaprobed", home,
                        {"NUMAPROBE_BENCH": str(args.build / "bench" / "numa_bench")}).start()
        spec = {"benchmark": "latency", "size": args.size, "hyperthreads": True}
        try:
            load(daemon, spec, args.seconds)
            observer(daemon, spec, args.pairs)
        finally:
            daemon.stop()


if __name__ == "__main__":
    main()
