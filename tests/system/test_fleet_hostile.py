# SPDX-License-Identifier: Apache-2.0
"""The collector against nodes that respond what no numaprobed does, and what it shows of its secrets."""
import contextlib
import http.server
import itertools
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.parse

import pytest

from client import run
from conftest import PATIENCE, replace_text, until
from postgresql import make_postgresql  # noqa: F401 (a fixture)
from test_fleet_campaigns import begin, ended, send, show, states
from test_fleetd import FLEETD, NO_NODE_IS_LATE, collect  # noqa: F401 (a fixture)
from test_storage import faked_clock, needs_faketime, set_clock

NAME = "evil"
FINAL = {"failed", "succeeded", "canceled"}


def page(after=0, **members):
    """A page of the feed without a run."""
    return {"form": "summary", "node": NAME, "version": "2.0.0", "history_id": "ab" * 16, "after": after, "layouts": [],
            "runs": [], "next": after, "last": after, "more": False, **members}


class Evil:
    """A node: respond[path](query) gives (status, document or bytes, headers). `seen` has (time, method, path), `body` what came with
    the newest request."""

    def __init__(self):
        evil = self
        self.seen, self.body, self.respond = [], b"", {"/v1/feed": lambda q: (200, page(int(q.get("after", ["0"])[0])), {})}

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                length = int(self.headers.get("Content-Length") or 0)
                evil.body = self.rfile.read(length)
                url = urllib.parse.urlsplit(self.path)
                evil.seen.append((time.monotonic(), self.command, url.path))
                known = evil.respond.get(f"{self.command} {url.path}") or evil.respond.get(url.path)
                status, body, headers = known(urllib.parse.parse_qs(url.query)) if known else (404, {}, {})
                body = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
                with contextlib.suppress(OSError):
                    self.send_response(status)
                    for name, value in {"Content-Type": "application/json", "Content-Length": len(body), **headers}.items():
                        self.send_header(name, str(value))
                    self.end_headers()
                    self.wfile.write(body)
            do_POST = do_GET

            def log_message(self, *words):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def requests(self, method, path):
        return [at for at, m, p in self.seen if (m, p) == (method, path)]


@pytest.fixture
def evil():
    one = Evil()
    yield one
    one.server.shutdown()
    one.server.server_close()


@pytest.fixture
def beside(collect, evil):  # noqa: F811
    """beside(options…) -> a collector of two good nodes and the evil one. Its own responses alone are what is wrong: none is late."""
    def make(*options):
        c = collect(2, "--run-ms=0", collector=(NO_NODE_IS_LATE, *options))
        c.list.write_text("\n".join([*c.fleet.names, f"{NAME} url={evil.url}"]) + "\n")
        c.start()
        until(lambda: c.status()["states"]["up"] >= 2)
        return c
    return make


def run_of(state, **members):
    return {"id": 1, "node": NAME, "state": state, "plan": {"timeout_s": 60}, **members}


@pytest.mark.parametrize("after", ["1", "2147483648"])
def test_a_node_that_has_no_time_for_ever_is_not_up(beside, evil, after):
    evil.respond["/v1/feed"] = lambda q: (503, {}, {"Retry-After": after})
    c = beside()
    state = "down" if after == "1" else "missed"
    found = until(lambda: (n := c.node(NAME))["state"] == state and n)
    assert "503" in found["problem"], found


def test_a_page_that_cannot_be_read_names_the_member(beside, evil):
    evil.respond["/v1/feed"] = lambda q: (200, page(node={"a": [None]}), {})
    c = beside()
    assert until(lambda: c.node(NAME)["problem"]) == "node: must be a text of at most 63 bytes"


def test_a_run_that_is_always_running_is_not_requested_without_pause(beside, evil):
    c = beside()
    until(lambda: c.status()["states"]["up"] == 3)
    follows = []

    def follow(query):
        follows.append(time.monotonic())
        return 200, run_of("succeeded" if len(follows) > 4 else "running", seconds=1e300), {}
    evil.respond["POST /v1/runs"] = lambda q: (202, run_of("running"), {})
    evil.respond["/v1/runs/1"] = follow
    done = ended(c, begin(c, nodes=NAME))
    assert done["campaign"]["state"] == "done" and done["campaign"]["done"] == 1
    assert follows[-1] - follows[0] > 2, "the first and the fifth: a second between two of them"
    assert done["campaign"]["spent_node_minutes"] < 1000, "no run takes 1e300 s"


