# SPDX-License-Identifier: Apache-2.0
"""What the proofs share. Everything of the black-box tests (tests/system/conftest.py) is there too.

docs/TESTING.md has the table: what each proves, its short form and its long one. NUMAPROBE_SEED repeats
a sequence that failed; each run prints its seed.
"""
import contextlib
import importlib.util
import os
import pathlib
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile

import pytest

HERE = pathlib.Path(__file__).resolve().parent
_spec = importlib.util.spec_from_file_location("system_conftest", HERE.parent / "system" / "conftest.py")
_system = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_system)
globals().update({k: v for k, v in vars(_system).items() if not k.startswith("__")})

FAKE_MPIRUN = HERE.parent / "fakes" / "fake_mpirun.py"
SEED = int(os.environ.get("NUMAPROBE_SEED") or random.SystemRandom().randrange(1 << 31))
_told = []


def count(variable, short):
    """How often: the long form is asked for by the environment."""
    return int(os.environ.get(variable) or short)


@pytest.fixture
def tell(request):
    """tell(text): figures that are printed at the end, also when all is well."""
    return lambda text: _told.append(f"{request.node.name}: seed {SEED}, {text}")


def pytest_terminal_summary(terminalreporter):
    for line in _told or [f"seed {SEED}"]:
        terminalreporter.write_line(line)


@contextlib.contextmanager
def open_directory(prefix):
    """A directory that any account can enter, so that ranks run as an ordinary one when we are root."""
    with tempfile.TemporaryDirectory(prefix=f"numaprobe-{prefix}.", dir="/tmp", ignore_cleanup_errors=True) as name:
        os.chmod(name, 0o755)
        yield pathlib.Path(name)


def fakes_env():
    """No Open MPI and nothing measured: a run takes a tenth of a second."""
    return {"NUMAPROBE_BENCH": str(_system.FAKE_BENCH), "NUMAPROBE_MPIRUN": str(FAKE_MPIRUN),
            "NUMAPROBE_PYTHON": sys.executable}


def processes_of(home, besides=()):
    """{pid: command line} of each process whose command line or environment names that directory."""
    found, needle = {}, os.fsencode(str(home))
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) in besides:
            continue
        try:
            words = (entry / "cmdline").read_bytes()
            if needle in words or needle in (entry / "environ").read_bytes():
                found[int(entry.name)] = words.replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            pass  # gone in the meantime, or not ours
    return found


@contextlib.contextmanager
def dead_copy(state):
    """The database of a daemon that is gone, in a copy: looking must not mend what a start has to mend."""
    with tempfile.TemporaryDirectory() as copy:
        for part in ("", "-wal", "-journal"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copy(f"{state}/numaprobe.db{part}", copy)
        db = sqlite3.connect(f"{copy}/numaprobe.db")
        try:
            yield db
        finally:
            db.close()


def assert_whole(db):
    """Nothing that SQLite or a reader of the tables would call damaged."""
    assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    settings = [db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_size", "auto_vacuum", "application_id")]
    assert settings == [8192, 2, 0x6e756d61], settings
    assert db.execute("PRAGMA foreign_key_check").fetchall() == []
    assert db.execute("SELECT id FROM run WHERE (seq IS NULL) <> (state IN ('queued', 'running'))").fetchall() == []
    assert db.execute("SELECT count(*), count(DISTINCT seq) FROM run WHERE seq IS NOT NULL").fetchone()[0:2] == \
        db.execute("SELECT count(seq), count(seq) FROM run").fetchone()
    half = db.execute("SELECT run.id FROM run WHERE state = 'succeeded' AND n_cells <> "
                      "(SELECT count(*) FROM cell WHERE run_id = run.id)").fetchall()
    assert half == [], f"runs with half a matrix: {half}"
    assert db.execute("SELECT count(*) FROM run WHERE state = 'running'").fetchone()[0] <= 1


def strangers(state):
    """Names in a state directory that no daemon leaves there."""
    # -journal: of the very first pages, before the file has a log; .v?.bak: killed between the first migrations
    usual = {"numaprobe.db.v1.bak", "numaprobe.db.v2.bak", "numaprobe.db", "numaprobe.db-wal", "numaprobe.db-shm",
             "numaprobe.db-journal", "lock"}
    return sorted(p.name for p in pathlib.Path(state).iterdir() if p.name not in usual)


def tool(name):
    """For skipif: the reason, or None when the program is there."""
    return None if shutil.which(name) else f"no {name} on this machine"


def try_command(*argv):
    return subprocess.run(argv, capture_output=True).returncode == 0
