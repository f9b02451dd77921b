# SPDX-License-Identifier: Apache-2.0
"""Whole runs that the collector keeps: what nodes export comes back byte for byte, from both engines."""
import contextlib
import http.client
import http.server
import json
import os
import re
import signal
import sqlite3
import threading
import urllib.error
import urllib.request

import pytest

from conftest import PATIENCE, until
from postgresql import make_postgresql  # noqa: F401
from test_fleetd import collect  # noqa: F401

NODES, RUNS = 6, 8
LABELLED = "SELECT seq, state FROM archive WHERE cited = 0"  # and not the first and the last of a set-up


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request):
    """Options of a collector, and what reads its tables."""
    if request.param == "sqlite":
        def rows(c, query):
            with contextlib.closing(sqlite3.connect(f"file:{c.home}/state/fleet.db", uri=True, timeout=PATIENCE)) as db, db:
                return [tuple(str(v) for v in row) for row in db.execute(query)]
        return [], rows
    server = request.getfixturevalue("make_postgresql")()
    return [f"--store={server.uri}"], lambda _, query: server.rows(query)


def url(c, node, path):
    return f"http://127.1.0.{node + 1}:{c.fleet.port}{path}"


def measure(c, node, **more):
    body = json.dumps({"benchmark": "latency", **more}).encode()
    with urllib.request.urlopen(url(c, node, "/v1/runs"), body, timeout=PATIENCE) as response:
        return json.load(response)["id"]


def exported(c, node, run):
    with urllib.request.urlopen(url(c, node, f"/v1/runs/{run}/export?topology=false"), timeout=PATIENCE) as response:
        return response.read()


def archived(c, name, seq):
    return c.get_bytes(f"/v1/fleet/archive/{name}/{seq}")


def is_gone(c, name, seq):
    try:
        archived(c, name, seq)
        return False
    except urllib.error.HTTPError as refused:
        return refused.code in (404, 410)


def test_all_runs_are_kept_and_come_back(collect, store):  # noqa: F811
    options, rows = store
    c = collect(NODES, f"--runs={RUNS}", "--run-ms=0", "--faults=100% cuts=10", collector=["--archive=all", *options]).start()
    c.wait_up(NODES)
    for _ in range(4):
        until(lambda: c.status()["store_ready"])
        c.wait_cleared()
        c.kill_child("--ingest")
    until(lambda: c.status()["store_ready"])
    here = "SELECT count(*) FROM archive WHERE state = 1"
    # Of those that are cut another is requested a minute later. A node of which a whole run was on the way at two of the kills is at
    # fault for both: no more of its runs are requested for an hour.
    until(lambda: int(rows(c, here)[0][0]) >= 2 * (NODES - 1) * RUNS * 0.8)
    for seq in (1, 5, 2 * RUNS):
        [(name,), *_] = until(lambda: rows(c, "SELECT node.name FROM archive AS a JOIN node ON node.id = a.node "
                                              f"WHERE a.state = 1 AND a.seq = {seq}"))
        node = c.fleet.names.index(name)
        theirs = until(lambda: whole_of(c, node, seq))
        assert archived(c, name, seq) == theirs
    bytes_of = rows(c, "SELECT sum(bytes), sum(length(body)) FROM archive WHERE state = 1")
    assert int(bytes_of[0][1]) < int(bytes_of[0][0]), "they are compressed"


def whole_of(c, node, run):
    try:
        return exported(c, node, run)
    except (OSError, http.client.HTTPException):
        return None  # cut


def test_runs_with_a_label_are_kept_and_others_are_not(collect, store):  # noqa: F811
    options, rows = store
    c = collect(NODES, f"--runs={RUNS}", "--run-ms=0", collector=options).start()
    c.wait_up(NODES)
    run = measure(c, 2, label="kept")
    measure(c, 2)
    name = c.fleet.names[2]
    until(lambda: rows(c, LABELLED) == [(str(run), "1")])
    assert archived(c, name, run) == exported(c, 2, run)
    assert json.loads(archived(c, name, run))["run"]["id"] == run
    for path, said in ((f"/v1/fleet/archive/{name}/2", "not archived"), (f"/v1/fleet/archive/nobody/{run}", "not archived")):
        code, problem = c.problem(path)
        assert code == 404 and said in problem["detail"], problem


