#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TAP: every benchmark looks at its pages again at the end, and says so where they moved.

usage: test_moved_pages.py NUMA_BENCH MOVED_PAGES
"""
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile

SMALL = ["--size=4", "--min-samples=7", "--cell-ms=30", "--visits=1"]
# pagefault is not among them: its pages are fresh, and it looks at them after what it times.
BENCHMARKS = [
    ["latency", *SMALL],
    ["latency", "--size=1M", "--method=classic"],
    ["matrix", *SMALL, "--targets=0"],
    ["bandwidth", "--size=8", "--passes=3", "--visits=1", "--kernel=triad"],
    ["pingpong", "--message-max=64K", "--repetitions=20", "--visits=1"],
    ["c2c", "--repetitions=20", "--min-samples=8", "--visits=1"],
    ["firsttouch", *SMALL],
    ["loaded", *SMALL, "--steps=2"],
    ["hierarchy", "--size=32M", "--quick", "--visits=1", "--sample-us=20"],
    ["scan", "--quick", "--visits=4", "--cell-ms=5", "--sample-us=50", "--repetitions=50"],
    ["atomics", "--quick", "--visits=1", "--sample-us=200", "--operation=fetch_add"],
]
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl": "self,vader",
           "OMPI_MCA_plm": "isolated", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
count = failed = 0


def check(good, what, *details):
    global count, failed
    count += 1
    failed += not good
    print("ok" if good else "not ok", count, "-", what)
    for detail in details if not good else ():
        print("#", *str(detail).splitlines()[:20], sep="\n# ")


def measure(bench, fake, log, name, *options):
    preload = {"LD_PRELOAD": fake, "MOVED_PAGES": log}
    by_mpi = ["mpirun", "-np", "2", *(word for name in preload for word in ("-x", f"{name}={preload[name]}")), bench, name]
    by_itself = ["env", *(f"{name}={value}" for name, value in preload.items()), bench, name, "--np=2", "--oversubscribe"]
    return subprocess.run([*(by_mpi if name == "pingpong" else by_itself), "--json", *options], capture_output=True, text=True,
                          timeout=200, env={**os.environ, **AS_ROOT})


def load(bench, fake, log):
    """The memory of a background load is looked at when the load begins and when it ends."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        return
    done = subprocess.run([bench, "latency", "--np=1", f"--bind={cpus[0]}:-1", "--json", *SMALL, "--load=read",
                           f"--load-cpus={cpus[-1]}"], capture_output=True, text=True, timeout=200,
                          env={**os.environ, "LD_PRELOAD": fake, "MOVED_PAGES": log})
    said = [c["text"] for c in json.loads(done.stdout)["conditions"] if c["kind"] == "placement"] if done.returncode == 0 else []
    check(any("the kernel moved pages of the background load: 100.0 % were on the nodes of its CPUs at its start, 0.0 % at its end"
              in text for text in said), "latency --load: that the load's pages moved is a condition", said, done.stderr)


def main(bench, fake):
    folder = tempfile.mkdtemp()
    load(bench, fake, os.path.join(folder, "load"))
    for n, (name, *options) in enumerate(BENCHMARKS):
        if name == "pingpong" and not shutil.which("mpirun"):
            continue
        log = os.path.join(folder, str(n))
        done = measure(bench, fake, log, name, *options)
        what = " ".join([name, *options[:1]])
        if done.returncode:
            check(False, what, done.stderr)
            continue
        with open(log, encoding="ascii") as f:
            questions = collections.Counter(f.read().splitlines())
        once = [page for page, times in questions.items() if times == 1]
        check(questions and not once, f"{what}: pages are looked at again", once)
        said = [c["text"] for c in json.loads(done.stdout)["conditions"] if c["kind"] == "placement"]
        check(any("the kernel moved pages during the measurement: 100.0 % were on node " in text for text in said),
              f"{what}: that they moved is a condition", said)
    shutil.rmtree(folder)
    print(f"1..{count}")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
