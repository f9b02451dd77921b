#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Figures of numaprobe-fleetd over virtual nodes: the first sweep, sweeps with nothing new, reading, memory, commands.

usage: collector.py BUILD [--nodes=1000,10000] [--runs=1] [--seconds=10] [--store=WHERE] [--give-way]

WHERE is an empty database, for one number of nodes. With --give-way the virtual nodes get the CPU time that is left, as if
they were elsewhere: how long requests take is nearer to that of a real fleet, a sweep takes longer.

Virtual nodes run on the same machine, so their time is in the figures. Runs are per benchmark, of which there are two.
A sweep is the time in which every node is contacted once, while the collector has nothing else to wait for.
"""
import argparse
import contextlib
import http.client
import json
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import threading
import time


def tree_of(pid):
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {"collector": pid, **{("ingest" if "--ingest" in pathlib.Path(f"/proc/{c}/cmdline").read_text() else "reading"):
                                 int(c) for c in children}}


def peak_mib(pid):
    return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1)) / 1024


def cpu_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Collector:
    def __init__(self, build, home, nodes, runs, store, niceness=0):
        self.nodes = nodes
        self.fleet = subprocess.Popen(["nice", "-n", str(niceness), f"{build}/tests/fleet/vnodes", f"--nodes={nodes}",
                                       f"--runs={runs}", f"--hosts={home}/hosts"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        port = self.fleet_port = json.loads(self.fleet.stdout.readline())["port"]
        names = [line.split()[1] for line in open(f"{home}/hosts") if line[0].isdigit()]
        pathlib.Path(home, "list").write_text("\n".join(names))
        log = open(f"{home}/log", "w")
        self.process = subprocess.Popen(
            [f"{build}/fleet/numaprobe-fleetd", f"--state-dir={home}/state", f"--run-dir={home}/run", "--listen=127.0.0.1:0",
             f"--hostfile={home}/list", f"--hosts-file={home}/hosts", f"--url=http://%h:{port}", "--every=1",
             *([f"--store={store}"] if store else [])], stderr=log)
        self.begin = time.monotonic()
        while not (ready := re.search(r"listen=\S+:(\d+)", pathlib.Path(home, "log").read_text())):
            assert self.process.poll() is None, pathlib.Path(home, "log").read_text()
            time.sleep(0.01)
        self.port = int(ready.group(1))

    def body(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        assert response.status == 200, body[:300]
        return body

    def get(self, path):
        return json.loads(self.body(path))

    def close(self):
        self.process.terminate()
        self.process.wait(60)
        self.fleet.stdin.close()
        self.fleet.wait(60)


@contextlib.contextmanager
def answers(collector, path):
    """Times of a request every 20 ms meanwhile, in ms."""
    times, stop = [], threading.Event()

    def ask():
        while not stop.wait(0.02):
            begin = time.monotonic()
            collector.body(path)
            times.append((time.monotonic() - begin) * 1e3)
    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield times
    finally:
        stop.set()
        thread.join()


def with_p99(times):
    return f"{statistics.median(times):8.2f} ms  p99 {statistics.quantiles(times, n=100)[98]:.1f} ms"


def kept_from_here_on(collector, path):
    """Facts of machines follow the first sweep. When they are there, a response that is made stays."""
    made = None
    while made != (made := collector.body(path)):
        time.sleep(1)


def timed(collector, path):
    begin = time.monotonic()
    collector.body(path)
    return (time.monotonic() - begin) * 1e3


def command(build, home, c, *words):
    """Seconds and MiB of a command of the client, by the collector and by the nodes. What it prints is not looked at."""
    figures = {}
    for how, env in (("--fleet", {"NUMAPROBE_FLEET": f"http://127.0.0.1:{c.port}"}),
                     ("-w", {"NUMAPROBE_FLEET_URL": f"http://%h:{c.fleet_port}", "NUMAPROBE_HOSTS_FILE": f"{home}/hosts",
                             "NUMAPROBE_HOSTFILE": f"{home}/list"})):
        seconds, cpu, memory = [], [], []
        for _ in range(3):
            begin = time.monotonic()
            process = subprocess.Popen([f"{build}/client/numaprobe", "fleet", *words],
                                       env={**os.environ, "NUMAPROBE_AT_ONCE": "256", **env}, stdout=subprocess.DEVNULL)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            assert process.returncode in (0, 7, 8), process.returncode
            seconds.append(time.monotonic() - begin)
            cpu.append(used.ru_utime + used.ru_stime)
            memory.append(used.ru_maxrss / 1024)
        figures[how] = f"{statistics.median(seconds):.2f} s, CPU {statistics.median(cpu):.2f} s, {max(memory):.0f} MiB"
    print(f"  fleet {' '.join(words):<22} " + "  ".join(f"{how} {what}" for how, what in figures.items()))


def figures(args, build, nodes):
    with tempfile.TemporaryDirectory() as home:
        c = Collector(build, home, nodes, args.runs, args.store, 19 if args.give_way else 0)
        try:
            wanted = nodes * args.runs * 2
            while (s := c.get("/v1/fleet/status"))["runs_stored"] < wanted:
                time.sleep(0.05)
            first = time.monotonic() - c.begin
            before, cpu = s["requests"], cpu_s(c.process.pid)
            begin = time.monotonic()
            node, verdict = "/v1/fleet/nodes/node" + "1".zfill(len(str(nodes))), "/v1/fleet/outliers"
            kept_from_here_on(c, verdict)
            c.get(node)  # the first one reads the history
            with answers(c, node) as times, answers(c, verdict) as kept_times:
                time.sleep(args.seconds)
            spent = time.monotonic() - begin
            requests, cpu = c.get("/v1/fleet/status")["requests"] - before, cpu_s(c.process.pid) - cpu
            anew = timed(c, "/v1/fleet/outliers?window_days=13")
            kept = statistics.median(timed(c, "/v1/fleet/outliers?window_days=13") for _ in range(5))
            print(f"{nodes} nodes, {args.runs * 2} runs each\n"
                  f"  first sweep, stored          {first:8.2f} s   {wanted / first:.0f} runs/s\n"
                  f"  a sweep with nothing new     {nodes * spent / requests:8.2f} s   CPU of the collector "
                  f"{cpu / requests * 1e6:.0f} us a node\n"
                  f"  a node's state meanwhile     {with_p99(times)}\n"
                  f"  a verdict that is kept       {with_p99(kept_times)}\n"
                  f"  outliers anew, again         {anew:8.0f} ms  {kept:.1f} ms")
            print("  peak memory                  " + ", ".join(f"{what} {peak_mib(pid):.0f} MiB"
                                                                for what, pid in tree_of(c.process.pid).items()), flush=True)
            command(build, home, c, "status")
            command(build, home, c, "outliers")
        finally:
            c.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--nodes", type=lambda t: [int(n) for n in t.split(",")], default=[1000, 10000])
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--store", default="")
    parser.add_argument("--give-way", action="store_true")
    args = parser.parse_args()
    if args.store and len(args.nodes) > 1:
        parser.error("--store: one database holds one fleet, so --nodes takes one number")
    for nodes in args.nodes:
        figures(args, os.path.abspath(args.build), nodes)


if __name__ == "__main__":
    main()
