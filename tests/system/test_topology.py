# SPDX-License-Identifier: Apache-2.0
"""The machine with what was measured on it: hwloc's attributes, JSON, tables."""
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree

import pytest

import node_runs
from conftest import PATIENCE, build_dir

CLIENT = build_dir() / "client" / "numaprobe"
BEST_TARGET = build_dir() / "tests" / "system" / "best_target"
EIGHT, NO_LOCAL = "16amd64-8n2c", "fakememinitiators-1np2c+1npp+gi"
MIB, MB = 1 << 20, 10**6


@pytest.fixture
def eight(make_daemon, tmp_path):
    """Eight nodes of two CPUs."""
    return node_runs.recorded(make_daemon, tmp_path, EIGHT)


def refused(daemon, which, status, kind="topology.xml"):
    answer = daemon.get(f"/v1/{kind}?measured={which}")
    assert answer.status == status and answer.json["member"] == "measured", answer.body
    return answer.json["detail"]


def topo(daemon, *args, command="topo", operands=()):
    return subprocess.run([CLIENT, command, *operands, *args], capture_output=True, text=True, timeout=PATIENCE, env={
        "PATH": os.environ["PATH"], "HOME": "/nonexistent", "NUMAPROBE_URL": f"http://127.0.0.1:{daemon.port}"})


def saved(answer, folder):
    assert answer.status == 200, answer.body
    path = folder / "node.xml"
    path.write_bytes(answer.body)
    return path


def best_targets(path, attribute):
    """{node of the CPUs: (best node, value)} as hwloc's library says it."""
    lines = subprocess.run([BEST_TARGET, path, attribute], capture_output=True, text=True, check=True).stdout
    return {int(i): (int(j), int(v)) for i, j, v in (line.split() for line in lines.splitlines())}


def whole(value):
    """As C rounds: halves away from 0."""
    return int(value + 0.5)


def attributes(path):
    """{attribute: {(cpuset, node's logical number): value}} as lstopo says it."""
    lstopo = shutil.which("lstopo-no-graphics") or shutil.which("lstopo")
    if not lstopo:
        pytest.skip("lstopo (Debian: hwloc-nox) is not installed")
    text = subprocess.run([lstopo, "-i", path, "--memattrs"], capture_output=True, text=True, check=True).stdout
    found = {}
    for line in text.splitlines():
        if name := re.match(r"Memory attribute #\d+ name `(\w+)'", line):
            values = found.setdefault(name[1], {})
        elif value := re.match(r"\s+NUMANode L#(\d+) = (\d+) from cpuset (\S+)", line):
            values[value[3], int(value[1])] = int(value[2])
    return found


def test_measured_values_are_attributes_of_hwloc(eight, tmp_path_factory):
    latency = node_runs.imported(eight, node_runs.matrix_run(eight))
    bandwidth = node_runs.imported(eight, node_runs.bandwidth_run(eight))
    path = saved(eight.get(f"/v1/topology.xml?measured={latency},{bandwidth}"), tmp_path_factory.mktemp("xml"))
    topology = eight.get("/v1/topology").json
    cpuset = {n["node"]: f"0x{sum(1 << cpu for cpu in n['cpus']):08x}" for n in topology["nodes"]}
    logical = {n["node"]: n["logical"] for n in topology["nodes"]}

    def expected(value):
        return {(cpuset[i], logical[j]): whole(value(i, j)) for i in cpuset for j in cpuset}

    def mibps(kernel):
        return lambda i, j: node_runs.bandwidth(kernel, i, j) * MB / MIB

    found = attributes(path)
    assert found["Latency"] == found["ReadLatency"] == expected(node_runs.latency)
    assert found["ReadBandwidth"] == expected(mibps("read")) and found["WriteBandwidth"] == expected(mibps("write"))
    assert found["Bandwidth"] == expected(lambda i, j: (mibps("read")(i, j) + mibps("write")(i, j)) / 2)
    assert found["numaprobe_triad_mibps"] == expected(mibps("triad")) and not found["WriteLatency"]
    assert best_targets(path, "Latency") == {i: (i, whole(node_runs.latency(i, i))) for i in cpuset}
    assert best_targets(path, "numaprobe_copy_mibps") == {i: (i, whole(mibps("copy")(i, i))) for i in cpuset}
    text = path.read_text()
    assert f'value="run {latency}: matrix, 2026-11-20T10:00:00' in text and "64 cells" in text
    assert "Bandwidth is the average of ReadBandwidth and WriteBandwidth" in text


