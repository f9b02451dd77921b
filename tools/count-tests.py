#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up what meson's testlog.json files say, and ends with "N passed, N failed, N skipped".

usage: count-tests.py [--broken-builds=N] TESTLOG.json...

Counts what was really asserted: the lines of a TAP program, pytest's own figures, else the program as one
test. A program that failed counts as at least one failure, whatever it printed, and so does one that asserts
nothing and gives no reason (a bare "1..0"). Exit status 1 when anything failed or nothing
passed.
"""
import json
import re
import sys

PYTEST = re.compile(r"^=*\s*((?:\d+ [a-z]+,? ?)+)in [\d.]+s.*$", re.M)
TAP = re.compile(r"^(not ok|ok)\b(.*)$", re.M)


def count_tap(text):
    passed = failed = skipped = 0
    for verdict, rest in TAP.findall(text):
        if re.search(r"#\s*SKIP", rest, re.I):
            skipped += 1
        elif verdict == "ok":
            passed += 1
        else:
            failed += 1
    if re.search(r"^1\.\.0\s*#\s*SKIP", text, re.M | re.I):
        skipped += 1
    return passed, failed, skipped


def count_pytest(text):
    found = PYTEST.findall(text)
    if not found:
        return None
    figures = {}
    for number, word in re.findall(r"(\d+) ([a-z]+)", found[-1]):
        figures[word] = figures.get(word, 0) + int(number)
    return (figures.get("passed", 0) + figures.get("xfailed", 0),
            figures.get("failed", 0) + figures.get("error", 0) + figures.get("errors", 0)
            + figures.get("xpassed", 0),
            figures.get("skipped", 0))


def count(test):
    """(passed, failed, skipped) of one entry of testlog.json."""
    text = test.get("stdout") or ""
    result = test.get("result", "")
    counted = count_pytest(text)
    if counted is None and re.search(r"^1\.\.\d+", text, re.M):
        counted = count_tap(text)
    if counted is None or sum(counted) == 0:
        counted = (int(result == "OK"), 0, int(result == "SKIP"))
    passed, failed, skipped = counted
    asserts_nothing = re.search(r"^1\.\.0\s*$", text, re.M) is not None
    if asserts_nothing or result not in ("OK", "SKIP", "EXPECTEDFAIL"):
        skipped -= int(asserts_nothing and result == "SKIP")
        failed = max(failed, 1)
    return passed, failed, skipped


def main(arguments):
    totals = [0, 0, 0]
    for argument in arguments:
        if argument.startswith("--broken-builds="):
            broken = int(argument.split("=")[1])
            totals[1] += broken
            if broken:
                print(f"builds that failed: {broken}")
            continue
        with open(argument, encoding="utf-8") as log:
            for line in log:
                test = json.loads(line)
                figures = count(test)
                totals = [a + b for a, b in zip(totals, figures)]
                if figures[1]:
                    print(f"failed: {test['name']} ({test.get('result')}), see {argument}")
                    print(*re.findall(r"^not ok.*(?:\n#.*)*|^FAILED.*$|^1\.\.0$",
                                      test.get("stdout") or "", re.M)[:20], sep="\n")
                for reason in re.findall(r"# SKIP:? *(.*)|^SKIPPED (.*)$", test.get("stdout") or "",
                                         re.M):
                    print("skipped:", test["name"] + ":", " ".join(reason).strip())
    print("{} passed, {} failed, {} skipped".format(*totals))
    return 1 if totals[1] or not totals[0] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
