# SPDX-License-Identifier: Apache-2.0
"""SIGKILL of the daemon under load, at random points, its start among them: what it acknowledged is there
afterwards, the file is whole, and nothing stays as it must not. Ranks are fakes.

NUMAPROBE_DAEMON_KILLS: how many (100). Each life of the daemon lasts a random while; clients that do not
wait ask for runs, bring in results, label, cancel and delete, and write down what they were promised.
After each kill the database is read, as the next daemon will find it, and held against that.
"""
import http.client
import json
import os
import random
import re
import select
import signal
import subprocess
import threading
import time

import pytest

from conftest import (FINAL, PATIENCE, SEED, UnixConnection, assert_whole, count, dead_copy, fakes_env, open_directory,
                      processes_of, strangers, tool)

KILLS = count("NUMAPROBE_DAEMON_KILLS", 100)
LIFE_S = 0.1           # at most, from the start or from when it is ready
CLIENTS = 3
ANSWERS = 2            # of changes, before a daemon that was ready is killed
GENERATION = 200       # kills, then a fresh directory: else each look takes longer than the last
TABLE = """|  MPI  |        CPU     |              MEMORY    |  LATENCY (ns)   |
| Ranks | Cores   | NUMA |     Address    | NUMA  | 1MB    | 2MB    |
|-------|---------|------|----------------|-------|--------|--------|
|  000  | 1       |   0  | 0x7f6156000000 |   0   | %d.51  | 95.33  |
"""


class Promised:
    """What is known of a run. Sets hold more than one value while a request had no answer."""

    def __init__(self, key=None):
        self.key, self.labels, self.final, self.gone = key, {""}, None, {False}


class Client:
    """One after the other, for a connection each; only its own runs, so that it alone knows of them."""

    def __init__(self, number, rng, socket, heard):
        self.number, self.rng, self.socket, self.heard = number, rng, socket, heard
        self.runs, self.unanswered, self.serial = {}, [], 0
        self.acknowledged = 0

    def ask(self, method, path, body=None, **headers):
        c = UnixConnection(self.socket)
        try:
            if isinstance(body, dict):
                body = json.dumps(body)
                headers["Content-Type"] = "application/json"
            c.request(method, path, body, headers)
            a = c.getresponse()
            text = a.read()
            if a.status < 300 and method != "GET":
                self.acknowledged += 1
                self.heard.release()
            return a.status, json.loads(text) if text else None
        finally:
            c.close()

    def submit(self):
        again = self.unanswered and self.rng.random() < 0.5
        if not again:
            self.serial += 1
            self.unanswered.append(f"c{self.number}-{self.serial}")
        key = self.rng.choice(self.unanswered) if again else self.unanswered[-1]
        status, run = self.ask("POST", "/v1/runs", {"benchmark": "latency", "size": "1", "ranks": "one-per-numa"},
                               **{"Idempotency-Key": key})
        assert status in (202, 200, 429), (status, run)
        if status != 429:
            self.unanswered.remove(key)
            self.runs[run["id"]] = Promised(key)

    def bring_in(self):
        self.serial += 1
        table = TABLE % (self.number * 1000000 + self.serial)
        status, got = self.ask("POST", "/v1/imports?node=n1&date=2025-03-14", table, **{"Content-Type": "text/plain"})
        assert status in (200, 201), (status, got)
        self.runs[got["id"]] = Promised()
        self.runs[got["id"]].final = "succeeded", got["seq"]

    def some(self):
        """A run of ours; what was asked last is more interesting."""
        there = [i for i, p in self.runs.items() if p.gone == {False}]
        return self.rng.choice(there[-8:]) if there else None

    def label(self, run):
        text = f"l{self.rng.randrange(1000)}"
        self.runs[run].labels.add(text)
        status, got = self.ask("PUT", f"/v1/runs/{run}/label", {"label": text})
        assert status == 200, (status, got)
        self.runs[run].labels = {text}

    def delete(self, run):
        if not self.runs[run].final:
            return
        self.runs[run].gone.add(True)
        status, got = self.ask("DELETE", f"/v1/runs/{run}")
        assert status in (200, 204), (status, got)
        self.runs[run].gone = {True}

    def cancel(self, run):
        status, got = self.ask("POST", f"/v1/runs/{run}/cancel")
        assert status in (200, 202, 409), (status, got)

    def look(self, run):
        status, got = self.ask("GET", f"/v1/runs/{run}")
        assert status == 200, (run, status, got)
        if got["state"] in FINAL:
            seen = self.runs[run].final
            assert not seen or seen[0] == got["state"], (run, seen, got)
            self.runs[run].final = got["state"], got["seq"]

    def work(self, over):
        """Until the daemon is gone. An answer that does not come leaves open what was done."""
        while not over.is_set():
            run = self.some()
            what = self.rng.choices([self.submit, self.bring_in, self.label, self.look, self.cancel, self.delete],
                                    [8, 6, 5, 6, 2, 2])[0]
            try:
                if what in (self.submit, self.bring_in):
                    what()
                elif run:
                    what(run)
            except (OSError, http.client.HTTPException):
                over.wait(0.002)  # not there yet, or not there any more