def test_values_replace_those_of_the_firmware(make_daemon, tmp_path, tmp_path_factory):
    """Memory without CPUs, of which the firmware gave values for pairs of nodes: a wide one would hide ours."""
    daemon = node_runs.recorded(make_daemon, tmp_path, NO_LOCAL)
    before = daemon.get("/v1/topology.xml").body
    assert b'<memattr name="Latency"' in before and b'<memattr name="Bandwidth"' in before
    run = node_runs.imported(daemon, node_runs.matrix_run(daemon))
    path = saved(daemon.get(f"/v1/topology.xml?measured={run}"), tmp_path_factory.mktemp("xml"))
    topology = daemon.get("/v1/topology").json
    nearest = {i: min((whole(node_runs.latency(i, j)), j) for j in node_runs.targets(topology))
               for i in node_runs.initiators(topology)}
    best = best_targets(path, "Latency")
    assert {i: (value, node) for i, (node, value) in best.items() if i in nearest} == nearest
    firmware = dict(re.findall(rb'<memattr name="(\w+)"(.*?)</memattr>', before, re.S))
    after = dict(re.findall(rb'<memattr name="(\w+)"(.*?)</memattr>', path.read_bytes(), re.S))
    assert after[b"Bandwidth"] == firmware[b"Bandwidth"] and after[b"Latency"] != firmware[b"Latency"]


def test_claims_of_the_firmware_reach_the_report(make_daemon, tmp_path):
    """The recorded kernel's HMAT values, beside what a run measured of the same pairs."""
    daemon = node_runs.recorded(make_daemon, tmp_path, NO_LOCAL)
    with_cpus = node_runs.initiators(daemon.get("/v1/topology").json)
    claims = {}
    for folder in tmp_path.glob("*/sys/devices/system/node/node*/access0/initiators"):
        target = int(folder.parts[-3][4:])
        for node in with_cpus:
            if (folder / f"node{node}").exists():
                claims[node, target] = [int((folder / name).read_text()) for name in ("read_latency", "read_bandwidth")]
    assert len(claims) >= 3, claims
    run = node_runs.imported(daemon, node_runs.matrix_run(daemon))
    done = topo(daemon, str(run), command="report")
    assert done.returncode == 0, done.stderr
    for (node, target), (ns, _) in claims.items():
        measured = node_runs.latency(node, target)
        assert (f"CPUs of node {node}, memory of node {target}: the firmware claims {ns} ns, measured are {measured:.1f} ns "
                f"(idle), × {measured / ns:.2f}.") in " ".join(done.stdout.split()), done.stdout
    run = node_runs.imported(daemon, node_runs.bandwidth_run(daemon))
    found = {(f["initiator"], f["target"]): f for f in daemon.get(f"/v1/runs/{run}/report").json["report"]["findings"]
             if f["kind"] == "claim" and f["quantity"] == "read_mbps"}
    for pair, (_, mib) in claims.items():
        assert abs(found[pair]["claimed"] - mib * MIB / MB) < 0.01 and found[pair]["measured"] == node_runs.bandwidth("read", *pair)


def test_only_verified_undisturbed_cells_count(eight):
    def spoil(i, j, cell):
        return {**cell, "n": 1, "disturbed": 3} if (i, j) == (2, 3) else cell
    document = node_runs.matrix_run(eight, spoil)
    document["ranks"][5]["mem_share"] = 0.5
    run = node_runs.imported(eight, document)
    measured = eight.get(f"/v1/topology?measured={run}").json["measured"]
    (quantity,) = measured["quantities"]
    missing = {(i, j) for i, row in enumerate(quantity["values"]) for j, value in enumerate(row) if value is None}
    assert missing == {(2, 3)} | {(5, j) for j in range(8)}
    assert measured["runs"] == [{"run": run, "benchmark": "matrix", "measured": "2026-11-20T10:00:00.000Z",
                                 "method": "prp4-v2", "cells": 55, "disturbed": 1, "not_verified": 8,
                                 "quantities": ["latency_ns"]}]
    for rank in document["ranks"]:
        rank["pages_checked"] = 0
    nothing = node_runs.imported(eight, document)
    assert "0 disturbed, 64 not verified" in refused(eight, nothing, 409)


def test_runs_that_cannot_be_placed_on_the_machine(eight):
    run = node_runs.matrix_run(eight)
    of_another = node_runs.imported(eight, run, node="nid000017")
    assert "was measured on nid000017" in refused(eight, of_another, 409)
    without = node_runs.imported(eight, {**run, "topology": None}, measured="2026-11-19T10:00:00.000Z")
    assert "has no topology" in refused(eight, without, 409)
    failed = node_runs.imported(eight, {**run, "matrices": [], "ranks": []}, state="failed", error={
        "code": "timeout", "member": "", "text": "x"})
    assert f"run {failed} is failed" in refused(eight, failed, 409)
    pairs = node_runs.document(eight, "c2c", [{
        "name": "cas", "quantity": "round_trip", "unit": "ns", "rows": node_runs.axis("rank", list(range(8))),
        "cols": node_runs.axis("rank", list(range(8))),
        "cells": [[node_runs.cell(100) if i < j else {"median": None} for j in range(8)] for i in range(8)]}])
    pairs["run"]["spec"]["definition"] = "cas"
    no_nodes = node_runs.imported(eight, pairs)
    assert "(c2c) has no values between nodes" in refused(eight, no_nodes, 409)
    for small in (node_runs.matrix_run(eight), node_runs.bandwidth_run(eight)):
        small["run"]["spec"]["size"] = "64K"
        assert "may be in a cache" in refused(eight, node_runs.imported(eight, small, measured="2026-11-18T10:00:00.000Z"), 409)
    good = node_runs.imported(eight, run)
    assert "adds nothing" in refused(eight, f"{good},{good}", 409)
    assert "there is no run 999" in refused(eight, 999, 404)
    assert "this node has no run" in refused(eight, "last", 404)  # imports do not count
    for nonsense in ("", "x", "0", "-1", "1,,2", "17,", "9" * 30):
        assert "must be last or the numbers of runs" in refused(eight, nonsense, 422)
    more = [node_runs.imported(eight, node_runs.bandwidth_run(eight, kernels=[kernel])) for kernel in ("read", "write")]
    assert "takes 3 runs at most" in refused(eight, f"{good},{more[0]},{more[1]},{good}", 422)


