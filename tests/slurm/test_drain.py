# SPDX-License-Identifier: Apache-2.0
"""Drains of numaprobe-fleetd in a real Slurm: a node gets our reason, and what a person has drained stays."""
import json
import os
import pathlib
import re
import select
import shutil
import subprocess
import time
import urllib.request

import pytest

import slurm

BUILD = pathlib.Path(os.environ["NUMAPROBE_BUILD"])
FLEETD = BUILD / "fleet" / "numaprobe-fleetd"
NODES = ("n1", "n2", "n3", "n4")
TWELVE = tuple(f"node{i:02}" for i in range(1, 13))  # as virtual nodes are named
REASON = "numaprobe +6.3% latency.n0.n1.median_ns"


@pytest.fixture(scope="module", name="four")
def four_nodes():
    try:
        with slurm.cluster(NODES) as c:
            yield c
    except slurm.Missing as e:
        pytest.skip(str(e))


def drain(cluster, *wishes):
    """What the process says that drains nodes, with these (finding, node, reason)."""
    line, env = cluster.inside([str(FLEETD), "--drain"], None)
    done = subprocess.run(line, input="".join("\t".join(w) + "\n" for w in wishes), capture_output=True, text=True, timeout=120,
                          env=env)
    return [tuple(row.split("\t")) for row in done.stdout.splitlines()], done.returncode


def shown(cluster, node):
    """State and reason, as sinfo prints them."""
    state, _, reason = cluster.run("sinfo", "-h", "-N", "-n", node, "-o", "%T %E").stdout.strip().partition(" ")
    return state, reason


def test_a_node_is_drained_and_others_are_left_alone(four):
    four.run("scontrol", "update", "nodename=n2", "state=drain", "reason=a person's DIMM")
    said, status = drain(four, ("7", "n1", REASON), ("8", "n2", REASON), ("9", "nosuch", REASON))
    assert status == 0 and said == [("7", "n1", REASON, ""), ("8", "n2", REASON, 'it has the reason "a person\'s DIMM" already'),
                                    ("9", "nosuch", REASON, "Slurm does not list it")]
    assert shown(four, "n1") == ("drained", REASON) and shown(four, "n2") == ("drained", "a person's DIMM")
    assert shown(four, "n3") == ("idle", "none")
    again, _ = drain(four, ("7", "n1", REASON))
    assert again == [("7", "n1", REASON, f'it has the reason "{REASON}" already')], "once"
    four.run("scontrol", "update", "nodename=n1", "state=resume")
    state, reason = shown(four, "n1")
    assert state.startswith("idle") and reason == "none", "a node that returns to service has no reason"


def test_a_reason_may_be_any_text(four):
    odd = "L\u00fcfter 3; | $(x) 'y'\nn4 idle all\tz"
    four.run("scontrol", "update", "nodename=n3", "state=drain", f"reason={odd}")
    said, status = drain(four, ("1", "n3", REASON), ("2", "n4", REASON))
    assert status == 0 and said[0][3].startswith('it has the reason "L??fter 3; | $(x)') and said[1][3] == "", said
    assert shown(four, "n4")[1] == REASON


def test_a_person_may_call_the_reason_none(four):
    four.run("scontrol", "update", "nodename=n3", "state=resume")
    four.run("scontrol", "update", "nodename=n3", "state=drain", "reason=none")
    assert drain(four, ("1", "n3", REASON))[0][0][3] == 'it has the reason "none" already'
    four.run("scontrol", "update", "nodename=n3", "state=drain", "reason=\nDIMM")
    assert "it has the reason" in drain(four, ("1", "n3", REASON))[0][0][3]


def test_without_slurm_nothing_is_drained(four):
    line, env = four.inside(["/usr/bin/env", "PATH=/nonexistent", str(FLEETD), "--drain"], None)
    done = subprocess.run(line, input=f"1\tn4\t{REASON}\n", capture_output=True, text=True, timeout=120, env=env)
    assert (done.stdout, done.returncode) == ("!cannot start sinfo: it is not installed\n", 1), done


@pytest.fixture(name="twelve")
def twelve_nodes(tmp_path):
    """A Slurm, and a folder with a sinfo and a scontrol that run beside it. Where its configuration is, SLURM_CONF says."""
    try:
        with slurm.cluster(TWELVE) as c:
            for name in ("sinfo", "scontrol"):
                line, _ = c.inside([shutil.which(name)], None)
                (tmp_path / name).write_text(f'#!/bin/sh\nexec {" ".join(line)} "$@"\n')
                (tmp_path / name).chmod(0o755)
            yield c
    except slurm.Missing as e:
        pytest.skip(str(e))


def started(words, env, pattern, stream):
    """A program, and what it says when it is ready."""
    p = subprocess.Popen(words, env=env, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE if stream == "stderr" else None)
    for line in getattr(p, stream):
        if match := re.search(pattern, line.decode()):
            return p, match[1]
    raise AssertionError(f"{words[0]} has ended")


def test_the_collector_drains_the_slow_node(twelve, tmp_path):
    vnodes, ready = started([BUILD / "tests" / "fleet" / "vnodes", "--nodes=12", "--runs=8", "--bad=1", "--bad-percent=20",
                             f"--truth={tmp_path}/truth", f"--hosts={tmp_path}/hosts"], None, "(.*)", "stdout")
    port = json.loads(ready)["port"]
    [bad] = [n["node"] for n in json.loads((tmp_path / "truth").read_text())["world"]["nodes"] if n["bad"]]
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_CONF": "/run/slurm/slurm.conf"}
    fleetd, _ = started([FLEETD, "--config=/dev/null", f"--state-dir={tmp_path}/state", f"--run-dir={tmp_path}/run", "--source=slurm:",
                         f"--hosts-file={tmp_path}/hosts", f"--url=http://%h:{port}", "--listen=127.0.0.1:0", "--every=1",
                         "--drain=apply"], env, r"event=ready listen=(\S+)", "stderr")
    try:
        end, log = time.monotonic() + 120, ""
        while "event=drained" not in log:
            assert time.monotonic() < end, log
            body = json.dumps({"benchmark": "latency"}).encode()
            with urllib.request.urlopen(f"http://127.1.0.{int(bad[4:])}:{port}/v1/runs", body, timeout=120):
                pass  # a newer run, which confirms the finding
            if select.select([fleetd.stderr], [], [], 1)[0]:
                log += fleetd.stderr.readline().decode()
        assert shown(twelve, bad)[0].startswith("drained") and f"event=drained node={bad} " in log
        assert re.fullmatch(r"numaprobe [+-][\d.]+% [\w.]+", shown(twelve, bad)[1])
        assert sum(shown(twelve, n)[0].startswith("drained") for n in TWELVE) == 1
    finally:
        for p in (fleetd, vnodes):
            p.kill()
            p.communicate()