def test_a_run_that_ends_while_its_node_is_read_is_not_left_for_the_next_round(beside, evil):
    """The page that is on the way was made before."""
    was_read, over = threading.Event(), threading.Event()

    def feed(query):
        body = page(int(query["after"][0]))
        was_read.set()
        over.wait(PATIENCE)
        return 200, body, {}
    evil.respond["/v1/feed"] = feed
    evil.respond["POST /v1/runs"] = lambda q: (202, run_of("succeeded", seconds=1), {})
    c = beside("--every=3600", "--node-timeout=60")
    assert was_read.wait(PATIENCE)
    assert ended(c, begin(c, nodes=NAME))["campaign"]["done"] == 1
    assert len(evil.requests("GET", "/v1/feed")) == 1
    over.set()
    until(lambda: len(evil.requests("GET", "/v1/feed")) == 2)


@pytest.mark.parametrize("where", ["sqlite", "postgresql"])
def test_a_reason_is_cut_between_characters(beside, evil, make_postgresql, where):  # noqa: F811
    c = beside(*([f"--store={make_postgresql().uri}"] if where == "postgresql" else []))
    until(lambda: c.status()["states"]["up"] == 3)
    reasons = [f"{'x' * n}\u20ac\u20ac\x1b[2J" for n in range(100, 121)]
    evil.respond["POST /v1/runs"] = lambda q: (202, run_of("failed", error={"text": reasons.pop()}), {})
    while reasons:
        done = ended(c, begin(c, nodes=NAME, name=f"c{len(reasons)}", stop_after={"failed_percent": 100}))
        assert done["campaign"]["state"] == "done" and done["campaign"]["failed"] == 1, done
        assert done["node_states"][0]["why"].startswith("the run failed: xxx"), done
    assert c.status()["store_state"] == "ready" and "ingest.ended" not in c.log.read_text()


def test_a_cancellation_that_is_refused_is_requested_again(beside, evil):
    c = beside()
    until(lambda: c.status()["states"]["up"] == 3)
    cancels = []

    def cancel(query):
        cancels.append(1)
        return (503, {}, {}) if len(cancels) == 1 else (200, run_of("canceled"), {})
    evil.respond["POST /v1/runs"] = lambda q: (202, run_of("running"), {})
    evil.respond["/v1/runs/1"] = lambda q: (200, run_of("running"), {})
    evil.respond["POST /v1/runs/1/cancel"] = cancel
    number = begin(c, nodes=NAME)
    until(lambda: evil.requests("GET", "/v1/runs/1"))
    assert send(c, f"/v1/fleet/campaigns/{number}/cancel")[0] == 200
    done = ended(c, number)
    assert done["node_states"][0]["state"] == "skipped" and len(cancels) == 2, (done, cancels)


@needs_faketime
@pytest.mark.parametrize("cancelled", [False, True])
@pytest.mark.parametrize("limit_s, later", [(60, "+1h"), (10**12, "+5h")])
def test_a_run_that_does_not_end_is_given_up(beside, evil, tmp_path, monkeypatch, limit_s, later, cancelled):
    """Its limit as the node says it, 4 hours at most; both clocks of the collector are moved."""
    environment = faked_clock(tmp_path)
    evil.respond["POST /v1/runs"] = lambda q: (202, run_of("running", plan={"timeout_s": limit_s}), {})
    evil.respond["/v1/runs/1"] = lambda q: (200, run_of("running", plan={"timeout_s": limit_s}), {})
    evil.respond["POST /v1/runs/1/cancel"] = lambda q: (200, run_of("running"), {})
    with monkeypatch.context() as m:
        for name in ("LD_PRELOAD", "FAKETIME_TIMESTAMP_FILE", "FAKETIME_NO_CACHE"):
            m.setenv(name, environment[name])
        c = beside()
    until(lambda: c.status()["states"]["up"] == 3)
    number = begin(c, nodes=NAME)
    until(lambda: evil.requests("GET", "/v1/runs/1"))
    if cancelled:
        assert send(c, f"/v1/fleet/campaigns/{number}/cancel")[0] == 200
        until(lambda: evil.requests("POST", "/v1/runs/1/cancel"))
    set_clock(tmp_path, later)
    (node,) = ended(c, number)["node_states"]
    said = ("skipped", "has not ended after it was cancelled") if cancelled else ("failed", "has not ended within its time limit")
    assert node["state"] == said[0] and said[1] in node["why"], node