def test_a_run_of_other_nodes(make_daemon, tmp_path_factory, eight):
    other = node_runs.recorded(make_daemon, tmp_path_factory.mktemp("other"), "64amd64-4s2n4ca2co")
    moved = node_runs.imported(other, node_runs.matrix_run(eight))
    assert "other nodes or CPUs" in refused(other, moved, 409)


def test_the_newest_run_of_this_machine(make_daemon):
    """With the real bench, because only a live machine measures."""
    daemon = make_daemon(env={"NUMAPROBE_BENCH": str(build_dir() / "bench" / "numa_bench")})
    assert "this node has no run" in refused(daemon, "last", 404, "topology")
    run = daemon.run(benchmark="matrix", quick=True)
    assert run["state"] == "succeeded", run
    daemon.run(benchmark="latency", size="1", quick=True)  # inside the caches: not the latency of memory
    answer = daemon.get("/v1/topology?measured=last")
    if answer.status == 409 or answer.status == 404:
        pytest.skip("the only cells were disturbed")
    assert [r["run"] for r in answer.json["measured"]["runs"]] == [run["id"]]


@pytest.mark.parametrize("name, cores, alone", [(EIGHT, 16, 0), (NO_LOCAL, 8, 7), ("96em64t-4no4pa3ca2co", 96, 0),
                                                ("20em64t-hybrid-1p6c2t+2ca4co1t", 14, 0)])
def test_the_picture(make_daemon, tmp_path, name, cores, alone):
    daemon = node_runs.recorded(make_daemon, tmp_path, name)
    before = daemon.get("/v1/topology.svg")
    assert before.status == 200 and before.headers["Content-Type"] == "image/svg+xml"
    assert b"Nothing is measured yet" in before.body and b" ns</text>" not in before.body
    run = node_runs.imported(daemon, node_runs.matrix_run(daemon))
    svg = daemon.get(f"/v1/topology.svg?measured={run}&width=700").body.decode()
    root = xml.etree.ElementTree.fromstring(svg)
    kinds = [e.get("class") or "" for e in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert sum(k.startswith("core ") for k in kinds) == cores and kinds.count("card alone") == alone
    assert f"idle latency: run {run} of 2026-11-20 10:00 UTC" in svg and " ns</text>" in svg
    assert daemon.get("/v1/topology.svg?measured=none").body == before.body
    for query, member in [("width=1", "width"), ("width=x", "width"), ("measured=x", "measured"), ("other=1", "other")]:
        wrong = daemon.get("/v1/topology.svg?" + query)
        assert wrong.status in (400, 422) and member in (wrong.json["member"] or wrong.json["detail"]), wrong.body


def test_the_command(eight, tmp_path):
    run = node_runs.imported(eight, node_runs.matrix_run(eight))
    text = topo(eight, f"--measured={run}").stdout
    assert "idle latency (ns), CPUs of a node (row) to memory of a node (column)" in text
    assert re.search(r"^0 +90\.0 +150\.1", text, re.M) and f"run {run}: matrix, 2026-11-20" in text
    out = topo(eight, "--xml", f"--measured={run}")
    assert out.stdout.encode() == eight.get(f"/v1/topology.xml?measured={run}").body
    assert topo(eight, "--xml").stdout.encode() == eight.get("/v1/topology.xml").body
    assert topo(eight, "--xml", "-o", "csv").returncode == 2
    picture = topo(eight, "--measured=999", command="plot")
    assert picture.returncode
    drawn = topo(eight, f"--measured={run}", f"--file={tmp_path}/topo.svg", command="plot", operands=["topo"])
    assert drawn.returncode == 0 and (tmp_path / "topo.svg").read_bytes() == \
        eight.get(f"/v1/topology.svg?measured={run}").body
    for wrong in ["--text", "--matrix=idle", "-o json"]:
        assert topo(eight, *wrong.split(), command="plot", operands=["topo"]).returncode == 2
    wrong = topo(eight, "--measured=999")
    assert wrong.returncode and "there is no run 999" in wrong.stderr