def label(c, node, run, text):
    request = urllib.request.Request(url(c, node, f"/v1/runs/{run}/label"), json.dumps({"label": text}).encode(),
                                     {"Content-Type": "application/json"}, method="PUT")
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:
        assert (json.load(response)["label"] or "") == text


def labels(rows, c):
    return dict(rows(c, "SELECT node.name || '/' || run.run, run.label FROM run JOIN node ON node.id = run.node WHERE run.label <> ''"))


def test_a_label_that_is_set_later_keeps_a_run(collect, store):  # noqa: F811
    options, rows = store
    c = collect(NODES, f"--runs={RUNS}", "--run-ms=0", collector=options).start()
    c.wait_up(NODES)
    name = c.fleet.names[3]
    assert rows(c, LABELLED) == []
    label(c, 3, 5, "before the update")
    until(lambda: rows(c, LABELLED) == [("5", "1")])
    assert archived(c, name, 5) == exported(c, 3, 5) and labels(rows, c) == {f"{name}/5": "before the update"}
    label(c, 3, 5, "")
    until(lambda: rows(c, LABELLED) == [])
    assert labels(rows, c) == {}
    until(lambda: is_gone(c, name, 5))  # the collector hears of it after the store
    run = measure(c, 3)
    until(lambda: c.node(name)["next"] == 2 * RUNS + 3)
    assert rows(c, f"SELECT seq, count(*) FROM run JOIN node ON node.id = run.node WHERE name = '{name}' AND run = {run} "
                   "GROUP BY seq") == [(str(2 * RUNS + 3), "1")], "runs and notes are numbered together"


def test_no_label_is_lost_when_the_process_that_stores_is_killed(collect, store):  # noqa: F811
    options, rows = store
    c = collect(NODES, f"--runs={RUNS}", "--run-ms=0", collector=options).start()
    c.wait_up(NODES)
    truth = {}
    for turn in range(2, 8):  # the first run is kept anyway
        for node in range(NODES):
            text = f"turn {turn}" if (turn + node) % 3 else ""
            label(c, node, turn, text)
            truth[f"{c.fleet.names[node]}/{turn}"] = text
        if turn == 4:
            c.kill_child("--ingest")
    until(lambda: labels(rows, c) == {run: text for run, text in truth.items() if text})
    wanted = "SELECT count(*) FROM archive WHERE cited = 0"
    assert rows(c, wanted) == [(str(len(labels(rows, c))),)], "those with a label are kept, and no others"
    assert rows(c, "SELECT count(*), count(DISTINCT feed || '.' || seq) FROM run") == [(str(2 * NODES * RUNS),) * 2]


def test_runs_that_a_sure_finding_cites_are_kept(collect, store):  # noqa: F811
    options, rows = store
    c = collect(30, "--runs=8", "--run-ms=0", "--bad=1", "--bad-percent=20", collector=options).start()
    c.wait_up(30)
    [f] = until(lambda: [f for f in c.get("/v1/fleet/findings")["findings"] if f["grade"] == "sure"])
    cited = f["evidence"]["runs"]
    assert len(cited) == 5, f
    here = "SELECT name, run FROM archive JOIN node ON node.id = archive.node WHERE state = 1 AND seq > 1"
    wanted = sorted((f["node"], str(run)) for run in cited)
    until(lambda: sorted(rows(c, here)) == wanted)
    assert archived(c, f["node"], max(cited)) == exported(c, c.fleet.names.index(f["node"]), max(cited))
    assert rows(c, "SELECT count(*) FROM archive WHERE seq > 1") == [("5",)], "no other run is kept"


