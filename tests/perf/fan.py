#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Figures of requests to thousands of virtual nodes: fetch/, curl --parallel and clush in turn, medians. Then nodes of which
some are bad, and nodes with TLS.

usage: fan.py BUILD [--nodes=1000,10000] [--rounds=7] [--in-flight=64] [--bad=5] [--tls=1000]
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time

NOTHING_NEW = "/v1/feed?form=summary&after=2&limit=100"
ONE_RUN = "/v1/feed?form=summary&after=1&limit=100"


class Nodes:
    """Virtual nodes with two runs each."""

    def __init__(self, build, nodes, *options):
        self.process = subprocess.Popen([f"{build}/tests/fleet/vnodes", f"--nodes={nodes}", "--runs=1", *options],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.nodes, self.port = nodes, json.loads(self.process.stdout.readline())["port"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        status = self.process.wait(10)
        assert status == 0, f"the virtual nodes ended with {status}"

    def urls(self, path):
        return [f"http://127.1.{i // 250}.{1 + i % 250}:{self.port}{path}" for i in range(self.nodes)]


def fan(build, nodes, path, in_flight, limit_ms, *ca):
    done = subprocess.run([f"{build}/tests/perf/fan", str(nodes.nodes), str(nodes.port), path, str(in_flight), str(limit_ms), *ca],
                          capture_output=True, text=True, check=True, timeout=300)
    return json.loads(done.stdout)


def timed(command):
    """Wall time and CPU time of a command, in ms."""
    before, begin = os.times(), time.monotonic()
    subprocess.run(command, check=True, timeout=600, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return {"all_ms": (time.monotonic() - begin) * 1e3, "cpu_ms": cpu * 1e3}


def curl_parallel(nodes, path, in_flight):
    with tempfile.NamedTemporaryFile("w", suffix=".curl") as config:
        config.write("".join(f'url = "{url}"\noutput = "/dev/null"\n' for url in nodes.urls(path)))
        config.flush()
        return timed(["curl", "--silent", "--parallel", "--parallel-max", str(min(in_flight, 300)), "--config", config.name])


def clush(nodes, path, in_flight):
    hosts = f"127.1.[0-{nodes.nodes // 250 - 1}].[1-250]"
    return timed(["clush", "-R", "exec", "-f", str(in_flight), "-w", hosts,
                  f"curl --silent --output /dev/null 'http://%h:{nodes.port}{path}'"])


def median(rounds, name):
    return statistics.median(r[name] for r in rounds)


def line(what, rounds):
    text = f"{what:34} all {median(rounds, 'all_ms'):8.0f} ms   CPU {median(rounds, 'cpu_ms'):8.0f} ms"
    if "first_ms" in rounds[0]:
        text += (f"   first {median(rounds, 'first_ms'):5.1f} ms   p99 {median(rounds, 'p99_ms'):7.1f} ms"
                 f"   memory {median(rounds, 'peak_rss_kib') / 1024:5.1f} MiB")
    print(text, flush=True)


def sweeps(args, build):
    per_node = {}
    for n in args.nodes:
        ways = {"fetch, nothing new": lambda v: fan(build, v, NOTHING_NEW, args.in_flight, 20000),
                "fetch, one run each": lambda v: fan(build, v, ONE_RUN, args.in_flight, 20000),
                "curl --parallel, nothing new": lambda v: curl_parallel(v, NOTHING_NEW, args.in_flight)}
        if shutil.which("clush") and n <= 1000:
            ways["clush -R exec curl, nothing new"] = lambda v: clush(v, NOTHING_NEW, args.in_flight)
        results = {way: [] for way in ways}
        with Nodes(build, n) as nodes:
            for turn in range(args.rounds):
                for way, run in ways.items():
                    if "clush" not in way or turn == 0:  # it takes many seconds
                        results[way].append(run(nodes))
        print(f"{n} nodes, {args.in_flight} in flight, medians of {args.rounds} turns")
        for way, rounds in results.items():
            assert all(r.get("ok", n) == n for r in rounds), f"{way}: not all nodes responded"
            line("  " + way, rounds)
        per_node[n] = median(results["fetch, nothing new"], "cpu_ms") * 1e3 / n
        print(f"  CPU per node {per_node[n]:.0f} us")
    if len(per_node) > 1:
        few, many = min(per_node), max(per_node)
        print(f"CPU per node at {many} over {few}: {per_node[many] / per_node[few]:.2f} (goal: at most 2)")


def bad_nodes(args, build):
    n = max(args.nodes)
    with Nodes(build, n, f"--faults={args.bad}% mixed") as nodes:
        rounds = [fan(build, nodes, NOTHING_NEW, 256, 2000) for _ in range(args.rounds)]
    assert len({r["ok"] for r in rounds}) == 1, "the states of nodes differ from turn to turn"
    line(f"{n} nodes, {args.bad} % bad, 2 s limit", rounds)
    print(f"  {rounds[0]['ok']} responded, the last of them after {median(rounds, 'good_ms'):.0f} ms (goal: at most 3000); "
          f"{rounds[0]['bad']} did not: {rounds[0]['errors']}")


def status(build, nodes, home, ca):
    """numaprobe fleet status of all nodes, by the addresses of their list."""
    begin = time.monotonic()
    process = subprocess.Popen([f"{build}/client/numaprobe", "fleet", "status", f"--cacert={ca}"], stdout=subprocess.DEVNULL,
                               env={**os.environ, "NUMAPROBE_FLEET_URL": f"https://%h:{nodes.port}", "NUMAPROBE_AT_ONCE": "64",
                                    "NUMAPROBE_HOSTS_FILE": f"{home}/hosts", "NUMAPROBE_HOSTFILE": f"{home}/list"})
    _, ended, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(ended)
    assert process.returncode == 0, process.returncode
    return {"all_ms": (time.monotonic() - begin) * 1e3, "cpu_ms": (used.ru_utime + used.ru_stime) * 1e3}


def tls_nodes(args, build):
    with tempfile.TemporaryDirectory() as home, \
            Nodes(build, args.tls, f"--tls-ca={home}/ca.pem", f"--hosts={home}/hosts") as nodes:
        with open(f"{home}/list", "w") as names:
            names.writelines(line.split()[1] + "\n" for line in open(f"{home}/hosts"))
        requests, commands = [], []
        for _ in range(args.rounds):
            requests.append(fan(build, nodes, NOTHING_NEW, args.in_flight, 20000, f"{home}/ca.pem"))
            commands.append(status(build, nodes, home, f"{home}/ca.pem"))
    assert all(r["ok"] == args.tls for r in requests), "not all nodes responded"
    line(f"{args.tls} nodes with TLS, nothing new", requests)
    line(f"{args.tls} nodes with TLS, fleet status", commands)
    print(f"  fleet status of {args.tls} nodes with TLS: {median(commands, 'all_ms') / 1e3:.2f} s (goal: at most 3)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--nodes", type=lambda t: [int(n) for n in t.split(",")], default=[1000, 10000])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--bad", type=int, default=5)
    parser.add_argument("--tls", type=int, default=1000)
    args = parser.parse_args()
    build = os.path.abspath(args.build)
    sweeps(args, build)
    bad_nodes(args, build)
    tls_nodes(args, build)


if __name__ == "__main__":
    main()
