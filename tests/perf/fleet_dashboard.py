#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long the first view of a fleet takes in a real Chromium: first paint, until the verdict stands there, until every node
is drawn, and bytes over the wire. Figures; medians of fresh tabs. The collector has judged before, and again for each tab.

usage: fleet_dashboard.py BUILD [--nodes=200,10000] [--tabs=11]
"""
import argparse
import os
import pathlib
import statistics
import sys
import tempfile
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))

WATCH = """new MutationObserver(() => {
    if (!window.verdictAt && document.querySelector('.banner[data-judged]')) window.verdictAt = performance.now();
    if (!window.tilesAt && document.querySelector('.groups')) window.tilesAt = performance.now();
}).observe(document, { childList: true, subtree: true, attributes: true });"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def visit(browser, collector):
    """(first paint, verdict, tiles: ms; bytes) of a tab without a cache."""
    page = browser.open(collector, before=WATCH)
    page.wait("window.tilesAt && document.querySelector('#collector')")
    got = page.evaluate(f"[{PAINT}, window.verdictAt, window.tilesAt]")
    page.call("Page.close")
    return (*got, sum(page.requests.values()))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build", type=pathlib.Path)
    p.add_argument("--nodes", default="200,10000")
    p.add_argument("--tabs", type=int, default=11)
    args = p.parse_args()
    os.environ["NUMAPROBE_BUILD"] = str(args.build.resolve())
    from dashboard import Browser
    from test_fleet_browser import collector_over
    for nodes in map(int, args.nodes.split(",")):
        browser = Browser()
        with tempfile.TemporaryDirectory() as home:
            c = collector_over(pathlib.Path(home), nodes, "--runs=6", "--classes=4", "--bad=3", collector=["--every=60"])
            try:
                c.wait_up(nodes)
                for path in ("states", "tiles"):
                    with urllib.request.urlopen(f"{c.url}/v1/fleet/{path}") as reply:
                        print(f"{nodes:>6} nodes: /v1/fleet/{path} has {len(reply.read()) / 1024:.1f} KiB")
                visit(browser, c)  # Chromium's own first time
                rows = [visit(browser, c) for _ in range(args.tabs)]
                paint, verdict, tiles, size = map(statistics.median, zip(*rows))
                print(f"{nodes:>6} nodes, medians of {args.tabs} tabs: first paint {paint:.0f} ms, verdict {verdict:.0f} ms, every node {tiles:.0f} ms, "
                      f"{size / 1024:.1f} KiB over the wire; load {os.getloadavg()[0]:.1f}")
            finally:
                browser.close()
                c.close()


if __name__ == "__main__":
    main()