class Life:
    """One directory, many daemons after one another."""

    def __init__(self, program, home, rng):
        self.program, self.home, self.rng = program, home, rng
        self.socket = home / "numaprobed.sock"
        self.heard = threading.Semaphore(0)  # what was acknowledged since the last kill
        self.clients = [Client(i, random.Random(rng.random()), self.socket, self.heard) for i in range(CLIENTS)]
        self.was_running, self.failures = set(), []

    def start(self, under=()):
        self.log = b""
        self.process = subprocess.Popen(
            [*under, str(self.program), "--config=/dev/null", "--listen=127.0.0.1:0", f"--socket={self.socket}",
             f"--state-dir={self.home}/state", f"--run-dir={self.home}/run", "--anonymous=admin",
             "--admission=ignore", "--host-lock=none"],
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **fakes_env()}, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        os.set_blocking(self.process.stderr.fileno(), False)

    def wait_ready(self):
        while b"event=ready" not in self.log:
            assert select.select([self.process.stderr], [], [], PATIENCE)[0], self.text()
            more = os.read(self.process.stderr.fileno(), 65536)
            assert more, self.text()
            self.log += more

    def end(self, status):
        os.set_blocking(self.process.stderr.fileno(), True)
        self.log += self.process.communicate(timeout=120)[1]
        assert self.process.returncode == status, self.text()

    def work(self, client, over):
        try:
            client.work(over)
        except BaseException as e:  # told by the test, not by the thread
            self.failures.append(e)

    def under_load(self, seconds, from_ready):
        over = threading.Event()
        threads = [threading.Thread(target=self.work, args=(c, over)) for c in self.clients]
        for t in threads:
            t.start()
        if from_ready:
            self.wait_ready()
        over.wait(seconds)  # a random moment is the point: there is no event to wait for
        for _ in range(ANSWERS if from_ready else 0):  # a busy machine's daemon has had nothing to lose by then
            self.heard.acquire(timeout=120)
        self.process.kill()
        over.set()
        for t in threads:
            t.join()
        while self.heard.acquire(blocking=False):
            pass
        self.end(-signal.SIGKILL)
        if self.failures:
            raise self.failures[0]

    def text(self):
        return self.log.decode(errors="replace")

    def check(self):
        state = self.home / "state"
        if not (state / "numaprobe.db").exists():
            assert not any(c.runs for c in self.clients)
            return
        assert strangers(state) == [], self.text()
        log = self.text()
        assert "store.damaged" not in log and "level=error" not in log.replace("event=failed", ""), log
        with dead_copy(state) as db:
            if not db.execute("SELECT 1 FROM pragma_table_info('run') WHERE name = 'label'").fetchall():  # half made
                assert not any(c.runs for c in self.clients)
                return
            assert_whole(db)
            rows = {r[0]: r[1:] for r in db.execute("SELECT id, state, seq, label, idempotency_key FROM run")}
        running = {i for i, row in rows.items() if row[0] == "running"}
        if re.search("event=ready", log):
            assert not running & self.was_running, f"a run is going on that no daemon knows: {running}"
        self.was_running = running
        for client in self.clients:
            for run, promised in client.runs.items():
                compare(run, promised, rows.get(run))

    def settle(self):
        """The last daemon of this directory: all that waits comes to an end, and nothing is left."""
        self.start()
        asker = self.clients[0]
        end = time.monotonic() + PATIENCE
        left = [1]
        while left and time.monotonic() < end:
            try:
                left = [r["id"] for state in ("queued", "running")
                        for r in asker.ask("GET", f"/v1/runs?state={state}&limit=200")[1]["runs"]]
                for run in left[:1]:
                    asker.ask("GET", f"/v1/runs/{run}?wait=10")
                for run in left[4:]:  # what a cancel ends is over as well, and sooner
                    asker.ask("POST", f"/v1/runs/{run}/cancel")
            except OSError:
                assert self.process.poll() is None, self.text()
        assert not left, f"stuck: {left}\n{self.text()}"
        self.process.terminate()
        self.end(0)
        assert processes_of(self.home) == {}
        assert [p.name for p in (self.home / "run").iterdir()] == []
        self.check()


