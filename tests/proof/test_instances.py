# SPDX-License-Identifier: Apache-2.0
"""Two daemons on one state directory, what a killed one leaves at its socket, and clocks that jump years.

NUMAPROBE_RESTARTS: kills and starts with a stale socket (200).
"""
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import sys

import pytest

from conftest import (FINAL, Daemon, UnixConnection, assert_whole, count, dead_copy, fakes_env, open_directory, strangers, tool)

RESTARTS = count("NUMAPROBE_RESTARTS", 200)


def spawn(program, home, *more, under=()):
    return subprocess.Popen(
        [*under, str(program), "--config=/dev/null", "--listen=", f"--socket={home}/numaprobed.sock", f"--state-dir={home}/state",
         f"--run-dir={home}/run", "--anonymous=admin", "--admission=ignore", "--host-lock=none", *more],
        env={"PATH": os.environ["PATH"], **fakes_env()}, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)


def ready_or_over(process, timeout=120):
    """Its log up to "ready", or to its end."""
    text = b""
    while b"event=ready" not in text:
        assert select.select([process.stderr], [], [], timeout)[0], text.decode()
        more = os.read(process.stderr.fileno(), 65536)
        if not more:
            break
        text += more
    return text.decode(errors="replace")


def end(process, signo=signal.SIGTERM):
    process.send_signal(signo)
    process.communicate(timeout=120)
    return process.returncode


def ask(home, method, path, body=None):
    c = UnixConnection(home / "numaprobed.sock")
    try:
        c.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"} if body else {})
        a = c.getresponse()
        return a.status, json.loads(a.read())
    finally:
        c.close()


def ends_well(home, run):
    """A run succeeds, sooner or later."""
    while (state := ask(home, "GET", f"/v1/runs/{run['id']}?wait=60")[1]["state"]) not in FINAL:
        pass
    assert state == "succeeded"


@pytest.fixture
def home():
    with open_directory("instances") as path:
        yield path


def test_many_at_once(numaprobed, home, tell):
    """Of 20 that are started together one works, and the others say which; the socket is the winner's."""
    for _ in range(3):
        started = [spawn(numaprobed, home) for _ in range(20)]
        logs = [ready_or_over(p) for p in started]
        winners = [p for p, log in zip(started, logs) if "event=ready" in log]
        assert len(winners) == 1, logs
        for p, log in zip(started, logs):
            if p is not winners[0]:
                assert p.wait(120) != 0 and "another numaprobed (process " in log, log
                p.stderr.close()
        assert ask(home, "GET", "/healthz")[0] == 200
        assert ask(home, "POST", "/v1/runs", {"benchmark": "latency", "size": "1"})[0] == 202
        assert end(winners[0]) == 0
    tell("60 started, 3 worked")


def test_second_takes_nothing(numaprobed, home):
    """The second one that is refused has not touched the socket, nor the first one's runs."""
    first = spawn(numaprobed, home)
    assert "event=ready" in ready_or_over(first)
    status, run = ask(home, "POST", "/v1/runs", {"benchmark": "latency", "size": "1"})
    assert status == 202
    for _ in range(5):
        second = spawn(numaprobed, home)
        log = ready_or_over(second)
        assert f"process {first.pid}" in log and second.wait(120) != 0, log
        second.stderr.close()
        assert ask(home, "GET", "/healthz")[0] == 200
    ends_well(home, run)
    assert end(first) == 0


@pytest.mark.parametrize("change", ["none", "removed"])
def test_directory_of_runs_is_taken(numaprobed, home, change):
    """A daemon with another database and the same directory of runs would end those of the first one as left over."""
    first = spawn(numaprobed, home)
    assert "event=ready" in ready_or_over(first)
    if change == "removed":
        shutil.rmtree(home / "run")
        status, run = ask(home, "POST", "/v1/runs", {"benchmark": "latency", "size": "1"})
        assert status == 202
        ends_well(home, run)
    status, run = ask(home, "POST", "/v1/runs", {"benchmark": "latency", "size": "1"})
    assert status == 202
    second = spawn(numaprobed, home, f"--socket={home}/second.sock", f"--state-dir={home}/other")
    log = ready_or_over(second)
    assert second.wait(120) != 0 and f"another numaprobed has its runs in {home}/run: use another --run-dir" in log, log
    second.stderr.close()
    ends_well(home, run)
    assert end(first) == 0


@pytest.mark.parametrize("change", ["deleted", "replaced"])
def test_lock_file_gone(numaprobed, home, change):
    """Somebody tidies up and takes the lock's file away: a second daemon is refused all the same."""
    first = spawn(numaprobed, home)
    assert "event=ready" in ready_or_over(first)
    lock = home / "state" / "lock"
    lock.unlink()
    if change == "replaced":
        lock.write_text("1\n")
    for _ in range(2):
        second = spawn(numaprobed, home, f"--socket={home}/second.sock")
        log = ready_or_over(second)
        assert second.wait(120) != 0 and "another numaprobed (process " in log and str(home / "state") in log, log
        second.stderr.close()
    status, run = ask(home, "POST", "/v1/runs", {"benchmark": "latency", "size": "1"})
    assert status == 202
    ends_well(home, run)
    assert end(first) == 0
    third = spawn(numaprobed, home)
    assert "event=ready" in ready_or_over(third) and lock.read_text() == f"{third.pid}\n"
    assert end(third) == 0


