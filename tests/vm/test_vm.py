# SPDX-License-Identifier: Apache-2.0
"""Placement on machines with several NUMA nodes, in a virtual machine (vm.py). No latency is
asserted: under emulation nanoseconds mean nothing. Skipped where QEMU or a kernel is missing."""
import json
import os
import pathlib

import pytest

import vm

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("NUMAPROBE_BUILD", HERE.parents[1] / "build" / "dev"))
FAST = {"benchmark": "latency", "cell_ms": 20, "sample_us": 500, "precision": 50, "timeout_s": 200}

pytestmark = pytest.mark.skipif(bool(vm.missing()), reason="missing: " + " ".join(vm.missing()))


def in_guest(tmp_path, topology, requests, mib=768, timeout=400):
    (tmp_path / "requests.json").write_text(json.dumps(requests))
    code, text = vm.run(["/usr/bin/python3", str(HERE / "guest.py"), str(BUILD), str(tmp_path / "requests.json")],
                        topology, mib, timeout, str(tmp_path / "out"))
    log = (tmp_path / "out" / "daemon.log")
    assert code == 0, text + (log.read_text() if log.exists() else "")
    return json.loads((tmp_path / "out" / "answers.json").read_text())


def placed(answer):
    """[(cpu, node of its memory)] of a finished run, with every page where it was wanted."""
    assert answer["status"] == 202, answer
    assert answer["run"]["state"] == "succeeded", (answer["run"], answer["log"])
    ranks = sorted(answer["matrix"]["ranks"], key=lambda r: r["rank"])
    for r in ranks:
        assert r["cpu"] == r["cpu_wanted"], r
        assert r["mem_node"] == r["mem_wanted"] and r["mem_share"] == 1.0, r
        assert r["pages_checked"] > 0 and r["mem_method"] != "none", r
    return [(r["cpu"], r["mem_node"]) for r in ranks]


def problem(answer, member):
    assert answer["status"] in (409, 422), answer
    assert answer["body"]["member"] == member, answer
    return answer["body"]["detail"]


def test_four_nodes(tmp_path):
    local, crossed, one, missing_node, missing_cpu, too_much = in_guest(tmp_path, "flat4", [
        ["POST", "/v1/runs", {**FAST, "size": "1M,2M", "ranks": "one-per-numa"}],
        ["POST", "/v1/runs", {**FAST, "size": "2M", "ranks": "one-per-numa", "numa": "3,2,1,0", "mode": "both"}],
        ["POST", "/v1/runs", {**FAST, "size": "1M", "cpus": "7,0", "numa": "2", "pages": "4k"}],
        ["POST", "/v1/runs", {**FAST, "size": "1M", "ranks": "one-per-numa", "numa": "9"}],
        ["POST", "/v1/runs", {**FAST, "size": "1M", "cpus": "0,64"}],
        ["POST", "/v1/runs", {**FAST, "size": "4G", "cpus": "0", "numa": "1"}],
    ])
    assert placed(local) == [(0, 0), (2, 1), (4, 2), (6, 3)]
    assert placed(crossed) == [(0, 3), (2, 2), (4, 1), (6, 0)]
    assert placed(one) == [(7, 2), (0, 2)]
    assert "9" in problem(missing_node, "numa")
    assert "64" in problem(missing_cpu, "cpus")
    assert too_much["status"] == 409 and too_much["body"]["type"] == "/problems/memory-short", too_much


def test_memory_only_node(tmp_path):
    topology, remote, automatic, ranks = in_guest(tmp_path, "memory-only", [
        ["GET", "/v1/topology", None],
        ["POST", "/v1/runs", {**FAST, "size": "1M", "cpus": "0,4", "numa": "3"}],
        ["POST", "/v1/runs", {**FAST, "size": "1M", "cpus": "0,1,2,3", "numa": "auto"}],
        ["POST", "/v1/runs", {**FAST, "size": "1M", "ranks": "one-per-numa", "dry_run": True}],
    ])
    assert [len(n["cpus"]) for n in topology["body"]["nodes"]] == [2, 2, 2, 0]
    assert placed(remote) == [(0, 3), (4, 3)]
    assert placed(automatic) == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert len(ranks["body"]["plan"]["ranks"]) == 3  # a node without CPUs is never an initiator


def test_node_without_memory(tmp_path):
    topology, nearest, refused = in_guest(tmp_path, "cpu-only", [
        ["GET", "/v1/topology", None],
        ["POST", "/v1/runs", {**FAST, "size": "1M", "cpus": "2,3"}],
        ["POST", "/v1/runs", {**FAST, "size": "1M", "cpus": "2", "numa": "1"}],
    ])
    assert len(topology["body"]["nodes"]) in (1, 2)  # kernels may merge such a node away
    assert [node for _, node in placed(nearest)] == [0, 0]
    problem(refused, "numa")


def test_heterogeneous_memory(tmp_path):
    topology, far = in_guest(tmp_path, "hmat", [
        ["GET", "/v1/topology", None],
        ["POST", "/v1/runs", {**FAST, "size": "1M", "cpus": "0,2", "numa": "2"}],
    ])
    assert len(topology["body"]["nodes"]) == 3
    assert placed(far) == [(0, 2), (2, 2)]


def test_sixteen_nodes(tmp_path):
    (local,) = in_guest(tmp_path, "nodes16", [
        ["POST", "/v1/runs", {**FAST, "size": "1M", "ranks": "one-per-numa"}],
    ], mib=512, timeout=500)
    assert placed(local) == [(i, i) for i in range(16)]
