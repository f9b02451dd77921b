# SPDX-License-Identifier: Apache-2.0
"""Floods: thousands of connections that do nothing or next to nothing, thousands of requests for runs
at once. The daemon has its default limits where nothing else is said.

NUMAPROBE_FLOOD_S     how long connections are pressed on it: 10 s, long 60
NUMAPROBE_FLOOD_POSTS how many requests at once: 1,000, long 10,000
"""
import importlib.util
import json
import multiprocessing
import os
import pathlib
import resource
import select
import socket
import statistics
import sys
import threading
import time

import pytest

SYSTEM = pathlib.Path(__file__).resolve().parents[1] / "system"
spec = importlib.util.spec_from_file_location("system_conftest", SYSTEM / "conftest.py")
system = importlib.util.module_from_spec(spec)
spec.loader.exec_module(system)
spec = importlib.util.spec_from_file_location("http_limits", SYSTEM / "test_http_limits.py")
limits = importlib.util.module_from_spec(spec)
sys.path.insert(0, str(SYSTEM))
spec.loader.exec_module(limits)
sys.path.remove(str(SYSTEM))
numaprobed, make_daemon, until = system.numaprobed, system.make_daemon, system.until
open_files, private_kib = limits.descriptors, limits.private_kib

SECONDS = int(os.environ.get("NUMAPROBE_FLOOD_S", "10"))
POSTS = int(os.environ.get("NUMAPROBE_FLOOD_POSTS", "1000"))
EACH = 1000          # dripping, and as many silent
DEADLINE_S = 10      # of the headers (http/server/connections.h)
LATE_S = 60          # a busy machine may be late by so much
QUEUE_MAX = 32       # RUNNER_QUEUE_MAX
SPEC = {"benchmark": "latency", "size": "1", "cpus": "0"}
DRIP = b"GET /healthz HTTP/1.1\r\nX: " + b"a" * 4000