def test_the_first_and_the_last_run_of_each_set_up_are_kept(collect, store):  # noqa: F811
    options, rows = store
    c = collect(10, f"--runs={RUNS}", "--run-ms=0", "--waves=2", collector=options).start()
    c.wait_up(10)
    wanted, n_setups = set(), 0
    runs = [(name, int(run), machine) for name, run, machine in rows(
        c, "SELECT name, run, machine FROM run JOIN node ON node.id = run.node ORDER BY name, seq")]
    for before, run, after in zip([("", 0, "")] + runs, runs, runs[1:] + [("", 0, "")]):
        first, replaced = before[::2] != run[::2], after[0] == run[0] and after[2] != run[2]
        n_setups += first
        wanted |= {run[:2]} if first or replaced else set()
    assert 10 < n_setups < 20 and len(wanted) == 2 * n_setups - 10, "some nodes have two set-ups"
    here = "SELECT name, run FROM archive JOIN node ON node.id = archive.node WHERE state = 1"
    until(lambda: {(name, int(run)) for name, run in rows(c, here)} == wanted)
    name, run = max(wanted)
    assert archived(c, name, run) == exported(c, c.fleet.names.index(name), run)
    assert rows(c, "SELECT count(*) FROM archive") == [(str(len(wanted)),)], "no other run is kept"


def test_a_run_that_its_node_does_not_have_is_given_up(collect, store):  # noqa: F811
    options, rows = store
    c = collect(NODES, f"--runs={RUNS}", "--run-ms=0", collector=options).start()
    c.wait_up(NODES)
    c.stop()
    wanted = "INSERT INTO archive (node, feed, seq, run, state, tries, due_ms, bytes, why) VALUES (1, 1, 9999, 9999, 0, 0, 0, 0, '')"
    rows(c, wanted)
    c.start()
    c.wait_up(NODES)
    until(lambda: rows(c, "SELECT state FROM archive WHERE seq = 9999") == [("2",)])
    kept = rows(c, "SELECT count(*) FROM archive")
    [(name,)] = rows(c, "SELECT name FROM node WHERE id = 1")
    code, problem = c.problem(f"/v1/fleet/archive/{name}/9999")
    assert code == 410 and "status 404" in problem["detail"], problem
    c.stop()
    c.options.append("--archive=none")
    c.start()
    c.wait_up(NODES)
    run = measure(c, 0, label="x")
    until(lambda: c.node(c.fleet.names[0])["next"] >= run)
    assert rows(c, "SELECT count(*) FROM archive") == kept, "nothing more is kept"


def test_whole_runs_of_two_months_are_deleted_a_day(collect):  # noqa: F811
    """As with --archive-keep-days=1 where 1000 was meant."""
    def whole():
        return [m for (m,) in c.rows("SELECT strftime('%Y-%m', due_ms / 1000, 'unixepoch') FROM archive WHERE state = 1 ORDER BY due_ms")]

    def change(sql):
        with contextlib.closing(sqlite3.connect(f"{c.home}/state/fleet.db")) as db, db:
            db.execute(sql)

    def look(times):
        """A start that is followed by a run: what comes behind the first look waits an hour for the next one."""
        c.start()
        c.wait_up(1)
        measure(c, 0)
        until(lambda: c.log.read_text().count("event=archive.held") == times)
        c.stop()
        return [m for m in whole() if m < "2025"]
    c = collect(1, f"--runs={RUNS}", "--run-ms=0", collector=["--archive=all"]).start()
    until(lambda: c.status()["store_ready"])
    until(lambda: len(whole()) == 2 * RUNS)
    c.stop()
    months = [f"2024-{1 + i // 4:02}" for i in range(2 * RUNS)]
    change("UPDATE archive SET due_ms = (SELECT strftime('%s', printf('2024-%02d-03', 1 + count(*) / 4)) * 1000 FROM archive AS b "
           "WHERE b.seq < archive.seq)")
    assert whole() == months
    c.options.append("--archive-keep-days=100")
    assert look(1) == months[8:], "those of two months"
    assert "event=archive.retention deleted=8" in c.log.read_text()
    assert look(2) == months[8:], "a restart deletes no more"
    change("UPDATE meta SET value = value - 86400000 WHERE name = 'archive_retained'")
    c.start()
    c.wait_up(1)
    measure(c, 0)
    until(lambda: not [m for m in whole() if m < "2025"])
    assert c.log.read_text().count("event=archive.held") == 2, "nothing is left to delete"


