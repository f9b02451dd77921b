#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long the page of a machine with many runs takes in a real Chromium: first paint, until the verdict stands there, and
bytes over the wire, beside the same with one run. Figures; medians of fresh tabs, in turn.

usage: dashboard.py BUILD [--runs=10000] [--tabs=11]
"""
import argparse
import copy
import datetime
import json
import os
import pathlib
import random
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from conftest import FAKE_BENCH, Daemon  # noqa: E402
from dashboard import Browser  # noqa: E402

AT_ONCE = 200  # runs of one import
WATCH = """new MutationObserver(() => { if (!window.verdictAt && document.querySelector('.banner'))
    window.verdictAt = performance.now(); }).observe(document, { childList: true, subtree: true });"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]"


def fill(daemon, runs):
    """A run with a baseline of it, and `runs` copies of other dates and values. Each other thousand is 3 % slower."""
    first = daemon.run(cpus="0", size="1-512")["id"]
    daemon.request("PUT", "/v1/baselines/default", {"runs": [first]})
    whole, rng = daemon.get(f"/v1/runs/{first}/export").json, random.Random(1)
    at = datetime.datetime(2025, 1, 1)
    for begin in range(0, runs, AT_ONCE):
        lines = []
        for i in range(begin, min(begin + AT_ONCE, runs)):
            one = copy.deepcopy(whole)
            time = (at + datetime.timedelta(hours=i)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
            one["run"].update(dict.fromkeys(("created", "started", "measured", "finished"), time))
            factor = (1.03 if i // 1000 % 2 else 1) * rng.uniform(0.995, 1.005)
            for cell in one["matrices"][0]["cells"][0]:
                cell.pop("distribution", None)  # of the values before
                cell.update({k: round(cell[k] * factor, 3) for k in ("median", "lo", "hi", "min", "p10", "p90", "p99", "mean")})
            lines.append(json.dumps(one))
        answer = daemon.request("POST", "/v1/imports", "\n".join(lines), {"Content-Type": "application/x-ndjson"})
        assert answer.status in (200, 201), answer.body


def visit(browser, daemon):
    """(first paint, verdict, all: ms; bytes) of a tab without a cache."""
    page = browser.open(daemon, before=WATCH)
    page.wait("document.querySelectorAll('#view table').length")
    got = page.evaluate(f"[{PAINT}.startTime, window.verdictAt, performance.now()]")
    return (*got, sum(page.requests.values()))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build", type=pathlib.Path)
    p.add_argument("--runs", type=int, default=10000)
    p.add_argument("--tabs", type=int, default=11)
    args = p.parse_args()
    env = {"NUMAPROBE_BENCH": str(FAKE_BENCH), "NUMAPROBE_PYTHON": sys.executable,
           "NUMAPROBE_MPIRUN": str(FAKE_BENCH.with_name("fake_mpirun.py"))}
    with tempfile.TemporaryDirectory() as many, tempfile.TemporaryDirectory() as one:
        daemons = {}
        browser = Browser()
        try:
            for home, runs in ((one, 0), (many, args.runs)):
                os.chmod(home, 0o755)
                daemons[runs + 1] = Daemon(args.build / "daemon" / "numaprobed", pathlib.Path(home), env).start()
                fill(daemons[runs + 1], runs)
                visit(browser, daemons[runs + 1])  # Chromium's own first time
            seen = {runs: [] for runs in daemons}
            for _ in range(args.tabs):
                for runs, daemon in daemons.items():
                    seen[runs].append(visit(browser, daemon))
            for runs, rows in seen.items():
                paint, verdict, whole, size = map(statistics.median, zip(*rows))
                print(f"{runs:>6} runs, medians of {args.tabs} tabs in turn: first paint {paint:.0f} ms, verdict {verdict:.0f} ms, "
                      f"whole view {whole:.0f} ms, {size / 1024:.1f} KiB over the wire; load {os.getloadavg()[0]:.1f}")
        finally:
            browser.close()
            for daemon in daemons.values():
                daemon.stop()


if __name__ == "__main__":
    main()
