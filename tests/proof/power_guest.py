#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs inside the guest of test_power.py: a daemon on a disk of its own, asked one thing after the other. What
was acknowledged is written past the page cache to the last 4 KiB of that disk, so that the log of the disk has
it in its order.

usage: power_guest.py NUMAPROBED SECONDS DISK[=unsynced]...   unsynced: the daemon's fsync and fdatasync do nothing
"""
import http.client
import json
import mmap
import os
import pathlib
import re
import subprocess
import sys
import time

FAKES = pathlib.Path(__file__).resolve().parents[1] / "fakes"
CSV = "size (MB),0,1\n" + "".join(f"{1 << i},%d.5,12.5\n" for i in range(12))


class Marks:
    def __init__(self, disk):
        self.disk = os.open(disk, os.O_RDWR | os.O_DIRECT)
        self.at = os.lseek(self.disk, 0, os.SEEK_END) - 4096
        self.page = mmap.mmap(-1, 4096)

    def put(self, what):
        self.page[:] = (b"MARK" + json.dumps(what).encode()).ljust(4096, b"\0")
        os.pwritev(self.disk, [self.page], self.at)


def ask(port, method, path, body, kind="application/json"):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    c.request(method, path, body if kind == "text/csv" else json.dumps(body), {"Content-Type": kind})
    a = c.getresponse()
    return a.status, json.loads(a.read())


def load(port, marks, seconds):
    end, known = time.monotonic() + seconds, {"run": 0, "label": 0}
    while time.monotonic() < end:
        n = known["label"] + 1
        for method, path, body, kind in (
                ("POST", f"/v1/imports?node=n{n}", CSV.replace("%d", str(n)), "text/csv"),
                ("POST", "/v1/runs", {"benchmark": "latency", "size": "1"}, "application/json"),
                ("PUT", "/v1/runs/1/label", {"label": f"l{n}"}, "application/json")):
            status, got = ask(port, method, path, body, kind)
            assert status in (200, 201, 202, 429), (status, got)
            if method == "PUT":
                known["label"] = n
            elif status != 429:
                known["run"] = max(known["run"], got["id"])
            marks.put(known)
    return known


def main(program, seconds, disk, unsynced):
    place = "/mnt/" + os.path.basename(disk)
    os.mkdir(place)
    subprocess.run(["mount", "-t", "ext4", disk, place], check=True)
    argv = [program, "--config=/dev/null", "--anonymous=admin", "--listen=127.0.0.1:0", "--admission=ignore",
            "--host-lock=none", f"--socket={place}-socket", f"--state-dir={place}/state", f"--run-dir={place}-run"]
    if unsynced:
        argv = [str(FAKES / "without_calls.py"), "fsync=0,fdatasync=0", *argv]
    daemon = subprocess.Popen(argv, stderr=subprocess.PIPE, env={
        "PATH": os.environ["PATH"], "NUMAPROBE_BENCH": str(FAKES / "fake_bench.py"),
        "NUMAPROBE_MPIRUN": str(FAKES / "fake_mpirun.py"), "NUMAPROBE_PYTHON": sys.executable})
    for line in daemon.stderr:
        found = re.search(rb"event=ready .*listen=127\.0\.0\.1:(\d+)", line)
        if found:
            break
    print(disk, load(int(found.group(1)), Marks(disk), seconds), flush=True)
    daemon.kill()


for one in sys.argv[3:]:
    main(sys.argv[1], float(sys.argv[2]), *one.partition("=")[::2])
