# SPDX-License-Identifier: Apache-2.0
"""The collector when its store is away, full or read-only, when PostgreSQL fails over, and with a second collector beside it:
each time the state is named, and in the end nothing is missing."""
import contextlib
import json
import os
import re
import signal
import subprocess
import urllib.error
import urllib.request

import pytest

from client import run
from conftest import PATIENCE, until
from postgresql import Server, make_postgresql  # noqa: F401
from test_fleetd import Collector, collect, measure  # noqa: F401

NODES = 12


def counts(server, collector=None):
    """(runs, different runs) in the store."""
    query = "SELECT count(*), count(DISTINCT feed || '.' || seq) FROM run"
    if server:
        return tuple(int(n) for n in server.rows(query)[0])
    return collector.rows(query)[0]


def readyz(collector):
    """What is not ready; "": all is."""
    try:
        return "" if collector.ask("/readyz") else None
    except urllib.error.HTTPError as refused:
        assert refused.code == 503, refused
        return json.load(refused)["detail"]


def wait_state(collector, state):
    """Both responses are of one moment when the state is the same before and after. On a full disk a small page may still fit, so
    states may alternate."""
    def seen():
        status, why = collector.status(), readyz(collector)
        same = collector.status()
        if why == "a source is being read for the first time":
            return None
        return status["store_state"] == same["store_state"] == state and status["store_since"] == same["store_since"] and (status, why)
    status, why = until(seen)
    assert status["store_ready"] == (state == "ready") and status["store_since"] <= status["now"], status
    if state == "ready":
        assert why == "" == status["store_problem"], (status, why)
    else:
        assert why.startswith(f"{state}: ") and status["store_problem"], (status, why)
    return status


def wait_runs(server, n, collector=None):
    until(lambda: counts(server, collector) == (n, n))


def test_postgresql_is_away_at_the_start_and_later(collect, make_postgresql):  # noqa: F811
    server = make_postgresql()
    server.stop()
    c = collect(NODES, "--run-ms=0", collector=[f"--store={server.uri}"]).start()
    wait_state(c, "unreachable")
    assert c.refusal("/v1/fleet/outliers")[0] == 503, "there is no history to read"
    server.start()
    wait_state(c, "ready")
    wait_runs(server, NODES * 12)
    wait_state(c, "ready")
    server.stop()
    measure(c.fleet, NODES, 3)
    wait_state(c, "unreachable")
    until(lambda: c.status()["backlog_bytes"] == 0)  # nothing is kept that cannot be stored
    server.start()
    wait_state(c, "ready")
    wait_runs(server, NODES * 15)


def test_postgresql_only_reads_for_a_while(collect, make_postgresql):  # noqa: F811
    server = make_postgresql()
    c = collect(NODES, "--run-ms=0", collector=[f"--store={server.uri}"]).start()
    c.wait_up(NODES)
    wait_runs(server, NODES * 12)
    until(lambda: (s := c.status())["store_runs"] == NODES * 12 and s["store_bytes"] > 1 << 20)
    server.stop()
    server.settings = ["default_transaction_read_only=on"]
    server.start()
    measure(c.fleet, NODES)
    wait_state(c, "unwritable")
    assert c.get("/v1/fleet/outliers")["nodes"] == NODES, "the history is served"
    server.stop()
    server.settings = []
    server.start()
    wait_state(c, "ready")
    wait_runs(server, NODES * 13)


