# SPDX-License-Identifier: Apache-2.0
"""numaprobe-fleetd --move-to: the history in PostgreSQL gives what the file gives, also when the move was killed again and again."""
import os
import re
import signal
import sqlite3
import subprocess

import pytest

from conftest import PATIENCE, until
from postgresql import make_postgresql  # noqa: F401
from test_fleetd import FLEETD, Collector, collect  # noqa: F401
from test_fleetd_store import fill, small_postgresql

NODES, RUNS = 60, 150
KILLS = int(os.environ.get("NUMAPROBE_MOVE_KILLS", "8"))


def move(store, server, **kw):
    return subprocess.run([FLEETD, f"--store={store}", f"--move-to={server.uri}"], capture_output=True, text=True, timeout=PATIENCE, **kw)


@pytest.fixture
def history(collect):  # noqa: F811
    """A collector that has stopped, and its file."""
    c = collect(NODES, f"--runs={RUNS}", "--waves=1", "--classes=2").start()
    until(lambda: c.status()["runs_stored"] == 2 * NODES * RUNS)  # several pages of each node
    c.wait_known(NODES)
    c.stop()
    c.file = f"{c.home}/state/fleet.db"
    return c


def fill_tables(db):
    """Tables that the collector left empty get a row each, which it would not have written."""
    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")]
    for table in tables:
        if db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,):
            of_type = {"INTEGER": 7, "REAL": 0.1, "TEXT": '{"a": "b\'ö"}', "BLOB": bytes(range(256))}
            values = [of_type[kind] for _, _, kind, *_ in db.execute(f"PRAGMA table_info({table})")]
            db.execute(f"INSERT INTO {table} VALUES ({','.join('?' * len(values))})", values)
    return tables


def retention_marks(db):
    """Rows of `meta` of a file that had runs and whole runs deleted, and of a newer version of the collector."""
    names = ["deletions", "deleted_before", "retained", "retained_before", "archive_retained", "archive_retained_before", "of_a_newer_version"]
    db.executemany("INSERT INTO meta VALUES (?, ?)", [(name, 1700000000000 + i) for i, name in enumerate(names)])


def views(collector):
    """What both give. Times of now are left out."""
    paths = ["/v1/fleet/outliers", "/v1/fleet/classes"]
    paths += [f"/v1/fleet/history?metric=latency.n0.n0.median_ns&node={n}" for n in collector.fleet.names[:3]]
    return [{k: v for k, v in collector.get(p).items() if k != "evaluated"} for p in paths]


def written_by_arrival(server):
    """Whether the runs lie in the order of their arrival in each month: who reads the feed reads the blocks one after the other.
    PostgreSQL may put a short row where one before left room for it, so a few are elsewhere. Written node by node, a row would be
    away from its place by a third of all."""
    months = {}
    for month, arrival in server.rows("SELECT tableoid, arrival FROM run ORDER BY tableoid, ctid"):
        months.setdefault(month, []).append(int(arrival))
    places = {month: {arrival: i for i, arrival in enumerate(sorted(of))} for month, of in months.items()}
    away = [abs(places[month][arrival] - i) / len(of) for month, of in months.items() for i, arrival in enumerate(of)]
    return away and sum(away) / len(away) < 0.1


def test_every_table_is_moved(history, make_postgresql):  # noqa: F811
    server = make_postgresql()
    with sqlite3.connect(history.file) as db:
        tables = fill_tables(db)
        retention_marks(db)
        rows = {table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables}
    done = move(history.file, server)
    assert done.returncode == 0, done.stderr
    assert all(rows.values()) and {table: int(server.rows(f"SELECT count(*) FROM {table}")[0][0]) for table in tables} == rows
    with sqlite3.connect(history.file) as db:
        marks = dict(db.execute("SELECT name, value FROM meta"))
    assert {name: int(value) for name, value in server.rows("SELECT name, value FROM meta")} == marks
    server.rows("UPDATE meta SET value = value + 1 WHERE name = 'retained_before'")
    assert move(history.file, server).returncode == 0
    assert server.rows("SELECT value FROM meta WHERE name = 'retained_before'") == [(str(marks["retained_before"] + 1),)], \
        "a move that had finished does not take back what happened since"


def test_the_moved_history_gives_the_same(history, make_postgresql):  # noqa: F811
    server = make_postgresql()
    done = move(history.file, server)
    assert done.returncode == 0 and f"store = {server.uri}" in done.stdout, (done.stdout, done.stderr)
    assert server.rows("SELECT count(*), count(DISTINCT (feed, seq)) FROM run") == [(str(2 * NODES * RUNS),) * 2]
    assert written_by_arrival(server)
    again = move(history.file, server)
    assert again.returncode == 0, again.stderr
    history.start()
    history.wait_up(NODES)
    of_file = views(history)
    history.stop()
    moved = Collector(history.home, history.fleet, f"--store={server.uri}").start()
    try:
        moved.wait_up(NODES)
        assert views(moved) == of_file
        assert moved.status()["runs_stored"] == 0, "nodes are read on from where they stood"
    finally:
        moved.stop()
    refused = move(history.file, server)
    assert refused.returncode == 1 and "history of its own" in refused.stderr, refused.stderr


