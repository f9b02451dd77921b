# SPDX-License-Identifier: Apache-2.0
"""Pairs, of ranks or of a rank and a target. A table of 1,024 ranks is refused when planned. As many pairs as can be
listed are measured and shown by every resource. The bench is the fake one, and its ranks share a CPU. A matrix of 24
nodes is what the fake bench says to the command line of its plan; the daemon gets it as an import."""
import itertools
import json
import re
import shlex
import subprocess

import pytest

from conftest import PATIENCE, Daemon, build_dir, fake_bench_env

RANKS, MANY = 12, 1024
MOST = 64  # pairs that can be listed
FEW = {"benchmark": "c2c", "cpus": ",".join(RANKS * ["0"]), "oversubscribe": True}
LARGE = {**FEW, "cpus": ",".join(MANY * ["0"])}
FAR = list(itertools.combinations(range(RANKS), 2))[-MOST:]
LEAST = {"repetitions": 20, "min_samples": 7, "visits": 1}  # or the estimate is beyond any time limit
SPEC = {**FEW, **LEAST, "definition": "cas", "lines": 1, "launcher": "processes", "pairs": ",".join(f"{a}-{b}" for a, b in FAR)}


@pytest.fixture(scope="module")
def large(numaprobed, tmp_path_factory):
    daemon = Daemon(numaprobed, tmp_path_factory.mktemp("numaprobed"), fake_bench_env()).start()
    run = daemon.run(**SPEC)
    assert run["state"] == "succeeded", run
    yield daemon, run["id"]
    assert daemon.stop() == 0, "\n".join(daemon.log)


def test_a_table_of_all_is_refused_with_the_ways(large):
    daemon, _ = large
    refused = daemon.post("/v1/runs?dry_run=true", LARGE)
    assert refused.status == 422 and refused.json["member"] == "ranks", refused.body
    for way in ("at most 512 ranks", "pairs=classes", "pairs=0-1,0-600", "the benchmark scan"):
        assert way in refused.json["detail"], refused.json
    for pairs in ("0-1024", "0-1,1-0", "0-1," * MOST + "0-2", "many"):
        bad = daemon.post("/v1/runs?dry_run=true", {**LARGE, "pairs": pairs})
        assert bad.status == 422 and bad.json["member"] == "pairs", bad.body


def test_listed_pairs_are_planned(large):
    daemon, _ = large
    one = daemon.post("/v1/runs?dry_run=true", {**SPEC, "pairs": "0-1"}).json["plan"]
    most = daemon.post("/v1/runs?dry_run=true", SPEC).json["plan"]
    assert len(one["ranks"]) == len(most["ranks"]) == RANKS and one["estimate_s"] < most["estimate_s"]
    outside = daemon.post("/v1/runs?dry_run=true", {**SPEC, "pairs": f"0-1,0-{RANKS}"})
    assert outside.status == 422 and f"has rank {RANKS}, but the run has ranks 0-{RANKS - 1}" in outside.json["detail"], outside.body


def test_the_matrix_is_shown_by_every_resource(large):
    daemon, run = large
    [matrix] = daemon.get(f"/v1/runs/{run}/matrix").json["matrices"]
    assert (matrix["name"], matrix["rows"]["name"], matrix["cols"]["values"]) == ("cas", "pair", [64]), matrix
    assert matrix["rows"]["labels"] == [f"{a}-{b}" for a, b in FAR], matrix["rows"]
    lines = daemon.get(f"/v1/runs/{run}/matrix.csv").body.decode().splitlines()
    assert len(lines) == 1 + MOST and any(f"{RANKS - 2}-{RANKS - 1}" in line for line in lines), lines[:3]
    assert len(daemon.get(f"/v1/runs/{run}/matrix.ndjson").body.splitlines()) == MOST
    picture = daemon.get(f"/v1/runs/{run}/matrix.svg")
    assert picture.status == 200 and b"<svg" in picture.body, picture.body[:200]
    report = daemon.get(f"/v1/runs/{run}/report.md").body.decode()
    assert re.search(rf"cas, .*: typically .* over {MOST} pairs", report), report
    history = daemon.get("/v1/history?metric=c2c.cas.median_ns").json
    assert [p["run"] for p in history["points"]] == [run], history
    same = daemon.get(f"/v1/compare?base={run}&target={run}").json
    assert same["verdict"] == "same" and len(same["comparison"]["cells"]) == MOST, same["verdict"]


