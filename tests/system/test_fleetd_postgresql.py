# SPDX-License-Identifier: Apache-2.0
"""The collector on a database that an administrator has set up in a way of their own: right results, or an error that says what
is wrong."""
import contextlib
import json
import os
import signal
import subprocess
import urllib.error
import urllib.request

import pytest

from conftest import PATIENCE, until
from postgresql import BIN, PATIENT, make_postgresql  # noqa: F401
from test_fleetd import collect, measure  # noqa: F401
from test_fleetd_archive import archived, exported
from test_fleetd_store import wait_runs, wait_state

NODES = 12
# Forms of values that differ from the usual ones, and times that end what others leave. They count from the connection, and the
# collector must have said within them that they are not its own.
SETTINGS = ("bytea_output = escape", "extra_float_digits = -15", "DateStyle = 'German, DMY'", "timezone = 'Asia/Kathmandu'",
            "standard_conforming_strings = off", "default_transaction_isolation = serializable", "statement_timeout = '4s'",
            "idle_in_transaction_session_timeout = '4s'", "idle_session_timeout = '4s'")


@contextlib.contextmanager
def psql(server, *statements):
    """A session that has executed these and remains."""
    session = subprocess.Popen([BIN[-1] / "psql", "-XAtq", "-d", server.uri], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               env={**os.environ, **PATIENT})
    session.stdin.write("; ".join((*statements, r"\echo done")) + "\n")
    session.stdin.flush()
    try:
        assert session.stdout.readline() == "done\n"
        yield session
    finally:
        session.communicate(timeout=PATIENCE)


def waited(server, seconds):
    """Whether the collector has waited so long for a lock."""
    return server.rows("SELECT 1 FROM pg_stat_activity WHERE application_name = 'numaprobe-fleetd' AND wait_event_type = 'Lock' "
                       f"AND clock_timestamp() - query_start > '{seconds} s'")


def test_settings_of_the_database_change_no_result(collect, make_postgresql):  # noqa: F811
    server = make_postgresql()
    server.rows("; ".join(f"ALTER DATABASE postgres SET {s}" for s in SETTINGS))
    store = server.uri.replace("postgresql://", "postgres://")  # libpq takes both
    c = collect(NODES, "--run-ms=0", collector=[f"--store={store}", "--archive=all"]).start()
    wait_state(c, "ready")
    wait_runs(server, NODES * 12)
    until(lambda: server.rows("SELECT count(*) FROM archive WHERE state = 1") == [(str(NODES * 12),)])
    assert archived(c, c.fleet.names[3], 5) == exported(c, 3, 5)
    [writer] = server.rows("SELECT pid FROM pg_locks WHERE locktype = 'advisory'")
    with psql(server, "BEGIN", "LOCK run"):
        measure(c.fleet, NODES)
        until(lambda: waited(server, 5))
    wait_runs(server, NODES * 13)
    assert server.rows("SELECT pid FROM pg_locks WHERE locktype = 'advisory'") == [writer], "it has kept its connection"
    assert "is=unreachable" not in c.log.read_text() and "is=unwritable" not in c.log.read_text()


