#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs inside the guest: a daemon, one request after the other, every answer into $OUT/answers.json.

usage: guest.py BUILD_DIR REQUESTS.json   requests: [[method, path, body or null], …]; a POST to
/v1/runs is waited for, and the run and its matrix are kept too. The method BENCH runs numa_bench
by hand: path is the benchmark, body {"args": […]} and, if need be, "mpirun": […], "group": {file:
text} of a control group to run in, "files": {path: text} to write before. The method WRITE writes body to path, MEMORY
body to the state of all blocks of the node that path names (of one block: "2/1"), PLUG tells QEMU's monitor to do path with
body, UNTIL looks at path, of the daemon or a file, until it has body (a regular expression). DURING posts body["run"], and
body["behind"], which waits for it, and takes body["steps"], requests like these, as soon as the first measures.
"""
import glob
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


def memory(which, state):
    node, _, block = which.partition("/")
    blocks = sorted(glob.glob(f"/sys/devices/system/memory/memory*/node{node}"))
    for link in blocks[int(block or 0):int(block) + 1 if block else None]:
        path = os.path.dirname(link) + "/state"
        if open(path).read().split("_")[0].strip() != state.split("_")[0]:
            write(path, state)
    return {"status": 0, "blocks": len(blocks)}


def plug(command, arguments):
    """The event of a module that went comes later than the answer: look at the machine, not at it."""
    with open(glob.glob("/dev/vport*")[0], "r+b", buffering=0) as port:
        for execute, more in (("qmp_capabilities", {}), (command, {"arguments": arguments})):
            port.write(json.dumps({"execute": execute, **more}).encode() + b"\n")
            while True:
                line = json.loads(read_line(port))
                if "return" in line or "error" in line:
                    break
    return {"status": 0, "body": line}


def read_line(port):
    line = b""
    while not line.endswith(b"\n"):
        line += port.read(1)
    return line


def until(port, path, pattern, timeout=60):
    end = time.monotonic() + timeout
    while True:
        text = json.dumps(ask(port, "GET", path)["body"]) if path.startswith("/v1/") else open(path).read()
        if re.search(pattern, text):
            return {"status": 0}
        if time.monotonic() > end:
            raise AssertionError((path, pattern, text))
        time.sleep(0.1)


def during(port, build, body):
    first = ask(port, "POST", "/v1/runs", body["run"])
    until(port, f"/v1/runs/{first['body']['id']}", '"progress": {')
    behind = ask(port, "POST", "/v1/runs", body["behind"])
    first["steps"] = [take(port, build, *step) for step in body["steps"]]
    return {**first, "behind": wait_for(port, behind["body"]["id"])}


def take(port, build, method, path, body):
    if method == "BENCH":
        return bench(build, path, body)
    if method == "WRITE":
        return write(path, body)
    if method == "MEMORY":
        return memory(path, body)
    if method == "PLUG":
        return plug(path, body)
    if method == "UNTIL":
        return until(port, path, body)
    answer = during(port, build, body) if method == "DURING" else ask(port, method, path, body)
    if answer["status"] == 202:
        answer["run"] = wait_for(port, answer["body"]["id"])
        answer["matrix"] = ask(port, "GET", f"/v1/runs/{answer['body']['id']}/matrix")["body"]
        log = http.client.HTTPConnection("127.0.0.1", port)
        log.request("GET", f"/v1/runs/{answer['body']['id']}/log")
        answer["log"] = log.getresponse().read().decode("utf-8", "replace")
    return answer


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
        answer = take(port, build, method, path, body)
        answer["seconds"] = round(time.monotonic() - begun, 1)  # for whom the suite is too slow
        answers.append(answer)
        with open(os.environ["OUT"] + "/answers.json", "w") as f:
            json.dump(answers, f)
    daemon.terminate()
    daemon.wait()


main(sys.argv[1], json.load(open(sys.argv[2])))
