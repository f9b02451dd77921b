# SPDX-License-Identifier: Apache-2.0
"""Runs and reads with faults in between, for as long as one likes: nothing grows.

Real mpirun jobs, one after the other, and every kind of read beside them; at most a minute apart one of FAULTS.
When all is quiet again the daemon's private memory, its descriptors and children, shared-memory segments and run
directories are counted. After a warm-up, in which each fault came once:

    memory        the slope (Theil-Sen: the median of all pairs, so that a single round cannot bend it) over the
                  time measured is at most NOISE_KIB; what seems to grow is watched longer
    the others    are at the end what they were at the beginning

NUMAPROBE_SOAK_SECONDS sets how long (default 30); NUMAPROBE_SEED repeats a sequence that failed.
"""
import contextlib
import itertools
import json
import os
import pathlib
import pwd
import random
import select
import shutil
import signal
import socket
import sqlite3
import statistics
import struct
import subprocess
import time

import pytest

from conftest import SEED, count, open_directory

SECONDS = count("NUMAPROBE_SOAK_SECONDS", 30)
# Each kind comes at least once in the time measured, and one a minute at the least.
FAULT_SECONDS = min(60, SECONDS / 12)
NOISE_KIB = 256
PATIENCE = 4  # times as long is watched what seems to grow: a step, as malloc makes them, stays one
SPEC = {"benchmark": "latency", "size": "64K-256K", "ranks": "all-cores", "cell_ms": 50}
PREPARED = "memfd:numaprobe-answer"
# So few that they are all there after the warm-up: until then what is known of stored runs grows.
KEEP_RUNS = 10
DISK_MIB = 128  # a backup wants 64 MiB to spare
TABLE = """|  MPI  |        CPU     |              MEMORY    |  LATENCY (ns)   |
| Ranks | Cores   | NUMA |     Address    | NUMA  | 1MB    | 2MB    |
|-------|---------|------|----------------|-------|--------|--------|
|  000  | 1       |   0  | 0x7f6156000000 |   0   | 17.51  | %.2f  |
"""
READS = ["/healthz", "/readyz?verbose", "/metrics", "/v1/node", "/v1/topology", "/v1/topology.xml", "/v1/benchmarks",
         "/v1/availability", "/v1/runs?limit=20", "/v1/storage", "/v1/baselines", "/v1/feed?after=0&limit=5",
         "/v1/history", "/openapi.json", "/"]
OF_A_RUN = ["", "/matrix", "/matrix.csv", "/matrix.ndjson", "/matrix.svg", "/report", "/report.md", "/log", "/export"]
BAD = [b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"BREW / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
       b"GET /v1/runs/%00 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"GET /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
       b"GET /v1/runs?limit=x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
       b"GET / HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n",
       b"POST /v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{\"size\":}",
       b"POST /v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 999999\r\n\r\n",
       b"POST /v1/imports HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"]


@contextlib.contextmanager
def small_disk(folder):
    """A file system of DISK_MIB at `folder`; False where we may not mount one."""
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m,mode=755", "soak", folder], capture_output=True)
    try:
        yield done.returncode == 0
    finally:
        if done.returncode == 0:
            subprocess.run(["umount", "--lazy", folder], check=False)