@pytest.fixture(autouse=True)
def descriptors():
    """Two thousand sockets of our own, and room."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    need = max(2 * EACH, POSTS) + 500
    if hard != resource.RLIM_INFINITY and hard < need:
        pytest.fail(f"the flood needs {need} descriptors and the limit is {hard} (ulimit -Hn)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, need), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def drained(daemon):
    """Its log is read away: a full pipe would hold the daemon, as it holds whoever writes to one."""
    def read():
        os.set_blocking(daemon.process.stderr.fileno(), True)
        try:
            while os.read(daemon.process.stderr.fileno(), 65536):
                pass
        except (OSError, ValueError):
            pass  # closed by who stops the daemon
    threading.Thread(target=read, daemon=True).start()
    return daemon


# ---- connections

class Presser:
    """Keeps 2 x EACH connections on a port; who is cut comes again, as attackers do."""

    def __init__(self, port, out):
        self.port, self.out, self.poll = port, out, select.epoll()
        self.born, self.sockets, self.drips = {}, {}, {}
        self.lives, self.refused, self.held_most = [], 0, 0

    def connect(self, drips):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(("127.0.0.1", self.port))
        fd = s.fileno()
        self.sockets[fd], self.drips[fd], self.born[fd] = s, drips, None
        self.poll.register(fd, select.EPOLLIN | select.EPOLLOUT | select.EPOLLRDHUP)

    def gone(self, fd, now):
        if self.born[fd] is None:
            self.refused += 1
        else:
            self.lives.append(now - self.born[fd])
        self.poll.unregister(fd)
        self.sockets.pop(fd).close()
        del self.born[fd]
        return self.drips.pop(fd)

    def round(self, now, again):
        for fd, events in self.poll.poll(0.05, 4096):
            if events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR | select.EPOLLRDHUP):
                drips = self.gone(fd, now)
                if again:
                    self.connect(drips)
            elif events & select.EPOLLOUT:
                self.born[fd] = now
                self.poll.modify(fd, select.EPOLLIN | select.EPOLLRDHUP)
        self.held_most = max(self.held_most, len(self.sockets))

    def drip(self, at):
        for fd, s in self.sockets.items():
            if self.drips[fd] and self.born[fd] is not None:
                try:
                    s.send(DRIP[at:at + 1], socket.MSG_DONTWAIT)
                except OSError:
                    pass  # it was cut: the next round sees it

    def press(self, seconds):
        began = dripped = time.monotonic()
        for i in range(2 * EACH):
            self.connect(i % 2 == 0)
        at = 0
        while True:
            now = time.monotonic()
            self.round(now, now - began < seconds)
            if now - dripped > 0.5:
                dripped, at = now, at + 1
                self.drip(at % len(DRIP))
            if not self.sockets or now - began > seconds + DEADLINE_S + LATE_S:
                break
        self.out.send({"left": len(self.sockets), "lives": self.lives, "refused": self.refused})


def press(port, out, seconds):
    Presser(port, out).press(seconds)


@pytest.mark.parametrize("connections", [256, 4096])
def test_connections_that_do_nothing(make_daemon, connections, capsys):
    """By default most are turned away; with room for all of them each is held until its deadline. Good
    requests on the unix socket never fail, and afterwards everything is as it was."""
    daemon = drained(make_daemon(system.fake_bench_env(), args=[f"--connections={connections}"]))
    for _ in range(20):
        daemon.request("GET", "/healthz", unix=True)
    files, memory = open_files(daemon), private_kib(daemon)
    ours, theirs = multiprocessing.Pipe()
    presser = multiprocessing.Process(target=press, args=(daemon.port, theirs, SECONDS))
    presser.start()
    times, most_files, most_memory = [], 0, 0
    while not ours.poll():
        asked = time.monotonic()
        assert daemon.request("GET", "/healthz", unix=True).status == 200
        times.append(time.monotonic() - asked)
        if len(times) % 50 == 0:
            most_files, most_memory = max(most_files, open_files(daemon)), max(most_memory, private_kib(daemon))
        ours.poll(0.005)
    result = ours.recv()
    presser.join()
    assert result["left"] == 0, "all are cut"
    assert max(result["lives"]) < DEADLINE_S + LATE_S
    if connections > 2 * EACH:
        held = [life for life in result["lives"] if life > DEADLINE_S / 2]
        assert len(held) >= 2 * EACH, "each had its time"
        assert most_files > 2 * EACH
    until(lambda: open_files(daemon) <= files + 2)
    until(lambda: private_kib(daemon) <= memory + 1024)
    assert daemon.get("/healthz").status == 200
    times.sort()
    p99 = times[int(len(times) * 0.99)]
    with capsys.disabled():
        print(f"\n{connections} connections: {len(result['lives'])} had a life of at most {max(result['lives']):.1f} s; "
              f"{len(times)} good requests, median {statistics.median(times) * 1e3:.1f} ms, p99 {p99 * 1e3:.1f} ms, "
              f"slowest {times[-1] * 1e3:.0f} ms; descriptors {files}, {most_files}, {open_files(daemon)}; private KiB "
              f"{memory}, {most_memory}, {private_kib(daemon)}")
    assert p99 < DEADLINE_S, "nobody waits for the end of the others"


# ---- addresses

@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be somebody else")
@pytest.mark.parametrize("addresses", [1, 8, 8000])
def test_an_account_of_many_addresses(make_daemon, addresses, capsys):
    """1,000 drippers of one account, from as many loopback addresses as it likes: no request of another account fails."""
    daemon = drained(make_daemon(system.fake_bench_env()))
    dripper, good = (limits.as_account(uid, script, daemon.port, *args) for uid, script, *args in
                     ((1234, limits.PRESS, EACH, addresses), (1300, limits.ASK, SECONDS)))
    assert dripper.stdout.readline() == "all\n"
    asked, median, slowest = good.communicate(timeout=SECONDS + system.PATIENCE)[0].split()
    dripper.stdin.close()
    cut = int(dripper.stdout.readline())
    assert (good.returncode, dripper.wait(120)) == (0, 0)
    with capsys.disabled():
        print(f"\n1,000 drippers from {addresses} addresses, {cut} cut in {SECONDS} s: {asked} good requests, none failed, "
              f"median {float(median):.1f} ms, slowest {float(slowest):.0f} ms")


# ---- requests

def post(key):
    body = json.dumps(SPEC).encode()
    return (b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Idempotency-Key: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (key.encode(), len(body))) + body


class Crowd:
    """Sends many requests at once over the unix socket: those that find no place try again."""

    def __init__(self, path, requests):
        self.path, self.waiting, self.poll = path, list(enumerate(requests)), select.epoll()
        self.open, self.answers = {}, {}

    def connect(self):
        while self.waiting:
            number, request = self.waiting[-1]
            s = socket.socket(socket.AF_UNIX)
            s.setblocking(False)
            try:
                s.connect(self.path)
                s.send(request)
            except BlockingIOError:
                s.close()
                return
            self.waiting.pop()
            self.open[s.fileno()] = (s, number, [])
            self.poll.register(s, select.EPOLLIN)

    def read(self, fd):
        s, number, parts = self.open[fd]
        try:
            data = s.recv(65536)
        except ConnectionResetError:
            data = b""
        if data:
            parts.append(data)
            return
        self.answers[number] = b"".join(parts)
        del self.open[fd]
        s.close()

    def all(self, look, timeout=300):
        """The answers in order: (status, head, document). Calls look() between."""
        end, looked = time.monotonic() + timeout, 0
        while (self.waiting or self.open) and time.monotonic() < end:
            self.connect()
            for fd, _ in self.poll.poll(0.05, 1024):
                self.read(fd)
            if time.monotonic() - looked > 0.1:
                looked = time.monotonic()
                look()
        left = len(self.waiting) + len(self.open)
        for s, _, _ in self.open.values():
            s.close()
        assert left == 0, "not all were answered"
        heads = [self.answers[i].partition(b"\r\n\r\n") for i in sorted(self.answers)]
        return [(int(head.split()[1]), head, json.loads(body)) for head, _, body in heads]


@pytest.fixture
def held(make_daemon, tmp_path):
    """A daemon whose runs go on until they are canceled."""
    bench = tmp_path / "fake_bench-hang"
    bench.symlink_to(system.FAKE_BENCH)
    for folder in (tmp_path, *list(tmp_path.parents)[:2]):
        folder.chmod(folder.stat().st_mode | 0o011)  # the account of the ranks comes through
    return drained(make_daemon({**system.fake_bench_env(), "NUMAPROBE_BENCH": str(bench)}))


def supervisors(daemon):
    count = 0
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text(encoding="utf-8").rpartition(")")[2].split()[1])
            words = (stat.parent / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        count += parent == daemon.process.pid and b"--supervise" in words
    return count


def listed(daemon, state):
    """Asked over TCP: the crowd has the places of the unix socket."""
    return len(daemon.get(f"/v1/runs?state={state}&limit=200").json["runs"])


def check_bounds(daemon):
    assert supervisors(daemon) <= 1
    assert listed(daemon, "running") <= 1
    assert listed(daemon, "queued") <= QUEUE_MAX


def test_one_key(held):
    """However many ask with one key, it is one run."""
    answers = Crowd(held.socket, [post("the-same")] * POSTS).all(lambda: check_bounds(held))
    assert {status for status, _, _ in answers} == {202}
    assert len({document["id"] for _, _, document in answers}) == 1
    assert len(held.get("/v1/runs?limit=200").json["runs"]) == 1


def test_many_keys(held):
    """One run at a time, a queue of 32, and 429 with the time to come back for all others."""
    keys = [f"key-{i}" for i in range(POSTS)]
    answers = Crowd(held.socket, [post(key) for key in keys]).all(lambda: check_bounds(held))
    taken = {key: document["id"] for key, (status, _, document) in zip(keys, answers) if status == 202}
    refused = [head for status, head, _ in answers if status == 429]
    assert len(taken) + len(refused) == POSTS, {status for status, _, _ in answers}
    assert QUEUE_MAX <= len(taken) <= QUEUE_MAX + 1
    assert all(b"\r\nRetry-After: " in head for head in refused)
    stored = {run["id"] for run in held.get("/v1/runs?limit=200").json["runs"]}
    assert stored == set(taken.values()) and len(stored) == len(taken), "what was acknowledged, and nothing else"
    for key, number in taken.items():
        assert held.post("/v1/runs", SPEC, Idempotency_Key=key).json["id"] == number
    check_bounds(held)


def test_many_keys_while_runs_end(make_daemon):
    """The same with runs that end: no two of them overlap, and each that was acknowledged is run."""
    daemon = drained(make_daemon(system.fake_bench_env()))
    answers = Crowd(daemon.socket, [post(f"key-{i}") for i in range(POSTS)]).all(lambda: check_bounds(daemon))
    taken = [document["id"] for status, _, document in answers if status == 202]
    assert {status for status, _, _ in answers} <= {202, 429}
    runs = [daemon.wait(number) for number in sorted(taken)]
    assert {run["state"] for run in runs} == {"succeeded"}
    spans = sorted((run["started"], run["finished"]) for run in runs)
    assert all(before[1] <= after[0] for before, after in zip(spans, spans[1:])), "one at a time"
    until(lambda: supervisors(daemon) == 0)
