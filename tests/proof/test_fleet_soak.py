# SPDX-License-Identifier: Apache-2.0
"""A collector over nodes that are installed anew, renamed, and whose clocks jump, for as long as one likes, on both engines.

The nodes are feeds of this program. In each round some of them measure, one of EVENTS happens to one of them, and the history is
read. At the end, and after each event,

    findings      are those that the nodes give a reason for, and no other
    store         has every run that a node ever had, once
    memory        of each process: what it grows by while it is measured is at most GROWTH_KIB and what the nodes that were
                  renamed and installed anew account for (NODE_KIB each); file descriptors are as many as before

Beside it: PostgreSQL is stopped for an hour, which a clock that is moved makes short.

NUMAPROBE_FLEET_SOAK_SECONDS: how long, on each engine (20). NUMAPROBE_SEED repeats a sequence.
"""
import datetime
import http.server
import json
import os
import pathlib
import random
import re
import select
import selectors
import signal
import socketserver
import statistics
import subprocess
import sys
import threading
import time
import urllib.parse

import pytest

from conftest import HERE, SEED, count, tool, until

sys.path.insert(0, str(HERE.parent / "system"))
from postgresql import make_postgresql  # noqa: E402, F401
from test_fleetd import NO_NODE_IS_LATE, Collector  # noqa: E402

SECONDS = count("NUMAPROBE_FLEET_SOAK_SECONDS", 20)
NODES, PAST, METRICS = 40, 1500, 30  # PAST: the writer's cache of SQLite is full from the beginning
GROWTH_KIB, NODE_KIB = 1024, 8
JUMP_S = 300
SLOW = 1.25  # what the slow node takes, by its peers
READS = ["/v1/fleet/status", "/v1/fleet/nodes?limit=20", "/v1/fleet/classes", "/v1/fleet/findings", "/v1/fleet/states", "/v1/fleet/tiles",
         "/v1/fleet/outliers", "/v1/fleet/runs?limit=5", "/v1/fleet/rollouts"]
LAYOUT = [[f"latency.n{i // 8}.n{i % 8}.median_ns", "ns"] for i in range(METRICS)]


