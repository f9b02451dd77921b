#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TAP: tools/coverage.py counts lines as gcov saw them, and a room below the floor fails."""
import contextlib
import io
import pathlib
import shutil
import subprocess
import sys
import tempfile

from tooltest import load, report

tool = load("coverage.py")

ROOT = pathlib.Path("/p")


def gcov(file, *counts, where="/p/build"):
    return {"current_working_directory": where,
            "files": [{"file": file, "lines": [{"line_number": n, "count": c} for n, c in counts]}]}


def reported(counted, floor=90):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        held = tool.report(counted, floor, worst=len(tool.HELD) + 1)
    return held, text.getvalue()


def full(ran, of):
    """Every room that is held has `ran` of `of` lines."""
    return {f"{room}/a.c": {n: int(n < ran) for n in range(of)} for room in tool.HELD}


def counting():
    header = tool.tally([gcov("../core/a.h", (1, 0), (2, 3)), gcov("../core/a.h", (1, 2), (2, 0))], ROOT)
    others = tool.tally([gcov("../tests/unit/a.c", (1, 1)), gcov("/usr/include/a.h", (1, 1))], ROOT)
    yield "a header's line ran when it ran for anybody", tool.share(header.values()) == (2, 2)
    yield "tests and the system's headers do not count", others == {}
    yield "lines that nothing ran are named, joined over what is no code", \
        tool.missed({3: 0, 4: 0, 9: 0, 12: 5, 14: 0}) == "3-9, 14"


def floors():
    good, bad = full(90, 100), full(90, 100)
    bad["api/b.c"] = {1: 0}
    yield "ninety of a hundred are enough", reported(good)[0]
    held, text = reported(bad)
    yield "one line less is not", not held and "not ok 2 - api: 89.1 % of 101 lines" in text and "ok 1 - core" in text
    yield "the file is named with its lines", "   1 of    1 api/b.c: 1\n" in text
    yield "a room that is not held may have less", reported({**good, "client/a.c": {1: 0}})[0]
    yield "nothing counted is a failure", not reported({})[0]


def real(folder):
    """A program of two functions of which one runs, by this compiler and its gcov."""
    (folder / "core").mkdir()
    source = folder / "core" / "two.c"
    source.write_text("int one(void)\n{\n    return 1;\n}\nint two(void)\n{\n    return 2;\n}\n"
                      "int main(void)\n{\n    return one() - 1;\n}\n")
    subprocess.run(["gcc", "--coverage", "-c", "core/two.c", "-o", "core/two.o"], cwd=folder, check=True)
    subprocess.run(["gcc", "--coverage", "core/two.o", "-o", "two"], cwd=folder, check=True)
    tool.reset(folder)
    data = folder / "core" / "two.gcda"
    yield "other accounts may add their counts", data.stat().st_mode & 0o777 == 0o666
    yield "without a run nothing counts", tool.share(tool.tally(tool.documents(folder), folder).values()) == (0, 6)
    subprocess.run([folder / "two"], check=True)
    counted = tool.tally(tool.documents(folder), folder)
    yield "gcov's figures are read", counted["core/two.c"] == {1: 1, 3: 1, 5: 0, 7: 0, 9: 1, 11: 1}
    data.write_bytes(b"damaged")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        cut = tool.share(tool.tally(tool.documents(folder), folder).values())
    yield "damaged counts are not believed, and the file is named", cut == (0, 6) and "core/two.gcda" in said.getvalue()
    tool.reset(folder)
    yield "and forgotten", tool.share(tool.tally(tool.documents(folder), folder).values()) == (0, 6)


def main():
    results = [*counting(), *floors()]
    if shutil.which("gcc") and shutil.which("gcov"):
        with tempfile.TemporaryDirectory() as folder:
            results += real(pathlib.Path(folder).resolve())
    return report(results)


if __name__ == "__main__":
    sys.exit(main())