class Unreadable(http.server.BaseHTTPRequestHandler):
    """A node with labelled runs, which it has and cannot export."""
    history, numbers = "6" * 32, (1, 2)

    def exported(self, run):
        """(status, document)."""
        return 409 if run == 1 else 500, {"detail": "its parameters cannot be read"}

    def do_GET(self):  # noqa: N802: the library's name
        runs = [{"seq": i, "id": i, "benchmark": "latency", "variant": "", "method": "prp4-v2", "metrics_version": 1, "state": "succeeded",
                 "imported": False, "forced": False, "measured": f"2026-01-02T03:04:0{i}.000Z", "finished": "2026-01-02T03:04:06.000Z",
                 "duration_s": 1, "label": "kept", "n_ranks": 8, "disturbed": 0, "class": "c" * 64, "config": "d" * 64, "topology": "e" * 64,
                 "layout": 0, "values": [80], "widths": [1, 1], "node": "ill"} for i in self.numbers]
        after = re.match(r"/v1/feed\?.*after=([0-9]+)", self.path)
        first = after and after[1] == "0"
        page = {"form": "summary", "node": "ill", "version": "1.0.0", "history_id": self.history, "next": len(runs), "last": len(runs), "more": False,
                "after": 0 if first else len(runs), "runs": runs if first else [], "layouts": [[["latency.n0.n0.median_ns", "ns"]]] if first else []}
        run = re.match("/v1/runs/([0-9]+)/export", self.path)
        status, document = (200, page) if after else self.exported(int(run[1])) if run else (404, {})
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Nothing is printed."""


@contextlib.contextmanager
def served(handler):
    """A node that is no virtual one; its port."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_run_that_its_node_cannot_send_is_given_up(collect, store):  # noqa: F811
    """It has been requested for hours, as the table has it."""
    options, rows = store
    with served(Unreadable) as port:
        c = collect(NODES, f"--runs={RUNS}", "--run-ms=0", collector=options)
        c.name([*c.fleet.names, f"ill url=http://127.0.0.1:{port}"])
        c.start()
        c.wait_up(NODES + 1)
        of = "FROM archive AS a JOIN node ON node.id = a.node WHERE node.name = 'ill'"

        def shown(refusals, query):
            """Requested again and again, instead of after minutes: a request may end without a response while a start is slow."""
            rows(c, f"UPDATE archive SET due_ms = 0, refused = {refusals} WHERE state = 0")
            return rows(c, query)
        refused = f"SELECT a.seq, a.state {of} AND a.why LIKE '%status%' ORDER BY a.seq"
        until(lambda: shown(0, refused) == [("1", "0"), ("2", "0")])
        assert c.status()["archive_given_up"] == 0
        c.stop()
        c.start()
        c.wait_up(NODES + 1)
        until(lambda: shown(9, f"SELECT a.state, count(*) {of} GROUP BY a.state") == [("2", "2")])
        until(lambda: c.status()["archive_given_up"] == 2)
        for run, status in ((1, 409), (2, 500)):
            code, problem = c.problem(f"/v1/fleet/archive/ill/{run}")
            assert code == 410 and f"status {status}" in problem["detail"], problem
        assert c.log.read_text().count("event=archive.given_up name=ill ") == 1, "once for each node"
        assert int(rows(c, "SELECT count(*) FROM archive WHERE state = 1")[0][0]) == NODES, "those of others come"


class Large(Unreadable):
    """Its exports are larger than what the collector keeps for the process that stores, and the last one than a run may be."""
    history, numbers = "7" * 32, (1, 2, 3, 4)

    def exported(self, run):
        return 200, {"format": "numaprobe-run", "run": {"seq": run}, "log": "x" * (33 if run == 4 else 20) * (1 << 20)}


