# SPDX-License-Identifier: Apache-2.0
"""A disk that is full, read-only or failing, and files that somebody deletes or cuts: the daemon lives,
reads go on, a write that cannot be kept gets 507 (503 while a database is put right), what was acknowledged
is there after a kill and a start, and all is well when the fault is over.

NUMAPROBE_FAULTS=all: every case; else six of them.
"""
import contextlib
import os
import pathlib
import select
import signal
import subprocess
import threading

import pytest

from conftest import (Daemon, assert_whole, dead_copy, fakes_env, open_directory, tool, try_command, until)

ALL = os.environ.get("NUMAPROBE_FAULTS") == "all"
REFUSED = {507, 503}
TABLE = "size (MB),0,1\n1,%d.5,12.5\n2,13.0,14.0\n"


class Faulty:
    """A daemon, what it acknowledged, and the same six questions again and again."""

    def __init__(self, program, home, state):
        self.program, self.home, self.state = program, home, pathlib.Path(state)
        self.acknowledged, self.serial = set(), 0
        self.also = set()  # what a write may get besides
        self.start()
        self.first = self.daemon.run(size="1")["id"]
        self.acknowledged.add(self.first)

    def start(self):
        self.daemon = Daemon(self.program, self.home, fakes_env(), [f"--state-dir={self.state}"]).start()

    def reads(self, healthy=True):
        """healthy: not in the moment in which a database is put right."""
        for path in ("/healthz", "/v1/topology", "/v1/node", "/metrics"):
            assert self.daemon.get(path).status == 200, path
        for path in ("/v1/runs", f"/v1/runs/{self.first}", f"/v1/runs/{self.first}/matrix"):
            answer = self.daemon.get(path)
            assert answer.status == 200 or not healthy and answer.status in REFUSED | {404}, (path, answer.body)

    def write(self):
        """One of each kind; returns the statuses."""
        self.serial += 1
        answers = [self.daemon.post("/v1/runs", {"benchmark": "latency", "size": "1", "note": "x" * 150}),
                   self.daemon.request("POST", "/v1/imports?node=n&date=2025-01-02", TABLE % self.serial,
                                       {"Content-Type": "text/csv"}),
                   self.daemon.request("PUT", f"/v1/runs/{self.first}/label", {"label": f"l{self.serial}"})]
        for answer in answers:
            assert answer.status in {200, 201, 202} | REFUSED | {404, 429} | self.also, answer.body
            if answer.status in REFUSED:
                assert answer.headers["Content-Type"] == "application/problem+json"
                assert answer.status == 507 or answer.headers["Retry-After"]
            if answer.status in (201, 202):
                self.acknowledged.add(answer.json["id"])
        return [a.status for a in answers]

    def heal(self, lost=False):
        """The fault is over: writes go, runs end, and after a kill all that was acknowledged is there."""
        until(lambda: not set(self.write()) & REFUSED)
        until(lambda: not self.daemon.get("/v1/runs?state=queued").json["runs"])  # the line may be full
        run = self.daemon.run(size="1")
        assert run["state"] == "succeeded", run
        self.acknowledged.add(run["id"])
        self.reads(not lost)
        until(lambda: self.daemon.get("/readyz").status == 200)
        self.check(lost)

    def check(self, lost=False):
        self.kill()
        with dead_copy(self.state) as db:
            assert_whole(db)
            there = {r[0] for r in db.execute("SELECT id FROM run")}
        assert lost or self.acknowledged <= there, f"lost: {self.acknowledged - there}\n" + "\n".join(self.daemon.log)
        self.start()
        for run in sorted(self.acknowledged & there):
            assert self.daemon.wait(run)["state"], run
        self.reads(not lost)
        assert self.daemon.stop() == 0

    def kill(self):
        self.daemon.process.kill()
        os.set_blocking(self.daemon.process.stderr.fileno(), True)
        self.daemon.log += self.daemon.process.communicate(timeout=120)[1].decode(errors="replace").splitlines()
        assert self.daemon.process.returncode == -signal.SIGKILL, "\n".join(self.daemon.log)


@contextlib.contextmanager
def injected(daemon, call, error, when):
    """strace makes calls of the daemon fail; without it they work again."""
    words = f"inject={call}:error={error}" + (f":when={when}" if when else "")
    strace = subprocess.Popen(["strace", "-qq", "-o", "/dev/null", "-p", str(daemon.process.pid), "-e", f"trace={call}",
                               "-e", words], stderr=subprocess.PIPE)
    try:
        while not traced(daemon):  # no event tells of it; it takes a millisecond
            assert strace.poll() is None, strace.stderr.read()
            threading.Event().wait(0.001)
        yield
    finally:
        strace.send_signal(signal.SIGINT)
        strace.communicate(timeout=120)
        assert daemon.process.poll() is None, "the daemon is gone:\n" + "\n".join(daemon.log)


def traced(daemon):
    return "TracerPid:\t0\n" not in pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text()


@pytest.fixture
def home():
    with open_directory("faults") as path:
        yield path


