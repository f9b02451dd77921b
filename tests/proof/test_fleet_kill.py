# SPDX-License-Identifier: Apache-2.0
"""SIGKILL of the collector, of the process that stores, of the one that reads, and of PostgreSQL, in turn and under load, while
5 % of the nodes' responses are cut. At the end the store has what the nodes have: nothing lost, nothing twice.

NUMAPROBE_KILLS: how many, on each engine (100). NUMAPROBE_SEED repeats which nodes measure.
"""
import contextlib
import http.client
import itertools
import json
import os
import random
import signal
import sys
import threading
import urllib.error
import urllib.request

import pytest

from conftest import HERE, PATIENCE, SEED, count, until

sys.path.insert(0, str(HERE.parent / "system"))
from postgresql import make_postgresql  # noqa: E402, F401
from test_fleetd import collect, read_again  # noqa: E402, F401

KILLS = count("NUMAPROBE_KILLS", 100)
NODES, RUNS, MORE = 60, 40, 30  # MORE: new runs between two kills
LOST = (OSError, http.client.HTTPException, urllib.error.URLError)


class Truth:
    """What the nodes themselves have."""

    def __init__(self, fleet):
        self.fleet, self.random = fleet, random.Random(SEED)

    def request(self, node, path, body=None):
        """Until it is not cut."""
        url = f"http://127.1.0.{node + 1}:{self.fleet.port}{path}"
        for _ in range(50):
            try:
                with urllib.request.urlopen(urllib.request.Request(url, body), timeout=PATIENCE) as response:
                    return json.load(response)
            except LOST:
                if body:
                    return None  # the run may be there: the node knows
        raise AssertionError(f"{url}: 50 responses were cut")

    def measure(self):
        for _ in range(MORE):
            self.request(self.random.randrange(NODES), "/v1/runs", json.dumps({"benchmark": "latency"}).encode())

    def runs(self):
        """{(node, seq): (run, measured)}"""
        found = {}
        for node, name in enumerate(self.fleet.names):
            after, more = 0, True
            while more:
                page = self.request(node, f"/v1/feed?form=summary&limit=100&after={after}")
                for run in page["runs"]:
                    found[name, run["seq"]] = run["id"]
                after, more = page["next"], page["more"]
        return found


def stored(server, collector):
    query = "SELECT node.name, run.seq, run.run FROM run JOIN node ON node.id = run.node"
    if server:
        return [(name, int(seq), int(run)) for name, seq, run in server.rows(query)]
    return collector.rows(query)


def kill_collector(collector, server):
    collector.process.kill()
    collector.process.wait()
    collector.start()


def kill_ingest(collector, server):
    collector.kill_child("--ingest")


def kill_work(collector, server):
    """While it reads."""
    def read():
        try:
            collector.get("/v1/fleet/outliers")
        except urllib.error.HTTPError as e:
            assert e.code == 503, e
    reader = threading.Thread(target=read)
    reader.start()
    collector.kill_reader()
    reader.join()


def kill_server(collector, server):
    server.stop(signal.SIGKILL)
    server.start()


def kill_backend(collector, server):
    """The server then ends all others and recovers, as after a crash."""
    for pid in server.backends()[:1]:
        with contextlib.suppress(ProcessLookupError):  # its client has ended
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_nothing_is_lost_and_nothing_is_there_twice(request, collect, tell, engine):  # noqa: F811
    server = request.getfixturevalue("make_postgresql")() if engine == "postgresql" else None
    kinds = [kill_ingest, kill_work, kill_collector] + ([kill_server, kill_backend] if server else [])
    c = collect(NODES, f"--runs={RUNS}", "--run-ms=0", "--faults=100% cuts=5",
                collector=[f"--store={server.uri}"] if server else []).start()
    truth, killed = Truth(c.fleet), 0
    for kill in itertools.islice(itertools.cycle(kinds), KILLS):
        until(lambda: c.status()["store_ready"])
        before = c.status()["runs_stored"]
        truth.measure()
        until(lambda: c.status()["runs_stored"] > before)
        c.wait_cleared()
        truth.measure()
        kill(c, server)
        killed += 1
    have = truth.runs()
    until(lambda: c.status()["store_ready"] and len(stored(server, c)) >= len(have))
    rows = stored(server, c)
    assert {(name, seq): run for name, seq, run in rows} == have, "nothing is lost"
    assert len(rows) == len(have), "nothing is there twice"
    assert until(lambda: read_again(c))["nodes"] == NODES
    tell(f"{engine}: {killed} kills, {len(have)} runs, none lost, none twice")
