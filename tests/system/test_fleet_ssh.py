# SPDX-License-Identifier: Apache-2.0
"""Fleet commands over real ssh: sshd on loopback, and behind it a daemon at the system's own socket."""
import contextlib
import json
import os
import pathlib

import pytest

import sshd
from client import run
from conftest import PATIENCE, Daemon, fake_bench_env

SOCKET = "/run/numaprobe/numaprobed.sock"
# Two processes that encrypt take their time on a busy machine: by default a request with its connection has 20 s.
PATIENT = {"NUMAPROBE_NODE_TIMEOUT": str(PATIENCE)}


@pytest.fixture(scope="module", name="server")
def ssh_server(tmp_path_factory):
    try:
        with sshd.server(tmp_path_factory.mktemp("sshd")) as s:
            yield s
    except sshd.Missing as e:
        pytest.skip(str(e))


@pytest.fixture(scope="module", name="node")
def daemon_on_the_node(server, numaprobed, tmp_path_factory):
    """It sees the node's /run, which is not this machine's, and its name is n1."""
    folder = tmp_path_factory.mktemp("node")
    inside = folder / "numaprobed"
    inside.write_text(f'#!/bin/sh\nexec nsenter --mount --target {server.process.pid} -- unshare --uts sh -c \'hostname n1; exec "$@"\' sh {numaprobed} "$@"\n')
    inside.chmod(0o755)
    run_in = ["nsenter", "--mount", "--target", str(server.process.pid), "--", "mkdir", "-p", "-m", "0711", "/run/numaprobe"]
    os.spawnvp(os.P_WAIT, run_in[0], run_in)
    d = Daemon(inside, folder, fake_bench_env(), [f"--socket={SOCKET}"]).start()
    yield d
    d.stop()


def fleet(server, *words, **settings):
    return run("fleet", *words, f"--ssh={server.program(**settings)}", env=PATIENT)


def test_runs_and_their_status(server, node):
    done = fleet(server, "run", "-w", "n1", "--size=64K", "--quick", "-o", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout), done.stdout
    assert len(node.get("/v1/runs").json["runs"]) == 1
    done = fleet(server, "status", "-w", "n1", "-o", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout), done.stdout


def test_reasons_that_ssh_gives(server, node):
    done = fleet(server, "status", "-w", "n[1-3]", IdentityFile="/dev/null")
    assert done.returncode == 3, done
    assert "n[1-3]" in done.stderr and "ssh: Permission denied (publickey). No key of this account" in done.stderr, done.stderr
    done = fleet(server, "status", "-w", "n[1-3]", Port=1)
    assert done.returncode == 3 and "ssh: Connection refused" in done.stderr, done.stderr
    done = fleet(server, "status", "-w", "n1", UserKnownHostsFile="/dev/null")
    assert done.returncode == 3 and "ssh: Host key verification failed" in done.stderr, done.stderr


def test_one_of_three_nodes(server, node):
    """One cannot be resolved, one answers as another: the third is not lost."""
    program = pathlib.Path(server.program())
    program.write_text(program.read_text().replace("exec ssh", 'case "$*" in *" n2") set -- -oHostName=nowhere.invalid "$@" ;; esac\nexec ssh'))
    done = run("fleet", "status", "-w", "n[1-3]", f"--ssh={program}", env=PATIENT)
    assert done.returncode == 9, done
    lines = dict(line.split(None, 1) for line in done.stderr.splitlines())
    assert "ssh: the host name cannot be resolved" in lines["n2"] and "another node responds: n1" in lines["n3"], done.stderr


def test_no_daemon_on_the_node(server, tmp_path_factory):
    with contextlib.ExitStack() as stack:
        try:
            other = stack.enter_context(sshd.server(tmp_path_factory.mktemp("bare")))
        except sshd.Missing as e:
            pytest.skip(str(e))
        done = fleet(other, "status", "-w", "n1")
    assert done.returncode == 3 and "ssh: the node has no socket of the daemon, or it is closed to this account" in done.stderr, done


def test_no_ssh(server):
    done = run("fleet", "status", "-w", "n[1-2]", "--ssh=/nonexistent/ssh")
    assert done.returncode == 3 and "cannot start /nonexistent/ssh: it is not installed" in done.stderr, done