@contextlib.contextmanager
def small_disk(folder, mib):
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m,mode=755", "numaprobe-test", folder], capture_output=True)
    if done.returncode:
        pytest.skip("cannot mount a small file system here: not root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def fill(folder):
    """A file that takes what is left; deleted, there is room again."""
    ballast = folder / "ballast"
    with open(ballast, "wb", buffering=0) as other, contextlib.suppress(OSError):
        while True:
            other.write(b"x" * 65536)
    return ballast


@contextlib.contextmanager
def small_postgresql(tmp_path, make_postgresql, mib):  # noqa: F811
    """A server whose tables lie on a small disk, and its folder there. Its log of changes lies on the large one."""
    with small_disk(tmp_path / "small", mib) as folder:
        tmp_path.chmod(0o755)
        wal = Server()
        wal.data.mkdir()
        if os.geteuid() == 0:
            os.chown(wal.data, 65534, 65534)
        server = Server(home=folder).make(f"--waldir={wal.data}")
        make_postgresql.also(server)
        make_postgresql.also(wal)
        yield server.start(), folder


def test_a_full_disk_below_sqlite(collect, tmp_path):  # noqa: F811
    with small_disk(tmp_path / "small", 24) as folder:
        c = collect(NODES, "--run-ms=0", "--runs=20", collector=[f"--state-dir={folder}/state"]).start()
        c.home = folder
        c.wait_up(NODES)
        wait_runs(None, NODES * 40, c)
        ballast = fill(folder)
        until(lambda: (measure(c.fleet, NODES, 2), c.status()["store_state"] == "unwritable")[1])
        wait_state(c, "unwritable")
        assert c.get("/v1/fleet/outliers")["nodes"] == NODES, "the history is served"
        ballast.unlink()
        wait_state(c, "ready")
        wait_all(None, c)
        c.stop()


def test_a_disk_below_sqlite_that_is_read_only_at_the_start(collect, tmp_path):  # noqa: F811
    with small_disk(tmp_path / "small", 24) as folder:
        home = folder / "50%25 a?b#c"  # what a URI would take for something else
        c = collect(NODES, "--run-ms=0", collector=[f"--state-dir={home}"]).start()
        c.wait_up(NODES)
        c.stop()
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        c.start()
        assert "read-only" in wait_state(c, "unwritable")["store_problem"].lower()

        def served():
            return len(c.get(f"/v1/fleet/runs?newest=50&where={c.fleet.names[0]}")["runs"])
        assert c.get("/v1/fleet/outliers")["nodes"] == NODES and served() == 12, "the history is served"
        measure(c.fleet, NODES)
        assert served() == 12, "and nothing new is stored"
        subprocess.run(["mount", "-o", "remount,rw", folder], check=True)
        wait_state(c, "ready")
        until(lambda: served() == 13)
        c.stop()


def wait_all(server, collector):
    """Until the store has what the nodes have."""
    def theirs(node):
        with urllib.request.urlopen(f"http://127.1.0.{node + 1}:{collector.fleet.port}/v1/feed?form=summary&limit=1", timeout=PATIENCE) as r:
            return json.load(r)["last"]
    n = sum(theirs(i) for i in range(NODES))
    wait_runs(server, n, collector)


def test_a_full_disk_below_postgresql(collect, make_postgresql, tmp_path):  # noqa: F811
    with small_postgresql(tmp_path, make_postgresql, 96) as (server, folder):
        c = collect(NODES, "--run-ms=0", "--runs=20", collector=[f"--store={server.uri}"]).start()
        c.wait_up(NODES)
        wait_runs(server, NODES * 40)
        ballast = fill(folder)
        until(lambda: (measure(c.fleet, NODES, 4), c.status()["store_state"] == "unwritable")[1])
        assert "full" in wait_state(c, "unwritable")["store_problem"]
        ballast.unlink()
        wait_state(c, "ready")
        wait_all(server, c)
        c.stop()
        server.stop()


def test_postgresql_fails_over_to_a_standby(collect, make_postgresql):  # noqa: F811
    first = make_postgresql()
    second = Server()
    make_postgresql.also(second)
    first.program("pg_basebackup", "-D", second.data, "-R", "-X", "stream", "-c", "fast", "-h", first.home, "-U", "fleet")
    second.start()
    uri = f"postgresql:///postgres?host={first.home},{second.home}&user=fleet&target_session_attrs=read-write"
    c = collect(NODES, "--run-ms=0", "--runs=20", collector=[f"--store={uri}"]).start()
    c.wait_up(NODES)
    wait_runs(first, NODES * 40)
    wait_runs(second, NODES * 40)
    measure(c.fleet, NODES, 2)
    first.stop(9)
    measure(c.fleet, NODES, 2)
    wait_state(c, "unreachable")
    second.program("pg_ctl", "promote", "-D", second.data, "-w")
    wait_state(c, "ready")
    wait_runs(second, NODES * 44)
    assert c.get("/v1/fleet/outliers")["nodes"] == NODES


def medians(collector):
    return [line for line in collector.get_bytes("/metrics").decode().splitlines() if line.startswith("numaprobe_fleet_class_median")]


def test_a_collector_on_standby_serves_what_the_other_one_stores(collect):  # noqa: F811
    c = collect(NODES, "--run-ms=0").start()
    c.wait_up(NODES)
    other = Collector(c.home, c.fleet, f"--store={c.home}/state/fleet.db", f"--run-dir={c.home}/other").start()
    try:
        wait_state(other, "standby")
        before = medians(other)
        path = "/v1/fleet/history?metric=latency.local.dram.median_ns&node=node01"
        points = len(other.get(path)["points"])
        assert before and points
        measure(c.fleet, NODES)
        until(lambda: len(other.get(path)["points"]) > points)
        until(lambda: medians(other) != before)
    finally:
        other.stop()


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_a_second_collector_stands_by_and_takes_over(request, collect, engine):  # noqa: F811
    server = request.getfixturevalue("make_postgresql")() if engine == "postgresql" else None
    c = collect(NODES, "--run-ms=0", "--runs=6", "--bad-percent=30", collector=[f"--store={server.uri}"] if server else []).start()
    c.wait_up(NODES)
    other = Collector(c.home, c.fleet, f"--store={server.uri if server else f'{c.home}/state/fleet.db'}",
                      f"--run-dir={c.home}/other").start()
    try:
        wait_state(other, "standby")
        until(lambda: other.status()["nodes"] == NODES)  # who knows no nodes yet does not reach none of them
        assert other.get("/v1/fleet/outliers")["nodes"] == NODES, "it serves the history"
        assert other.status()["requests"] == 0, "one of them contacts the nodes"
        metrics = other.ask_bytes("/metrics").decode()
        assert 'numaprobe_fleet_ready{part="store"} 1\n' in metrics and "numaprobe_fleet_feed_lag_seconds 0\n" in metrics, "no alarm"
        status, problem = other.refusal("/v1/fleet/drain")
        assert status == 503 and "standby and suggests nothing" in problem["detail"], problem
        done = run("fleet", "campaign", "start", "--name=w", "--quick", f"--fleet=unix:{other.home}/other/numaprobe-fleetd.sock")
        assert done.returncode and "store is standby: another" in done.stderr, done
        c.wait_judged(outlier=1)
        said = until(lambda: (s := other.status())["coverage"] and s)
        [of] = said["coverage"]["classes"]
        assert (of["known"], of["enough_runs"], of["up"]) == (NODES, NODES, None), "how nodes are is not known"
        assert said["findings"]["known"] and said["findings"]["judged"] is None, said
        one = other.node("node01")
        assert (one["state"], one["class"]) == ("new", of["class"]) and one["newest"], one
        done = run("fleet", "status", f"--fleet=unix:{other.home}/other/numaprobe-fleetd.sock")
        assert done.returncode == 9 and "this collector is standby and contacts no node" in done.stderr, done
        assert other.get("/v1/fleet/nodes")["standby"] and not c.get("/v1/fleet/nodes")["standby"]
        words = ("fleet", "coverage", f"--fleet=unix:{other.home}/other/numaprobe-fleetd.sock")
        assert [of["up"] for of in json.loads(run(*words, "-o", "json").stdout)["classes"]] == [None]
        row = run(*words).stdout.splitlines()[1]
        assert re.search(rf" {NODES} +- +{NODES} +{NODES} ", row), row
        tried = other.find_child("--ingest")
        until(lambda: other.find_child("--ingest") not in (None, tried))
        assert "ingest.ended" not in other.log.read_text(), "it tries each second, and its log has no line for that"
        c.kill()
        measure(c.fleet, NODES)
        wait_state(other, "ready")
        wait_runs(server, NODES * 13, c)
        assert other.status()["runs_stored"] <= NODES, "what the first one had stored is not read again"
        c.start()
        wait_state(c, "standby")
    finally:
        other.stop()
    wait_state(c, "ready")


def test_a_collector_that_lost_its_lock_stores_nothing_more(collect, make_postgresql):  # noqa: F811
    """What it is to store first then fails because of the lock. What comes after that must not be stored without it."""
    server = make_postgresql()
    c = collect(3, "--run-ms=0", collector=[f"--store={server.uri}", "--every=86400"]).start()
    c.wait_up(3)
    c.wait_judged()
    other = Collector(c.home, c.fleet, f"--store={server.uri}", f"--run-dir={c.home}/other").start()
    try:
        wait_state(other, "standby")
        [(locked,)] = server.rows("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted")
        assert server.rows(f"SELECT pg_terminate_backend({locked})") == [("t",)]
        wait_state(other, "ready")
        c.name(c.fleet.names[:2])
        c.process.send_signal(signal.SIGHUP)
        until(lambda: c.status()["states"]["gone"] == 1)  # the first item
        c.name(c.fleet.names)
        c.process.send_signal(signal.SIGHUP)  # a page of the node is the next one
        wait_state(c, "standby")
        assert other.status()["store_state"] == "ready"
    finally:
        other.stop()


@pytest.mark.parametrize("ends", [False, True], ids=["continues", "is killed"])
def test_a_process_that_hangs_is_stated(collect, ends):  # noqa: F811
    """A disk that does not respond: the process that stores is stopped."""
    c = collect(NODES, "--run-ms=0").start()
    wait_state(c, "ready")
    wait_runs(None, NODES * 12, c)  # then it deletes what is too old, and may take minutes for it
    measure(c.fleet, NODES)
    wait_runs(None, NODES * 13, c)  # now it has done so
    process = c.child("--ingest")
    os.kill(process, signal.SIGSTOP)
    try:
        measure(c.fleet, NODES)
        said = until(lambda: (s := c.status())["store_problem"] and s)
        assert said["store_state"] == "ready" and readyz(c) == said["store_problem"], said
        assert said["store_problem"] == "the store has confirmed nothing for 10 s: the database or the disk does not respond"
    finally:
        os.kill(process, signal.SIGKILL if ends else signal.SIGCONT)
    wait_runs(None, NODES * 14, c)
    until(lambda: not c.status()["store_problem"])
    log = c.log.read_text()
    assert log.count("event=store.stalled is=ready text=") == 1 and log.count("event=store.responds is=ready") == (not ends), log