@needs_faketime
def test_a_collector_whose_clock_is_not_set_waits_for_it(collect, tmp_path, monkeypatch):  # noqa: F811
    """A run is dated no later than it is received: what was stored in 1971 would stay there."""
    environment = faked_clock(tmp_path)
    set_clock(tmp_path, "-55y")
    c = collect(3, "--run-ms=0", collector=(NO_NODE_IS_LATE,))
    with monkeypatch.context() as m:
        for name in ("LD_PRELOAD", "FAKETIME_TIMESTAMP_FILE", "FAKETIME_NO_CACHE", "FAKETIME_DONT_FAKE_MONOTONIC"):
            m.setenv(name, environment[name])
        c.start()
    status = until(lambda: (s := c.status()) and s["store_problem"] and s)
    assert re.match(r"the clock of this machine is not set \(it shows 197[12]-..-..\): nothing is stored", status["store_problem"]), status
    assert status["store_state"] == "opening" and status["requests"] == 0 and c.refusal("/readyz")[0] == 503, status
    set_clock(tmp_path, "+0")
    until(lambda: c.status()["states"]["up"] == 3)
    status = c.status()
    assert status["store_ready"] and not status["store_problem"], status
    dates = c.rows("SELECT min(measured_ms), min(received_ms) FROM run")[0]
    assert all(ms > 1.7e12 for ms in dates), dates


@pytest.mark.parametrize("date, skew_ms", [("Tue, 01 Jan 2222 00:00:00 GMT", 2**31 - 1), ("Fri, 01 Jan 1971 00:00:00 GMT", 1 - 2**31)])
def test_a_clock_that_is_decades_off_is_weeks_off(beside, evil, date, skew_ms):
    """What is kept of it is a number of 32 bits."""
    evil.respond["/v1/feed"] = lambda q: (200, page(int(q["after"][0])), {"Date": date})
    c = beside()
    until(lambda: c.status()["nodes"] == 3)
    found = until(lambda: (n := c.node(NAME))["skew_ms"] and n)
    assert found["skew_ms"] == skew_ms and found["clock_wrong"], found


def run_in_feed(seq, **members):
    return {"seq": seq, "id": seq, "node": NAME, "benchmark": "latency", "variant": "", "method": "prp4-v1", "metrics_version": 4,
            "state": "succeeded", "imported": False, "forced": False, "measured": "2021-01-01T00:00:00Z", "finished": None,
            "duration_s": 1, "label": "", "n_ranks": 1, "disturbed": None, "class": "ab" * 32, "config": "",
            "topology": "", "layout": -1, "values": [], "widths": [], **members}


def test_a_node_without_a_run_that_can_be_judged_is_not_unknown(beside, evil):
    runs = [run_in_feed(1), run_in_feed(2, state="failed")]
    evil.respond["/v1/feed"] = lambda q: (200, page(int(q["after"][0]), runs=runs[int(q["after"][0]):], next=2, last=2), {})
    c = beside()
    until(lambda: c.node(NAME)["next"] == 2)
    for name, said in ((NAME, "no run of node evil can be judged: none succeeded and has metrics"), ("evul", 'no run is stored of "evul"; did you mean "evil"?')):
        status, problem = c.problem(f"/v1/fleet/nodes/{name}/metrics")
        assert (status, problem["detail"]) == (404, said), problem


def test_a_run_of_ages_does_not_use_up_a_budget(beside, evil):
    """The node whose newest run is oldest comes first, and says that it took 30 years."""
    ages = [run_in_feed(1, duration_s=1e9)]
    evil.respond["/v1/feed"] = lambda q: (200, page(runs=ages, next=1, last=1) if q["after"] == ["0"] else page(1, last=1), {})
    c = beside()
    until(lambda: c.status()["states"]["up"] == 3 and c.rows(f"SELECT 1 FROM run JOIN node ON node.id = run.node WHERE node.name = '{NAME}'"))
    status, document = send(c, "/v1/fleet/campaigns", {"name": "x", "spec": {"benchmark": "latency"}, "dry_run": True,
                                                       "budget_node_minutes": 10000})
    assert status == 200 and document["plan"]["probed"] == 3 and document["plan"]["cost_node_minutes"] < 1000, document