def test_a_move_that_is_killed_continues(history, make_postgresql):  # noqa: F811
    server = make_postgresql()
    killed, far = 0, []
    for i in range(KILLS):
        process = subprocess.Popen([FLEETD, f"--store={history.file}", f"--move-to={server.uri}"], stderr=subprocess.PIPE)
        there = "SELECT count(*) FROM pg_class WHERE relname = 'meta'"
        until(lambda: process.poll() is not None or server.rows(there) == [("1",)])
        most = 2 * NODES * RUNS * i // KILLS
        until(lambda: process.poll() is not None or int(server.rows("SELECT count(*) FROM run")[0][0]) >= most)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        until(lambda: not server.backends())  # they notice that it is gone
        far.append(int(server.rows("SELECT count(*) FROM run")[0][0]))
    assert killed and far == sorted(far), (killed, far)
    c = Collector(history.home, history.fleet, f"--store={server.uri}", f"--run-dir={history.home}/other")
    if far[-1] < 2 * NODES * RUNS:
        c.start()
        try:
            assert "--move-to" in until(lambda: c.status()["store_problem"])
        finally:
            c.stop()
    done = move(history.file, server)
    assert done.returncode == 0, done.stderr
    assert server.rows("SELECT count(*), count(DISTINCT (feed, seq)) FROM run") == [(str(2 * NODES * RUNS),) * 2]
    assert written_by_arrival(server)


def test_a_move_notices_what_it_must_not_do(history, make_postgresql, tmp_path):  # noqa: F811
    server = make_postgresql()
    history.start()
    until(lambda: history.status()["store_ready"])
    busy = move(history.file, server)
    assert busy.returncode == 1 and re.search(r"another process \(\d+\) writes", busy.stderr), busy.stderr
    history.stop()
    (tmp_path / "text").write_text("no database\n" * 100)
    database = "--move-to: must be a database, such as postgresql://fleet@db/fleet"
    for store, target, status, said in (
            (tmp_path / "none", server.uri, 2, f"--store: cannot read {tmp_path}/none: No such file or directory"),
            (tmp_path, server.uri, 2, f"--store: {tmp_path} is not a file"),
            (tmp_path / "text", server.uri, 1, f"--store: {tmp_path}/text is not a database"),
            (server.uri, server.uri, 2, "--store: is a database already; --move-to copies a file of SQLite into PostgreSQL"),
            (history.file, "postgres:/db", 2, database), (history.file, "postgres:///x?host=/nowhere", 1, "--move-to: no connection to"),
            (history.file, "/tmp/x.db", 2, database), (history.file, history.file, 2, database), (history.file, "", 2, database),
            (history.file, "http://db/fleet", 2, database),
            (history.file, "postgresql:///x?host=/nowhere", 1, "--move-to: no connection to PostgreSQL (")):
        done = subprocess.run([FLEETD, f"--store={store}", f"--move-to={target}"], capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == status and done.stderr.startswith("numaprobe-fleetd: " + said), (done.returncode, done.stderr)
    opened = Collector(history.home, history.fleet, f"--store={server.uri}", f"--run-dir={history.home}/other")
    opened.options = [o for o in opened.options if not o.startswith("--hostfile")]
    opened.start()
    try:
        until(lambda: opened.status()["store_ready"])
    finally:
        opened.stop()
    server.rows("INSERT INTO document VALUES ('h', '{}')")
    refused = move(history.file, server)
    assert refused.returncode == 1 and "history of its own" in refused.stderr, "no node, but something else"
    server.rows("DELETE FROM document")
    assert move(history.file, server).returncode == 0, "a collector has opened it, and nothing else"
    server.rows("UPDATE meta SET value = 3 WHERE name = 'version'; INSERT INTO meta VALUES ('moving', 3), ('moved', 0)")
    assert move(history.file, server).returncode == 0, "the file has changed since: it begins anew"
    server.rows("UPDATE run SET seq = seq + 1000 WHERE node = 3")
    damaged = move(history.file, server)
    assert damaged.returncode == 1 and "--move-to: that database has a history of its own" in damaged.stderr, damaged.stderr
    server.rows("INSERT INTO meta SELECT 'moving', value FROM meta WHERE name = 'version'")
    server.rows(f"INSERT INTO meta VALUES ('moved', {2**60}), ('moved_nodes', {NODES})")
    damaged = move(history.file, server)
    assert damaged.returncode == 1 and "table run is not the same" in damaged.stderr, damaged.stderr
    assert move(history.file, server).returncode == 0, "it begins anew"
    assert server.rows("SELECT max(seq) FROM run") == [(str(2 * RUNS),)]


def test_a_move_into_a_database_that_is_full_continues(history, make_postgresql, tmp_path):  # noqa: F811
    with small_postgresql(tmp_path, make_postgresql, 160) as (server, folder):
        server.rows("SELECT 1")  # the caches that a connection needs are written
        ballast = fill(folder)
        os.truncate(ballast, ballast.stat().st_size - (3 << 20))
        done = move(history.file, server)
        assert done.returncode == 1 and "PostgreSQL's disk is full" in done.stderr and "No space left" in done.stderr, done
        ballast.unlink()
        done = move(history.file, server)
        assert done.returncode == 0, done.stderr
        assert server.rows("SELECT count(*), count(DISTINCT (feed, seq)) FROM run") == [(str(2 * NODES * RUNS),) * 2]
        server.stop()


def test_a_move_whose_server_goes_away_continues(history, make_postgresql):  # noqa: F811
    server = make_postgresql()
    process = subprocess.Popen([FLEETD, f"--store={history.file}", f"--move-to={server.uri}"], stderr=subprocess.PIPE, text=True)
    until(lambda: process.poll() is not None or server.rows("SELECT count(*) FROM pg_class WHERE relname = 'meta'") == [("1",)])
    server.stop()
    said = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode in (0, 1) and (process.returncode == 0 or "no connection to PostgreSQL" in said), said
    away = move(history.file, server)
    assert away.returncode == 1 and "no connection to PostgreSQL" in away.stderr and str(server.home) in away.stderr, away
    server.start()
    done = move(history.file, server)
    assert done.returncode == 0, done.stderr
    assert server.rows("SELECT count(*), count(DISTINCT (feed, seq)) FROM run") == [(str(2 * NODES * RUNS),) * 2]
