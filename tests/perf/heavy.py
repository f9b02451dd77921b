#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What one anonymous account can do to all others by GETs that are expensive.

The daemon has two runs of the largest size (1,024 ranks x 48 sizes x 2 modes) and, with --ten-years=DIR,
a copy of the database that ten_years made there. An account that may only read asks for each path from
one and from many connections, each again as soon as it has its answer. Meanwhile /healthz is asked for over TCP
from another address and over the unix socket by root, and /readyz over TCP, each 50 times a second. {n} in a path is a
new number each time, so that no answer is kept.

Then SIGTERM in the middle of it. With --measured instead: the median of a run beside the attack, how much longer the run
takes, and how much of a CPU the daemon uses meanwhile. The crowd is on the daemon's own machine, so it disturbs the run
by itself: the control is the same crowd at a port where nobody accepts. What is above the control is the daemon's.

usage: heavy.py BUILD [--connections=192] [--seconds=5] [--ten-years=DIR] [--only=TEXT] [--measured=PAIRS]
Needs root (to be another account), and a release build.
"""
import argparse
import http.client
import os
import pathlib
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1] / "system"))
import large  # noqa: E402
from conftest import Daemon, UnixConnection, cpu_seconds  # noqa: E402

LARGE = [
    "/healthz", "/readyz", "/metrics", "/v1/runs?limit=200", "/v1/compare?base=1&target=2&threshold={n}",
    "/v1/runs/1/report", "/v1/runs/1/matrix.csv", "/v1/runs/1/matrix.ndjson", "/v1/runs/1/matrix.svg", "/v1/runs/1/export",
    "/v1/check?warn={n}", "/v1/feed?limit=100", "/v1/feed?limit=100&after={0}",
]
TEN_YEARS = ["/v1/feed?limit=100&after={n}", "/v1/history?metric=latency.n0.n0.median_ns&node=node1&limit=10000&since={t}",
             "/v1/history", "/v1/runs?limit=200"]

CONTROL = "/control"  # instead of a path: the port without a daemon
MEASURED = [("keep", "/v1/compare?base=1&target=2&threshold={n}"), ("keep", "/v1/runs/1/matrix.csv"), ("keep", "/healthz"),
            ("reconnect", "/healthz"), ("half", "/healthz"), ("half", CONTROL)]
CROWD = (HERE.parents[1] / "system" / "crowd.py").read_text()


class Attack:
    def __init__(self, daemon, path, connections, mode="keep"):
        self.pid = daemon.process.pid
        # The kernel completes these connections; no process is woken.
        self.silent = socket.create_server(("127.0.0.1", 0), backlog=4096) if path == CONTROL else None
        port = self.silent.getsockname()[1] if self.silent else daemon.port
        self.process = subprocess.Popen(
            ["/usr/bin/python3", "-c", CROWD, str(port), str(connections), mode, path], user=1234, group=1234,
            extra_groups=[], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()
        self.began, self.cpu = time.monotonic(), cpu_seconds(self.pid)

    def cpu_percent(self):
        """CPU time that the daemon has used since the attack began, in per cent of one CPU."""
        return 100 * (cpu_seconds(self.pid) - self.cpu) / (time.monotonic() - self.began)

    def stop(self):
        self.process.stdin.close()
        codes = self.process.stdout.readline().strip()
        self.process.wait()
        if self.silent:
            self.silent.close()
        return codes


class Victim(threading.Thread):
    """Asks for a path 50 times a second."""

    def __init__(self, daemon, unix, path="/healthz"):
        super().__init__(daemon=True)
        self.path = path
        self.daemon_, self.unix, self.times, self.failed, self.over = daemon, unix, [], 0, threading.Event()

    def connect(self):
        if self.unix:
            c = UnixConnection(self.daemon_.socket)
            c.timeout = 120
            return c
        return http.client.HTTPConnection("127.0.0.1", self.daemon_.port, timeout=120, source_address=("127.0.0.2", 0))

    def run(self):
        c = self.connect()
        while not self.over.is_set():
            began = time.monotonic()
            try:
                c.request("GET", self.path)
                self.failed += c.getresponse().read() == b""
            except OSError:
                self.failed += 1
                c.close()
                c = self.connect()
            self.times.append(time.monotonic() - began)
            self.over.wait(0.02)
        c.close()


def figures(victim):
    t = sorted(victim.times)
    return f"{statistics.median(t) * 1e3:8.1f} {t[int(len(t) * .99)] * 1e3:8.1f} {t[-1] * 1e3:8.1f}" + (
        f" {victim.failed} failed" if victim.failed else "")


def once(daemon, path):
    path = path.replace("{n}", "7" if "after" in path else "7.77").replace("{0}", "0").replace("{t}", "2017-01-02")
    began = time.monotonic()
    answer = daemon.request("GET", path, unix=True)
    return answer.status, (time.monotonic() - began) * 1e3, len(answer.body)


def attacked(daemon, path, connections, seconds):
    attack = Attack(daemon, path, connections)
    victims = [Victim(daemon, False), Victim(daemon, True), Victim(daemon, False, "/readyz")]
    for v in victims:
        v.start()
    time.sleep(seconds)
    for v in victims:
        v.over.set()
    codes = attack.stop()
    for v in victims:
        v.join()
    return [figures(v) for v in victims] + [codes]


def table(daemon, paths, args):
    print(f"{'path':52} {'one ms':>7} {'bytes':>9} conn | TCP: p50, p99, max ms | unix: p50, p99, max ms | "
          "/readyz: p50, p99, max ms | answers to the attacker")
    for path in paths:
        if args.only and args.only not in path:
            continue
        status, ms, size = once(daemon, path)
        for connections in (1, args.connections):
            tcp, unix, ready, codes = attacked(daemon, path, connections, args.seconds)
            print(f"{path:52} {ms:7.1f} {size:9} {connections:4} | {tcp} | {unix} | {ready} | {status} {codes}", flush=True)


def stopped(daemon, args):
    attack = Attack(daemon, "/v1/compare?base=1&target=2&threshold={n}", args.connections)
    time.sleep(2)
    began = time.monotonic()
    daemon.process.send_signal(signal.SIGTERM)
    daemon.process.wait()
    print(f"SIGTERM in the middle of comparisons: {time.monotonic() - began:.2f} s until the exit")
    attack.stop()


def measure(daemon, attack, args):
    spec = {"benchmark": "latency", "size": "64", "hyperthreads": True}
    run = daemon.request("POST", "/v1/runs", spec, unix=True).json["id"]
    attack = Attack(daemon, attack[1], args.connections, attack[0]) if attack else None
    while True:
        state = daemon.request("GET", f"/v1/runs/{run}?wait=10", unix=True).json
        if state["state"] not in ("queued", "running"):
            break
    cpu = attack.cpu_percent() if attack else 0
    codes = attack.stop() if attack else ""
    if state["state"] != "succeeded":
        raise SystemExit(f"run {run}: {state['error']}")
    rows = daemon.request("GET", f"/v1/runs/{run}/matrix", unix=True).json["matrices"][0]["cells"]
    return statistics.median(c["median"] for row in rows for c in row), state["seconds"], codes, cpu


def measured(daemon, args):
    rng = random.Random(1)
    for attack in [*(a for a in MEASURED if args.only in " ".join(a)), None]:
        ratios, seconds, cpu, codes = [], [], [], ""
        for _ in range(args.measured):
            first = rng.random() < 0.5
            pair = {}
            for beside in (first, not first):
                pair[beside] = measure(daemon, attack if beside else None, args)
            ratios.append(pair[True][0] / pair[False][0])
            seconds.append(pair[True][1] / pair[False][1])
            codes = pair[True][2]
            cpu.append(pair[True][3])
        medians = sorted(statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(2000))
        print(f"run beside {' '.join(attack) if attack else 'nothing (the null)'}: median {100 * (statistics.median(ratios) - 1):+.2f} % "
              f"[{100 * (medians[49] - 1):+.2f}, {100 * (medians[1949] - 1):+.2f}], time x{statistics.median(seconds):.2f}, "
              f"daemon {statistics.median(cpu):.1f} % of a CPU {codes}", flush=True)


def start(args, home):
    daemon = Daemon(args.build / "daemon" / "numaprobed", home,
                    {"NUMAPROBE_BENCH": str(args.build / "bench" / "numa_bench")}, ["--anonymous=read"]).start()
    os.chmod(daemon.socket, 0o666)
    return daemon


def upload(daemon, node, seed):
    answer = daemon.request("POST", f"/v1/imports?node={node}", large.document(seed=seed), {"Content-Type": "application/json"},
                            unix=True)
    assert answer.status == 201, answer.body


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--connections", type=int, default=192)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--ten-years", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--measured", type=int, default=0, metavar="PAIRS")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        daemon = start(args, home)
        for i in (1, 2):
            upload(daemon, socket.gethostname(), i)
        daemon.request("PUT", "/v1/baselines/default", {"runs": [1]}, unix=True)
        try:
            if args.measured:
                measured(daemon, args)
            else:
                table(daemon, LARGE, args)
                stopped(daemon, args)
        finally:
            daemon.stop()
    if not args.ten_years or args.measured:
        return
    with tempfile.TemporaryDirectory() as home:
        os.makedirs(f"{home}/state")
        shutil.copy(args.ten_years / "numaprobe.db", f"{home}/state/")
        daemon = start(args, home)
        try:
            table(daemon, TEN_YEARS, args)
        finally:
            daemon.stop()


if __name__ == "__main__":
    main()
