# SPDX-License-Identifier: Apache-2.0
"""What lasts: labels, retention, backup and restore, damaged databases. Black box, with the fake bench."""
import json
import os
import pathlib
import socket
import sqlite3
import subprocess

import pytest

from conftest import build_dir, fake_bench_env

CLIENT = build_dir() / "client" / "numaprobe"


def cli(daemon, *args):
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent",
           "NUMAPROBE_URL": f"http://127.0.0.1:{daemon.port}"}
    return subprocess.run([str(CLIENT), *args], capture_output=True, text=True, env=env, timeout=60)


def label(daemon, run_id, text):
    return daemon.request("PUT", f"/v1/runs/{run_id}/label", {"label": text})


def ids(daemon, query=""):
    return [r["id"] for r in daemon.get("/v1/runs?limit=200" + query).json["runs"]]


# ---- labels

def test_label(daemon):
    first, second = daemon.run(size="1")["id"], daemon.run(size="1")["id"]
    answer = label(daemon, first, "before BIOS update")
    assert answer.status == 200 and answer.json["label"] == "before BIOS update"
    assert ids(daemon, "&label=before%20BIOS%20update") == [first]
    assert daemon.get(f"/v1/runs/{second}").json["label"] is None
    node = daemon.get("/v1/node").json["node"]
    assert {first, second} <= set(ids(daemon, f"&node={node}"))
    assert ids(daemon, "&node=elsewhere") == []
    assert label(daemon, first, "").json["label"] is None
    assert ids(daemon, "&label=before%20BIOS%20update") == []


@pytest.mark.parametrize("body, member", [
    ({"label": "x" * 64}, "label"), ({"label": "two\nlines"}, "label"), ({"label": " blank"}, "label"),
    ({"label": 7}, "label"), ({}, "label"), ({"label": "x", "colour": "red"}, "colour"), ([], "label")])
def test_label_refused(daemon, body, member):
    run = daemon.run(size="1")["id"]
    answer = daemon.request("PUT", f"/v1/runs/{run}/label", body)
    assert answer.status == 422 and answer.json["member"] == member, answer.body
    assert daemon.get(f"/v1/runs/{run}").json["label"] is None


def test_label_of_nothing(daemon):
    assert label(daemon, 999999, "x").status == 404
    run = daemon.run(size="1")["id"]
    answer = daemon.get(f"/v1/runs/{run}/label")
    assert answer.status == 405 and answer.headers["Allow"] == "PUT"


def test_label_by_command(daemon):
    run = str(daemon.run(size="1")["id"])
    done = cli(daemon, "label", run, "größer, schneller")
    assert done.returncode == 0 and "größer, schneller" in done.stdout, done
    assert "größer, schneller" in cli(daemon, "show", run).stdout
    listed = cli(daemon, "runs", "--label", "größer, schneller", "-o", "csv").stdout.splitlines()
    assert len(listed) == 2 and listed[1].startswith(run + ",")
    assert cli(daemon, "runs", "--node=elsewhere", "-o", "csv").stdout.count("\n") == 1
    assert cli(daemon, "label", run, "x" * 64).returncode == 2
    assert cli(daemon, "label", run).returncode == 0
    assert "größer" not in cli(daemon, "show", run).stdout


# ---- retention

def storage(daemon):
    answer = daemon.get("/v1/storage")
    assert answer.status == 200, answer.body
    return answer.json


def make(make_daemon, *args, home=None):
    return make_daemon(fake_bench_env(), args, home)


def wait_for_rest(daemon):
    """Retention tells when it has deleted; a pass that deletes nothing is over soon and says nothing."""
    daemon.wait_for_line("event=retention deleted=")


def database(daemon):
    return daemon.home / "state" / "numaprobe.db"


def test_storage(make_daemon):
    daemon = make(make_daemon)
    empty = storage(daemon)
    assert empty["runs"] == 0 and empty["oldest"] is None and empty["damaged"] == [] == empty["findings"]
    assert empty["retention"]["keep_days"] is None and empty["retention"]["keep_bytes"] is None
    run = daemon.run(size="1")
    label(daemon, run["id"], "mine")
    now = storage(daemon)
    assert now["runs"] == now["pinned"] == 1 and now["oldest"] == run["created"]
    assert now["file"] == str(database(daemon)) and 0 < now["used_bytes"] <= now["file_bytes"] + now["log_bytes"]


