# SPDX-License-Identifier: Apache-2.0
"""SIGKILL and SIGSTOP at random points of real runs: no process, no shared memory and no directory is left,
and each run ends, with a reason if it did not succeed.

NUMAPROBE_RUN_KILLS: how many (50). Needs mpirun and numactl. Several daemons work beside each other, because
a stopped process is a wait. Half of the victims are met at their birth: numactl before it becomes a rank, a
rank before MPI_Init.
"""
import os
import pathlib
import pwd
import random
import select
import signal
import threading
import time

import pytest

from conftest import (FINAL, SEED, Daemon, count, open_directory, processes_of, tool)

KILLS = count("NUMAPROBE_RUN_KILLS", 50)
BESIDE = 3  # daemons
SPEC = {"benchmark": "latency", "size": "64K-256K", "ranks": "all-cores", "cell_ms": 20}
NAMES = {"mpirun": "mpirun", "rank": "numa_bench", "numactl": "numactl"}
# (victim, signal): how often. A stopped supervisor costs five seconds each.
KINDS = {("mpirun", "KILL"): 4, ("rank", "KILL"): 5, ("numactl", "KILL"): 5, ("supervisor", "KILL"): 4,
         ("daemon", "KILL"): 2, ("daemon+supervisor", "KILL"): 3, ("mpirun", "STOP"): 4, ("rank", "STOP"): 4,
         ("numactl", "STOP"): 3, ("supervisor", "STOP"): 1, ("stopped supervisor, daemon", "KILL"): 1,
         ("stopped rank, daemon+supervisor", "KILL"): 1}

pytestmark = pytest.mark.skipif(any(map(tool, ("mpirun", "numactl"))), reason="no mpirun or no numactl")


def wait_gone(pids, timeout):
    end = time.monotonic() + timeout
    for pid in pids:
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        select.select([fd], [], [], max(0, end - time.monotonic()))
        os.close(fd)


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


def send(pids, signo):
    for pid in pids:
        try:
            os.kill(pid, signo)
        except ProcessLookupError:
            pass


class Node:
    """A daemon of its own, and what happens to it."""

    def __init__(self, program, home, rng):
        self.home, self.rng = home, rng
        self.daemon = Daemon(program, home).start()
        account = self.daemon.get("/v1/node").json["job_account"].split()[0].rstrip(":,;")
        self.uid = pwd.getpwnam(account).pw_uid
        self.acknowledged, self.hit, self.failure = set(), {}, None

    def find(self, name):
        """Process ids of that program, or of the supervisor; of this node alone."""
        pid = self.daemon.process.pid
        found = []
        for one, words in processes_of(self.home, {pid}).items():
            program = pathlib.PurePath(words.split(" ")[0]).name
            if name == "supervisor" and "--supervise" in words or program == NAMES.get(name):
                found.append(one)
        return found

    def meet(self, name):
        """One that is there now, or as soon as it is there; none if the run ends before."""
        while not (found := self.find(name)):
            if self.daemon.get(f"/v1/runs/{max(self.acknowledged)}").json["state"] in FINAL:
                break
        return found[:1]

    def strike(self, who, how):
        early = self.rng.random() < 0.5 or who == "numactl"
        if not early:
            # A random moment is the point of this test: there is no event to wait for.
            threading.Event().wait(self.rng.uniform(0, 0.8))
        signo = signal.Signals["SIG" + how]
        own = [self.daemon.process.pid]
        if who.startswith("stopped "):
            stopped, who = who[len("stopped "):].split(", ")
            send(self.meet(stopped), signal.SIGSTOP)
        pids = {"daemon": lambda: own, "daemon+supervisor": lambda: self.find("supervisor") + own}.get(
            who, lambda: self.meet(who))()
        send(pids, signo)
        return bool(pids), own[0] in pids

    def turn(self, number):
        who, how = self.rng.choices(list(KINDS), KINDS.values())[0]
        where = f"turn {number}, seed {SEED}: SIG{how} of {who}"
        answer = self.daemon.post("/v1/runs", SPEC)
        assert answer.status == 202, answer.body
        run_id = answer.json["id"]
        self.acknowledged.add(run_id)
        met, restarted = self.strike(who, how)
        self.hit[who, how] = self.hit.get((who, how), 0) + met
        if restarted:
            self.daemon.process.wait()
            self.daemon.process.stderr.close()
            self.daemon.log = []
            self.daemon.start()
        ended = "canceled" if how == "STOP" else None
        if how == "STOP" and not restarted:
            self.daemon.post(f"/v1/runs/{run_id}/cancel")  # its deadline does the same, later
        run = self.daemon.wait(run_id)
        assert run["state"] in FINAL, where
        assert run["state"] == "succeeded" or run["state"] == "canceled" == ended or run["error"]["text"], where
        self.nothing_left(where)

    def nothing_left(self, where, timeout=120):
        end, own = time.monotonic() + timeout, {self.daemon.process.pid}
        while True:
            left = processes_of(self.home, own)
            dirs = [p.name for p in (self.home / "run").iterdir() if p.is_dir()]
            if not left and not dirs:
                return
            assert time.monotonic() < end, f"{where}: left behind {left} {dirs}"
            wait_gone(left, end - time.monotonic())

    def work(self, turns):
        try:
            for number in turns:
                self.turn(number)
            listed, cursor = set(), ""
            while cursor is not None:
                page = self.daemon.get(f"/v1/runs?limit=100{cursor and '&cursor=' + cursor}").json
                listed |= {r["id"] for r in page["runs"]}
                cursor = page["next"]
            assert listed == self.acknowledged
        except BaseException as e:  # told by the test, not by the thread
            self.failure = e


def test_random_kills(numaprobed, tell):
    rng = random.Random(SEED)
    with open_directory("run-kill") as top:
        homes = [top / str(i) for i in range(BESIDE)]
        for home in homes:
            home.mkdir()
        nodes = [Node(numaprobed, home, random.Random(rng.random())) for home in homes]
        before = shared_memory(nodes[0].uid)
        threads = [threading.Thread(target=node.work, args=(range(i, KILLS, BESIDE),)) for i, node in enumerate(nodes)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for node in nodes:
            node.daemon.stop()
        for node in nodes:
            if node.failure:
                raise node.failure
        assert shared_memory(nodes[0].uid) <= before
    hit = {" ".join(k): sum(n.hit.get(k, 0) for n in nodes) for k in KINDS}
    tell(f"{KILLS} kills; that met a process: {hit}; left behind: 0")
    assert sum(hit.values()) > KILLS / 2, "most came too late"