@pytest.mark.parametrize("written", [False, True])
def test_directory_gone(numaprobed, home, written):
    """The directory itself is renamed, and a second daemon begins one of that name: the first one, which comes to write
    its files anew, leaves those of the second alone. It is stopped meanwhile: else it may be there before the second."""
    first = spawn(numaprobed, home)
    assert "event=ready" in ready_or_over(first)
    if written:
        assert ask(home, "POST", "/v1/runs", {"benchmark": "latency", "size": "1"})[0] == 202
    os.kill(first.pid, signal.SIGSTOP)
    (home / "state").rename(home / "elsewhere")
    second = spawn(numaprobed, home, f"--socket={home}/second.sock", f"--run-dir={home}/run2")
    assert "event=ready" in ready_or_over(second)
    os.kill(first.pid, signal.SIGCONT)
    for _ in range(3):
        assert ask(home, "POST", "/v1/runs", {"benchmark": "latency", "size": "1"})[0] in (503, 507)
    assert first.poll() is None and ask(home, "GET", "/healthz")[0] == 200
    assert strangers(home / "state") == [], "the second one's database is where it was"
    assert end(second) == 0
    assert end(first) == 0


@pytest.mark.skipif(tool("strace") is not None, reason=str(tool("strace")))
def test_directories_without_locks(numaprobed, home):
    """A file system that locks no directories: the daemon says so and works, and the file refuses a second one."""
    under = ["strace", "-qq", "-o", "/dev/null", "-e", "trace=flock", "-e", "inject=flock:error=EOPNOTSUPP:when=2"]
    first = spawn(numaprobed, home, under=under)
    log = ready_or_over(first)
    assert "event=ready" in log and "event=store.lock" in log, log
    worker = int((home / "state" / "lock").read_text())
    second = spawn(numaprobed, home)
    log = ready_or_over(second)
    assert second.wait(120) != 0 and f"process {worker}" in log and "event=store.lock" not in log, log
    second.stderr.close()
    os.kill(worker, signal.SIGTERM)
    first.communicate(timeout=120)
    assert first.returncode == 0


def test_stale_socket(numaprobed, home, tell):
    """Killed and started again, as fast as it goes: the socket file of a dead daemon is in nobody's way."""
    acknowledged = []
    for _ in range(RESTARTS):
        daemon = spawn(numaprobed, home)
        assert "event=ready" in ready_or_over(daemon)
        status, got = ask(home, "POST", "/v1/runs", {"benchmark": "latency", "size": "1"})
        assert status in (202, 429), got
        if status == 202:
            acknowledged.append(got["id"])
        assert end(daemon, signal.SIGKILL) == -signal.SIGKILL
        assert (home / "numaprobed.sock").is_socket()
        with pytest.raises(ConnectionRefusedError), socket.socket(socket.AF_UNIX) as s:
            s.connect(str(home / "numaprobed.sock"))
    with dead_copy(home / "state") as db:
        assert_whole(db)
        assert {r[0] for r in db.execute("SELECT id FROM run")} >= set(acknowledged)
    tell(f"{RESTARTS} kills and starts, {len(acknowledged)} runs acknowledged, none lost")


YEARS = ["+0", "+12y", "-9y", "+60y", "+0", "-3y", "+1y"]


@pytest.mark.skipif(tool("faketime") is not None, reason=str(tool("faketime")))
def test_clock_jumps(numaprobed, home, tell):
    """The wall clock goes years ahead and back below a daemon: runs go on, end, and keep their order."""
    library = subprocess.run(["faketime", "-f", "+0", "/usr/bin/env"], capture_output=True, text=True).stdout
    library = re.search("LD_PRELOAD=(.*)", library).group(1)
    clock = home / "clock"
    clock.write_text("+0\n")
    daemon = Daemon(numaprobed, home, {
        **fakes_env(), "LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1"}).start()
    years, seqs = set(), []
    for jump in YEARS:
        other = clock.with_name("clock.new")
        other.write_text(jump + "\n")
        asked = daemon.post("/v1/runs", {"benchmark": "latency", "size": "1", "queue_s": 60}).json
        other.rename(clock)  # while it waits or goes on
        run = daemon.wait(asked["id"])
        assert run["state"] == "succeeded", run
        later = daemon.run(size="1")
        assert later["state"] == "succeeded", later
        years.add(later["created"][:4])
        seqs += [run["seq"], later["seq"]]
        assert daemon.get("/readyz").status == 200
        assert daemon.get("/v1/runs?limit=50").json["runs"][0]["id"] == later["id"], "by number, not by the clock"
    assert len(years) >= 4, f"the clock did not jump: {years}"
    assert seqs == sorted(set(seqs))
    changes = [c["run"]["seq"] if "run" in c else c["seq"] for c in daemon.get("/v1/feed?after=0&limit=50").json["runs"]]
    assert changes == seqs
    assert daemon.stop() == 0, "\n".join(daemon.log)
    with dead_copy(home / "state") as db:
        assert_whole(db)
    tell(f"{len(YEARS)} jumps, years {sorted(years)}")
