#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TAP: how many lines of each room the tests of a build ran (b_coverage=true, gcc), and that it is enough.

usage: coverage.py BUILD [--floor=PERCENT] [--worst=N] [--lines=FILE]
       coverage.py BUILD --reset      forgets what was counted, before tests run anew

A line counts as run when any program ran it. --lines names the lines of a file that none did. Programs write
their counts when they end by themselves: one that is killed with SIGKILL counts for nothing.
GCOV is the program that reads the counts (default gcov; its version must be the compiler's).
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys

# What the floor holds for; the others are printed.
HELD = ("core", "api", "http", "model", "formats", "analysis")
ROOMS = (*HELD, "base", "daemon", "client", "bench", "fetch", "virtual")


def reset(build):
    """Empty counts that every account may write: as root, ranks run as another one, and complain where they cannot."""
    for data in build.rglob("*.gcda"):
        data.unlink()
    for notes in build.rglob("*.gcno"):
        data = notes.with_suffix(".gcda")
        data.touch()
        data.chmod(0o666)


def gcov(build, notes):
    return subprocess.run([os.environ.get("GCOV", "gcov"), "--json-format", "--stdout", str(notes)],
                          cwd=build, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def documents(build):
    """What gcov says of every object of BUILD: parsed JSON documents."""
    for notes in sorted(build.rglob("*.gcno")):
        if notes.relative_to(build).parts[0] not in ROOMS:
            continue
        data = notes.with_suffix(".gcda")
        if data.exists() and not data.stat().st_size:
            data.unlink()  # nothing ran it; gcov takes an absent file for that, but no empty one
        done = gcov(build, notes)
        if done.returncode and data.exists():
            # Killed while it wrote, as tests do: as if nothing had run it, which can only lower the share.
            print(f"# not readable, counted as not run: {data.relative_to(build)}: {done.stderr.strip()}")
            data.unlink()
            done = gcov(build, notes)
        if done.returncode:
            sys.exit(f"coverage.py: gcov cannot read {notes}: {done.stderr.strip()}")
        for line in done.stdout.splitlines():
            yield json.loads(line)


def tally(found, root):
    """{file: {line: times run}} of our sources; a line of a header adds up over whoever includes it."""
    counted = collections.defaultdict(collections.Counter)
    for document in found:
        for entry in document["files"]:
            path = pathlib.Path(os.path.normpath(os.path.join(document["current_working_directory"], entry["file"])))
            if not path.is_relative_to(root) or path.relative_to(root).parts[0] not in ROOMS:
                continue
            for line in entry["lines"]:
                counted[str(path.relative_to(root))][line["line_number"]] += line["count"]
    return counted


def share(files):
    """(lines run, lines) of some {line: times}."""
    return sum(1 for f in files for n in f.values() if n), sum(len(f) for f in files)


def missed(lines):
    """'3-5, 9': the lines that nothing ran."""
    runs = []
    code = sorted(lines)
    for at, number in enumerate(code):
        if lines[number]:
            continue
        if at and runs and runs[-1][1] == code[at - 1]:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{a}-{b}" if a != b else str(a) for a, b in runs)


def report(counted, floor, worst):
    """Prints TAP, and whether every room that is held has enough."""
    held = True
    print(f"1..{len(HELD)}")
    for number, room in enumerate(HELD, 1):
        ran, of = share([f for name, f in counted.items() if name.startswith(room + "/")])
        enough = of > 0 and ran * 100 >= floor * of
        held &= enough
        print(f"{'ok' if enough else 'not ok'} {number} - {room}: {100 * ran / max(of, 1):.1f} % of {of} lines"
              f" (at least {floor} %)")
    for room in ROOMS[len(HELD):]:
        ran, of = share([f for name, f in counted.items() if name.startswith(room + "/")])
        print(f"# {room}: {100 * ran / max(of, 1):.1f} % of {of} lines")
    print("# most lines without a test:")
    rest = sorted(((share([f])[1] - share([f])[0], name) for name, f in counted.items()
                   if name.split("/")[0] in HELD), reverse=True)
    for lines, name in rest[:worst]:
        print(f"#   {lines:4} of {len(counted[name]):4} {name}: {missed(counted[name])}")
    return held


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--floor", type=float, default=90)
    parser.add_argument("--worst", type=int, default=15)
    parser.add_argument("--lines")
    parser.add_argument("--reset", action="store_true")
    o = parser.parse_args(arguments)
    build = o.build.resolve()
    if o.reset:
        reset(build)
        return 0
    counted = tally(documents(build), pathlib.Path(__file__).resolve().parents[1])
    if o.lines:
        print(missed(counted[o.lines]))
        return 0
    return 0 if report(counted, o.floor, o.worst) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
