#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the poll of a collector costs a node: CPU and wake-ups of the daemon, for a poll of
/v1/feed?form=summary that brings nothing new, each on a connection of its own, and for a page of
runs. Figures; medians of rounds.

usage: feed_poll.py BUILD [--rounds=9] [--polls=200] [--runs=100]
"""
import argparse
import http.client
import json
import os
import pathlib
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from conftest import FAKE_BENCH, Daemon  # noqa: E402


def cpu_us(pid):
    """Microseconds that a process of one thread had a CPU."""
    return int(pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e3


def poll(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", path, headers={"Connection": "close"})
    body = connection.getresponse().read()
    connection.close()
    return body


def cost(daemon, path, rounds, polls):
    """CPU and wake-ups per poll, medians of rounds."""
    pid, port, got = daemon.process.pid, daemon.port, []
    wakes = lambda: json.loads(poll(port, "/readyz?verbose"))["loop_wakeups"]  # noqa: E731
    for _ in range(rounds):
        woken, cpu = wakes(), cpu_us(pid)
        for _ in range(polls):
            poll(port, path)
        cpu = cpu_us(pid) - cpu
        got.append((cpu / polls, (wakes() - woken) / (polls + 1)))
    return [statistics.median(column) for column in zip(*got)]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build", type=pathlib.Path)
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--polls", type=int, default=200)
    p.add_argument("--runs", type=int, default=100)
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as home:
        os.chmod(home, 0o755)
        env = {"NUMAPROBE_BENCH": str(FAKE_BENCH), "NUMAPROBE_PYTHON": sys.executable,
               "NUMAPROBE_MPIRUN": str(FAKE_BENCH.with_name("fake_mpirun.py"))}
        daemon = Daemon(args.build / "daemon" / "numaprobed", pathlib.Path(home), env,
                        ["--admission=warn"]).start()
        try:
            for _ in range(args.runs):
                assert daemon.run(size="1-64", cpus="0,1")["state"] == "succeeded"
            last = daemon.get("/v1/feed?form=summary&after=0&limit=1").json["last"]
            page = daemon.get(f"/v1/feed?form=summary&after=0&limit={args.runs}").json
            metrics = len(page["runs"][0]["values"])
            for what, path, polls in (
                    ("alive", "/healthz", args.polls),
                    ("nothing new", f"/v1/feed?form=summary&after={last}&limit=100", args.polls),
                    ("one new run", f"/v1/feed?form=summary&after={last - 1}&limit=100", args.polls),
                    (f"{args.runs} runs of {metrics} metrics",
                     f"/v1/feed?form=summary&after=0&limit={args.runs}", max(1, args.polls // 20))):
                size = len(poll(daemon.port, path))
                cpu, woken = cost(daemon, path, args.rounds, polls)
                print(f"{what:28} {cpu:9.1f} us of CPU  {woken:5.2f} wake-ups  {size:8} bytes")
        finally:
            daemon.stop()


if __name__ == "__main__":
    main()