def test_another_history_with_each_request_does_not_hurry_the_collector(beside, evil):
    """A conflict, a new history, a conflict, …: each is a reason to request again at once."""
    turn = []

    def feed(query):
        turn.append(1)
        if "history_id" in query:
            return 409, {}, {}
        return 200, page(int(query["after"][0]), history_id=f"{len(turn):032x}", more=True, next=int(query["after"][0]) + 1), {}
    evil.respond["/v1/feed"] = feed
    c = beside()
    until(lambda: len(turn) > 20)
    assert until(lambda: (s := c.status())["states"]["up"] == 3 and s)["store_state"] == "ready"
    assert ended(c, begin(c, nodes="node1"))["campaign"]["done"] == 1, "others are served"


def has_nodes(c, names):
    try:
        return c.ask(f"/v1/fleet/nodes?where={names}&limit=1")["nodes"]
    except urllib.error.HTTPError as e:  # the list is not read yet, or not again
        assert e.code in (404, 503), e
        return False


def test_sources_with_ever_new_names_do_not_fill_the_memory(collect):  # noqa: F811
    c = collect(1, collector=["--store=postgresql:///none?host=/nowhere"])  # without a store no node is contacted
    c.list.write_text("x[1-10000]\n")
    c.start()
    until(lambda: c.status()["nodes"] == 10000)
    for names, gone in (("y[1-10000]", 10000), ("z[1-10000]", 0)):
        c.name([names])
        c.process.send_signal(signal.SIGHUP)
        until(lambda: "believed if it says so again" in c.status()["sources_problem"])
        c.process.send_signal(signal.SIGHUP)
        until(lambda: has_nodes(c, names))
        states = c.status()["states"]
        assert (c.status()["nodes"], states["gone"]) == (10000, gone), states


@needs_faketime
def test_a_source_that_does_not_end_is_given_up(collect, tmp_path, monkeypatch):  # noqa: F811
    """The process that reads it is stopped: it takes as long as it may, by the clock of the collector."""
    stop = tmp_path / "stop"
    stop.write_text("#!/bin/sh\nkill -STOP $PPID\n")
    stop.chmod(0o755)
    environment = faked_clock(tmp_path)
    c = collect(1, collector=["--source=nodes:@late", f"--group-command={stop} %s"])
    with monkeypatch.context() as m:
        for name in ("LD_PRELOAD", "FAKETIME_TIMESTAMP_FILE", "FAKETIME_NO_CACHE"):
            m.setenv(name, environment[name])
        c.start()
    until(lambda: c.status()["states"]["up"] == 1)
    set_clock(tmp_path, "+5m")
    until(lambda: "longer than it may" in next(s for s in c.status()["sources"] if "@late" in s["source"])["problem"])
    assert c.status()["nodes"] == 1, "nodes of other sources stay"


def test_nodes_beyond_the_limit_are_said_to_be_left_out(collect, tmp_path):  # noqa: F811
    (tmp_path / "more").write_text("y[1-40000]\n")
    c = collect(1, collector=["--store=postgresql:///none?host=/nowhere", f"--source=file:{tmp_path}/more"])
    c.list.write_text("x[1-40000]\n")
    c.start()
    problem = until(lambda: c.status()["sources_problem"])
    assert "more than 65536 nodes" in problem and c.status()["nodes"] == 65536, problem
    replace_text(tmp_path / "more", "y[1-25000]\n")
    c.process.send_signal(signal.SIGHUP)
    until(lambda: not c.status()["sources_problem"])
    assert c.status()["nodes"] == 65000


