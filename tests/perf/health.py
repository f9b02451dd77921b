#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long Slurm's health check takes (docs/slurm/numaprobe-health) with a daemon that has a baseline and a verdict:
the script, the `numaprobe check` in it, and `sh -c true` as the null, in turn.

usage: health.py BUILD [--rounds=41]
"""
import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "system"))
from conftest import Daemon  # noqa: E402


def numaprobe(build, url, *words):
    return subprocess.run([build / "client/numaprobe", f"--url={url}", *words], capture_output=True, text=True, check=False)


def main():
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("build", type=pathlib.Path)
    parse.add_argument("--rounds", type=int, default=41)
    o = parse.parse_args()
    build = o.build.resolve()
    with tempfile.TemporaryDirectory() as home:
        daemon = Daemon(build / "daemon/numaprobed", home, {"NUMAPROBE_BENCH": str(build / "bench/numa_bench")},
                        [f"--socket={home}/d.sock"]).start()
        try:
            url = f"unix:{home}/d.sock"
            for _ in range(3):
                done = numaprobe(build, url, "run", "--size=64K", "--quick")
                if done.returncode:
                    raise SystemExit(done.stderr)
            numaprobe(build, url, "baseline", "set", "default", "1", "2")
            env = {"NUMAPROBE_PATH": f"{build}/client:/usr/bin:/bin", "NUMAPROBE_URL": url, "NUMAPROBE_SETTINGS": "/dev/null"}
            asked = {"numaprobe-health": [ROOT / "docs/slurm/numaprobe-health"], "numaprobe check": [build / "client/numaprobe", "check"],
                     "sh -c true": ["sh", "-c", "true"]}
            print(numaprobe(build, url, "check").stdout.strip())
            took = {name: [] for name in asked}
            for _ in range(o.rounds):
                for name, words in asked.items():
                    begin = time.monotonic()
                    subprocess.run(words, env=env, capture_output=True, check=False)
                    took[name].append(1000 * (time.monotonic() - begin))
        finally:
            daemon.stop()
    for name, times in took.items():
        print(f"{name:18} median {statistics.median(times):6.1f} ms, slowest of {o.rounds} {max(times):6.1f} ms")
    print("the goal for numaprobe-health is 50 ms")


if __name__ == "__main__":
    main()