def utc(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")


class Node:
    """A machine with a feed of its own. It keeps its address whatever it is called."""

    def __init__(self, fleet, number):
        self.fleet, self.number, self.name = fleet, number, f"n{number:03}"
        self.off, self.anew = 0, False  # seconds of its clock; installed anew since it has this name
        self.install()
        now = time.time()
        for i in range(PAST):
            self.measure(now - (PAST - i) * 3600)

    def install(self):
        """What was not fetched is gone with the old history."""
        if hasattr(self, "runs"):
            del self.runs[self.sent:]
        self.history, self.runs, self.sent = f"{self.fleet.random.getrandbits(128):032x}", [], 0
        self.fleet.truth[self.history] = self.runs

    def now(self):
        return time.time() + self.fleet.ahead + self.off

    def measure(self, when=None):
        rng, seq = self.fleet.random, len(self.runs) + 1
        when = self.now() if when is None else when
        slow = SLOW if self.number == 0 else 1
        self.runs.append({
            "seq": seq, "id": seq, "benchmark": "latency", "variant": "size=1-64", "method": "prp4-v2", "metrics_version": 1,
            "state": "succeeded", "imported": False, "forced": False, "measured": utc(when), "finished": utc(when), "duration_s": 12.5,
            "label": "", "n_ranks": 8, "disturbed": 0.01, "class": "c" * 64, "config": "d" * 64, "topology": "e" * 64, "layout": 0,
            "values": [round(slow * (80 + 5 * m) * (1 + 0.002 * rng.gauss(0, 1)), 3) for m in range(METRICS)], "widths": [20] * (2 * METRICS)})

    def page(self, query):
        after = int(query["after"][0])
        runs = [{**r, "node": self.name} for r in self.runs[after:after + 100]]
        end = after + len(runs)
        self.sent = max(self.sent, end)
        return {"form": "summary", "node": self.name, "version": "1.0.0", "history_id": self.history, "after": after,
                "layouts": [LAYOUT] if runs else [], "runs": runs, "next": end, "last": len(self.runs), "more": end < len(self.runs)}


class Responder(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # noqa: N802: the library's name
        node = self.server.node
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query)
        status = 404 if url.path != "/v1/feed" else 409 if query.get("history_id", [node.history])[0] != node.history else 200
        body = json.dumps(node.page(query) if status == 200 else {"status": status, "detail": "not here"}).encode()
        self.send_response_only(status)
        self.send_header("Date", self.date_time_string(node.now()))
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Listener(http.server.HTTPServer):
    def server_bind(self):
        socketserver.TCPServer.server_bind(self)  # without a question to DNS for the name of each address

    def handle_error(self, request, client_address):
        """A collector that ends does not wait for a response."""


class Feeds:
    """All nodes behind one loop, each on an address of its own."""

    def __init__(self, home):
        self.home, self.random, self.truth, self.lock = home, random.Random(SEED), {}, threading.Lock()
        self.ahead = 0  # seconds: of all clocks
        self.nodes = [Node(self, i) for i in range(NODES)]
        self.named = NODES
        self.loop, self.ended, self.port, self.listeners = selectors.DefaultSelector(), False, 0, []
        for node in self.nodes:
            server = Listener((f"127.2.0.{node.number + 1}", self.port), Responder)
            self.port, server.node = server.server_address[1], node
            self.listeners.append(server)
            self.loop.register(server, selectors.EVENT_READ)
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        while not self.ended:
            for key, _ in self.loop.select(0.2):
                with self.lock:
                    key.fileobj._handle_request_noblock()

    @property
    def names(self):
        return [f"{n.name} url=http://127.2.0.{n.number + 1}:{self.port}" for n in self.nodes]

    def close(self):
        self.ended = True
        self.thread.join()
        for key in list(self.loop.get_map().values()):
            key.fileobj.server_close()


class Soak:
    def __init__(self, collector, feeds, server):
        self.c, self.feeds, self.server, self.events, self.requests, self.measured = collector, feeds, server, {}, 0, 0

    # ---- what happens

    def pick(self, fits):
        return self.feeds.random.choice([n for n in self.feeds.nodes[1:] if fits(n)])

    def reinstall(self):
        with self.feeds.lock:
            node = self.pick(lambda n: not n.off)
            node.install()
            node.anew = True
            for i in range(6):
                node.measure(time.time() - (6 - i) * 3600)

    def rename(self):
        """It leaves the list first: until then, two nodes would have one history."""
        node = self.pick(lambda n: not n.off)
        before = node.name
        others = [line for line in self.feeds.names if line.split()[0] != before]
        self.relist(others)
        until(lambda: self.c.node(before)["state"] == "gone")
        with self.feeds.lock:
            node.name, node.anew = f"r{self.feeds.named:04}", False
            self.feeds.named += 1
        self.relist(self.feeds.names)
        until(lambda: any(n["node"] == node.name and n["state"] == "up" for n in self.listed()))

    def jump(self):
        with self.feeds.lock:
            self.pick(lambda n: not n.off).off = self.feeds.random.choice([-JUMP_S, JUMP_S])

    def set_right(self):
        with self.feeds.lock:
            wrong = [n for n in self.feeds.nodes if n.off]
            for node in wrong[:2]:
                node.off = 0
        return bool(wrong)

    EVENTS = (reinstall, jump, rename, set_right)

    def relist(self, lines):
        self.c.name(lines)
        self.c.process.send_signal(signal.SIGHUP)

    def listed(self):
        return self.c.get("/v1/fleet/nodes?limit=1000")["nodes"]

    def measure(self):
        self.measured = time.monotonic()
        with self.feeds.lock:
            for node in self.feeds.random.sample(self.feeds.nodes, 10):
                node.measure()

    # ---- what must be so

    def expected(self):
        nodes = self.feeds.nodes
        return ({("outlier", nodes[0].name)} | {("clock", n.name) for n in nodes if n.off} |
                {("reinstalled", n.name) for n in nodes if n.anew})

    def found(self):
        return {(f["what"], f["node"]) for f in self.c.get("/v1/fleet/findings?limit=1000")["findings"]}

    def findings_are_right(self):
        """A finding closes when three judgements in a row miss it, and there is one when something was stored."""
        wrong = []

        def right():
            if time.monotonic() - self.measured > 1:
                self.measure()
            wrong[:] = self.found() ^ self.expected()
            return not wrong
        try:
            until(right)
        except AssertionError:
            raise AssertionError(f"these differ from what there is a reason for: {wrong}") from None

    def rows(self, query):
        if self.server:
            return self.server.rows(query)
        return self.c.rows(query)

    def stop_between_rounds(self, ingest):
        """When nothing waits for it: a node whose last response is not confirmed is not asked again."""
        def quiet():
            status = self.c.status()
            return status["in_flight"] == 0 and status["backlog_bytes"] == 0

        def stopped():
            until(quiet)
            os.kill(ingest, signal.SIGSTOP)
            if quiet():
                return True
            os.kill(ingest, signal.SIGCONT)
            return False
        until(stopped)

    def nothing_is_missing(self):
        with self.feeds.lock:
            have = {(history, seq) for history, runs in self.feeds.truth.items() for seq in range(1, len(runs) + 1)}
        until(lambda: int(self.rows("SELECT count(*) FROM run")[0][0]) >= len(have), timeout=300)
        rows = [(history, int(seq)) for history, seq in
                self.rows("SELECT feed.history, run.seq FROM run JOIN feed ON feed.id = run.feed")]
        assert len(rows) == len(set(rows)) and set(rows) == have, (len(rows), len(have))
        return len(have)

    def processes(self):
        """{name: pid} of those that stay."""
        found = {"collector": self.c.process.pid}
        for pid in self.c.children():
            try:
                line = pathlib.Path(f"/proc/{pid}/cmdline").read_text()
            except OSError:
                continue  # it has ended meanwhile
            for option in ("--ingest", "--work"):
                if option in line:
                    found[f"{option} {sum(option in name for name in found)}"] = pid
        return found


def private_kib(pid):
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(next(line for line in text.splitlines() if line.startswith("Private_Dirty:")).split()[1])


def descriptors(pid):
    return len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir()))


