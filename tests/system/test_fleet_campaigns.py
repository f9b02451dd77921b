# SPDX-License-Identifier: Apache-2.0
"""Campaigns of numaprobe-fleetd over virtual nodes, which remember each run that was requested of them."""
import collections
import contextlib
import datetime
import http.client
import json
import os
import re
import signal
import socket
import urllib.error
import urllib.request

import pytest

from conftest import until
from test_fleetd import collect  # noqa: F401 (a fixture)

SPEC = {"benchmark": "latency", "size": "1-64"}


class OverSocket(http.client.HTTPConnection):
    """By the Unix socket: this account may start runs."""

    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def send(c, path, body=None):
    """(status, document)"""
    with contextlib.closing(OverSocket(f"{c.home}/run/numaprobe-fleetd.sock")) as connection:
        connection.request("POST", path, json.dumps(body or {}), {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, json.load(response)


def begin(c, **members):
    status, document = send(c, "/v1/fleet/campaigns", {"name": "probe", "spec": SPEC, **members})
    assert status == 201, document
    return document["campaign"]["id"]


def show(c, number, query="limit=1000"):
    with contextlib.suppress(urllib.error.URLError, ConnectionError):
        return c.get(f"/v1/fleet/campaigns/{number}?{query}")


def ended(c, number, timeout=120):
    return until(lambda: (d := show(c, number)) and d["campaign"]["state"] in ("done", "cancelled", "stopped") and
                 not d["campaign"]["running"] and d, timeout=timeout)


def probed(c, node):
    """Runs that were requested of a node: those behind the ones that it began with."""
    at = int(re.sub(r"\D", "", node))
    with urllib.request.urlopen(f"http://127.1.{at // 256}.{at % 256}:{c.fleet.port}/v1/feed?form=summary&limit=100",
                                timeout=20) as response:
        return [r for r in json.load(response)["runs"] if r["seq"] > 12]


def states(document):
    return collections.Counter(n["state"] for n in document["node_states"])


def times(document):
    """(begin, end) of each probe in ms, by node."""
    def at(text):
        return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1e3
    return {n["node"]: (at(n["requested"]), at(n["ended"])) for n in document["node_states"] if n["requested"] and n["ended"]}


def most_at_once(spans):
    edges = sorted([(a, 1) for a, _ in spans] + [(b, -1) for _, b in spans])
    count = most = 0
    for _, step in edges:
        count += step
        most = max(most, count)
    return most


def test_each_node_is_probed_once_a_few_at_a_time(collect):
    c = collect(50, "--run-ms=100").start()
    c.wait_up(50)
    number = begin(c, at_once=8, at_once_each={"by": "class", "n": 3})
    done = ended(c, number)
    assert done["campaign"]["state"] == "done" and states(done) == {"done": 50}, done["campaign"]
    assert done["campaign"]["done"] == 50 and done["campaign"]["pending"] == 0
    assert all(len(probed(c, n)) == 1 for n in c.fleet.names)
    assert most_at_once(times(done).values()) <= 8
    assert until(lambda: c.rows("SELECT count(*) FROM run") == [(50 * 13,)]), "the runs come to the collector at once"
    assert 0 < done["campaign"]["spent_node_minutes"] < 50
