# SPDX-License-Identifier: Apache-2.0
"""What programs inherit, and how they begin: closed descriptors, a limit of file sizes, a parent that ignores its children, a signal
during the start."""
import os
import pathlib
import resource
import signal
import sqlite3
import subprocess

import pytest

from client import run
from conftest import PATIENCE, build_dir, is_sanitized, until

DAEMON = build_dir() / "daemon" / "numaprobed"
COLLECTOR = build_dir() / "fleet" / "numaprobe-fleetd"
BENCH = build_dir() / "bench" / "numa_bench"


def start(program, home, *options, **how):
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "NUMAPROBED_HOST_LOCK": "none"}
    return subprocess.Popen([program, "--config=/dev/null", "--listen=", f"--state-dir={home}/state", f"--run-dir={home}/run", *options],
                            env=env, stdin=subprocess.DEVNULL, **how)


def close_all():
    for fd in range(3):
        os.close(fd)


@pytest.mark.parametrize("program, options", [(DAEMON, ["--log-level=debug"]), (COLLECTOR, ["--nodes=n1"])])
def test_the_log_of_closed_descriptors_goes_nowhere(program, options, tmp_path):
    """It was written to the file that got the number: the lock of the database."""
    process = start(program, tmp_path, *options, preexec_fn=close_all)
    try:
        sock = until(lambda: next((tmp_path / "run").glob("*.sock"), None) if (tmp_path / "run").exists() else None)
        answered = until(lambda: run("runs" if program == DAEMON else "version", url=f"unix:{sock}").returncode == 0)
        assert answered and process.poll() is None
        assert [os.readlink(f"/proc/{process.pid}/fd/{fd}") for fd in range(3)] == ["/dev/null"] * 3
        for file in (tmp_path / "state").iterdir():
            assert b"event=" not in file.read_bytes(), file
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE)


def small_files():
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))


def test_a_limit_of_file_sizes_is_a_reason(tmp_path):
    """The daemon was killed, and said nothing."""
    process = start(DAEMON, tmp_path, preexec_fn=small_files, stderr=subprocess.PIPE, text=True)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1 and "event=failed code=storage" in said


def test_a_backup_above_the_limit_leaves_no_file(make_daemon, tmp_path):
    daemon = make_daemon()
    done = run("backup", tmp_path / "copy", url=f"unix:{daemon.socket}", preexec_fn=small_files)
    assert done.returncode == 1 and "File too large" in done.stderr and not list(tmp_path.iterdir())


def test_results_above_the_limit_are_a_failure(tmp_path):
    def no_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    with open(tmp_path / "out", "w", encoding="utf-8") as out:
        done = subprocess.run([BENCH, "--help"], stdout=out, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, preexec_fn=no_files)
    assert done.returncode == 1 and "cannot write" in done.stderr


def test_a_command_that_failed_has_failed_also_for_a_parent_that_ignores_children(tmp_path):
    """Its first words were taken for the whole group."""
    command = tmp_path / "group"
    command.write_text("#!/bin/sh\necho n1\nexit 3\n")
    command.chmod(0o755)
    done = run("fleet", "status", "--nodes=@x", f"--group-command={command} %s",
               preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert done.returncode == 5 and "failed with status 3" in done.stderr


@pytest.mark.skipif(is_sanitized(), reason="the sanitizer takes all address space")
def test_less_memory_than_a_collector_would_allow_its_children(tmp_path):
    """They wanted to raise the limit, were refused, and ended without a word."""
    process = start(COLLECTOR, tmp_path, "--nodes=n1", "--url=http://%h:9", stderr=subprocess.PIPE, text=True,
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (500 << 20, 500 << 20)))
    try:
        sock = tmp_path / "run" / "numaprobe-fleetd.sock"
        until(lambda: run("fleet", "status", f"--fleet=unix:{sock}").returncode == 0)
    finally:
        process.terminate()
        _, said = process.communicate(timeout=PATIENCE)
    assert "ended" not in said and "died" not in said, said


def catches(process, signo):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("SigCgt:")[1].split()[0], 16) >> (signo - 1) & 1


@pytest.mark.parametrize("signo", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_the_database_is_opened_ends_a_start(signo, tmp_path):
    """The status was that of a killed process. The start does not go on first: a database may be upgraded for minutes."""
    (tmp_path / "state").mkdir()
    held = sqlite3.connect(tmp_path / "state" / "numaprobe.db", isolation_level=None)
    held.execute("BEGIN EXCLUSIVE")
    process = start(DAEMON, tmp_path, stderr=subprocess.PIPE, text=True)
    until(lambda: process.poll() is not None or catches(process, signo))
    process.send_signal(signo)
    _, said = process.communicate(timeout=PATIENCE)
    held.close()
    assert (process.returncode, said) == (0, "") and not list((tmp_path / "run").glob("*.sock"))