class Soak:
    def __init__(self, daemon, disk, run_dir):
        self.daemon, self.disk, self.run_dir = daemon, disk, run_dir
        self.proc = pathlib.Path(f"/proc/{daemon.process.pid}")
        self.rng = random.Random(SEED)
        self.runs, self.ends, self.requests, self.hits = [], {}, 0, {}
        self.last = self.labelled = None
        self.uid = pwd.getpwnam(daemon.get("/v1/node").json["job_account"].split()[0].rstrip(":,;")).pw_uid
        self.shm = self.segments()

    # ---- what is counted

    def segments(self):
        """Of the account that our ranks have: somebody else's mpirun is none of our business."""
        found = set()
        for p in pathlib.Path("/dev/shm").glob("vader_segment*"):
            with contextlib.suppress(FileNotFoundError):
                if p.stat().st_uid == self.uid:
                    found.add(p.name)
        return found

    def private_kib(self):
        text = (self.proc / "smaps_rollup").read_text()
        return int(next(line for line in text.splitlines() if line.startswith("Private_Dirty:")).split()[1])

    def open_files(self):
        """{descriptor: what it leads to}, without the prepared responses: each is kept for a minute, as a memory file."""
        found = {}
        for p in (self.proc / "fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                found[int(p.name)] = os.readlink(p)
        return {fd: to for fd, to in sorted(found.items()) if PREPARED not in to}

    def descriptors(self):
        return len(self.open_files())

    def children(self):
        return (self.proc / "task" / self.proc.name / "children").read_text().split()

    def drain_log(self):
        """A daemon whose log nobody reads waits for the reader, when the pipe is full."""
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self.daemon.process.stderr.fileno(), 65536):
                self.daemon.log = self.daemon.log[-100:] + data.decode(errors="replace").splitlines()

    def quiet(self, descriptors=None):
        """Waits until the last run's supervisor and the connections that we closed are gone; what is there then."""
        self.drain_log()
        end = time.monotonic() + 60
        for pid in self.children():
            with contextlib.suppress(ProcessLookupError):
                fd = os.pidfd_open(int(pid))
                select.select([fd], [], [], max(0, end - time.monotonic()))
                os.close(fd)
        # The daemon hears of a closed connection in its next round: each request is one.
        while (descriptors is not None and self.descriptors() > descriptors or self.children()) \
                and time.monotonic() < end:
            self.get("/healthz")
        return {"descriptors": self.descriptors(), "children": len(self.children()),
                "segments": len(self.segments() - self.shm),
                "directories": sum(p.is_dir() for p in self.run_dir.iterdir())}

    # ---- what is asked

    def get(self, path, statuses=(200,)):
        answer = self.daemon.get(path)
        self.requests += 1
        assert answer.status in statuses, (path, answer.status, answer.body[:300])
        return answer

    def begin(self, statuses=(202,), **more):
        """Asks for a run; its number, or None when it was refused as it may be."""
        answer = self.daemon.post("/v1/runs", {**SPEC, **more})
        self.requests += 1
        assert answer.status in statuses, (answer.status, answer.body)
        if answer.status != 202:
            return None
        self.runs.append(answer.json["id"])
        return answer.json["id"]

    def finish(self, run_id, *states):
        run = self.daemon.wait(run_id)
        assert run["state"] in states, run
        self.ends[run["state"]] = self.ends.get(run["state"], 0) + 1
        return run

    def until_measuring(self, run_id):
        """Returns when the ranks are at work; the stream is closed by then."""
        for event, _, run in self.daemon.events(run_id):
            if event == "progress" or run["state"] not in ("queued", "running"):
                return

    def round(self, number):
        """A run with reads beside it, and what comes of it."""
        run_id = self.begin()
        for path in self.rng.sample(READS, 5):
            self.get(path)
        assert [e for e, _, _ in self.daemon.events(run_id)], "no events"
        self.finish(run_id, "succeeded")
        for part in self.rng.sample(OF_A_RUN, 3):
            self.get(f"/v1/runs/{run_id}{part}")
        if self.last:
            metrics = self.get("/v1/history").json["series"]
            self.get("/v1/history?metric=" + self.rng.choice(metrics)["metric"])
            # Faults begin runs too: enough of them, and the run before this one is no longer kept.
            kept = run_id - self.last < KEEP_RUNS
            compared = self.get(f"/v1/compare?base={self.last}&target={run_id}", (200,) if kept else (200, 404))
            assert compared.status == 404 or compared.json["comparison"]["groups"], compared.body
        self.last = run_id
        if number % 3 == 0:
            text = TABLE % self.rng.uniform(50, 100)
            answer = self.daemon.request("POST", "/v1/imports?node=soak", text, {"Content-Type": "text/plain"})
            assert answer.status in (200, 201), answer.body
        if number % 7 == 0:
            answer = self.daemon.request("PUT", f"/v1/runs/{run_id}/label", {"label": "kept until the next"})
            assert answer.status == 200, answer.body
            if self.labelled:
                self.daemon.request("PUT", f"/v1/runs/{self.labelled}/label", {"label": ""})
            self.labelled = run_id
        if number % 5 == 0:
            assert self.get("/v1/backup").body.startswith(b"SQLite format 3\0")

    # ---- what goes wrong

    def kill_mpirun(self):
        run_id = self.begin(cell_ms=1000)
        self.until_measuring(run_id)
        for supervisor in self.children():
            below = pathlib.Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
            for pid in below:
                os.kill(int(pid), signal.SIGKILL)
        assert self.finish(run_id, "failed")["error"]["text"]

    def kill_supervisor(self):
        run_id = self.begin(cell_ms=1000)
        self.until_measuring(run_id)
        for supervisor in self.children():
            os.kill(int(supervisor), signal.SIGKILL)
        self.finish(run_id, "failed", "interrupted")

    def cancel(self):
        run_id = self.begin(cell_ms=1000)
        self.until_measuring(run_id)
        answer = self.daemon.post(f"/v1/runs/{run_id}/cancel")
        assert answer.status in (200, 202), answer.body
        self.finish(run_id, "canceled")

    def full_disk(self):
        if not self.disk:
            return False
        filler = self.disk / "filler"
        with open(filler, "wb", buffering=0) as f:
            with contextlib.suppress(OSError):
                while True:
                    f.write(bytes(1 << 20))
            with contextlib.suppress(OSError):
                while True:
                    f.write(bytes(512))
        asked = [self.begin((202, 507, 503)) for _ in range(8)]
        for path in ("/healthz", "/v1/runs", "/metrics", "/v1/topology", "/v1/storage"):
            self.get(path)
        filler.unlink()
        for run_id in filter(None, asked):
            self.finish(run_id, "succeeded", "failed")
        return True

    def bad_requests(self):
        for _ in range(20):
            for data in BAD:
                status, _, _ = self.daemon.raw(data.replace(b"127.0.0.1", b"127.0.0.1:%d" % self.daemon.port))
                self.requests += 1
                assert status is None or 400 <= status < 500 or status == 501, (status, data)

    def cut_connections(self):
        """Half a request, a stream, a long poll and an unread answer, each ended by a reset."""
        run_id = self.begin()
        host = f"Host: 127.0.0.1:{self.daemon.port}\r\n\r\n".encode()
        asked = [b"GET /v1/ru", b"POST /v1/runs HTTP/1.1\r\nContent-Length: 50\r\nContent-Type: application/json\r\n" + host,
                 f"GET /v1/runs/{run_id}/events HTTP/1.1\r\n".encode() + host,
                 f"GET /v1/runs/{run_id}?wait=60 HTTP/1.1\r\n".encode() + host,
                 b"GET /openapi.json HTTP/1.1\r\n" + host, b"GET /v1/backup HTTP/1.1\r\n" + host]
        open_ = []
        for data in asked * 5:
            s = socket.create_connection(("127.0.0.1", self.daemon.port))
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.sendall(data)
            open_.append(s)
        self.get("/healthz")
        for s in open_:
            s.close()
        self.finish(run_id, "succeeded")

    def post_mortem(self):
        """What a request that got no answer leaves to look at: is it the daemon, its loop, the connection, the run?"""
        mine = f":{self.daemon.port:04X} "
        lines = [line for line in pathlib.Path("/proc/net/tcp").read_text().splitlines() if mine in line]
        self.drain_log()
        told = [self.daemon.request("GET", path, unix=True).body.decode(errors="replace")
                for path in ("/healthz", "/v1/runs?limit=3")]
        self.daemon.stop()
        return "\n".join(["no response", *told, *lines, f"children {self.children()}" if self.proc.exists() else "gone",
                          *self.daemon.log[-30:]])

    FAULTS = (kill_mpirun, full_disk, bad_requests, cancel, cut_connections, kill_supervisor)

    def fault(self, number):
        kind = self.FAULTS[number % len(self.FAULTS)]
        if kind(self) is not False:
            self.hits[kind.__name__] = self.hits.get(kind.__name__, 0) + 1


