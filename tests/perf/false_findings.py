#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many findings of `numaprobe fleet outliers` are nodes that nothing is wrong with, over fleets of many seeds.

usage: false_findings.py BUILD [--seeds=200] [OPTION OF vnodes]...

Prints the mean share of false nodes among the findings, which is to be 5 % at most, the fleets with one, and their seeds.
"""
import json
import statistics
import subprocess
import sys
import tempfile


def judged(build, seed, options):
    """(nodes found that are bad, nodes found that are not, those of them that are sure)"""
    with tempfile.TemporaryDirectory() as folder:
        nodes = subprocess.Popen([f"{build}/tests/fleet/vnodes", f"--seed={seed}", f"--truth={folder}/truth", f"--hosts={folder}/hosts",
                                  *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        port = json.loads(nodes.stdout.readline())["port"]
        with open(f"{folder}/truth", encoding="utf-8") as file:
            world = json.load(file)["world"]["nodes"]
        names = ",".join(node["node"] for node in world)
        done = subprocess.run([f"{build}/client/numaprobe", "fleet", "outliers", "-w", names, f"--fleet-url=http://%h:{port}",
                               f"--hosts-file={folder}/hosts", "-o", "json"], stdout=subprocess.PIPE, text=True, timeout=120)
        nodes.stdin.close()
        nodes.wait(20)
    bad = {node["node"] for node in world if node["bad"]}
    found = [f for f in json.loads(done.stdout)["verdict"]["findings"] if f["node"]]
    false = [f for f in found if f["node"] not in bad]
    return len(found) - len(false), len(false), sum(f["grade"] == "sure" for f in false)


def main():
    build, *options = sys.argv[1:]
    seeds = [int(o.split("=")[1]) for o in options if o.startswith("--seeds=")] or [200]
    options = [o for o in options if not o.startswith("--seeds=")]
    fleets = {seed: judged(build, seed, options) for seed in range(1, seeds[0] + 1)}
    share = statistics.mean(false / (true + false) if true + false else 0 for true, false, _ in fleets.values())
    wrong = {seed: false for seed, (_, false, _) in fleets.items() if false}
    print(f"{len(fleets)} fleets, {' '.join(options)}: {sum(t for t, _, _ in fleets.values())} bad nodes found, "
          f"{sum(wrong.values())} good ones, of which {sum(s for _, _, s in fleets.values())} sure")
    print(f"false share of a fleet's findings, mean: {100 * share:.1f} %; fleets with a false finding: {100 * len(wrong) / len(fleets):.1f} %")
    print("seeds, false findings: " + ", ".join(f"{seed}: {n}" for seed, n in wrong.items()))


if __name__ == "__main__":
    main()
