# SPDX-License-Identifier: Apache-2.0
"""Drains that numaprobe-fleetd suggests and, where it is set, applies: virtual nodes (tests/fleet/vnodes) whose truth is known,
and programs of our own for sinfo and scontrol that keep a list of nodes with their reasons."""
import datetime
import json
import os
import re
import select
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest

from client import run
from conftest import PATIENCE, replace_text, until
from test_fleet_findings import findings, found, judged, put
from test_fleetd import FLEETD, collect  # noqa: F401: a fixture

BAD = ("--runs=8", "--bad=6", "--bad-percent=20")
LATENCY_S = 12.4  # that a run of latency has lasted by what a virtual node says: virtual/world.c
SCONTROL = """#!/bin/sh
cd "$(dirname "$0")" || exit 1
[ ! -e broken ] || { echo "scontrol: error: Invalid user" >&2; exit 1; }
sed "s/^>${2#NodeName=} .*/>${2#NodeName=} drain main* ${4#Reason=}/" listed >next && mv next listed
echo "$@" >>calls
"""


class Slurm:
    """A sinfo that prints a list, and a scontrol that changes it."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.put("sinfo", f"#!/bin/sh\ncat {folder}/listed\n")
        self.put("scontrol", SCONTROL)

    def put(self, name, text):
        (self.folder / name).write_text(text)
        (self.folder / name).chmod(0o755)

    def list(self, names, reasons=()):
        reasons = dict(reasons)  # the collector may be reading it
        replace_text(self.folder / "listed", "".join(f">{n} {'drain' if n in reasons else 'idle'} main* {reasons.get(n, 'none')}\n" for n in names))

    def reasons(self):
        lines = (line[1:].split(" ", 3) for line in (self.folder / "listed").read_text().splitlines())
        return {name: reason for name, _, _, reason in lines if reason != "none"}

    def calls(self):
        return (self.folder / "calls").read_text().splitlines() if (self.folder / "calls").exists() else []


@pytest.fixture
def drained(collect, tmp_path, monkeypatch):  # noqa: F811
    """A collector whose nodes a Slurm lists, and that Slurm."""
    def make(nodes, *options, collector=(), reasons=()):
        slurm = Slurm(tmp_path / "slurm")
        monkeypatch.setenv("PATH", f"{slurm.folder}:{os.environ['PATH']}")
        c = collect(nodes, *options, collector=("--source=slurm:", *collector))
        slurm.list(c.fleet.names, reasons)
        c.start()
        c.wait_up(nodes)
        judged(c)
        return c, slurm
    return make


def lines(c):
    request = urllib.request.Request(c.url + "/v1/fleet/drain", headers={"Accept": "text/plain"})
    with urllib.request.urlopen(request) as response:
        assert response.headers["Content-Type"].startswith("text/plain")
        return response.read().decode()


def test_forms_by_preference(drained):
    c, _ = drained(3)
    for accept, kind in (("text/plain", "text/plain"), ("application/json, text/plain", "application/json"), ("nonsense", "application/json"),
                         ("text/plain;q=0.2, */*;q=0.1", "text/plain"), ("text/html, */*;q=0.8", "application/json"), ("text/csv", None)):
        request = urllib.request.Request(c.url + "/v1/fleet/drain", headers={"Accept": accept})
        if kind:
            with urllib.request.urlopen(request, timeout=PATIENCE) as response:
                assert response.headers["Content-Type"].startswith(kind), accept
        else:
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request, timeout=PATIENCE)
            assert refused.value.code == 406 and "text/plain" in json.load(refused.value)["detail"]


def suggested(c, action="drain"):
    return [s["node"] for s in c.get("/v1/fleet/drain")["drain"]["suggestions"] if s["action"] == action]


def measure(c, name):
    at = c.fleet.names.index(name) + 1
    body = json.dumps({"benchmark": "latency"}).encode()
    with urllib.request.urlopen(f"http://127.1.{at // 256}.{at % 256}:{c.fleet.port}/v1/runs", body, timeout=PATIENCE) as response:
        return json.load(response)["id"]


def test_the_collector_says_what_the_command_says(drained, tmp_path):
    c, slurm = drained(100, *BAD, reasons={"node001": "numaprobe +5.0% l3", "node002": "disk; reboot"})
    theirs = c.fleet.run("drain", "-w", c.fleet.all)
    assert theirs.returncode == 7 and "scontrol update" in theirs.stdout
    until(lambda: lines(c) == theirs.stdout)
    document = c.get("/v1/fleet/drain")
    assert (document["applied"], document["problem"]) == (False, "") and document["judged"] and document["slurm_read"]
    own = c.fleet.json("drain", "-w", c.fleet.all, status=7)["drain"]
    assert {**document["drain"], "evaluated": None} == {**own, "evaluated": None}
    assert all(s["line"] in theirs.stdout for s in own["suggestions"])
    assert suggested(c, "resume") == ["node001"], "one that is well again"
    without = tmp_path / "none"
    without.mkdir()
    for path in (os.environ["PATH"], str(without)):
        ours = run("fleet", "drain", env={"NUMAPROBE_FLEET": c.url, "PATH": path})
        assert (ours.stdout, ours.stderr, ours.returncode) == (theirs.stdout, "", 7), "sinfo, else what the collector knows"
    assert slurm.calls() == [], "nothing is executed"
    assert run("fleet", "drain", "--fleet=" + c.url, "-o", "csv").returncode == 2


def test_what_others_have_drained_is_left_alone(drained):
    c, slurm = drained(100, *BAD)
    first = until(lambda: suggested(c))
    assert 1 <= len(first) <= 2, "2 % of a class"
    [well, other] = [n["node"] for n in c.fleet.truth["world"]["nodes"] if not n["bad"]][50:52]
    slurm.list(c.fleet.names, {first[0]: "maintenance", well: "numaprobe slow"})
    c.process.send_signal(signal.SIGHUP)
    until(lambda: suggested(c, "resume") == [well])
    document = c.get("/v1/fleet/drain")["drain"]
    assert {"node": first[0], "why": "other_reason", "reason": "maintenance"} in document["left_alone"]
    assert first[0] not in suggested(c) and len(suggested(c)) == 1, "one that has our reason counts for the share"
    assert c.node(first[0])["slurm_reason"] == "maintenance" and c.node(other)["slurm_reason"] == ""
    assert slurm.calls() == []


def test_a_node_that_slurm_does_not_list_any_more_is_not_suggested(drained):
    c, slurm = drained(100, *BAD)
    first = until(lambda: len(two := suggested(c)) == 2 and two)[0]  # 2 % of all: it was judged by the runs of all nodes
    left = [n for n in c.fleet.names if n != first]
    c.name(left)
    slurm.list(left)
    c.process.send_signal(signal.SIGHUP)
    until(lambda: c.node(first)["state"] == "gone")

    def left_alone():
        return {one["node"]: one["why"] for one in c.get("/v1/fleet/drain")["drain"]["left_alone"]}

    until(lambda: left_alone().get(first) == "not_listed")
    assert first not in suggested(c)


def test_without_slurm_nothing_is_suggested(collect):  # noqa: F811
    c = collect(60, *BAD).start()
    c.wait_up(60)
    judged(c)
    until(lambda: c.get("/v1/fleet/drain")["drain"]["left_alone"])
    document = c.get("/v1/fleet/drain")
    assert not document["drain"]["reasons_known"] and document["slurm_read"] is None and not document["drain"]["suggestions"]
    assert {one["why"] for one in document["drain"]["left_alone"]} == {"not_known"}
    assert c.node("node01")["slurm_reason"] is None


def test_a_collector_that_has_not_judged_says_so(collect):  # noqa: F811
    c = collect(1, "--faults=node1 refuses", collector=("--every=3600",)).start()
    status, problem = c.refusal("/v1/fleet/drain")
    assert status == 503 and "not judged yet" in problem["detail"], problem


def confirm(c, node):
    """A run of the node whose measuring began later than its finding was opened, and that is stored. One alone: the finding of
    a node whose newest five runs are of one minute is not sure."""
    opened = findings(c, f"?node={node}&what=outlier")[0]["opened"]
    began_later = datetime.datetime.fromisoformat(opened).timestamp() + LATENCY_S + 1
    until(lambda: time.time() > began_later)
    measure(c, node)
    until(lambda: (newest := c.node(node)["newest"]) and newest > opened)


def test_applied_drains_are_few_and_each_has_its_reason(drained):
    c, slurm = drained(100, *BAD)
    until(lambda: len(suggested(c)) == 2 and len(findings(c, "?what=outlier")) >= 2)
    for f in findings(c, "?what=outlier"):
        confirm(c, f["node"])
    assert slurm.calls() == [] and c.get("/v1/fleet/drain")["applied"] is False
    c.stop()
    c.options.append("--drain=apply")
    c.start()
    until(lambda: len(slurm.calls()) == 2)
    assert c.get("/v1/fleet/drain")["applied"] is True
    kept = until(lambda: len(k := [f for f in findings(c) if f["drained"]]) == 2 and k)
    gone = slurm.reasons()
    assert {f["node"] for f in kept} == set(gone) and all(re.fullmatch(r"numaprobe [+-][\d.]+% [\w.]+", r) for r in gone.values())
    assert all(re.fullmatch(r"update NodeName=node\d+ State=DRAIN Reason=numaprobe \S+ \S+", call) for call in slurm.calls())
    for f in kept:
        assert re.search(rf'event=drained node={f["node"]} finding={f["id"]} reason="numaprobe [^"]*" by="drain = apply"', c.log.read_text())
    table = run("fleet", "findings", env={"NUMAPROBE_FLEET": c.url, "COLUMNS": "200"}).stdout
    assert table.count("; drained 20") == 2, table
    c.process.send_signal(signal.SIGHUP)
    until(lambda: not suggested(c))
    # An administrator returns one to service. The finding is the same, and so it is not drained again. The others that are
    # slow have reasons of a person: which of them is the slowest changes with each run, and could take the place of this one.
    node = kept[0]["node"]
    others = {n["node"]: "maintenance" for n in c.fleet.truth["world"]["nodes"] if n["bad"]}
    slurm.list(c.fleet.names, {n: r for n, r in {**others, **gone}.items() if n != node})
    c.process.send_signal(signal.SIGHUP)
    until(lambda: node in suggested(c))
    before = c.get("/v1/fleet/drain")["judged"]
    measure(c, node)
    until(lambda: c.get("/v1/fleet/drain")["judged"] != before)
    assert len(slurm.calls()) == 2 and c.get("/v1/fleet/drain")["problem"] == ""


def test_a_finding_that_a_person_knows_of_drains_nothing(drained):
    c, slurm = drained(60, "--runs=8", "--bad=1", "--bad-percent=20", collector=("--drain=apply",))
    f = found(c, "outlier")
    assert put(c, f["id"], state="acknowledged", note="DIMM ordered")[0] == 200
    confirm(c, f["node"])
    before = judged(c)
    measure(c, f["node"])
    until(lambda: c.status()["findings"]["judged"] != before)
    assert suggested(c) == [f["node"]] and slurm.calls() == []
    assert put(c, f["id"], state="open")[0] == 200
    measure(c, f["node"])
    until(slurm.calls)
    assert list(slurm.reasons()) == [f["node"]]


def test_a_mark_during_a_judgement_keeps_the_node_in_service(drained):
    c, slurm = drained(60, "--runs=8", "--bad=1", "--bad-percent=20", collector=("--drain=apply",))
    f = found(c, "outlier")
    slurm.list(c.fleet.names, {f["node"]: "maintenance"})
    c.process.send_signal(signal.SIGHUP)
    until(lambda: c.node(f["node"])["slurm_reason"] == "maintenance")
    confirm(c, f["node"])
    until(lambda: c.get("/v1/fleet/drain")["judged"] > c.node(f["node"])["newest"])
    slurm.list(c.fleet.names)
    c.process.send_signal(signal.SIGHUP)
    ingest, said = c.child("--ingest"), []
    judge = next(filter(None, iter(lambda: c.find_child("--judge"), 0)))  # it lives for a moment
    os.kill(ingest, signal.SIGSTOP)  # what it finds is not stored yet
    until(lambda: judge not in c.children())
    before = c.status()["backlog_bytes"]
    marking = threading.Thread(target=lambda: said.append(put(c, f["id"], state="acknowledged")), daemon=True)
    marking.start()
    until(lambda: c.status()["backlog_bytes"] > before)
    os.kill(ingest, signal.SIGCONT)
    marking.join(PATIENCE)
    assert said[0][0] == 200, said
    before = c.status()["findings"]["judged"]
    measure(c, f["node"])
    until(lambda: c.status()["findings"]["judged"] != before)
    assert suggested(c) == [f["node"]] and slurm.calls() == [] and not c.find_child("--drain")
    assert put(c, f["id"], state="open")[0] == 200
    measure(c, f["node"])
    until(slurm.calls)


def test_what_slurm_refuses_or_a_person_has_drained_meanwhile(drained):
    c, slurm = drained(60, "--runs=8", "--bad=1", "--bad-percent=20", collector=("--drain=apply",))
    f = found(c, "outlier")
    # What the collector knows of Slurm is older than this.
    slurm.list(c.fleet.names, {f["node"]: "a person's"})
    confirm(c, f["node"])
    problem = until(lambda: c.get("/v1/fleet/drain")["problem"])
    assert problem == f'{f["node"]}: it has the reason "a person\'s" already' and slurm.calls() == []
    assert slurm.reasons() == {f["node"]: "a person's"}
    assert not c.get(f"/v1/fleet/findings/{f['id']}")["drained"]


def test_a_scontrol_that_fails_is_named(drained):
    c, slurm = drained(60, "--runs=8", "--bad=1", "--bad-percent=20", collector=("--drain=apply",))
    (slurm.folder / "broken").touch()
    f = found(c, "outlier")
    confirm(c, f["node"])
    problem = until(lambda: c.get("/v1/fleet/drain")["problem"])
    assert problem.startswith(f'{f["node"]}: scontrol failed with status 1') and "Invalid user" in problem, problem
    assert "event=drain node=" in c.log.read_text() and not c.get(f"/v1/fleet/findings/{f['id']}")["drained"]


def test_a_scontrol_that_hangs_holds_nobody_up(drained):
    c, slurm = drained(60, "--runs=8", "--bad=1", "--bad-percent=20", collector=("--drain=apply",))
    os.mkfifo(slurm.folder / "begun")
    os.mkfifo(slurm.folder / "gate")
    slurm.put("scontrol", f"#!/bin/sh\necho $$ >{slurm.folder}/begun\nread -r go <{slurm.folder}/gate\n")
    f = found(c, "outlier")
    confirm(c, f["node"])
    measure(c, f["node"])
    with open(slurm.folder / "begun", encoding="ascii") as begun:  # until scontrol has started
        ended = os.pidfd_open(int(begun.read()))
    assert c.status()["store_ready"] and c.get("/v1/fleet/drain")["problem"] == ""
    assert c.child("--drain")
    c.stop()
    assert select.select([ended], [], [], 60)[0], "scontrol is still running"
    os.close(ended)
    assert "the collector stops" in c.log.read_text() and "event=drained" not in c.log.read_text()


def test_apply_needs_slurm():
    def check(*options):
        done = subprocess.run([FLEETD, "--check-config", "--config=/dev/null", "--drain=apply", *options], capture_output=True,
                              text=True)
        return done.returncode, done.stderr
    assert check("--nodes=n1") == (2, "numaprobe-fleetd: drain = apply needs Slurm as a source of nodes, which says what others "
                                      "have drained: source = slurm:\n")
    assert check("--nodes=n1", "--source=slurm:batch") == (0, "") and check("--from-slurm") == (0, "")