def test_large_runs_stop_nothing(collect, store):  # noqa: F811
    options, rows = store
    with served(Large) as port:
        c = collect(NODES, f"--runs={RUNS}", "--run-ms=0", collector=options)
        c.name([*c.fleet.names, f"ill url=http://127.0.0.1:{port}"])
        c.start()
        c.wait_up(NODES + 1)
        of = "FROM archive AS a JOIN node ON node.id = a.node WHERE node.name = 'ill'"
        # Where another is on the way, one of them may be late: it is requested a minute later.
        until(lambda: (n := dict(rows(c, f"SELECT a.state, count(*) {of} GROUP BY a.state"))).get("2") == "1" and n.get("1"))
        assert len(archived(c, "ill", int(rows(c, f"SELECT min(a.seq) {of} AND a.state = 1")[0][0]))) > 20 << 20
        code, problem = c.problem("/v1/fleet/archive/ill/4")
        assert code == 410 and "it is larger than 33554432 bytes" in problem["detail"], problem
        run = measure(c, 0, label="later")
        until(lambda: not is_gone(c, c.fleet.names[0], run))


class ManyLarge(Large):
    """Each is more than what is kept for the process that stores."""
    numbers = (1, 2, 3, 4, 5, 6)

    def exported(self, run):
        return 200, {"format": "numaprobe-run", "run": {"seq": run}, "log": "x" * (20 << 20)}


def test_large_runs_wait_for_one_another(collect):  # noqa: F811
    """The next one is requested when one is stored."""
    with served(ManyLarge) as port:
        c = collect(NODES, f"--runs={RUNS}", "--run-ms=0", collector=["--archive=all"])
        c.options[c.options.index("--every=1")] = "--every=3600"  # so that nothing else repeats a request
        c.name([*c.fleet.names, f"ill url=http://127.0.0.1:{port}"])
        c.start().wait_up(NODES + 1)
        until(lambda: c.rows("SELECT count(*) FROM archive AS a JOIN node ON node.id = a.node WHERE node.name = 'ill' AND a.state = 1")
              == [(len(ManyLarge.numbers),)])


