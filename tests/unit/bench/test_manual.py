#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TAP: numa_bench(1) has the options that --help has, and no others.

usage: test_manual.py NUMA_BENCH MANUAL
"""
import re
import subprocess
import sys


def main(bench, manual):
    text = subprocess.run([bench, "--help"], capture_output=True, text=True, check=True).stdout
    helped = set(re.findall(r"^  (--[a-z-]+)", text, re.M))
    with open(manual, encoding="ascii") as f:
        page = f.read().split(".SH OPTIONS")[1].split(".SH RUN_NUMA.SH")[0].replace("\\-", "-")
    told = set(re.findall(r"^\.BI? (--[a-z-]+)(?:=|$)", page, re.M))
    results = [(len(helped) > 12, f"--help lists {len(helped)} options", ""),
               (helped == told, "the manual lists the same", sorted(helped ^ told))]
    for number, (good, what, detail) in enumerate(results, 1):
        print("ok" if good else "not ok", number, "-", what, *(["\n#", detail] if not good else []))
    print(f"1..{len(results)}")
    return not all(good for good, _, _ in results)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
