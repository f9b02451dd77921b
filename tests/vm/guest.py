#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs inside the guest: a daemon, one request after the other, every answer into $OUT/answers.json.

usage: guest.py BUILD_DIR REQUESTS.json   requests: [[method, path, body or null], …]; a POST to
/v1/runs is waited for, and the run and its matrix are kept too.
"""
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile


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


def main(build, requests):
    home = tempfile.mkdtemp(prefix="guest.")
    os.chmod(home, 0o755)
    log = open(os.environ["OUT"] + "/daemon.log", "wb")
    daemon = subprocess.Popen(
        [f"{build}/daemon/numaprobed", "--config=/dev/null", "--listen=127.0.0.1:0",
         f"--state-dir={home}/state", f"--run-dir={home}/run"], stderr=subprocess.PIPE)
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
        answer = ask(port, method, path, body)
        if answer["status"] == 202:
            answer["run"] = wait_for(port, answer["body"]["id"])
            answer["matrix"] = ask(port, "GET", f"/v1/runs/{answer['body']['id']}/matrix")["body"]
            log = http.client.HTTPConnection("127.0.0.1", port)
            log.request("GET", f"/v1/runs/{answer['body']['id']}/log")
            answer["log"] = log.getresponse().read().decode("utf-8", "replace")
        answers.append(answer)
        with open(os.environ["OUT"] + "/answers.json", "w") as f:
            json.dump(answers, f)
    daemon.terminate()
    daemon.wait()


main(sys.argv[1], json.load(open(sys.argv[2])))