@pytest.fixture
def small(home):
    """A small file system, with the 64 MiB to spare that a ready daemon wants."""
    state = home / "small"
    state.mkdir()
    if not try_command("mount", "-t", "tmpfs", "-o", "size=96m,mode=755", "numaprobe-test", str(state)):
        pytest.skip("cannot mount a small file system here: not root")
    yield state
    subprocess.run(["umount", "-l", str(state)], check=True)


def test_full(numaprobed, home, small):
    f = Faulty(numaprobed, home, small / "state")
    big = small / "somebody's file"
    with open(big, "wb", buffering=0) as other, contextlib.suppress(OSError):
        while True:
            other.write(b"x" * 65536)
    seen = set()
    for _ in range(40):
        seen |= set(f.write())
        f.reads()
        if 507 in seen:
            break
    assert 507 in seen and not seen & {500, 503}, seen
    ready = f.daemon.get("/readyz")
    assert ready.status == 503, ready.body
    big.unlink()
    f.heal()


def test_read_only(numaprobed, home, small):
    f = Faulty(numaprobed, home, small / "state")
    if not try_command("mount", "-o", "remount,ro", str(small)):
        with injected_all(f.daemon, "EROFS"):
            refused_all(f)
    else:
        refused_all(f)
        assert try_command("mount", "-o", "remount,rw", str(small))
    f.heal()


@contextlib.contextmanager
def injected_all(daemon, error):
    """A file system that somebody holds open cannot become read-only; what it would answer can be had."""
    with injected(daemon, "pwrite64,ftruncate,unlink,fallocate", error, None):
        yield


def refused_all(f):
    for _ in range(3):
        statuses = set(f.write())
        assert statuses <= {507}, statuses
        f.reads()


def fails_at(call, error, when):
    return pytest.param(call, error, when, id=f"{call}-{error}-{when or 'always'}")


FEW = [fails_at("fdatasync", "EIO", None), fails_at("pwrite64", "ENOSPC", "2")]
MANY = [fails_at(call, error, when)
        for call, error in (("fdatasync", "EIO"), ("pwrite64", "EIO"), ("pwrite64", "ENOSPC"), ("ftruncate", "EIO"),
                            ("fallocate", "ENOSPC"), ("openat", "EMFILE"), ("openat", "EIO"), ("fcntl", "ENOLCK"),
                            ("unlink", "EROFS"), ("fstat,newfstatat", "EIO"), ("mmap", "ENOMEM"))
        for when in (None, *map(str, range(1, 9)), "3+2")]


@pytest.mark.skipif(tool("strace") is not None, reason=str(tool("strace")))
@pytest.mark.parametrize("call, error, when", MANY if ALL else FEW)
def test_call_fails(numaprobed, home, call, error, when):
    f = Faulty(numaprobed, home, home / "state")
    if call not in ("fdatasync", "pwrite64", "ftruncate", "fallocate", "fcntl", "unlink"):
        f.also = {409, 422, 500}  # not the database alone: what is asked of /proc and /sys cannot be told either
    with injected(f.daemon, call, error, when):
        statuses = set()
        for _ in range(3):
            statuses |= set(f.write())
            if call not in ("openat", "mmap", "fcntl", "fstat,newfstatat"):
                f.reads()
            assert f.daemon.get("/healthz").status == 200
    f.also = set()
    if when is None and call in ("fdatasync", "pwrite64"):
        assert statuses == {507}, statuses
    f.heal()


def delete(path):
    path.unlink()


def empty(path):
    os.truncate(path, 0)


def half(path):
    os.truncate(path, path.stat().st_size // 2)


def replace(path):
    other = path.with_name("other")
    other.write_bytes(path.read_bytes()[:8192])
    other.rename(path)


def case(part, what, killed):
    return pytest.param(part, what, killed, id=f"{what.__name__}{part}{'-killed' if killed else ''}")


CASES = [case("", delete, False), case("-wal", empty, False), case("-wal", delete, False), case("", empty, False),
         case("", half, False), case("-wal", half, False), case("", replace, False), case("-shm", delete, False),
         case("", delete, True), case("", empty, True), case("", half, True), case("-wal", delete, True),
         case("-wal", empty, True), case("-wal", half, True), case("-shm", delete, True), case("-shm", empty, True)]


@pytest.mark.parametrize("part, what, killed", CASES if ALL else CASES[:2])
def test_file_is_hurt(numaprobed, home, part, what, killed):
    """While the daemon has it open, or after a kill. What is deleted or replaced below a daemon is not lost."""
    f = Faulty(numaprobed, home, home / "state")
    f.write()
    for run in set(f.acknowledged):
        f.daemon.wait(run)
    if killed:
        f.kill()
    what(home / "state" / f"numaprobe.db{part}")
    if killed:
        f.start()
    lost = what in (empty, half) or killed
    if lost:
        f.acknowledged.clear()  # what was in it is gone; what is acknowledged from now on must not be
        f.first = f.daemon.run(size="1")["id"] if killed else f.first
    f.reads(healthy=not lost)
    f.write()
    f.heal(lost=lost and f.first not in f.acknowledged)