def test_names_of_a_collector_below_that_are_none(evil):
    """The list is refused as a whole, and what is said of it can be printed."""
    for sets, said in ((["a[1-65537]"], "65537 names"), (["x\x1b[2J"], "x?[2J"), (["x" * 64], "1 to 63 letters"), (["n\u20ac"], "n???"),
                       (["-oProxyCommand=x"], "letters"), ([{}], "node sets"), ("n1", "the response is not that")):
        document = {"gone": [], "up": sets} if isinstance(sets, list) else {"up": [sets]}
        evil.respond["/v1/fleet/states"] = lambda q, document=document: (200, document, {})
        done = subprocess.run([FLEETD, "--print-nodes", f"--source=collector:{evil.url}"], capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 2 and not done.stdout and said in done.stderr and done.stderr[:-1].isprintable(), (sets, done)


def test_a_collector_gives_no_history_to_a_node_of_another_source(collect, evil):  # noqa: F811
    """Its runs of a node that this collector contacts are left out. Those of its own nodes are stored."""
    runs = []

    def feed(query):
        after, now = int(query["after"][0]), list(runs)  # the test adds to them
        return 200, page(after, node="below", runs=[r for r in now if r["seq"] > after], next=len(now), last=len(now)), {}
    evil.respond = {"/v1/fleet/states": lambda q: (200, {"gone": [], "up": ["node1", "own"]}, {}), "/v1/feed": feed}
    c = collect(1, "--run-ms=0", collector=[f"--source=collector:{evil.url}"]).start()
    until(lambda: c.status()["nodes"] == 2)
    known = until(lambda: (n := c.node("node1"))["duplicate"] and n["history_id"] and n["state"] == "up" and not n["collector"] and n)
    until(lambda: c.rows("SELECT count(*) FROM run") == [(12,)])
    runs += [run_in_feed(i + 1, node=node, node_history_id="cd" * 16 if node == "node1" else "ef" * 16, node_seq=1)
             for i, node in enumerate(("node1", "own"))]
    until(lambda: c.rows("SELECT count(*) FROM run r JOIN node n ON n.id = r.node WHERE n.name = 'own'") == [(1,)])
    assert c.rows("SELECT count(*) FROM run r JOIN node n ON n.id = r.node WHERE n.name = 'node1'") == [(12,)]
    assert c.rows("SELECT others FROM collector") == [(1,)]
    assert c.node("node1")["history_id"] == known["history_id"]


def test_a_collector_whose_pages_do_not_end(evil):
    numbers = itertools.count()
    known = {"version": "2.0.0", "state": "up", "outcome": "stored", "received": None, "skew_ms": 0}
    evil.respond = {"/v1/fleet/nodes": lambda q: (200, {"nodes": [{"node": f"n{next(numbers)}", **known} for _ in range(1000)],
                                                         "cursor": f"n{next(numbers):09}"}, {}),
                    "/v1/fleet/runs": lambda q: (200, page(), {})}
    done = run("fleet", "status", f"--fleet={evil.url}")
    assert done.returncode != 0 and "do not end" in done.stderr, done.stderr


def test_what_a_node_names_is_no_formula(beside, evil):
    evil.respond["/v1/feed"] = lambda q: (200, page(layouts=[[["=HYPERLINK(1)", "ns"]]]), {})
    c = beside()
    found = until(lambda: (n := c.node(NAME))["problem"] and n)
    assert "a to z" in found["problem"], found


def test_no_process_shows_the_password_of_the_store(beside, evil, make_postgresql):  # noqa: F811
    uri = make_postgresql().uri.replace("postgresql:///", "postgresql://fleet:s3cret%40x@/")
    c = beside(f"--store={uri}")
    until(lambda: c.status()["states"]["up"] == 3 and c.status()["findings"]["judged"])
    assert c.get("/v1/fleet/runs")["runs"], "each of the processes has begun"
    for child in c.children():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            assert "s3cret" not in pathlib.Path(f"/proc/{child}/cmdline").read_text()
    assert "s3cret" not in c.log.read_text() + json.dumps(c.status())


@pytest.mark.parametrize("option, said", [
    ("--store=postgresql://fleet:s3cret/x@db/fleet", "%2F"), ("--store=postgresql://fleet:s3cret@x@db/fleet", "%40"),
    ("--store=postgresql://fleet:12/s3cret@db/fleet", "%2F"), ("--store=mysql://fleet:s3cret@db/fleet", "must be a path"),
    ("--url=http://fleet:s3cret@%h:7780", "no user or password"),
    ("--source=http_sd:https://fleet:s3cret@consul/sd", "no user or password")])
def test_an_address_that_would_show_a_password_is_refused(tmp_path, option, said):
    done = subprocess.run([FLEETD, f"--state-dir={tmp_path}", option, "--check-config"], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2 and said in done.stderr and "s3cret" not in done.stderr, (done.returncode, done.stderr)


@pytest.mark.parametrize("rest, said", [
    ("h:99999/x", "port must be a number from 1 to 65535"), ("h:0/x", "port must be a number from 1 to 65535"),
    ("a:1,b:65536/x", "port must be a number from 1 to 65535"), ("a,b/x?port=1,2,3", "has 3 ports for 2 hosts"),
    ("a,b/x?hostaddr=::1", "has 2 hosts, and 1 address for them"),
    ("h/x?connect_timeout=soon", "connect_timeout must be a number"), ("h/x?keepalives_idle=99999999999", "keepalives_idle must be a number"),
    ("h/x?sslmode=maybe", "sslmode must be one of disable allow prefer require verify-ca verify-full"),
    ("h/x?target_session_attrs=read", "target_session_attrs must be one of"), ("h/x?nope=1", "nope is no option of a connection to PostgreSQL"),
    ("h/x?sslmod=require", 'sslmod is no option of a connection to PostgreSQL; did you mean "sslmode"?'),
    ("u:s3/cr?et=1@h/x", "must be a URI of PostgreSQL"), ("h/x?target_session_attrs=x", "target_session_attrs must be one of"),
    ("h/x?sslrootcert=/nowhere/ca", "sslrootcert is no file that can be read: No such file"),
    ("h/x?sslkey=/tmp", "sslkey must be a file, and is a directory"), ("h/x?sslrootcert=/etc/hostname", ""),
    ("h/x?ssl_min_protocol_version=3", "ssl_min_protocol_version must be one of TLSv1"),
    ("h/x?hostaddr=h2", "hostaddr must be IPv4 or IPv6 addresses"), ("h,i/x?hostaddr=10.0.0.1,fe80::1", ""),
    ("h/x?client_encoding=LATIN1", "client_encoding must be one of UTF8"), ("h/x?replication=database", "replication must be one of false"),
    ("h/x?sslkey=OPEN", "sslkey: others may use the file; its mode must be 0600"), ("h/x?sslrootcert=OPEN&client_encoding=UTF8", ""),
    ("h/x?passfile=OPEN", "passfile: others may use the file; its mode must be 0600"), ("h/x?passfile=OWN&sslkey=OWN", ""),
    ("h/x?sslcrldir=/nowhere", "sslcrldir is no directory that can be read: No such"), ("h/x?sslcrldir=/tmp", ""),
    ("h/x?sslcrldir=OWN", "sslcrldir must be a directory, and is a file"),
    ("h:5432,[::1]:65535/x?sslmode=verify-full&connect_timeout=3", ""), ("/x?host=/run/postgresql", ""), ("a,b/x?port=5433", ""),
    (",/x?port=5433,", "")])
def test_a_store_that_no_server_can_be_is_refused_before_a_start(tmp_path, rest, said):
    for name, mode in (("OPEN", 0o644), ("OWN", 0o600)):
        (tmp_path / name).touch(mode)
        rest = rest.replace(name, f"{tmp_path}/{name}")
    done = subprocess.run([FLEETD, "--config=/dev/null", f"--state-dir={tmp_path}", f"--store=postgresql://{rest}", "--check-config"],
                          capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "") if not said else done.returncode == 2 and f"store: {said}" in done.stderr, done


@pytest.mark.parametrize("where, said", [
    ("postgres://fleet@h,i:5433/x?sslmode=require", ""), ("postgres:///fleet", ""), ("postgres://h:0/x", "port must be a number from 1 to 65535"),
    ("postgres://fleet:s3cret@x@h/x", "%40"), ("POSTGRES://h/x", "must be a path, or postgresql://"), ("pg://h/x", "must be a path, or postgresql://")])
def test_both_schemes_of_libpq_name_a_database(tmp_path, where, said):
    done = subprocess.run([FLEETD, "--config=/dev/null", f"--state-dir={tmp_path}", f"--store={where}", "--check-config"],
                          capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "") if not said else done.returncode == 2 and "store: " in done.stderr and said in done.stderr, done
    assert "s3cret" not in done.stderr, done


# --- A collector, and the command line

@pytest.mark.parametrize("following", [itertools.cycle(["n1", "n2"]).__next__, lambda: "n1", lambda: "n" * 500], ids=["cycle", "same", "long"])
@pytest.mark.parametrize("words", [("campaign", "show", "1"), ("campaign", "show", "1", "-o", "json"), ("status",), ("drain",), ("campaign", "list")], ids="-".join)
def test_pages_of_a_collector_that_do_not_end(evil, words, following):
    def listed(query):
        return 200, {"campaign": {"id": 1}, "node_states": [{"node": "n1", "state": "done"}], "cursor": following(),
                     "nodes": [{"node": "n1", "version": "1", "state": "up", "outcome": ""}]}, {}
    evil.respond.update({"/v1/fleet/campaigns/1": listed, "/v1/fleet/nodes": listed,
                         "/v1/fleet/campaigns": lambda query: (200, {"campaigns": [{"id": 9}], "cursor": 9}, {})})
    done = run("fleet", *words, f"--fleet={evil.url}")
    assert done.returncode == 3 and not done.stdout.startswith("{") and "pages do not end" in done.stderr, done
    assert len(evil.seen) <= 4, "at most: a page, the one after it, and the one that is not"


@pytest.mark.parametrize("given", [None, 3, 64])
def test_the_number_of_probes_is_the_collectors_unless_it_is_given(evil, given):
    evil.respond["POST /v1/fleet/campaigns"] = lambda query: (200, {"campaign": {"id": 1}}, {})
    done = run("fleet", "campaign", "start", "latency", f"--fleet={evil.url}", *([f"--at-once={given}"] if given else []))
    assert done.returncode == 0 and json.loads(evil.body).get("at_once") == given, (done, evil.body)


def test_pages_of_runs_that_do_not_move_on(evil):
    evil.respond.update({"/v1/fleet/nodes": lambda query: (200, {"nodes": [], "cursor": None}, {}),
                         "/v1/fleet/runs": lambda query: (200, page(more=True), {})})
    done = run("fleet", "status", f"--fleet={evil.url}")
    assert done.returncode == 3 and "pages do not end" in done.stderr, done
    assert len(evil.requests("GET", "/v1/fleet/runs")) == 1


def test_the_pages_of_a_campaign_are_one_document(evil):
    pages = {"": (["n1", "n2"], "n2"), "n2": (["n10"], None)}

    def listed(query):
        nodes, following = pages[query.get("cursor", [""])[0]]
        return 200, {"campaign": {"id": 1}, "node_states": [{"node": n, "why": "\u202e\u009b2J"} for n in nodes], "cursor": following}, {}
    evil.respond["/v1/fleet/campaigns/1"] = listed
    done = run("fleet", "campaign", "show", "1", "-o", "json", f"--fleet={evil.url}")
    assert done.returncode == 0 and done.stdout.isascii(), done
    assert json.loads(done.stdout) == {"campaign": {"id": 1}, "cursor": None,
                                       "node_states": [{"node": n, "why": "\u202e\u009b2J"} for n in ("n1", "n2", "n10")]}


def test_all_campaigns_are_listed(evil):
    def listed(query):
        newest = int(query.get("cursor", ["601"])[0]) - 1
        return 200, {"campaigns": [{"id": i, "name": f"c{i}"} for i in range(newest, newest - 200, -1)],
                     "cursor": newest - 199 if newest > 200 else None}, {}
    evil.respond["/v1/fleet/campaigns"] = listed
    done = run("fleet", "campaign", "list", "-o", "json", f"--fleet={evil.url}")
    document = json.loads(done.stdout)
    assert [one["id"] for one in document["campaigns"]] == list(range(600, 0, -1)) and document["cursor"] is None
    for form in "csv", "table":
        assert run("fleet", "campaign", "list", "-o", form, f"--fleet={evil.url}").stdout.count("\n") >= 601


def test_what_a_terminal_would_obey_is_escaped_in_findings(evil):
    found = {"id": 3, "text": "\u202e\u009b2J"}
    evil.respond["/v1/fleet/findings"] = lambda query: (200, {"findings": [found], "next": None}, {})
    done = run("fleet", "findings", "-o", "json", f"--fleet={evil.url}")
    assert done.returncode == 0 and done.stdout.isascii() and json.loads(done.stdout) == {"findings": [found]}, done


def test_reasons_of_many_nodes_are_not_mixed(evil):
    """The first 200 have lines of their own, and the others one for each state."""
    nodes = [{"node": f"n{i}", "state": "failed" if i % 2 else "skipped", "why": f"reason {i}", "run": None, "seconds": None}
             for i in range(1, 301)]
    evil.respond["/v1/fleet/campaigns/1"] = lambda query: (200, {"campaign": {"id": 1}, "node_states": nodes, "cursor": None}, {})
    done = run("fleet", "campaign", "show", "1", f"--fleet={evil.url}")
    assert done.returncode == 0, done
    lines = done.stdout.splitlines()
    assert "failed: reason 199 (1)" in lines and "skipped: reason 200 (1)" in lines and "reason 201" not in done.stdout, done.stdout
    assert "failed: other reasons (50)" in lines and "skipped: other reasons (50)" in lines, done.stdout


# --- How much is requested at once

ONCE = ("--every=3600", NO_NODE_IS_LATE)  # one that is late would be requested again in an hour


class Holding:
    """Nodes behind one address, http://127.0.0.1:PORT/NODE. `begun` is called for each run that begins, before the response. Who
    follows a run waits until `let_go` is set."""

    def __init__(self, begun):
        self.begun, self.let_go, self.lock, self.canceled, self.followed = begun, threading.Event(), threading.Lock(), set(), 0
        nodes = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def respond(self, document):
                body = json.dumps(document).encode()
                with contextlib.suppress(OSError):
                    self.send_response(200)
                    self.send_header("Content-Length", len(body))
                    self.end_headers()
                    self.wfile.write(body)

            def do_GET(self):
                name = self.path.split("/")[1]
                if "/v1/feed" in self.path:
                    self.respond(page(node=name, history_id=f"{int(name[1:]):032x}"))
                    return
                with nodes.lock:
                    nodes.followed += 1
                nodes.let_go.wait(PATIENCE)
                self.respond({"id": 1, "node": name, "state": "canceled" if name in nodes.canceled else "succeeded", "seconds": 1})

            def do_POST(self):
                name = self.path.split("/")[1]
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if self.path.endswith("/cancel"):
                    nodes.canceled.add(name)
                else:
                    nodes.begun()
                self.respond({"id": 1, "node": name, "state": "running"})

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 1024
        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/%h"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.let_go.set()
        self.server.shutdown()
        self.server.server_close()


def test_a_campaign_contacts_no_more_nodes_at_once_than_the_collector_may(collect):
    full, now, most = threading.Barrier(4), 0, 0

    def begun():
        nonlocal now, most
        with nodes.lock:
            now += 1
            most = max(most, now)
        full.wait(PATIENCE)  # four are on the way
        with nodes.lock:
            now -= 1
    nodes = Holding(begun)
    nodes.let_go.set()
    c = collect(1, collector=("--at-once=4", *ONCE))
    c.list.write_text(f"n[1-200] url={nodes.url}\n")
    c.start()
    try:
        until(lambda: c.status()["states"]["up"] == 200)
        done = ended(c, begin(c, at_once=200))
        assert states(done) == {"done": 200} and most == 4, (states(done), most)
    finally:
        nodes.stop()


def test_runs_are_cancelled_while_nodes_hold_as_many_requests_as_they_may(collect):
    """A node that holds a request for a minute does not respond: such a request is given up, on a busy machine, and another is sent."""
    nodes, began = Holding(lambda: None), time.monotonic()
    c = collect(1, collector=ONCE)
    c.list.write_text(f"n[1-600] url={nodes.url}\n")
    c.start()
    try:
        until(lambda: c.status()["states"]["up"] == 600)
        numbers = [begin(c, name=f"c{i}", at_once=200, nodes=f"n[{i * 200 + 1}-{i * 200 + 200}]") for i in range(3)]
        for number in numbers:  # 512 of 600 are followed
            until(lambda number=number: sum(n["run"] is not None for n in show(c, number)["node_states"]) == 200)
            send(c, f"/v1/fleet/campaigns/{number}/cancel")
        until(lambda: len(nodes.canceled) == 600)
        followed = nodes.followed
        assert followed <= 512 * (1 + (time.monotonic() - began) // 60), "none was given up to make room"
        nodes.let_go.set()
        assert [states(ended(c, number)) for number in numbers] == [{"skipped": 200}] * 3
    finally:
        nodes.stop()