def slope(samples):
    """Theil-Sen, of at most some 300 samples: the pairs grow with the square."""
    few = samples[::max(1, len(samples) // 300)]
    return statistics.median((b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.combinations(few, 2))


def growth(samples):
    return slope(samples) * (samples[-1][0] - samples[0][0])


def test_slope_is_found_in_noise():
    rng = random.Random(1)
    grows = [(t, 5000 + t + rng.choice([0, 0, 0, 400])) for t in range(1000)]
    rests = [(t, 5000 + rng.choice([0, 0, 4, 400])) for t in range(1000)]
    assert 0.95 < slope(grows) < 1.05 and abs(slope(rests)) * 1000 < NOISE_KIB / 10
    step = [(t, 5000 + 650 * (t > 15)) for t in range(30 * PATIENCE)]
    assert growth(step[:30]) > NOISE_KIB > growth(step) == 0 and growth(grows[:30 * PATIENCE]) > 100


@pytest.fixture
def soak(make_daemon):
    with open_directory("soak") as folder, small_disk(folder / "state") as mounted:
        daemon = make_daemon(args=[f"--state-dir={folder}/state", f"--run-dir={folder}/run", f"--keep-runs={KEEP_RUNS}"])
        yield Soak(daemon, folder / "state" if mounted else None, folder / "run")
        daemon.stop()


def go_on(soak, tell):
    begin = time.monotonic()
    for number in range(len(soak.FAULTS)):
        soak.fault(number)
        soak.round(number)
    rest = soak.quiet()
    measured = time.monotonic()
    samples, number, faults = [], len(soak.FAULTS), 0
    while (time.monotonic() < begin + SECONDS or len(samples) < 8
           or (time.monotonic() < begin + PATIENCE * SECONDS and growth(samples) > NOISE_KIB)):
        soak.round(number)
        number += 1
        if time.monotonic() >= measured + (faults + 1) * FAULT_SECONDS:
            soak.fault(faults)
            faults += 1
        now = soak.quiet(rest["descriptors"])
        assert all(now[what] <= rest[what] for what in rest), f"{number} {now} {rest} {soak.open_files()}"
        rest = now  # the first may have seen a connection go that was still there
        samples.append((time.monotonic(), soak.private_kib()))
    seconds = samples[-1][0] - samples[0][0]
    grown = growth(samples)
    sizes = [kib for _, kib in samples]
    tell(f"{seconds:.0f} s after a warm-up of {measured - begin:.0f} s, {len(soak.runs)} runs {json.dumps(soak.ends)}, "
         f"{soak.requests} requests, faults {json.dumps(soak.hits)}; private memory {min(sizes)}..{max(sizes)} KiB, slope "
         f"{grown:+.0f} KiB in that time ({grown / seconds * 3600:+.0f} KiB/h); {rest['descriptors']} descriptors, "
         f"0 children, segments, directories left")
    assert rest["children"] == rest["segments"] == rest["directories"] == 0
    assert grown <= NOISE_KIB, samples
    listed = {r["id"] for r in soak.get("/v1/runs?limit=200").json["runs"]}
    assert set(soak.runs[-5:]) <= listed, "acknowledged and gone"
    assert soak.daemon.stop() == 0
    database = soak.daemon.args[0].split("=")[1] + "/numaprobe.db"
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.skipif(not shutil.which("mpirun"), reason="no mpirun on this machine")
def test_nothing_grows(soak, tell):
    try:
        go_on(soak, tell)
    except TimeoutError:
        pytest.fail(soak.post_mortem())
