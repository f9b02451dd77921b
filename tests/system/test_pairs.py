# SPDX-License-Identifier: Apache-2.0
"""Listed pairs of ranks: a table of 1,024 ranks is refused when planned, and as many pairs as can be listed are
measured and shown by every resource. The bench is the fake one, and its ranks share a CPU."""
import itertools
import re
import subprocess

import pytest

from conftest import PATIENCE, Daemon, build_dir, fake_bench_env

RANKS, MANY = 12, 1024
MOST = 64  # pairs that can be listed
FEW = {"benchmark": "c2c", "cpus": ",".join(RANKS * ["0"]), "oversubscribe": True}
LARGE = {**FEW, "cpus": ",".join(MANY * ["0"])}
FAR = list(itertools.combinations(range(RANKS), 2))[-MOST:]
SPEC = {**FEW, "definition": "cas", "lines": 1, "launcher": "processes", "pairs": ",".join(f"{a}-{b}" for a, b in FAR)}


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