def compare(run, promised, row):
    if row is None:
        assert True in promised.gone, f"run {run} was acknowledged and is lost"
        promised.gone = {True}
        return
    assert False in promised.gone, f"run {run} was deleted and is back"
    promised.gone = {False}
    state, seq, label, key = row
    assert promised.key is None or key == f"uid:{os.getuid()} {promised.key}", (run, key, promised.key)
    assert label in promised.labels, f"run {run}: label {label!r}, promised {promised.labels}"
    promised.labels = {label}
    if promised.final:
        assert state == promised.final[0] and promised.final[1] in (None, seq), (run, state, seq, promised.final)


def test_killed_under_load(numaprobed, tell):
    rng = random.Random(SEED)
    acknowledged = done = 0
    while done < KILLS:
        with open_directory("daemon-kill") as home:
            life = Life(numaprobed, home, rng)
            for _ in range(min(GENERATION, KILLS - done)):
                life.start()
                life.under_load(rng.uniform(0, LIFE_S), from_ready=rng.random() < 0.7)
                life.check()
                done += 1
            life.settle()
            acknowledged += sum(c.acknowledged for c in life.clients)
    tell(f"{done} kills, {acknowledged} acknowledged changes, none lost")
    assert acknowledged > KILLS, "the load was none"


# How often each is called until a fresh daemon is ready; beyond that nothing is met.
CALLS = [(call, n) for call, most in (("pwrite64", 16), ("fdatasync", 12), ("unlink", 3)) for n in range(1, most)]


@pytest.mark.skipif(tool("strace") is not None, reason=str(tool("strace")))
@pytest.mark.parametrize("call, n", CALLS if KILLS >= 1000 else CALLS[2:9:2] + CALLS[17::6])
def test_killed_while_the_file_is_made(numaprobed, call, n):
    """Between the first bytes of the database and its first table: what is left must be ours, and be finished."""
    with open_directory("daemon-kill") as home:
        life = Life(numaprobed, home, random.Random(SEED))
        life.start(["strace", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={n}"])
        with pytest.raises(AssertionError):
            life.wait_ready()
        assert life.process.wait() != 0
        life.start()
        life.wait_ready()
        life.process.kill()
        life.end(-signal.SIGKILL)
        assert "store.damaged" not in life.text()
        with dead_copy(home / "state") as db:
            assert_whole(db)
