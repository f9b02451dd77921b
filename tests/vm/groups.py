#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs inside the guest: a daemon alone in a control group, as a delegated one is, with the controllers that a machine
has; a run; and what becomes of both when the run takes more memory than it may. Facts as JSON in $OUT/facts.json.

usage: groups.py BUILD_DIR
"""
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time

TOP = "/sys/fs/cgroup"
GROUP = f"{TOP}/unit"


def write(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def read(path):
    with open(path, encoding="ascii") as f:
        return f.read().strip()


def until(what, timeout=60):
    end = time.monotonic() + timeout
    while time.monotonic() < end and not what():
        time.sleep(0.05)
    return what()


def start(build):
    for controller in ("cpu", "memory"):
        write(f"{TOP}/cgroup.subtree_control", "+" + controller)
    os.mkdir(GROUP)
    home = tempfile.mkdtemp(prefix="guest.")
    os.chmod(home, 0o755)
    daemon = subprocess.Popen(
        [f"{build}/daemon/numaprobed", "--config=/dev/null", "--anonymous=admin", "--listen=127.0.0.1:0",
         "--admission=ignore", f"--state-dir={home}/state", f"--run-dir={home}/run"], stderr=subprocess.PIPE,
        preexec_fn=lambda: write(f"{GROUP}/cgroup.procs", str(os.getpid())))
    for line in daemon.stderr:
        found = re.search(rb"event=ready .*listen=127\.0\.0\.1:(\d+)", line)
        if found:
            return daemon, int(found.group(1))
    raise AssertionError("the daemon did not start")


def ask(port, method, path, body=None):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=200)
    c.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"} if body else {})
    return json.loads(c.getresponse().read())


def main(build):
    daemon, port = start(build)
    run = ask(port, "POST", "/v1/runs", {"benchmark": "latency", "size": "1M", "cell_ms": 60000, "cpus": "0",
                                         "launcher": "processes"})["id"]
    folder = f"{GROUP}/numaprobe-run-{run}"
    until(lambda: os.path.exists(folder) and read(f"{folder}/cgroup.procs"))
    facts = {name: read(f"{folder}/{name}") for name in ("memory.max", "memory.oom.group", "cpu.weight")}
    facts["oom_score_adj"] = read(f"/proc/{read(f'{folder}/cgroup.procs').split()[0]}/oom_score_adj")
    facts["daemon_in"] = str(daemon.pid) in read(f"{GROUP}/numaprobed/cgroup.procs").split()
    facts["conditions"] = ask(port, "GET", f"/v1/runs/{run}")["conditions"]
    write(f"{folder}/memory.max", "1000000")  # as if it had taken more than it may
    facts["state"] = ask(port, "GET", f"/v1/runs/{run}?wait=60")["state"]
    facts["removed"] = until(lambda: not os.path.exists(folder))
    facts["alive"] = ask(port, "GET", "/healthz")["status"] == "ok"
    daemon.terminate()
    facts["exit"] = daemon.wait()
    write(os.environ["OUT"] + "/facts.json", json.dumps(facts))


main(sys.argv[1])
