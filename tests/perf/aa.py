#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the interval of one run hold the median of another? The same questions again and again (A/A).

All questions of a round run one after the other, then the next round, so that the load of the machine meets all of
them alike, and a question's runs lie half a minute apart. With --in-a-row the runs of a question follow one another:
what the machine does in the next minute is then not in the difference. For each question, over its cells: the share of pairs of runs whose interval [lo, hi] holds the other's
median (the next run; any other run), the half-width of the interval, the coefficient of variation (CV) of the runs'
medians, and the share of disturbed samples. The half-width is worth reading beside the CV: an interval of many CVs
holds everything and decides nothing.

usage: aa.py BUILD [--rounds=12] [--only=TEXT] [--ranks=2] [--in-a-row]
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ENV = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
QUESTIONS = [
    ("latency", "--size=32K,512K,8M,64M"),
    ("latency, 1 rank", "--size=32K,512K,8M,64M"),
    ("matrix",),
    ("bandwidth", "--kernel=triad"),
    ("pingpong", "--message-max=1K"),
    ("c2c",),
    ("firsttouch",),
    ("loaded", "--steps=3"),
    ("pagefault",),
    ("atomics",),
]


def command_of(bench, name, options, ranks):
    benchmark, _, rest = name.partition(",")
    np = 1 if rest else ranks
    if benchmark == "pingpong":
        return ["mpirun", "-np", str(np), "--bind-to", "core", bench, benchmark, *options, "--json"]
    cpus = sorted(os.sched_getaffinity(0))[:np]
    return [bench, benchmark, f"--np={np}", "--bind=" + ",".join(f"{cpu}:{node_of(cpu)}" for cpu in cpus), *options,
            "--json"]


def node_of(cpu):
    [node] = pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}").glob("node[0-9]*")
    return node.name[4:]


def cells_of(command):
    """({matrix, row, column as the run names them: cell}, how long it took). Levels of `loaded` are placed by what was found,
    so a column of one run may not be in another."""
    began = time.monotonic()
    done = subprocess.run(command, env=ENV, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    cells = {(matrix["name"], r, c): cell
             for matrix in json.loads(done.stdout)["matrices"]
             for r, row in zip(matrix["rows"]["values"], matrix["cells"])
             for c, cell in zip(matrix["cols"]["values"], row)
             if cell and cell["median"] is not None}
    return cells, time.monotonic() - began


def holds(a, b):
    return a["lo"] is not None and a["lo"] <= b["median"] <= a["hi"]


def shares(runs):
    """Of one cell: how many pairs of neighbouring and of all runs, and how many of them hold."""
    following = [holds(a, b) for a, b in zip(runs, runs[1:])]
    every = [holds(a, b) for a in runs for b in runs if a is not b]
    return sum(following), len(following), sum(every), len(every)


def half_width(cell):
    if cell["lo"] is None or not cell["median"]:
        return float("inf")
    return 100 * (cell["hi"] - cell["lo"]) / 2 / cell["median"]


def spread(runs):
    medians = [cell["median"] for cell in runs]
    middle = statistics.mean(medians)
    return 100 * statistics.stdev(medians) / middle if middle else 0


def report(name, rounds):
    cells = [[cells[key] for cells, _ in rounds] for key in rounds[0][0] if all(key in cells for cells, _ in rounds)]
    following, of, every, of_every = (sum(column) for column in zip(*(shares(runs) for runs in cells)))
    n = sum(cell["n"] for runs in cells for cell in runs)
    left_out = sum(cell["disturbed"] or 0 for runs in cells for cell in runs)
    width = statistics.median(half_width(cell) for runs in cells for cell in runs)
    cv = statistics.median(spread(runs) for runs in cells)
    took = statistics.median(seconds for _, seconds in rounds)
    print(f"{name:24} {len(cells):4} cells  next {100 * following / of:5.1f} %  any {100 * every / of_every:5.1f} %  "
          f"half-width {width:6.2f} %  CV {cv:6.2f} %  disturbed {100 * left_out / max(1, n + left_out):4.1f} %  "
          f"{took:5.1f} s a run", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--in-a-row", action="store_true")
    args = parser.parse_args()
    bench = str(args.build.resolve() / "bench" / "numa_bench")
    questions = [(f"{name}{how}", name, (*options, *quick)) for name, *options in QUESTIONS
                 for how, quick in (("", ()), (", quick", ("--quick",))) if args.only in f"{name}{how}"]
    results = {}
    turns = [question for _ in range(args.rounds) for question in questions]
    for title, name, options in sorted(turns, key=questions.index) if args.in_a_row else turns:
        results.setdefault(title, []).append(cells_of(command_of(bench, name, options, args.ranks)))
    for title, rounds in results.items():
        report(title, rounds)


if __name__ == "__main__":
    main()