@pytest.mark.parametrize("encoding, fits", [("SQL_ASCII", True), ("LATIN1", False)])
def test_a_database_whose_encoding_lacks_characters_is_refused(collect, make_postgresql, encoding, fits):  # noqa: F811
    server = make_postgresql()
    server.rows(f"CREATE DATABASE other ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
    server.uri = server.uri.replace("/postgres?", "/other?")
    c = collect(NODES, "--run-ms=0", collector=[f"--store={server.uri}"]).start()
    if fits:
        wait_state(c, "ready")
        wait_runs(server, NODES * 12)
        return
    said = wait_state(c, "unwritable")["store_problem"]
    assert said == "the encoding of the database is LATIN1: create one with ENCODING 'UTF8'", said


def months(server):
    return [month for (month,) in server.rows("SELECT DISTINCT tableoid::regclass::text FROM run ORDER BY 1")]  # regclass sorts by oid


def test_a_copy_of_the_database_delays_only_the_deletion(collect, make_postgresql):  # noqa: F811
    server = make_postgresql()
    c = collect(NODES, "--run-ms=0", "--runs=10", "--interval-s=10d", collector=[f"--store={server.uri}"]).start()
    wait_state(c, "ready")
    wait_runs(server, NODES * 20)
    all_months = months(server)
    c.stop()
    c.options.append("--keep-days=40")
    with psql(server, "BEGIN", "LOCK run IN ACCESS SHARE MODE"):  # as pg_dump does
        c.start()
        wait_state(c, "ready")
        measure(c.fleet, NODES)
        wait_runs(server, NODES * 21)
        until(lambda: "lock timeout" in (server.home / "log").read_text())
        measure(c.fleet, NODES)
        wait_runs(server, NODES * 22)
        assert c.get("/v1/fleet/outliers")["nodes"] == NODES and months(server)[0] == all_months[0]
        assert "is=standby" not in c.log.read_text() and c.status()["store_state"] == "ready"
        [reader] = server.rows("SELECT pid FROM pg_locks WHERE relation = 'run'::regclass AND mode = 'AccessShareLock' AND granted "
                               "AND pid <> pg_backend_pid()")
        until(lambda: "event=retention.blocked" in c.log.read_text())
    said = f'text="table {all_months[0]} cannot be deleted: process {reader[0]} of PostgreSQL (psql, '
    assert said in c.log.read_text() and "event=retention.resumed" not in c.log.read_text()
    c.kill_child("--ingest")
    wait_state(c, "ready")
    until(lambda: (measure(c.fleet, NODES), months(server)[0] != all_months[0])[1])
    until(lambda: "event=retention.resumed" in c.log.read_text())
    assert c.log.read_text().count("event=retention.blocked") == 1


def test_a_server_that_hangs_is_stated(collect, make_postgresql):  # noqa: F811
    """The process of PostgreSQL that serves what stores is stopped: nothing is lost, and the status and the log state it."""
    server = make_postgresql()
    c = collect(NODES, "--run-ms=0", collector=[f"--store={server.uri}"]).start()
    wait_state(c, "ready")
    wait_runs(server, NODES * 12)  # then it deletes what is too old, and may take minutes for it
    measure(c.fleet, NODES)
    wait_runs(server, NODES * 13)  # now it has done so
    [(writer,)] = server.rows("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted")
    os.kill(int(writer), signal.SIGSTOP)
    try:
        measure(c.fleet, NODES)
        said = until(lambda: (s := c.status())["store_problem"] and s)
        assert said["store_state"] == "ready" and said["store_problem"] == (
            "the store has confirmed nothing for 10 s: the database or the disk does not respond"), said
        with ready_refused(c) as problem:
            assert problem["member"] == "store" and problem["detail"] == said["store_problem"], problem
    finally:
        os.kill(int(writer), signal.SIGCONT)
    wait_runs(server, NODES * 14)
    until(lambda: not c.status()["store_problem"])
    log = c.log.read_text()
    assert log.count("event=store.stalled is=ready text=") == 1 and log.count("event=store.responds is=ready") == 1, log


@contextlib.contextmanager
def ready_refused(c):
    try:
        urllib.request.urlopen(f"{c.url}/readyz", timeout=PATIENCE)
        raise AssertionError("it is ready")
    except urllib.error.HTTPError as refused:
        assert refused.code == 503 and refused.headers["Retry-After"]
        yield json.load(refused)


def test_an_upgrade_that_waits_for_a_reader_states_it(collect, make_postgresql):  # noqa: F811
    server = make_postgresql()
    c = collect(NODES, "--run-ms=0", collector=[f"--store={server.uri}"]).start()
    wait_state(c, "ready")
    wait_runs(server, NODES * 12)
    c.stop()
    server.rows("ALTER TABLE setup DROP COLUMN good; ALTER TABLE archive DROP COLUMN refused; UPDATE schema_version SET version = 1")  # as the first release left it
    with psql(server, "BEGIN", "LOCK setup IN ACCESS SHARE MODE"):
        c.start()
        said = until(lambda: "upgrade waits" in (s := c.status())["store_problem"] and s)
        [(reader,)] = server.rows("SELECT pid FROM pg_locks WHERE relation = 'setup'::regclass AND mode = 'AccessShareLock' AND granted "
                                  "AND pid <> pg_backend_pid()")
        assert said["store_state"] == "opening", said
        assert said["store_problem"] == f"the upgrade waits for a table: process {reader} of PostgreSQL (psql, fleet) uses table setup", said
        until(lambda: f'event=store was=opening is=opening text="{said["store_problem"]}"' in c.log.read_text())
    assert wait_state(c, "ready")["store_problem"] == ""
    wait_runs(server, NODES * 12)