def go_round(soak, number):
    soak.measure()
    for path in soak.feeds.random.sample(READS, 3):
        soak.c.get(path)
        soak.requests += 1
    event = soak.EVENTS[number % len(soak.EVENTS)]
    if event(soak) is not False:
        soak.events[event.__name__] = soak.events.get(event.__name__, 0) + 1
    soak.findings_are_right()


@pytest.fixture
def soak(request, tmp_path, engine):
    server = request.getfixturevalue("make_postgresql")() if engine == "postgresql" else None
    feeds = Feeds(tmp_path)
    (tmp_path / "hosts").write_text("")
    c = Collector(tmp_path, feeds, "--every=2", NO_NODE_IS_LATE, *([f"--store={server.uri}"] if server else []))
    try:
        c.start()
        until(lambda: c.status()["store_ready"])
        yield Soak(c, feeds, server)
        c.stop()
    finally:
        if c.process and c.process.poll() is None:
            c.process.kill()
            c.process.wait()
        feeds.close()


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_nodes_come_and_go_and_nothing_grows(soak, tell, engine):
    soak.nothing_is_missing()
    for number in range(2 * len(soak.EVENTS)):
        go_round(soak, number)
    begin, number, processes, changed = time.monotonic(), 0, soak.processes(), dict(soak.events)
    samples, rest = {name: [] for name in processes}, {name: descriptors(pid) for name, pid in processes.items()}
    while time.monotonic() < begin + SECONDS or number < 2 * len(soak.EVENTS):
        go_round(soak, number)
        number += 1
        now = soak.processes()
        for name, pid in list(processes.items()):
            if now.get(name) == pid:
                samples[name].append(private_kib(pid))
            else:  # the one that reads ends when nothing is requested for some seconds; a new one has caches to fill
                assert "--work" in name, (name, "none of the others ends")
                del samples[name], processes[name]
    runs = soak.nothing_is_missing()
    nodes = sum(soak.events[e] - changed[e] for e in ("reinstall", "rename"))
    third = max(1, number // 3)
    grown = {name: statistics.median(list_[-third:]) - statistics.median(list_[:third]) for name, list_ in samples.items()}
    tell(f"{engine}: {time.monotonic() - begin:.0f} s, {runs} runs, {soak.requests} requests, {json.dumps(soak.events)}; KiB "
         + ", ".join(f"{name} {min(list_)}..{max(list_)} ({grown[name]:+.0f})" for name, list_ in samples.items())
         + f"; file descriptors {json.dumps(rest)}")
    until(lambda: all(descriptors(pid) <= rest[name] for name, pid in soak.processes().items() if name in processes))
    assert all(g <= GROWTH_KIB + NODE_KIB * nodes for g in grown.values()), (grown, nodes)


@pytest.mark.parametrize("engine", ["sqlite"])
def test_a_page_that_comes_after_its_node_has_gone(soak, engine):
    """It would open the history again under the old name, and the new name would be its twin for ever."""
    soak.nothing_is_missing()
    node = soak.feeds.nodes[3]
    before = node.name
    with soak.feeds.lock:  # no feed responds; requests for documents of facts may be on the way too
        until(lambda: soak.c.status()["in_flight"] >= NODES and select.select([soak.feeds.listeners[3]], [], [], 0)[0])
        soak.relist([line for line in soak.feeds.names if line.split()[0] != before])
        until(lambda: soak.c.node(before)["state"] == "gone")
    until(lambda: soak.c.status()["in_flight"] == 0)
    node.name = "other"
    soak.relist(soak.feeds.names)
    node.measure()
    until(lambda: any(n["node"] == "other" and n["next"] == len(node.runs) for n in soak.listed()))
    assert soak.c.node("other")["outcome"] in ("renamed", "stored"), soak.c.node("other")
    soak.nothing_is_missing()
    soak.findings_are_right()


@pytest.mark.parametrize("engine", ["sqlite"])
def test_a_page_that_is_not_stored_yet_when_its_node_goes(soak, engine):
    soak.nothing_is_missing()
    node, ingest = soak.feeds.nodes[3], soak.c.find_child("--ingest")
    soak.stop_between_rounds(ingest)
    before, sent = node.name, node.sent
    with soak.feeds.lock:
        node.measure()
    until(lambda: node.sent > sent and soak.c.status()["in_flight"] == 0)
    soak.relist([line for line in soak.feeds.names if line.split()[0] != before])
    until(lambda: soak.c.node(before)["state"] == "gone")
    os.kill(ingest, signal.SIGCONT)
    with soak.feeds.lock:
        node.name = "other"
    soak.relist(soak.feeds.names)
    until(lambda: any(n["node"] == "other" and n["next"] == len(node.runs) for n in soak.listed()))
    assert soak.c.node("other")["outcome"] in ("renamed", "stored"), soak.c.node("other")
    soak.nothing_is_missing()
    soak.findings_are_right()


@pytest.mark.skipif(tool("faketime") is not None, reason=str(tool("faketime")))
@pytest.mark.parametrize("engine", ["postgresql"])
def test_an_hour_without_postgresql(soak, tell, monkeypatch, engine):
    """Nodes measure on, and the hour is a hole for nobody: no node counts as away, and no clock as wrong."""
    hour, clock = 3600, soak.feeds.home / "clock"
    library = subprocess.run(["faketime", "-f", "+0", "/usr/bin/env"], capture_output=True, text=True).stdout
    clock.write_text("+0\n")
    soak.c.stop()
    for name, value in {"LD_PRELOAD": re.search("LD_PRELOAD=(.*)", library).group(1), "FAKETIME_TIMESTAMP_FILE": str(clock),
                        "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}.items():
        monkeypatch.setenv(name, value)
    soak.c.start()
    until(lambda: soak.c.status()["store_ready"])
    for name in ("LD_PRELOAD", "FAKETIME_TIMESTAMP_FILE", "FAKETIME_NO_CACHE", "FAKETIME_DONT_FAKE_MONOTONIC"):
        monkeypatch.delenv(name)
    soak.nothing_is_missing()
    soak.findings_are_right()
    before = soak.c.status()
    soak.server.stop()
    soak.measure()
    until(lambda: soak.c.status()["store_state"] == "unreachable")
    for _ in range(6):
        soak.feeds.ahead += hour // 6
        other = clock.with_name("clock.new")
        other.write_text(f"+{soak.feeds.ahead}\n")
        os.rename(other, clock)
        soak.measure()
    # A page that was on the way when the process that stores ended waits for the end of the next one.
    away = until(lambda: (s := soak.c.status())["now"] >= utc(time.time() + hour - 60) and not s["backlog_bytes"] and s)
    assert away["store_state"] == "unreachable", away
    soak.server.start()
    back = until(lambda: (s := soak.c.status())["store_ready"] and s)
    runs = soak.nothing_is_missing()
    soak.findings_are_right()
    after = until(lambda: (s := soak.c.status())["states"]["up"] == NODES and s)
    assert after["states"] == before["states"], after
    # The clocks of nodes were set with that of the collector, which they say when they are contacted.
    until(lambda: not soak.c.status()["clock_problem"] and not any(n["clock_wrong"] for n in soak.listed()))
    tell(f"store back at {back['store_since']}, {runs} runs, {after['runs_stored'] - before['runs_stored']} of them from the hour")
