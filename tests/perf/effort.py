#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does --quick measure the same quantity as the default? Pairs of runs, quick and default in turn.

For each cell, the median of the ratios quick / default of all pairs, with its 95 % interval by order statistics. Effort
must not change what is measured: the ratio of a quiet machine lies within 0.99 to 1.01.

usage: effort.py BUILD [--rounds=12] [--only=TEXT] [--ranks=1]
"""
import argparse
import math
import pathlib
import statistics

from aa import cells_of, command_of

QUESTIONS = [("latency", "--size=32K,1M,16M,64M,128M,512M"), ("matrix",), ("firsttouch",)]


def interval(values):
    """The order statistics that hold the median with 95 %; the ends where there are too few."""
    n, below, rank = len(values), 0.0, 0
    while below + math.comb(n, rank) / 2**n <= 0.025:
        below += math.comb(n, rank) / 2**n
        rank += 1
    ordered = sorted(values)
    return ordered[max(0, rank - 1)], ordered[n - max(1, rank)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    bench = str(args.build.resolve() / "bench" / "numa_bench")
    for name, *options in QUESTIONS:
        if args.only not in name:
            continue
        ratios, seconds = {}, {"quick": [], "default": []}
        for i in range(args.rounds):
            found = {}
            for how in ("quick", "default") if i % 2 else ("default", "quick"):
                quick = ["--quick"] if how == "quick" else []
                found[how], took = cells_of(command_of(bench, name, [*options, *quick], args.ranks))
                seconds[how].append(took)
            for key in found["quick"].keys() & found["default"].keys():
                ratios.setdefault(key, []).append(found["quick"][key]["median"] / found["default"][key]["median"])
        for (matrix, row, column), values in sorted(ratios.items()):
            low, high = interval(values)
            print(f"{name:12} {matrix}[{row}][{column}]  quick / default {statistics.median(values):.4f} "
                  f"[{low:.4f}, {high:.4f}] of {len(values)} pairs", flush=True)
        print(f"{name:12} quick {statistics.median(seconds['quick']):.1f} s, "
              f"default {statistics.median(seconds['default']):.1f} s", flush=True)


if __name__ == "__main__":
    main()
