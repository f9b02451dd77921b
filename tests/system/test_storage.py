# SPDX-License-Identifier: Apache-2.0
"""What lasts: labels, retention, backup and restore, damaged databases. Black box, with the fake bench."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import sqlite3
import subprocess
import time

import pytest

from conftest import FAKE_BENCH, PATIENCE, ROOT, build_dir, fake_bench_env, is_sanitized, until

CLIENT = build_dir() / "client" / "numaprobe"


def cli(daemon, *args):
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent",
           "NUMAPROBE_URL": f"http://127.0.0.1:{daemon.port}"}
    return subprocess.run([str(CLIENT), *args], capture_output=True, text=True, env=env, timeout=PATIENCE)


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
    assert cli(daemon, "label", "--remove", run).returncode == 0
    assert "größer" not in cli(daemon, "show", run).stdout


# ---- retention

def storage(daemon):
    answer = daemon.get("/v1/storage")
    assert answer.status == 200, answer.body
    return answer.json


def make(make_daemon, *args, home=None):
    return make_daemon(fake_bench_env(), args, home)


def logged(daemon, pattern):
    """The line with this, now or when it comes (late in a sanitizer build)."""
    return next((line for line in daemon.log if pattern in line), None) or daemon.wait_for_line(pattern)


def wait_for_rest(daemon):
    """Retention tells when it has deleted; a pass that deletes nothing is over soon and says nothing."""
    logged(daemon, "event=retention deleted=")


def database(daemon):
    return daemon.home / "state" / "numaprobe.db"


def test_storage(make_daemon):
    daemon = make(make_daemon)
    empty = storage(daemon)
    assert empty["runs"] == 0 and empty["oldest"] is None and empty["quarantined"] == [] == empty["findings"]
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
    until(lambda: ids(daemon) == [last, last - 1, last - 2, kept])
    told, deleted = rested(daemon)["retention"], []
    while sum(deleted) < 2:  # by one pass or by two: a pass that has not ended goes on behind the next run
        deleted.append(int(re.search(r"deleted=(\d+)", daemon.wait_for_line("event=retention deleted="))[1]))
    assert told["keep_runs"] == 3 and told["last"] and told["last_deleted"] == deleted[-1] and sum(deleted) == 2


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
    until(lambda: ids(again) == [based, labelled])
    assert again.get(f"/v1/runs/{old}").status == 404


# ---- the clock

def faked_clock(home):
    """An environment in which the file `clock` of this directory says how far the wall clock is off."""
    said = subprocess.run(["faketime", "-f", "+0", "/usr/bin/env"], capture_output=True, text=True).stdout
    (home / "clock").write_text("+0\n")
    return {**fake_bench_env(), "LD_PRELOAD": re.search("LD_PRELOAD=(.*)", said).group(1),
            "FAKETIME_TIMESTAMP_FILE": str(home / "clock"), "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


def set_clock(home, text):
    (home / "clock.new").write_text(text + "\n")
    (home / "clock.new").rename(home / "clock")


def rested(daemon):
    while storage(daemon)["retention"]["running"]:
        pass
    return storage(daemon)


needs_faketime = pytest.mark.skipif(not shutil.which("faketime") or is_sanitized(),
                                    reason="no faketime on this machine, or beside a sanitizer")


@needs_faketime
@pytest.mark.parametrize("jump", ["+40d", "+10y", "+126y", "-55y", "-40d"])
def test_clock_wrong_for_a_run(make_daemon, tmp_path, jump):
    """keep_days believes no clock that has just moved: neither while it is wrong, nor when it is right again."""
    env = faked_clock(tmp_path)
    daemon = make_daemon(env, ["--keep-days=30"])
    made = [daemon.run(size="1")["id"] for _ in range(4)]
    set_clock(tmp_path, jump)
    made += [daemon.run(size="1")["id"] for _ in range(2)]
    now = rested(daemon)
    assert sorted(ids(daemon)) == made and now["retention"]["last"] is None, now
    assert [f["name"] for f in now["findings"]] == ["clock_step"]
    assert "clock_step" in cli(daemon, "doctor").stdout
    logged(daemon, "event=clock.step")
    set_clock(tmp_path, "+0")
    made += [daemon.run(size="1")["id"] for _ in range(2)]
    rested(daemon)
    assert sorted(ids(daemon)) == made


@needs_faketime
@pytest.mark.parametrize("monotonic", ["real", "faked"])
def test_clock_wrong_at_start(make_daemon, tmp_path, monotonic):
    """Neither does a start: before NTP, with a dead battery, in a container whose clocks all lie."""
    env = faked_clock(tmp_path)
    if monotonic == "faked":
        del env["FAKETIME_DONT_FAKE_MONOTONIC"]
    first = make_daemon(env)
    made = [first.run(size="1")["id"] for _ in range(4)]
    first.stop()
    for jump in ("+40d", "+0", "+10y", "-30y", "+0"):
        set_clock(tmp_path, jump)
        daemon = make_daemon(env, ["--keep-days=30"], first.home)
        rested(daemon)
        assert sorted(ids(daemon)) == made, jump
        made.append(daemon.run(size="1")["id"])
        rested(daemon)
        assert sorted(ids(daemon)) == made, jump
        daemon.stop()


@needs_faketime
def test_seconds_of_a_run_over_a_jump(make_daemon, tmp_path):
    hangs = tmp_path / "fake_bench-hang"
    hangs.symlink_to(FAKE_BENCH)
    daemon = make_daemon({**faked_clock(tmp_path), "NUMAPROBE_BENCH": str(hangs)})
    for jump in ("+1y", "-1y"):
        asked = daemon.post("/v1/runs", {"benchmark": "latency", "size": "1"}).json["id"]
        while daemon.get(f"/v1/runs/{asked}").json["state"] == "queued":
            pass
        set_clock(tmp_path, jump)
        assert daemon.post(f"/v1/runs/{asked}/cancel").status == 202
        run = daemon.wait(asked)
        assert 0 <= run["seconds"] < 600 and run["finished"] >= run["started"], run


def test_a_new_limit_takes_a_hundred_at_first(make_daemon, fill):
    """A limit by age that was just set, perhaps by mistake, leaves a day to notice."""
    daemon = make(make_daemon)
    daemon.stop()
    fill(daemon, 300, 2)
    again = make(make_daemon, "--keep-days=30", home=daemon.home)
    wait_for_rest(again)
    until(lambda: storage(again)["runs"] == 200)
    now = rested(again)
    assert now["runs"] == 200 and now["retention"]["deferred"], now
    assert [f["name"] for f in now["findings"]] == ["retention_held"]
    assert "100 went today" in cli(again, "doctor").stdout
    again.stop()
    once_more = make(make_daemon, "--keep-days=30", home=daemon.home)
    assert rested(once_more)["runs"] == 200


def add_runs(file, runs, cells):
    """Rows as large runs leave them, with metrics of the daemon's version, so that nothing is filled in."""
    version = re.search(r"METRICS_VERSION = (\d+)", (ROOT / "analysis/metrics/metrics.h").read_text())[1]
    sizes = json.dumps({"name": "working_set", "unit": "bytes", "values": list(range(1, cells + 1))})
    with sqlite3.connect(file) as db:
        seq = db.execute("SELECT value FROM counter WHERE name = 'seq'").fetchone()[0]
        for i in range(runs):
            run = db.execute("INSERT INTO run (seq, state, benchmark, node, created_ms, metrics_version, spec) "
                             f"VALUES (?, 'succeeded', 'latency', 'n', ?, {version}, "
                             "'{\"benchmark\":\"latency\"}')",
                             (seq + i + 1, 1700000000000 + i)).lastrowid
            db.execute("INSERT INTO matrix VALUES (?, 0, 'concurrent', 'latency', 'ns', ?, ?)",
                       (run, '{"name":"rank","unit":"","values":[0]}', sizes))
            db.execute("WITH RECURSIVE c (col) AS (SELECT 0 UNION ALL SELECT col + 1 FROM c WHERE col < ? - 1) "
                       "INSERT INTO cell SELECT ?, 0, 0, col, 11, 0, 98123, 97000, 99000, 96000, 97500, 98500, 99900, "
                       "98200, 400, 9999, 1, NULL, NULL, NULL, NULL, NULL FROM c", (cells, run))
        db.execute("UPDATE counter SET value = value + ? WHERE name = 'seq'", (runs,))
    db.close()


