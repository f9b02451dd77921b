# SPDX-License-Identifier: Apache-2.0
"""Runs between the nodes of a recorded machine, as documents to import: values follow from the numbers of the nodes."""
import copy
import hashlib
import subprocess

from conftest import ROOT

KERNELS = ("copy", "scale", "add", "triad", "read", "write")


def recorded(make_daemon, folder, name):
    """A daemon that sees the recorded machine NAME."""
    archive = ROOT / "tests/data/topologies" / f"{name}.tar.bz2"
    subprocess.run(["tar", "-xjf", archive, "-C", folder, "--no-same-owner"], check=True)
    (root,) = folder.iterdir()
    return make_daemon(env={"HWLOC_FSROOT": str(root), "HWLOC_COMPONENTS": "linux,stop"})


def initiators(topology):
    return [n["node"] for n in topology["nodes"] if n["cpus"]]


def targets(topology):
    return [n["node"] for n in topology["nodes"] if n["memory_bytes"]]


def latency(i, j):
    """ns: a node's own memory is nearest, and no two pairs are alike."""
    return 90 + i if i == j else 140 + 10 * abs(i - j) + i / 4 + j / 8


def bandwidth(kernel, i, j):
    """MB/s."""
    return (1 + KERNELS.index(kernel)) * (20000 if i == j else 8000) + 100 * i + 10 * j


def cell(median, n=9, disturbed=0):
    return {"n": n, "disturbed": disturbed, "median": median, "lo": median * 0.99, "hi": median * 1.01}


def axis(name, values):
    return {"name": name, "unit": "", "values": values}


def document(daemon, benchmark, matrices, when="2026-11-20T10:00:00.000Z"):
    """A run of this daemon's machine with one verified rank on each node that has CPUs."""
    node, topology = daemon.get("/v1/node").json, daemon.get("/v1/topology").json
    xml = daemon.get("/v1/topology.xml").body.decode()
    cpu = {n["node"]: n["cpus"][0] for n in topology["nodes"] if n["cpus"]}
    ranks = [{"rank": r, "pid": 1, "cpu_wanted": cpu[i], "cpu": cpu[i], "cpu_node": i, "mem_wanted": -1, "mem_node": i,
              "mem_share": 1, "pages_checked": 1000, "pages_total": 1000, "mem_method": "move_pages", "pages_wanted": "thp",
              "pages_got": "thp", "huge_share": 1, "seed": r, "migrations": 0, "arena_bytes": 1 << 28, "address": "0x0",
              "nodes": []}
             for r, i in enumerate(initiators(topology))]
    return {"format": "numaprobe-run", "version": 1,
            "run": {"state": "succeeded", "node": node["node"], "method": "prp4-v2", "created": when, "started": when,
                    "finished": when, "measured": when, "spec": {"benchmark": benchmark}, "conditions": []},
            "fingerprint": None, "topology": {"hash": hashlib.sha256(xml.encode()).hexdigest(), "xml": xml},
            "matrices": matrices, "ranks": ranks, "log": None}


def matrix_run(daemon, spoil=lambda i, j, c: c, **more):
    topology = daemon.get("/v1/topology").json
    rows, cols = initiators(topology), targets(topology)
    return document(daemon, "matrix", [
        {"name": "idle", "quantity": "latency", "unit": "ns", "rows": axis("rank", list(range(len(rows)))),
         "cols": axis("target", cols), "cells": [[spoil(i, j, cell(latency(i, j))) for j in cols] for i in rows]}], **more)


def bandwidth_run(daemon, kernels=KERNELS, **more):
    topology = daemon.get("/v1/topology").json
    rows, cols = initiators(topology), targets(topology)
    return document(daemon, "bandwidth", [
        {"name": k, "quantity": "bandwidth", "unit": "MB/s", "rows": axis("initiator", rows),
         "cols": axis("target", cols), "cells": [[cell(bandwidth(k, i, j)) for j in cols] for i in rows]}
        for k in kernels], **more)


def imported(daemon, run, **changes):
    """Stores a copy of the run; returns its number."""
    run = copy.deepcopy(run)
    run["run"].update(changes)
    answer = daemon.post("/v1/imports", run)
    assert answer.status in (200, 201), answer.body
    (result,) = answer.json["results"] if "results" in answer.json else [answer.json]
    return result.get("id") or result["run"]["id"]
