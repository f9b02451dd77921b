#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client of numaprobed in one file, with Python's standard library alone (3.8 or later).

It measures the node, waits for the result, prints it, and compares it with an earlier run:

    python3 numaprobe_client.py --benchmark=matrix --quick
    python3 numaprobe_client.py --size=1-64 --compare=17
    python3 numaprobe_client.py --url=https://node42:7780 --token-file=token --cacert=ca.pem

The exit status is 0, or 1 with the daemon's reason on standard error, or 7 if the run is slower than the earlier one.
"""
import argparse
import csv
import http.client
import json
import os
import pathlib
import socket
import ssl
import sys
import urllib.parse

SOCKET = "unix:/run/numaprobe/numaprobed.sock"
FINAL = {"succeeded", "failed", "canceled", "interrupted"}
WAIT_S = 60  # of one request; the daemon responds earlier if the run ends
SLOWER = 7  # as `numaprobe compare` has it


class Refused(Exception):
    """What the daemon says: an object of RFC 9457, with its members."""

    def __init__(self, status, problem):
        self.status, self.problem = status, problem
        reasons = "".join(f"\n  {b['kind']}: {b['text']}" for b in problem.get("blockers", []))
        text = problem.get("detail") or problem.get("title") or f"HTTP status {status}"
        member = problem.get("member")
        super().__init__(f"{member}: {text}" if member else text)
        self.reasons = reasons


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Numaprobe:
    """One daemon, by its Unix socket or an address."""

    def __init__(self, url=SOCKET, token=None, cacert=None):
        self.url, self.token, self.cacert = urllib.parse.urlsplit(url), token, cacert

    def connection(self):
        timeout = WAIT_S + 20
        if self.url.scheme == "unix":
            return UnixConnection(self.url.path, timeout)
        if self.url.scheme == "https":
            return http.client.HTTPSConnection(self.url.netloc, timeout=timeout, context=ssl.create_default_context(cafile=self.cacert))
        return http.client.HTTPConnection(self.url.netloc, timeout=timeout)

    def request(self, method, path, body=None):
        """The body of a response as text. Refused is raised for all but success."""
        headers = {"Accept": "application/json, text/csv"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection = self.connection()
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        if response.status >= 400:
            try:
                problem = json.loads(text)
            except ValueError:
                problem = {}
            raise Refused(response.status, problem if isinstance(problem, dict) else {})
        return text

    def get(self, path, **query):
        return json.loads(self.request("GET", path + ("?" + urllib.parse.urlencode(query) if query else "")))

    def run(self, **spec):
        """Starts a run and waits for its end: the run. Members are those of POST /v1/runs."""
        run = json.loads(self.request("POST", "/v1/runs", spec))
        while run["state"] not in FINAL:
            run = self.get(f"/v1/runs/{run['id']}", wait=WAIT_S)
        return run

    def cells(self, run_id):
        """The result: a dictionary per cell, as /v1/runs/N/matrix.csv has it."""
        return list(csv.DictReader(self.request("GET", f"/v1/runs/{run_id}/matrix.csv").splitlines()))

    def compare(self, base, target):
        return self.get("/v1/compare", base=base, target=target)


def print_table(cells, out):
    """The cells with their median and its interval, in columns."""
    if not cells:
        print("no values", file=out)
        return
    names = [n for n in cells[0] if n.startswith(("median", "lo_", "hi_"))]
    names = list(cells[0])[:list(cells[0]).index("n")] + names
    rows = [names] + [[c[n] for n in names] for c in cells]
    widths = [max(len(r[i]) for r in rows) for i in range(len(names))]
    for row in rows:
        print("  ".join(text.rjust(width) for text, width in zip(row, widths)), file=out)


def measure(daemon, options):
    spec = {"benchmark": options.benchmark, "note": options.note, "quick": options.quick}
    spec.update({name: value for name in ("size", "cpus") if (value := getattr(options, name))})
    run = daemon.run(**spec)
    if run["state"] != "succeeded":
        raise Refused(200, {"detail": f"run {run['id']} {run['state']}: {(run.get('error') or {}).get('text', 'no reason is known')}"})
    print(f"run {run['id']} of {run['spec']['benchmark']} on {run['node']}")
    print_table(daemon.cells(run["id"]), sys.stdout)
    if not options.compare:
        return 0
    compared = daemon.compare(options.compare, run["id"])
    print(f"against run {options.compare}: {compared['verdict']}; {compared['text']}")
    return SLOWER if compared["verdict"] == "slower" else 0


def main(words=None):
    parser = argparse.ArgumentParser(description="Measure the memory of a node through numaprobed.")
    parser.add_argument("--url", default=os.environ.get("NUMAPROBE_URL", SOCKET), help="unix:/PATH, http://HOST:PORT or https://HOST:PORT")
    parser.add_argument("--token-file", type=pathlib.Path, help="file with a token")
    parser.add_argument("--cacert", help="CA bundle (PEM) that signed the daemon's certificate")
    parser.add_argument("--benchmark", default="latency")
    parser.add_argument("--size", help="working sets, as numaprobe run takes them")
    parser.add_argument("--cpus", help="CPUs of the ranks")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--note", default="by numaprobe_client.py")
    parser.add_argument("--compare", type=int, metavar="RUN", help="compare with this run")
    options = parser.parse_args(words)
    try:
        token = options.token_file.read_text(encoding="ascii").strip() if options.token_file else os.environ.get("NUMAPROBE_TOKEN")
        return measure(Numaprobe(options.url, token, options.cacert), options)
    except Refused as e:
        print(f"numaprobe_client: {e}{e.reasons}", file=sys.stderr)
    except (OSError, http.client.HTTPException) as e:
        print(f"numaprobe_client: {options.url}: {e}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
