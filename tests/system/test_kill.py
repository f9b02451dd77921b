# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at random points of real runs: nothing is left behind, no acknowledged run is lost.

Needs mpirun and numactl. NUMAPROBE_KILLS sets how many (default 50); NUMAPROBE_SEED repeats a
sequence that failed.
"""
import os
import pathlib
import pwd
import random
import select
import signal
import tempfile
import threading
import time

import pytest

from conftest import FINAL

KILLS = int(os.environ.get("NUMAPROBE_KILLS", "50"))
SPEC = {"size": "64K-1M", "ranks": "all-cores", "cell_ms": 100}


def carriers():
    """{pid: argv} of every process of our runs: each carries NUMAPROBE_NONCE and our directory."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environ = (entry / "environ").read_bytes()
            if b"NUMAPROBE_NONCE=" in environ and b"HOME=/tmp/numaprobe-kill." in environ:
                found[int(entry.name)] = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            pass  # gone in the meantime, or not ours
    return found


def supervisors(daemon_pid):
    found = []
    for child in pathlib.Path(f"/proc/{daemon_pid}/task/{daemon_pid}/children").read_text().split():
        if b"--supervise" in pathlib.Path(f"/proc/{child}/cmdline").read_bytes():
            found.append(int(child))
    return found


def wait_until_none(timeout=5.0):
    """Waits on pidfds, not on the clock, until no process of a run is alive."""
    end = time.monotonic() + timeout
    while True:
        left = carriers()
        if not left:
            return
        for pid in left:
            try:
                fd = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            ready, _, _ = select.select([fd], [], [], max(0, end - time.monotonic()))
            os.close(fd)
            assert ready, f"still alive {timeout} s after the kill: {pid} {left[pid]}"


def shared_memory(uid):
    """Open MPI's segments of that account: somebody else's mpirun is none of our business."""
    found = set()
    for p in pathlib.Path("/dev/shm").glob("vader_segment*"):
        try:
            if p.stat().st_uid == uid:
                found.add(p.name)
        except FileNotFoundError:
            pass
    return found


def victims(daemon, kind):
    """Process ids to kill now; empty when that kind is not (or no longer) there."""
    own = daemon.process.pid
    if kind == "daemon":
        return [own]
    if kind == "supervisor":
        return supervisors(own)
    if kind == "daemon+supervisor":
        return supervisors(own) + [own]
    name = {"mpirun": b"mpirun", "rank": b"numa_bench"}[kind]
    found = [pid for pid, argv in carriers().items() if pathlib.PurePath(os.fsdecode(argv[0])).name == name.decode()]
    return found[:1]


def kill(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def run_dirs(daemon):
    return [p for p in daemon.run_dir.iterdir() if p.is_dir()]


@pytest.fixture
def reachable():
    """A directory that any account can enter, so that ranks run as an ordinary one when we are root."""
    with tempfile.TemporaryDirectory(prefix="numaprobe-kill.", dir="/tmp") as name:
        os.chmod(name, 0o755)
        yield pathlib.Path(name)


@pytest.mark.skipif(not any(os.access(f"{d}/mpirun", os.X_OK) for d in os.environ["PATH"].split(":")),
                    reason="no mpirun on this machine")
def test_random_kills(make_daemon, reachable):
    seed = int(os.environ.get("NUMAPROBE_SEED", random.SystemRandom().randrange(1 << 31)))
    rng = random.Random(seed)
    print(f"seed {seed}, {KILLS} kills")
    daemon = make_daemon(args=[f"--run-dir={reachable}/run"])
    daemon.run_dir = reachable / "run"
    account = daemon.get("/v1/node").json["job_account"].split()[0].rstrip(":,;")
    uid = pwd.getpwnam(account).pw_uid
    before = shared_memory(uid)
    acknowledged, hit = [], {}
    for turn in range(KILLS):
        kind = rng.choice(["daemon", "supervisor", "daemon+supervisor", "mpirun", "rank"])
        answer = daemon.post("/v1/runs", {"benchmark": "latency", **SPEC})
        assert answer.status == 202, answer.body
        run_id = answer.json["id"]
        acknowledged.append(run_id)
        # A random moment is the point of this test: there is no event to wait for.
        threading.Event().wait(rng.uniform(0, 1.0))
        pids = victims(daemon, kind)
        kill(pids)
        hit[kind] = hit.get(kind, 0) + bool(pids)
        if "daemon" in kind:
            daemon.process.wait()
            daemon.process.stderr.close()
            if kind == "daemon":
                wait_until_none()  # the supervisor alone cleans up
            daemon.log = []
            daemon.start()
        run = daemon.wait(run_id)
        where = f"turn {turn}, seed {seed}, {kind} killed"
        assert run["state"] in FINAL, where
        assert run["state"] == "succeeded" or run["error"]["text"], where
        if "daemon" in kind and run["state"] != "succeeded":
            assert run["state"] == "interrupted", (where, run)
        wait_until_none()
        assert shared_memory(uid) <= before, where
        assert wait_for_empty(daemon), (where, run_dirs(daemon))
    listed = set()
    cursor = ""
    while cursor is not None:
        page = daemon.get(f"/v1/runs?limit=100{cursor and '&cursor=' + cursor}").json
        listed |= {r["id"] for r in page["runs"]}
        cursor = page["next"]
    assert listed == set(acknowledged)
    print("kills that met a process:", hit)


def wait_for_empty(daemon, timeout=5.0):
    """The supervisor removes its directory as its last deed; wait for that process, then look."""
    end = time.monotonic() + timeout
    while run_dirs(daemon) and time.monotonic() < end:
        for pid in supervisors(daemon.process.pid):
            fd = os.pidfd_open(pid)
            select.select([fd], [], [], max(0, end - time.monotonic()))
            os.close(fd)
        os.sched_yield()
    return not run_dirs(daemon)