@pytest.fixture(scope="module")
def fill(tmp_path_factory):
    """fill(daemon, runs, cells): the daemon has never run a job, and is stopped. The rows are made once and copied."""
    made = {}

    def put(daemon, runs, cells=2000):
        if (runs, cells) not in made:
            made[runs, cells] = tmp_path_factory.mktemp("filled") / "numaprobe.db"
            shutil.copy(database(daemon), made[runs, cells])
            add_runs(made[runs, cells], runs, cells)
        assert not pathlib.Path(f"{database(daemon)}-wal").exists()
        shutil.copy(made[runs, cells], database(daemon))

    return put


def test_keep_bytes_shrinks_the_file(make_daemon, fill):
    daemon = make(make_daemon)
    daemon.stop()
    fill(daemon, 300)
    before = database(daemon).stat().st_size
    assert before > 28e6
    again = make(make_daemon, "--keep-bytes=16M", home=daemon.home)
    wait_for_rest(again)
    told = rested(again)
    assert told["used_bytes"] <= 16 << 20 and told["file_bytes"] < 17 << 20, told
    assert 100 < told["runs"] < 200 and min(ids(again)) > 100
    assert again.stop() == 0
    assert database(daemon).stat().st_size <= told["file_bytes"] < before


@pytest.mark.parametrize("option", ["--keep-runs=-1", "--keep-bytes=1M", "--keep-days=many"])
def test_limits_refused(numaprobed, option):
    done = subprocess.run([str(numaprobed), option], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2 and option[2:].split("=")[0].replace("-", "_") in done.stderr.replace("-", "_")


def test_all_pinned(make_daemon, fill):
    daemon = make(make_daemon)
    daemon.stop()
    fill(daemon, 300)
    with sqlite3.connect(database(daemon)) as db:
        db.execute("UPDATE run SET label = 'x'")
    db.close()
    again = make(make_daemon, "--keep-bytes=16M", home=daemon.home)
    logged(again, "pinned")
    last = again.run(size="1")["id"]
    assert [f["name"] for f in storage(again)["findings"]] == ["retention_short"]
    assert storage(again)["runs"] == 301 and ids(again)[0] == last  # the newest is never deleted
    doctor = cli(again, "doctor").stdout
    assert "retention_short" in doctor and "stored: 301 runs in " in doctor and "old runs are deleted" in doctor


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
def large(make_daemon, fill):
    """A database whose copy is so large that it is not sent to who does not read, who has READER_S."""
    daemon = make(make_daemon)
    daemon.stop()
    fill(daemon, 600, 3000)
    return make_daemon({**fake_bench_env(), "NUMAPROBE_MPIRUN": str(FAKE_BENCH.with_name("fake_mpirun.py"))}, home=daemon.home)


def ask_for_backup(daemon):
    s = socket.create_connection(("127.0.0.1", daemon.port), timeout=PATIENCE)
    s.sendall(b"GET /v1/backup HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return s


READER_S = 20  # so long may a reader take nothing: then it is cut, and the copy is deleted


@contextlib.contextmanager
def copying(daemon):
    """A connection for which a copy is there, and when it was requested. Whoever is late on a busy machine begins again."""
    seen = False
    while not seen:
        with ask_for_backup(daemon) as s:
            begun = time.monotonic()
            while not (seen := storage(daemon)["backing_up"]) and time.monotonic() < begun + READER_S:
                pass
            if seen:
                yield s, begun


def read_backup(s):
    """(body, its length); shorter if the connection was cut."""
    with contextlib.suppress(ConnectionResetError):
        f = s.makefile("rb")
        assert b" 200 " in f.readline()
        length = 0
        for line in iter(f.readline, b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return f.read(length), length
    return b"", 1


def work_beside_a_backup(daemon):
    """The copy, while which requests are answered, runs are accepted, and a second one is refused. None: we were late."""
    with copying(daemon) as (s, begun):
        second, health = daemon.get("/v1/backup"), daemon.get("/healthz")
        accepted = daemon.post("/v1/runs", {"benchmark": "latency", "size": "1"})
        in_time = time.monotonic() < begun + READER_S
        body, length = read_backup(s)
    assert health.status == 200 and accepted.status == 202 and daemon.wait(accepted.json["id"])["state"] == "succeeded"
    if not in_time:
        return None
    assert second.status == 409 and int(second.headers["Retry-After"]) > 0, second.body
    return len(body) == length and body  # a part: we were late, reading it


def test_backup_while_working(large, tmp_path):
    asked = large.post("/v1/runs", {"benchmark": "latency", "size": "1"}).json["id"]
    body = until(lambda: work_beside_a_backup(large))
    assert len(body) > 50e6
    (tmp_path / "b.db").write_bytes(body)
    assert asked in check(tmp_path / "b.db")
    while storage(large)["backing_up"]:
        pass


def test_backup_client_goes_away(large):
    with copying(large):
        pass
    while storage(large)["backing_up"]:
        pass
    assert [p for p in (large.home / "state").iterdir() if p.name.startswith("backup.")] == []
    assert large.run(size="1")["state"] == "succeeded"


def test_stop_during_backup(large):
    with copying(large):
        assert large.stop() == 0
    assert [p for p in (large.home / "state").iterdir() if p.name.startswith("backup.")] == []


# ---- damage

def wait_for_damage(daemon):
    return logged(daemon, "event=store.damaged")


def damaged_files(daemon):
    return sorted(p.name for p in (daemon.home / "state").iterdir()
                  if ".damaged-" in p.name and not p.name.endswith(("-wal", "-shm")))


def overwrite(path, at, data):
    with open(path, "r+b") as f:
        f.seek(at)
        f.write(data)


def garbage_header(path):
    overwrite(path, 0, b"\x07" * 200)


def nonsense_in_header(path):
    overwrite(path, 16, b"\xff" * 10)


def cut_off(path):
    os.truncate(path, path.stat().st_size // 2)


def garbage_schema(path):
    overwrite(path, 100, os.urandom(7000))


def garbage_pages(path):
    size = path.stat().st_size
    for at in range(8192, size, 8192):
        overwrite(path, at, b"\xee" * 64)


@pytest.mark.parametrize("hurt", [garbage_header, nonsense_in_header, cut_off, garbage_schema, garbage_pages])
def test_damaged_at_start(make_daemon, hurt):
    daemon = make(make_daemon)
    for _ in range(5):
        daemon.run(size="1")
    daemon.stop()
    hurt(database(daemon))
    left = database(daemon).read_bytes()
    again = make(make_daemon, home=daemon.home)
    line = wait_for_damage(again)
    assert "error" in line
    assert ids(again) == [] and again.run(size="1")["state"] == "succeeded"
    [aside] = damaged_files(again)
    assert (again.home / "state" / aside).read_bytes() == left  # kept as it was
    told = storage(again)
    assert told["quarantined"] == [{"file": aside, "bytes": len(left)}]
    assert told["findings"][0]["name"] == "damaged_database_kept" and aside in told["findings"][0]["text"]
    ready = again.get("/readyz?verbose")
    assert ready.status == 200 and ready.json["findings"] == told["findings"]
    doctor = cli(again, "doctor")
    assert doctor.returncode == 1 and aside in doctor.stdout and "STORAGE.md" in doctor.stdout
    again.stop()
    third = make(make_daemon, home=daemon.home)  # no loop: the fresh one is healthy, the other is still told of
    assert damaged_files(third) == [aside] and len(ids(third)) == 1
    assert storage(third)["findings"][0]["name"] == "damaged_database_kept"


def test_what_is_not_damage_is_left_alone(make_daemon, numaprobed):
    daemon = make(make_daemon)
    daemon.run(size="1")
    daemon.stop()
    for sql in ("PRAGMA user_version=4000", "PRAGMA user_version=1; PRAGMA application_id=7"):
        db = sqlite3.connect(database(daemon))
        db.executescript(sql + "; PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        before = database(daemon).read_bytes()
        done = subprocess.run([str(numaprobed), "--listen=", f"--state-dir={daemon.home}/state",
                               f"--run-dir={daemon.home}/run"], capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 1 and "left alone" in done.stderr, done
        assert database(daemon).read_bytes() == before and damaged_files(daemon) == []


def test_few_damaged_ones_are_kept(make_daemon):
    home, sizes = None, []
    for turn in range(5):
        daemon = make(make_daemon, home=home)
        home = daemon.home
        for _ in range(1 + turn % 3):
            daemon.run(size="1")
        daemon.stop()
        garbage_header(database(daemon))
        with open(database(daemon), "ab") as f:
            f.write(b"\0" * 8192 * (10 - turn))
        sizes.append(database(daemon).stat().st_size)
    daemon = make(make_daemon, home=home)
    assert sorted(d["bytes"] for d in storage(daemon)["quarantined"]) == sorted(sizes)[-3:]


def hurt_while_open(daemon):
    """What a dying disk does below a daemon that goes on: all but the first page is nonsense."""
    db = sqlite3.connect(database(daemon))
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # so that the file is read, not the log
    db.close()
    garbage_pages(database(daemon))


def test_damage_that_shows_later(make_daemon, fill):
    daemon = make(make_daemon)
    daemon.stop()
    fill(daemon, 60)  # more than the daemon keeps in memory
    daemon = make(make_daemon, home=daemon.home)
    last = daemon.run(size="1")
    hurt_while_open(daemon)
    answers = [daemon.get(f"/v1/runs/{i}/matrix") for i in range(1, 60)]
    hit = [a for a in answers if a.status == 503]
    assert hit and hit[0].json["type"] == "/problems/damaged" and hit[0].headers["Retry-After"]
    wait_for_damage(daemon)
    events = [line.split("event=")[1].split()[0] for line in daemon.log if "event=store." in line]
    assert events == ["store.check", "store.damaged"], "a second look, which finds it too"
    assert len(damaged_files(daemon)) == 1
    assert daemon.get("/healthz").status == 200 and daemon.get("/readyz").status == 200
    run = daemon.run(size="1")
    assert run["state"] == "succeeded" and run["id"] == last["id"] + 1 and run["seq"] == last["seq"] + 1
    assert storage(daemon)["findings"][0]["serious"]


def test_runs_survive_damage(make_daemon, fill):
    """A run that is going on and those that wait are in the fresh database, with their numbers."""
    daemon = make(make_daemon)
    daemon.stop()
    fill(daemon, 60)
    held = daemon.home / "fake_bench-held"
    held.symlink_to(FAKE_BENCH)
    daemon = make_daemon({**fake_bench_env(), "NUMAPROBE_BENCH": str(held)}, home=daemon.home)
    going, waiting = (daemon.post("/v1/runs", {"benchmark": "latency", "size": "1-1024", "note": note}).json["id"]
                      for note in ("going", "waiting"))
    while daemon.get(f"/v1/runs/{going}").json["state"] == "queued":
        pass
    before = daemon.get(f"/v1/runs/{going}").json
    hurt_while_open(daemon)
    for i in range(1, 60):
        daemon.get(f"/v1/runs/{i}/matrix")
    wait_for_damage(daemon)
    now = daemon.get(f"/v1/runs/{going}").json
    assert now["state"] == "running" and now["started"] == before["started"] and now["created"] == before["created"]
    (daemon.home / "fake_bench.go").touch()
    done = daemon.wait(going)
    assert done["state"] == "succeeded" and done["spec"]["note"] == "going" and done["cells"] > 0
    next_one = daemon.wait(waiting)
    assert next_one["state"] == "succeeded" and next_one["spec"]["note"] == "waiting"
    assert next_one["seq"] == done["seq"] + 1


def test_check_after_a_kill(make_daemon, fill):
    """Deep in a large file no start looks; after a kill a process of its own does, and finds it."""
    daemon = make(make_daemon)
    daemon.stop()
    fill(daemon, 300)
    daemon = make(make_daemon, home=daemon.home)
    before = daemon.run(size="1")
    db = sqlite3.connect(database(daemon))
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    daemon.post("/v1/runs", {"benchmark": "latency", "size": "1"})  # so that something is in the log of writes
    daemon.process.kill()
    daemon.process.wait()
    daemon.process.stderr.close()
    size = database(daemon).stat().st_size
    log = pathlib.Path(f"{database(daemon)}-wal").stat().st_size
    assert size > 16 << 20 and log > 0, log
    page = size // 2 // 8192 * 8192
    overwrite(database(daemon), page, b"\xee" * 4096)
    again = make(make_daemon, home=daemon.home)
    wait_for_damage(again)
    assert again.run(size="1")["id"] > before["id"]
    assert len(damaged_files(again)) == 1


def test_check_after_a_kill_finds_nothing(make_daemon, fill):
    daemon = make(make_daemon)
    daemon.stop()
    fill(daemon, 300)
    daemon = make(make_daemon, home=daemon.home)
    kept = [daemon.run(size="1")["id"] for _ in range(2)]
    daemon.process.kill()
    daemon.process.wait()
    daemon.process.stderr.close()
    again = make(make_daemon, home=daemon.home)
    logged(again, "event=store.checked")
    assert ids(again)[:2] == kept[::-1] and storage(again)["findings"] == [] and not storage(again)["checking"]


def test_a_reader_that_leaves_takes_nothing(make_daemon):
    """The daemon keeps its locks: else a shell that closes deletes the log, and what is in it is lost."""
    daemon = make(make_daemon)
    first = daemon.run(size="1")["id"]
    for command in ("PRAGMA wal_checkpoint", "SELECT count(*) FROM run"):
        db = sqlite3.connect(database(daemon))
        db.execute(command).fetchall()
        db.close()
        assert pathlib.Path(f"{database(daemon)}-wal").exists()
    second = daemon.run(size="1")["id"]
    daemon.process.kill()
    daemon.process.wait()
    daemon.process.stderr.close()
    again = make(make_daemon, home=daemon.home)
    assert ids(again) == [second, first]
    assert again.get(f"/v1/runs/{second}").json["state"] == "succeeded"


def test_a_result_waits_for_the_database(make_daemon, tmp_path):
    """While a shell holds a transaction open, others are served; what cannot be stored is tried again, soon at first:
    then it is as if nothing had been."""
    tmp_path.chmod(0o755)
    bench = tmp_path / "fake_bench-hang"
    bench.symlink_to(FAKE_BENCH)
    daemon = make_daemon({**fake_bench_env(), "NUMAPROBE_BENCH": str(bench)})
    run = daemon.post("/v1/runs", {"benchmark": "latency", "size": "1", "cpus": "0"}).json["id"]
    next(e for e in daemon.events(run) if e[2]["state"] == "running")
    with contextlib.closing(sqlite3.connect(database(daemon), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert daemon.post(f"/v1/runs/{run}/cancel").status in (200, 202)
        while sum("event=run.store" in line for line in daemon.log) < 3:
            daemon.wait_for_line("event=run.store")  # after 0.45, 0.7 and 1.2 s
        assert any("another program has the database locked" in line for line in daemon.log)
        assert daemon.get(f"/v1/runs/{run}").json["state"] == "running"
        refused = label(daemon, run, "x")
        assert refused.status == 507 and "locked" in refused.json["detail"]
        other.execute("ROLLBACK")
    assert daemon.get(f"/v1/runs/{run}?wait=60").json["state"] == "canceled"