@pytest.mark.parametrize("words", [["show"], ["report"], ["plot"]], ids=lambda words: words[0])
def test_the_command_line_shows_it(large, words):
    daemon, run = large
    shown = subprocess.run([f"{build_dir()}/client/numaprobe", f"--url=http://127.0.0.1:{daemon.port}", *words, str(run)],
                           capture_output=True, text=True, timeout=PATIENCE)
    assert shown.returncode == 0 and "cas" in shown.stdout, shown


# ---- each rank with each target ----

NODES, CELLS = 24, 24 * 24
BIG = "pack:2 group:12 [numa(memory=34359738368)] l3:1 core:8 pu:1"
MATRIX = {"benchmark": "matrix", "launcher": "processes"}


def measured_by_plan(dry, tmp_path):
    """The records that the fake bench writes when it is started as the plan says."""
    words, channel = shlex.split(dry["command"]), tmp_path / "records"
    words = [f"--channel={channel}" if word.startswith("--channel=") else word for word in words]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in channel.read_text().splitlines()]


def import_records(daemon, dry, records):
    """A document of the dry run's spec and plan, with the machine of a run that has been measured here."""
    [announced] = [r for r in records if r["rec"] == "matrix"]
    cells = [[{"median": None} for _ in announced["cols"]["values"]] for _ in announced["rows"]["values"]]
    for r in (r for r in records if r["rec"] == "cell"):
        cells[r["row"]][r["col"]] = {k: v for k, v in r.items() if k not in ("rec", "matrix", "row", "col")}
    small = daemon.run(**MATRIX, cpus="0")
    assert small["state"] == "succeeded", small
    document = daemon.get(f"/v1/runs/{small['id']}/export").json
    document["run"].update(spec=dry["spec"], plan=dry["plan"], node="large", ranks=NODES, cells=len(records))
    document["matrices"] = [{**{k: v for k, v in announced.items() if k != "rec"}, "cells": cells}]
    document["ranks"] = [{k: v for k, v in r.items() if k != "rec"} for r in records if r["rec"] == "rank"]
    answer = daemon.post("/v1/imports", document)
    assert answer.status == 201, answer.body
    return answer.json["id"]


@pytest.fixture(scope="module")
def plans(numaprobed, tmp_path_factory):
    """Dry runs of a matrix of 24 nodes: all cells, and those for which a minute has room."""
    daemon = Daemon(numaprobed, tmp_path_factory.mktemp("numaprobed"), {**fake_bench_env(), "HWLOC_SYNTHETIC": BIG}).start()
    yield {budget: daemon.post("/v1/runs?dry_run=true", {**MATRIX, "budget_s": budget}).json for budget in (0, 60)}
    assert daemon.stop() == 0, "\n".join(daemon.log)


def test_a_matrix_of_many_nodes_is_planned_for_a_budget(plans):
    whole, short = plans[0]["plan"], plans[60]["plan"]
    assert len(whole["ranks"]) == len(whole["targets"]) == NODES and whole["shortened"] == [], whole
    assert short["estimate_s"] <= 60 < whole["estimate_s"] < whole["timeout_s"], (short, whole)
    assert {"name": "pairs_most", "from": CELLS, "to": 128} in short["shortened"], short
    assert "--pairs-most=128 " in plans[60]["command"] and "--budget=60 " in plans[60]["command"], plans[60]


@pytest.mark.parametrize("budget", [0, 60], ids=["all", "budget"])
def test_a_matrix_of_many_nodes_is_shown(large, plans, budget, tmp_path):
    daemon, _ = large
    dry = plans[budget]
    measured = 128 if budget else CELLS
    run = import_records(daemon, dry, measured_by_plan(dry, tmp_path))
    [matrix] = daemon.get(f"/v1/runs/{run}/matrix").json["matrices"]
    assert (matrix["name"], matrix["cols"]["name"], matrix["cols"]["values"]) == ("idle", "target", list(range(NODES))), matrix
    assert sum(bool(cell and cell["median"]) for row in matrix["cells"] for cell in row) == measured
    lines = [json.loads(line) for line in daemon.get(f"/v1/runs/{run}/matrix.ndjson").body.splitlines()]
    assert len(lines) == CELLS and sum(bool(line["median"]) for line in lines) == measured
    picture = daemon.get(f"/v1/runs/{run}/matrix.svg")
    assert picture.status == 200 and b"<svg" in picture.body, picture.body[:200]
    report = daemon.get(f"/v1/runs/{run}/report.md").body.decode()
    assert ("128 of 576" in report) == bool(budget), report
    same = daemon.get(f"/v1/compare?base={run}&target={run}").json
    assert same["verdict"] == "same" and len(same["comparison"]["cells"]) == CELLS, same["verdict"]
    assert (f"{CELLS - measured} of {CELLS} cells have no value in A or in B" in str(same)) == bool(budget), same["text"]