def test_keep_runs(make_daemon):
    daemon = make(make_daemon, "--keep-runs=3")
    kept = daemon.run(size="1")["id"]
    label(daemon, kept, "stays")
    for _ in range(5):
        last = daemon.run(size="1")["id"]
    wait_for_rest(daemon)
    while storage(daemon)["retention"]["going_on"]:
        pass
    assert ids(daemon) == [last, last - 1, last - 2, kept]
    told = storage(daemon)["retention"]
    assert told["keep_runs"] == 3 and told["last"] and told["last_deleted"] == 1


def test_keep_days_at_start(make_daemon):
    daemon = make(make_daemon)
    old, labelled, based = (daemon.run(size="1")["id"] for _ in range(3))
    label(daemon, labelled, "stays")
    daemon.stop()
    with sqlite3.connect(database(daemon)) as db:
        db.execute("UPDATE run SET created_ms = created_ms - 8 * 86400000")
        db.execute("INSERT INTO baseline (name, created_ms) VALUES ('b', 1)")
        db.execute("INSERT INTO baseline_run VALUES ('b', ?)", (based,))
    db.close()
    again = make(make_daemon, "--keep-days=7", home=daemon.home)
    wait_for_rest(again)
    assert ids(again) == [based, labelled]
    assert again.get(f"/v1/runs/{old}").status == 404


def fill(daemon, runs, cells=2000, label=""):
    """Rows as large runs leave them; the daemon is stopped."""
    sizes = json.dumps({"name": "working_set", "unit": "bytes", "values": list(range(1, cells + 1))})
    with sqlite3.connect(database(daemon)) as db:
        seq = db.execute("SELECT value FROM counter WHERE name = 'seq'").fetchone()[0]
        for i in range(runs):
            run = db.execute("INSERT INTO run (seq, state, benchmark, node, created_ms, label, spec) VALUES "
                             "(?, 'succeeded', 'latency', 'n', ?, ?, '{\"benchmark\":\"latency\"}')",
                             (seq + i + 1, 1700000000000 + i, label)).lastrowid
            db.execute("INSERT INTO matrix VALUES (?, 0, 'concurrent', 'latency', 'ns', ?, ?)",
                       (run, '{"name":"rank","unit":"","values":[0]}', sizes))
            db.execute("WITH RECURSIVE c (col) AS (SELECT 0 UNION ALL SELECT col + 1 FROM c WHERE col < ? - 1) "
                       "INSERT INTO cell SELECT ?, 0, 0, col, 11, 0, 98123, 97000, 99000, 96000, 97500, 98500, 99900, "
                       "98200, 400, 9999, 1 FROM c", (cells, run))
        db.execute("UPDATE counter SET value = value + ? WHERE name = 'seq'", (runs,))
    db.close()


def test_keep_bytes_shrinks_the_file(make_daemon):
    daemon = make(make_daemon)
    daemon.stop()
    fill(daemon, 300)
    before = database(daemon).stat().st_size
    assert before > 28e6
    again = make(make_daemon, "--keep-bytes=16M", home=daemon.home)
    wait_for_rest(again)
    while storage(again)["retention"]["going_on"]:
        pass
    told = storage(again)
    assert told["used_bytes"] <= 16 << 20 and told["file_bytes"] < 17 << 20, told
    assert 100 < told["runs"] < 200 and min(ids(again)) > 100
    assert again.stop() == 0
    assert database(daemon).stat().st_size <= told["file_bytes"] < before


@pytest.mark.parametrize("option", ["--keep-runs=-1", "--keep-bytes=1M", "--keep-days=many"])
def test_limits_refused(numaprobed, option):
    done = subprocess.run([str(numaprobed), option], capture_output=True, text=True, timeout=20)
    assert done.returncode == 2 and option[2:].split("=")[0].replace("-", "_") in done.stderr.replace("-", "_")


def test_all_pinned(make_daemon):
    daemon = make(make_daemon)
    daemon.stop()
    fill(daemon, 300, label="x")
    again = make(make_daemon, "--keep-bytes=16M", home=daemon.home)
    again.wait_for_line("pinned")
    last = again.run(size="1")["id"]
    assert [f["name"] for f in storage(again)["findings"]] == ["retention_short"]
    assert storage(again)["runs"] == 301 and ids(again)[0] == last  # the newest is never deleted
    assert "retention_short" in cli(again, "doctor").stdout


# ---- backup and restore

