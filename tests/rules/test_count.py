#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TAP: the closing line of ./check counts what was asserted, and never makes a failure disappear."""
import json
import subprocess
import sys
import tempfile

from tooltest import load, report

tool = load("count-tests.py")

CASES = [
    ("TAP lines", {"result": "OK", "stdout": "ok 1 - a\nok 2 # SKIP no\n1..2\n"}, (1, 0, 1)),
    ("a TAP failure", {"result": "FAIL", "stdout": "ok 1 - a\nnot ok 2 - b\n1..2\n"}, (1, 1, 0)),
    ("a crash after good lines", {"result": "ERROR", "stdout": "ok 1 - a\n1..9\n"}, (1, 1, 0)),
    ("a whole program skipped", {"result": "SKIP", "stdout": "1..0 # SKIP absent\n"}, (0, 0, 1)),
    ("a program that asserts nothing", {"result": "SKIP", "stdout": "1..0\n"}, (0, 1, 0)),
    ("pytest", {"result": "OK", "stdout": "x\n==== 12 passed, 3 skipped in 4.5s ====\n"},
     (12, 0, 3)),
    ("pytest with errors", {"result": "FAIL",
                            "stdout": "= 1 failed, 2 passed, 1 error in 0.1s =\n"}, (2, 2, 0)),
    ("an exit status", {"result": "OK", "stdout": ""}, (1, 0, 0)),
    ("a time-out", {"result": "TIMEOUT", "stdout": ""}, (0, 1, 0)),
    ("exit code 77", {"result": "SKIP", "stdout": ""}, (0, 0, 1)),
]


def closing_line(entries, *arguments):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as log:
        log.writelines(json.dumps(dict(e, name="t")) + "\n" for e in entries)
        log.flush()
        done = subprocess.run([sys.executable, tool.__file__, *arguments, log.name], capture_output=True,
                              text=True)
    return done.returncode, done.stdout.splitlines()[-1]


def main():
    results = [(what, tool.count(entry) == wanted) for what, entry, wanted in CASES]
    good, bad = CASES[0][1], CASES[1][1]
    results += [
        ("all is well: status 0", closing_line([good]) == (0, "1 passed, 0 failed, 1 skipped")),
        ("a failure: status 1", closing_line([good, bad]) == (1, "2 passed, 1 failed, 1 skipped")),
        ("a build that failed counts", closing_line([good], "--broken-builds=1")
         == (1, "1 passed, 1 failed, 1 skipped")),
        ("nothing ran: status 1", closing_line([])[0] == 1),
    ]
    return report(results)


if __name__ == "__main__":
    sys.exit(main())
