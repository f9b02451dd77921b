# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL servers of a test alone: each in a directory of its own, on a Unix socket, without TCP, as the account nobody
where we are root. They end with the test."""
import contextlib
import ctypes
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile

import pytest

from conftest import PATIENCE, until

BIN = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
NOBODY = 65534
PR_SET_PDEATHSIG = 1
# No setting of a database ends what a test itself requests.
PATIENT = {"PGOPTIONS": "-c statement_timeout=0 -c idle_in_transaction_session_timeout=0"}
# What a server says while it starts, stops, or ends the connections of all because one of its processes was killed.
PASSES = re.compile("starting up|shutting down|recovery mode|not yet accepting|crash of another server process|server closed the connection")


def end_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


def account():
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}


class Server:
    """A server with a database. `start` waits until it takes connections."""

    def __init__(self, home=None, data=None, settings=()):
        self.home = pathlib.Path(home or tempfile.mkdtemp(prefix="numaprobe-pg.", dir="/tmp"))
        self.home.chmod(0o755)
        if os.geteuid() == 0:
            os.chown(self.home, NOBODY, NOBODY)
        self.data, self.settings, self.process = pathlib.Path(data or self.home / "data"), list(settings), None
        self.uri = f"postgresql:///postgres?host={self.home}&user=fleet"

    def program(self, name, *words):
        done = subprocess.run([BIN[-1] / name, *words], cwd=self.home, capture_output=True, text=True, timeout=PATIENCE, **account())
        assert done.returncode == 0, (name, done.stdout, done.stderr)
        return done.stdout

    def make(self, *options):
        self.program("initdb", "-D", self.data, "-U", "fleet", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", *options)
        with open(self.data / "pg_hba.conf", "a", encoding="utf-8") as f:
            f.write("local replication all trust\n")
        return self

    def start(self):
        path = self.home / "notify"
        path.unlink(missing_ok=True)
        words = [BIN[-1] / "postgres", "-D", self.data, "-k", self.home, "-c", "listen_addresses=", "-c", "shared_buffers=32MB",
                 "-c", "fsync=off", *(w for s in self.settings for w in ("-c", s))]
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify, open(self.home / "log", "a", encoding="utf-8") as log:
            notify.bind(str(path))
            path.chmod(0o777)
            self.process = subprocess.Popen(words, cwd=self.home, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env={**os.environ, "NOTIFY_SOCKET": str(path), "LC_ALL": "C"},
                                            preexec_fn=end_with_parent, **account())
            notify.settimeout(1)
            while True:
                assert self.process.poll() is None, (self.home / "log").read_text()[-2000:]
                with contextlib.suppress(TimeoutError):
                    if b"READY=1" in notify.recv(1000):
                        return self

    def children(self):
        return pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()

    def backends(self):
        return [int(pid) for (pid,) in self.rows("SELECT pid FROM pg_stat_activity WHERE application_name = 'numaprobe-fleetd'")]

    def stop(self, how=signal.SIGQUIT):
        """SIGKILL leaves backends that end when they notice; a server starts again only when they have."""
        if self.process and self.process.poll() is None:
            left = self.children()
            self.process.send_signal(how)
            self.process.wait(PATIENCE)
            until(lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in left))

    def rows(self, query):
        """Of a server that recovers from a crash, once it has."""
        def asked():
            done = subprocess.run([BIN[-1] / "psql", "-XAtq", "-F", "|", "-v", "ON_ERROR_STOP=1", "-d", self.uri, "-c", query],
                                  capture_output=True, text=True, timeout=PATIENCE, env={**os.environ, **PATIENT})
            assert done.returncode == 0 or PASSES.search(done.stderr), done.stderr
            return done.returncode == 0 and done
        return [tuple(line.split("|")) for line in until(asked).stdout.splitlines()]

    def close(self):
        self.stop()
        shutil.rmtree(self.home, ignore_errors=True)


@pytest.fixture
def make_postgresql():
    """make_postgresql(): a running server; the test is skipped where there is none."""
    if not BIN:
        pytest.skip("no PostgreSQL on this machine")
    made = []

    def make(**options):
        made.append(Server(**options).make().start())
        return made[-1]
    make.also = made.append
    yield make
    for one in made:
        one.close()