def check(path):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    runs = {r[0] for r in db.execute("SELECT id FROM run")}
    db.close()
    return runs


def test_backup_and_restore(make_daemon, tmp_path):
    daemon = make(make_daemon)
    runs = {daemon.run(size="1")["id"] for _ in range(3)}
    label(daemon, max(runs), "kept")
    want = [daemon.get(f"/v1/runs/{i}/matrix.csv").body for i in sorted(runs)]
    answer = daemon.get("/v1/backup")
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/vnd.sqlite3"
    file = tmp_path / "by-curl.db"
    file.write_bytes(answer.body)
    assert check(file) == runs
    done = cli(daemon, "backup", str(tmp_path / "by-command.db"))
    assert done.returncode == 0, done.stderr
    assert check(tmp_path / "by-command.db") == runs
    assert [p.name for p in tmp_path.iterdir() if p.name.endswith(".part")] == []
    assert [p for p in (daemon.home / "state").iterdir() if p.name.startswith("backup.")] == []
    # Restore as docs/STORAGE.md tells: stop, put the file in place, start.
    lost = daemon.run(size="1")["id"]
    daemon.stop()
    for suffix in ("", "-wal", "-shm"):
        pathlib.Path(f"{database(daemon)}{suffix}").unlink(missing_ok=True)
    database(daemon).write_bytes((tmp_path / "by-command.db").read_bytes())
    again = make(make_daemon, home=daemon.home)
    assert set(ids(again)) == runs and lost not in ids(again)
    assert [again.get(f"/v1/runs/{i}/matrix.csv").body for i in sorted(runs)] == want
    assert again.get(f"/v1/runs/{max(runs)}").json["label"] == "kept"
    assert again.run(size="1")["state"] == "succeeded"


def test_backup_command_is_careful(make_daemon, tmp_path):
    daemon = make(make_daemon)
    file = tmp_path / "b.db"
    file.write_text("precious")
    done = cli(daemon, "backup", str(file))
    assert done.returncode != 0 and "--force" in done.stderr and file.read_text() == "precious"
    assert cli(daemon, "backup", "--force", str(file)).returncode == 0 and check(file) == set()
    assert cli(daemon, "backup", str(tmp_path / "no" / "such" / "b.db")).returncode == 1
    assert cli(daemon, "backup").returncode == 2
    daemon.stop()
    done = cli(daemon, "backup", str(tmp_path / "c.db"))
    assert done.returncode == 3 and [p.name for p in tmp_path.iterdir()] == ["b.db"]


@pytest.fixture
def large(make_daemon):
    """A database whose copy takes long enough to meet it."""
    daemon = make(make_daemon)
    daemon.stop()
    fill(daemon, 600, 3000)
    return make(make_daemon, home=daemon.home)


def ask_for_backup(daemon):
    s = socket.create_connection(("127.0.0.1", daemon.port), timeout=60)
    s.sendall(b"GET /v1/backup HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return s


def test_backup_while_working(large, tmp_path):
    """While a copy is made: requests are answered, runs are accepted, a second backup is refused."""
    asked = large.post("/v1/runs", {"benchmark": "latency", "size": "1"}).json["id"]
    with ask_for_backup(large) as s:
        while not storage(large)["backing_up"]:
            pass
        second = large.get("/v1/backup")
        assert second.status == 409 and int(second.headers["Retry-After"]) > 0, second.body
        assert large.get("/healthz").status == 200
        run = large.run(size="1")
        assert run["state"] == "succeeded"
        f = s.makefile("rb")
        assert b" 200 " in f.readline()
        length = 0
        for line in iter(f.readline, b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        body = f.read(length)
    assert len(body) == length > 50e6
    (tmp_path / "b.db").write_bytes(body)
    assert asked in check(tmp_path / "b.db")
    while storage(large)["backing_up"]:
        pass


def test_backup_client_goes_away(large):
    with ask_for_backup(large):
        while not storage(large)["backing_up"]:
            pass
    while storage(large)["backing_up"]:
        pass
    assert [p for p in (large.home / "state").iterdir() if p.name.startswith("backup.")] == []
    assert large.run(size="1")["state"] == "succeeded"


def test_stop_during_backup(large):
    with ask_for_backup(large):
        while not storage(large)["backing_up"]:
            pass
        assert large.stop() == 0
    assert [p for p in (large.home / "state").iterdir() if p.name.startswith("backup.")] == []
