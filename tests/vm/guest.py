#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs inside the guest: a daemon, one request after the other, every answer into $OUT/answers.json.

usage: guest.py BUILD_DIR REQUESTS.json   requests: [[method, path, body or null], …]; a POST to
/v1/runs is waited for, and the run and its matrix are kept too. The method BENCH runs numa_bench
by hand: path is the benchmark, body {"args": […]} and, if need be, "mpirun": […], "group": {file:
text} of a control group to run in, "files": {path: text} to write before. The method WRITE writes body to path.
"""
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time


def ask(port, method, path, body=None):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=200)
    c.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"} if body else {})
    a = c.getresponse()
    text = a.read().decode()
    c.close()
    return {"status": a.status, "body": json.loads(text) if text else None}


def wait_for(port, run_id):
    while True:
        run = ask(port, "GET", f"/v1/runs/{run_id}?wait=60")["body"]
        if run["state"] not in ("queued", "running"):
            return run


def into_group(files):
    """A control group for the calling process alone, which lasts as long as the guest."""
    top = "/sys/fs/cgroup"
    group = f"{top}/of{os.getpid()}"
    os.mkdir(group)
    for path, text in [(f"{top}/cgroup.subtree_control", "+cpuset +memory"),
                       *((f"{group}/{name}", text) for name, text in files.items()),
                       (f"{group}/cgroup.procs", str(os.getpid()))]:
        with open(path, "w") as f:
            f.write(text)


def bench(build, benchmark, body):
    argv = body.get("mpirun", []) + [f"{build}/bench/numa_bench", benchmark, "--json", "--deadline=120", *body["args"]]
    group = body.get("group")
    for path, text in body.get("files", {}).items():
        with open(path, "w") as f:
            f.write(text)
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=150,
                          preexec_fn=group and (lambda: into_group(group)))
    return {"argv": argv, "status": done.returncode, "stderr": done.stderr,
            "body": json.loads(done.stdout) if done.stdout.startswith("{") else done.stdout}


def write(path, text):
    with open(path, "w") as f:
        f.write(text)
    return {"status": 0}


def main(build, requests):
    home = tempfile.mkdtemp(prefix="guest.")
    os.chmod(home, 0o755)
    log = open(os.environ["OUT"] + "/daemon.log", "wb")
    daemon = subprocess.Popen(
        [f"{build}/daemon/numaprobed", "--config=/dev/null", "--anonymous=admin", "--listen=127.0.0.1:0",
         "--admission=ignore", f"--state-dir={home}/state", f"--run-dir={home}/run"], stderr=subprocess.PIPE)
    port = None
    for line in daemon.stderr:
        log.write(line)
        log.flush()
        found = re.search(rb"event=ready .*listen=127\.0\.0\.1:(\d+)", line)
        if found:
            port = int(found.group(1))
            break
    answers = []
    for method, path, body in requests:
        begun = time.monotonic()
        answer = (bench(build, path, body) if method == "BENCH" else write(path, body) if method == "WRITE"
                  else ask(port, method, path, body))
        if method not in ("BENCH", "WRITE") and answer["status"] == 202:
            answer["run"] = wait_for(port, answer["body"]["id"])
            answer["matrix"] = ask(port, "GET", f"/v1/runs/{answer['body']['id']}/matrix")["body"]
            log = http.client.HTTPConnection("127.0.0.1", port)
            log.request("GET", f"/v1/runs/{answer['body']['id']}/log")
            answer["log"] = log.getresponse().read().decode("utf-8", "replace")
        answer["seconds"] = round(time.monotonic() - begun, 1)  # for whom the suite is too slow
        answers.append(answer)
        with open(os.environ["OUT"] + "/answers.json", "w") as f:
            json.dump(answers, f)
    daemon.terminate()
    daemon.wait()


main(sys.argv[1], json.load(open(sys.argv[2])))