class Renamed(http.server.BaseHTTPRequestHandler):
    """A node with one labelled run. It exports it only after it was renamed."""
    names, history = ["before"], "5" * 32

    def do_GET(self):  # noqa: N802: the library's name
        run = {"seq": 1, "id": 1, "benchmark": "latency", "variant": "", "method": "prp4-v2", "metrics_version": 1, "state": "succeeded",
               "imported": False, "forced": False, "measured": "2026-01-02T03:04:05.000Z", "finished": "2026-01-02T03:04:06.000Z",
               "duration_s": 1, "label": "kept", "n_ranks": 8, "disturbed": 0, "class": "c" * 64, "config": "d" * 64, "topology": "e" * 64,
               "layout": 0, "values": [80], "widths": [1, 1], "node": self.names[-1]}
        after = re.match(r"/v1/feed\?.*after=([01])", self.path)
        first = after and after[1] == "0"
        status = 200 if after or ("/v1/runs/1/export" in self.path and len(self.names) > 1) else 404 if "facts" in self.path else 503
        page = {"form": "summary", "node": self.names[-1], "version": "1.0.0", "history_id": self.history, "next": 1, "last": 1, "more": False,
                "after": 0 if first else 1, "runs": [run] if first else [], "layouts": [[["latency.n0.n0.median_ns", "ns"]]] if first else []}
        body = json.dumps(page if after else {"format": "numaprobe-run", "run": {"seq": 1}}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Nothing is printed."""


@contextlib.contextmanager
def renamed(collect):  # noqa: F811
    """A collector that has the node as "before", and name(*names): the source names these as that node, and is read again."""
    Renamed.names = ["before"]
    with served(Renamed) as port:
        c = collect(NODES, "--run-ms=0")

        def name(*names):
            c.name([*c.fleet.names, *(f"{n} url=http://127.0.0.1:{port}" for n in names)])
            if c.is_running():
                c.process.send_signal(signal.SIGHUP)
        name("before")
        c.start()
        c.wait_up(NODES + 1)
        yield c, name


def test_a_run_that_was_wanted_before_its_node_was_renamed_comes(collect):  # noqa: F811
    with renamed(collect) as (c, name):
        state = "SELECT node.name, a.state, a.tries > 0 FROM archive AS a JOIN node ON node.id = a.node WHERE node.name IN ('before', 'now')"
        until(lambda: c.rows(state) == [("before", 0, 1)])
        name()
        until(lambda: c.node("before")["state"] == "gone")
        Renamed.names.append("now")

        def came():
            """The process that stores may still try the old name, and would wait for minutes then."""
            with contextlib.closing(sqlite3.connect(f"{c.home}/state/fleet.db", timeout=PATIENCE)) as db, db:
                db.execute("UPDATE archive SET due_ms = 0 WHERE state = 0")  # instead of waiting a minute
            return c.rows(state) == [("before", 1, 1)]
        name("now")
        until(came)
        assert json.loads(archived(c, "before", 1)) == {"format": "numaprobe-run", "run": {"seq": 1}}


def test_a_node_is_renamed_while_the_process_that_stores_is_killed(collect):  # noqa: F811
    """What that process did not store of the old name's end is said again: the new name would be a twin for ever."""
    with renamed(collect) as (c, name):
        ingest = c.child("--ingest")
        os.kill(ingest, signal.SIGSTOP)
        name()
        until(lambda: c.node("before")["state"] == "gone")
        os.kill(ingest, signal.SIGKILL)
        Renamed.names.append("now")
        name("now")
        until(lambda: c.rows("SELECT name FROM node JOIN feed ON feed.node = node.id "
                             f"WHERE feed.history = '{Renamed.history}'") == [("now",)])
        until(lambda: c.node("now")["state"] == "up")
        assert c.node("before")["state"] == "gone"


@pytest.mark.parametrize("twin", (False, True), ids=("not known yet", "a twin already"))
def test_a_node_is_renamed_while_the_collector_is_stopped(collect, twin):  # noqa: F811
    """That a node is gone follows from the store then: no list of this collector ever named it."""
    with renamed(collect) as (c, name):
        c.stop()
        with contextlib.closing(sqlite3.connect(f"{c.home}/state/fleet.db")) as db, db:
            if twin:  # as collectors left it that did not look
                db.execute("INSERT INTO node (id, name, since_ms) SELECT max(id) + 1, 'now', 1 FROM node")
                db.execute("UPDATE feed SET state = 2, twin = (SELECT max(id) FROM node) WHERE history = ?", (Renamed.history,))
        Renamed.names.append("now")
        name("now")
        c.start()
        c.wait_up(NODES + 1)
        assert c.rows("SELECT node.name, feed.twin FROM feed JOIN node ON feed.node = node.id "
                      f"WHERE feed.history = '{Renamed.history}'") == [("now", 0)]
        assert "event=nodes.left nodes=1 " in c.log.read_text()


def test_a_short_list_at_the_start_is_doubted(collect):  # noqa: F811
    """No page is read before nodes would have left, so the histories of the others were left alone when one is there."""
    c = collect(NODES, "--run-ms=0").start()
    c.wait_up(NODES)
    c.stop()
    c.name(c.fleet.names[:1])
    c.start()
    c.wait_up(1)
    assert c.rows("SELECT count(*) FROM feed WHERE state = 0") == [(NODES,)] and "event=nodes.left" not in c.log.read_text()
    c.name(c.fleet.names)
    c.process.send_signal(signal.SIGHUP)
    c.wait_up(NODES)
    assert c.rows("SELECT count(*) FROM feed WHERE state = 0") == [(NODES,)] and "event=nodes.left" not in c.log.read_text()
