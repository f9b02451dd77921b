# SPDX-License-Identifier: Apache-2.0
"""What lasts: labels, retention, backup and restore, damaged databases. Black box, with the fake bench."""
import json
import os
import pathlib
import socket
import sqlite3
import subprocess

import pytest

from conftest import build_dir, fake_bench_env

CLIENT = build_dir() / "client" / "numaprobe"


def cli(daemon, *args):
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent",
           "NUMAPROBE_URL": f"http://127.0.0.1:{daemon.port}"}
    return subprocess.run([str(CLIENT), *args], capture_output=True, text=True, env=env, timeout=60)


def label(daemon, run_id, text):
    return daemon.request("PUT", f"/v1/runs/{run_id}/label", {"label": text})


def ids(daemon, query=""):
    return [r["id"] for r in daemon.get("/v1/runs?limit=200" + query).json["runs"]]


# ---- labels

def test_label(daemon):
    first, second = daemon.run(size="1")["id"], daemon.run(size="1")["id"]
    answer = label(daemon, first, "before BIOS update")
    assert answer.status == 200 and answer.json["label"] == "before BIOS update"
    assert ids(daemon, "&label=before%20BIOS%20update") == [first]
    assert daemon.get(f"/v1/runs/{second}").json["label"] is None
    node = daemon.get("/v1/node").json["node"]
    assert {first, second} <= set(ids(daemon, f"&node={node}"))
    assert ids(daemon, "&node=elsewhere") == []
    assert label(daemon, first, "").json["label"] is None
    assert ids(daemon, "&label=before%20BIOS%20update") == []


@pytest.mark.parametrize("body, member", [
    ({"label": "x" * 64}, "label"), ({"label": "two\nlines"}, "label"), ({"label": " blank"}, "label"),
    ({"label": 7}, "label"), ({}, "label"), ({"label": "x", "colour": "red"}, "colour"), ([], "label")])
def test_label_refused(daemon, body, member):
    run = daemon.run(size="1")["id"]
    answer = daemon.request("PUT", f"/v1/runs/{run}/label", body)
    assert answer.status == 422 and answer.json["member"] == member, answer.body
    assert daemon.get(f"/v1/runs/{run}").json["label"] is None


def test_label_of_nothing(daemon):
    assert label(daemon, 999999, "x").status == 404
    run = daemon.run(size="1")["id"]
    answer = daemon.get(f"/v1/runs/{run}/label")
    assert answer.status == 405 and answer.headers["Allow"] == "PUT"


def test_label_by_command(daemon):
    run = str(daemon.run(size="1")["id"])
    done = cli(daemon, "label", run, "größer, schneller")
    assert done.returncode == 0 and "größer, schneller" in done.stdout, done
    assert "größer, schneller" in cli(daemon, "show", run).stdout
    listed = cli(daemon, "runs", "--label", "größer, schneller", "-o", "csv").stdout.splitlines()
    assert len(listed) == 2 and listed[1].startswith(run + ",")
    assert cli(daemon, "runs", "--node=elsewhere", "-o", "csv").stdout.count("\n") == 1
    assert cli(daemon, "label", run, "x" * 64).returncode == 2
    assert cli(daemon, "label", run).returncode == 0
    assert "größer" not in cli(daemon, "show", run).stdout
