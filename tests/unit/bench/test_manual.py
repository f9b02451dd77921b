#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TAP: numa_bench(1) has the options that --help has, for every benchmark, and groff likes it.

usage: test_manual.py NUMA_BENCH MANUAL
"""
import re
import shutil
import subprocess
import sys


def help_of(bench, name):
    return subprocess.run([bench, name, "--help"], capture_output=True, text=True, check=True).stdout


def helped(bench, name):
    text = help_of(bench, name)
    own, common = text.split("\nHow it is started and reported:\n")
    return [set(re.findall(r"^  (--[a-z0-9-]+)", part, re.M)) for part in (own, common)]


def main(bench, manual):
    with open(manual, encoding="ascii") as f:
        page = f.read()
    options = page.split(".SH OPTIONS")[1].split(".SH RUN_NUMA.SH")[0].replace("\\-", "-")
    sections = {head: set(re.findall(r"^\.BI? (--[a-z0-9-]+)(?:=|$)", body, re.M))
                for head, body in re.findall(r"^\.SS (.+)\n((?:(?!\.SS ).*\n)*)", options, re.M)}
    results = []
    for name in sections.keys() - {"All benchmarks"}:
        own, common = helped(bench, name)
        results.append((own == sections[name] and common == sections["All benchmarks"],
                        f"{name}: the manual lists what --help does",
                        sorted(own ^ sections[name]) + sorted(common ^ sections["All benchmarks"])))
        text = help_of(bench, name)
        wide = [line for line in text.splitlines() if len(line) > 80]
        results.append((not wide, f"{name}: the help fits 80 columns", wide))
        examples = text.split("\nexamples:\n")[-1]
        results.append((examples.count(f"numa_bench {name} ") == 2, f"{name}: the help has two examples", examples))
    listed = subprocess.run([bench, "--help"], capture_output=True, text=True, check=True).stdout
    names = set(re.findall(r"^  (\S+)", listed.split("Benchmarks:\n")[1].split("\n\n")[0], re.M))
    results.append((names and sections.keys() == names | {"All benchmarks"},
                    "every benchmark and what they share", sorted(sections)))
    if shutil.which("groff"):
        said = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", manual], capture_output=True,
                              text=True).stderr
        results.append((not said, "groff has nothing to say", said))
    for number, (good, what, detail) in enumerate(results, 1):
        print("ok" if good else "not ok", number, "-", what, *(["\n#", detail] if not good else []))
    print(f"1..{len(results)}")
    return not all(good for good, _, _ in results)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
