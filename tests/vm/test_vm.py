# SPDX-License-Identifier: Apache-2.0
"""Placement on machines with several NUMA nodes, in a virtual machine (vm.py). No latency is
asserted: under emulation nanoseconds mean nothing. Skipped where QEMU or a kernel is missing."""
import json
import os
import pathlib
import subprocess

import pytest

import vm

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("NUMAPROBE_BUILD", HERE.parents[1] / "build" / "dev"))
FAST = {"benchmark": "latency", "cell_ms": 20, "sample_us": 500, "precision": 50, "timeout_s": 200}

pytestmark = pytest.mark.skipif(bool(vm.missing()), reason="missing: " + " ".join(vm.missing()))


def in_guest(tmp_path, topology, requests, mib=768, timeout=1200):
    """What a daemon in such a machine says. The limit is for one that hangs: it takes 1 to 7 min, by the load of this machine."""
    (tmp_path / "requests.json").write_text(json.dumps(requests))
    code, text = vm.run(["/usr/bin/python3", str(HERE / "guest.py"), str(BUILD), str(tmp_path / "requests.json")],
                        topology, mib, timeout, str(tmp_path / "out"))
    log = (tmp_path / "out" / "daemon.log")
    assert code == 0, text + (log.read_text() if log.exists() else "")
    return json.loads((tmp_path / "out" / "answers.json").read_text())


def split(answers, *at):
    """Answers in groups of so many; the last group has the rest."""
    groups = []
    for n in at:
        groups.append(answers[:n])
        answers = answers[n:]
    return [*groups, answers]


def placed(answer):
    """[(cpu, node of its memory)] of a finished run, with every page where it was wanted."""
    assert answer["status"] == 202, answer
    assert answer["run"]["state"] == "succeeded", (answer["run"]["error"], answer["log"], answer["run"])
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


# --- numa_bench by hand ---

SMALL = {
    "matrix": ["--size=4M", "--min-samples=7", "--cell-ms=20", "--visits=1"],
    "bandwidth": ["--size=4M", "--passes=3", "--kernel=triad"],
    "firsttouch": ["--size=4M", "--min-samples=7", "--cell-ms=20", "--visits=1"],
    "loaded": ["--size=4M", "--min-samples=7", "--cell-ms=20", "--steps=2"],
    "c2c": ["--repetitions=20", "--min-samples=7", "--visits=1"],
    "latency": ["--size=1M", "--min-samples=7", "--cell-ms=20", "--visits=1"],
    "pagefault": ["--size=2M", "--passes=3"],
}


def bench(name, bind, *more, **how):
    """A request for numa_bench without MPI. bind: [(cpu, node or -1), …], a rank each."""
    listed = ",".join(f"{cpu}:{node}" for cpu, node in bind)
    return ["BENCH", name, {"args": [f"--np={len(bind)}", f"--bind={listed}", *SMALL[name], *more], **how}]


def result(answer):
    """The JSON of a run that succeeded, with each rank where it was bound to and all memory where
    it was asked for."""
    assert answer["status"] == 0, answer
    got = answer["body"]
    assert not [c for c in got["conditions"] if "only" in c["text"] or "refused" in c["text"]], got["conditions"]
    for r in got["ranks"]:
        assert r["cpu"] == r["cpu_wanted"] and r["mem_share"] == 1, r
    return got


def nodes_of(rank):
    return {n["node"] for n in rank["nodes"] if n["pages"]}


def parts_of(rank):
    """{node: its part of the rank's pages}"""
    total = sum(n["pages"] for n in rank["nodes"])
    return {n["node"]: round(n["pages"] / total, 2) for n in rank["nodes"] if n["pages"]}


def cells(got, name):
    """{(row, column): median} of a matrix without a hole."""
    (m,) = [m for m in got["matrices"] if m["name"] == name]
    found = {(row, col): m["cells"][i][k]["median"]
             for i, row in enumerate(m["rows"]["values"]) for k, col in enumerate(m["cols"]["values"])}
    pairs = m["rows"]["name"] == m["cols"]["name"]
    for (row, col), median in found.items():
        assert (pairs and row >= col) or median is not None, (name, row, col)
    return found


def bench_all(cpus, targets, few=None):
    """Requests for each benchmark. cpus: {node: its CPUs}; targets: nodes with memory; few: those
    of them that bandwidth, the slowest, is measured on."""
    first = [(own[0], node if node in targets else targets[0]) for node, own in cpus.items()]
    every = [(cpu, node if node in targets else targets[0]) for node, own in cpus.items() for cpu in own]
    by_touch = [(cpu, -1) for cpu, _ in first]
    return [bench("matrix", first), bench("bandwidth", first, *(["--targets=" + ",".join(map(str, few))] if few else [])),
            bench("firsttouch", by_touch),
            bench("c2c", first[:4]), bench("loaded", every)]


def check_all(answers, cpus, targets, few=None):
    matrix, bandwidth, touch, c2c, loaded = answers
    initiators = list(cpus)
    check_matrix(matrix, initiators, targets)
    got = result(bandwidth)
    assert list(cells(got, "triad")) == [(i, t) for i in initiators for t in few or targets]
    assert all(nodes_of(r) == set(few or targets) for r in got["ranks"]), got["ranks"]
    check_touch(touch, initiators, targets)
    got = result(c2c)
    ranks = len(got["ranks"])
    assert [r["cpu_node"] for r in got["ranks"]] == initiators[:ranks]
    assert len(cells(got, "cas")) == len(cells(got, "load")) == ranks * ranks
    check_loaded(loaded, cpus, targets)


def check_matrix(answer, initiators, targets):
    got = result(answer)
    assert [r["cpu_node"] for r in got["ranks"]] == initiators
    assert list(cells(got, "idle")) == [(r, t) for r in range(len(initiators)) for t in targets]
    for r in got["ranks"]:
        assert nodes_of(r) == set(targets), r
        assert r["pages_checked"] == r["pages_total"] == len(targets) * (4 << 20) // 4096, r
    return got


def check_touch(answer, initiators, targets):
    got = result(answer)
    assert list(cells(got, "access")) == [(r, a) for r in range(len(initiators)) for a in range(3)]
    for r, node in zip(got["ranks"], initiators):
        assert r["cpu_node"] == node and r["pages_checked"] > 0, r
        assert nodes_of(r) == {node} if node in targets else nodes_of(r) <= set(targets), r
    without = [c["rank"] for c in got["conditions"] if c["kind"] == "topology" and "has no memory" in c["text"]]
    assert len(without) == len(set(initiators) - set(targets)), got["conditions"]


def check_loaded(answer, cpus, targets):
    chasers = [sum(len(own) for node, own in cpus.items() if node < n) for n in cpus]
    if all(len(own) == 1 for own in cpus.values()):
        return refused(answer, "no rank is left to generate load")
    got = result(answer)
    assert list(cells(got, "latency")) == list(cells(got, "bandwidth")) == [
        (r, percent) for r in chasers for percent in (0, 50, 100)]
    for r in got["ranks"]:
        assert nodes_of(r) == {r["mem_wanted"]} and r["mem_wanted"] in targets, r
    return None


def refused(answer, *words):
    assert answer["status"] in (1, 2), answer
    for word in words:
        assert word in answer["stderr"], answer
    assert "ranks" not in answer["body"], answer


def plan(answer):
    assert answer["status"] == 200, answer
    p = answer["body"]["plan"]
    return [(r["cpu"], r["mem_node"]) for r in p["ranks"]], p.get("targets")


def dry(benchmark, **more):
    return ["POST", "/v1/runs", {"benchmark": benchmark, "size": "4M", "dry_run": True, **more}]


# --- Machines ---

def test_four_nodes(tmp_path):
    local, crossed, one, missing_node, missing_cpu, too_much = in_guest(tmp_path, "flat4", [
        ["POST", "/v1/runs", {**FAST, "size": "1M,2M", "ranks": "one-per-numa"}],
        ["POST", "/v1/runs", {**FAST, "size": "2M", "ranks": "one-per-numa", "numa": "3,2,1,0", "mode": "both"}],
        ["POST", "/v1/runs", {**FAST, "size": "1M", "cpus": "7,0", "numa": "2", "pages": "4k"}],
        ["POST", "/v1/runs", {**FAST, "size": "1M", "ranks": "one-per-numa", "numa": "9"}],
        ["POST", "/v1/runs", {**FAST, "size": "1M", "cpus": "0,64"}],
        ["POST", "/v1/runs", {**FAST, "size": "4G", "cpus": "0", "numa": "1"}],
    ])
    assert placed(local) == [(1, 0), (3, 1), (5, 2), (7, 3)]  # the last core: CPU 0 has the interrupts
    assert placed(crossed) == [(1, 3), (3, 2), (5, 1), (7, 0)]
    assert placed(one) == [(7, 2), (0, 2)]
    assert "9" in problem(missing_node, "numa")
    assert "64" in problem(missing_cpu, "cpus")
    assert too_much["status"] == 409 and too_much["body"]["type"] == "/problems/memory-short", too_much


def test_four_nodes_by_hand(tmp_path):
    cpus, nodes = {0: [0, 1], 1: [2, 3], 2: [4, 5], 3: [6, 7]}, [0, 1, 2, 3]
    mpirun = "mpirun --allow-run-as-root --map-by ppr:1:numa --bind-to core -np 4".split()
    reserve = {"/sys/devices/system/node/node2/hugepages/hugepages-2048kB/nr_hugepages": "4"}
    everything, (crossed, far, own, threads, huge, mems, turns, by_mpi), no = split(in_guest(tmp_path, "flat4", [
        *bench_all(cpus, nodes),
        bench("loaded", [(0, 3), (1, 2), (6, 1)]),
        bench("matrix", [(7, -1), (0, 3)], "--targets=2"),
        bench("bandwidth", [(0, 1), (1, 1), (6, 0)], "--sweep=own"),
        bench("bandwidth", [(0, -1), (2, -1)], "--sweep=threads", "--targets=3"),
        bench("matrix", [(0, 0)], "--targets=2", "--pages=huge", files=reserve),
        bench("matrix", [(2, -1), (6, -1)], group={"cpuset.mems": "1,3"}),
        bench("matrix", [(0, 0)], "--size=32M", group={"memory.max": "400M"}),
        ["BENCH", "firsttouch", {"args": SMALL["firsttouch"], "mpirun": mpirun}],
        bench("matrix", [(0, 0)], "--targets=0,9"),
        bench("firsttouch", [(0, 0), (2, 9)]),
        bench("matrix", [(0, 0), (64, 0)]),
        bench("matrix", [(0, 0)], "--size=1G", "--targets=2"),
        bench("firsttouch", [(0, -1), (6, -1)], "--size=1G"),
        bench("matrix", [(2, 1)], "--targets=2", group={"cpuset.mems": "1,3"}),
        bench("matrix", [(0, 0)], group={"cpuset.mems": "1,3"}),
        bench("bandwidth", [(0, 0)], "--size=128M", group={"memory.max": "400M"}),
        bench("matrix", [(0, 0)], "--targets=1,2", "--pages=huge"),
    ]), 5, 8)
    check_all(everything, cpus, nodes)
    assert [nodes_of(r) for r in result(crossed)["ranks"]] == [{3}, {2}, {1}]
    assert list(cells(result(far), "idle")) == [(0, 2), (1, 2)]
    assert [nodes_of(r) for r in result(own)["ranks"]] == [{1}, {1}, {0}]
    assert list(cells(result(threads), "triad")) == [(1, 3), (2, 3)]
    (rank,) = result(huge)["ranks"]
    assert rank["pages_got"] == "huge" and nodes_of(rank) == {2}, rank
    check_matrix(mems, [1, 3], [1, 3])  # what a cpuset forbids is no target
    assert len(cells(result(turns), "idle")) == 4  # one target at a time is what has to fit
    check_touch(by_mpi, [0, 1, 2, 3], nodes)
    assert by_mpi["body"]["launcher"] == "mpi"
    for answer, words in zip(no, [
            ("targets", "node 9 is not there"), ("--bind", "node 9 is not there"), ("--bind", "CPU 64"),
            ("size", "on node 2"), ("size", "on node"), ("targets", "node 2 is outside the cpuset"),
            ("--bind", "node 0 is outside the cpuset"), ("size", "cgroup"),
            ("pages", "reserved pages of 2M on node 1")], strict=True):
        refused(answer, *words)


def test_interleaved_and_migrated(tmp_path):
    even, some, path, weighted, moved, run, missing = in_guest(tmp_path, "flat4", [
        bench("latency", [(0, -1), (7, -1)], "--numa=interleave:all", "--pages=4k"),
        bench("bandwidth", [(0, -1)], "--targets=0+interleave:1,3", "--pages=4k"),
        bench("loaded", [(0, -1), (1, -1)], "--targets=2+interleave:0-3"),
        bench("latency", [(0, -1)], "--numa=weighted:0=1,1=1", "--pages=4k"),
        bench("pagefault", [(0, -1), (6, -1)], "--cost=migrate", "--targets=0,2"),
        ["POST", "/v1/runs", {**FAST, "size": "1M", "cpus": "0,7", "numa": "interleave:0,2", "pages": "4k"}],
        ["POST", "/v1/runs", {**FAST, "size": "1M", "cpus": "0", "numa": "interleave:0-4"}],
    ])
    assert [parts_of(r) for r in result(even)["ranks"]] == [dict.fromkeys(range(4), 0.25)] * 2
    over = 1 << 30  # model/target.h: interleaved over the nodes of the lowest bits
    assert list(cells(result(some), "triad")) == [(0, 0), (0, over | 0b1010)]
    said = [c["text"] for c in result(some)["conditions"] if c["kind"] == "interleaved"]
    assert said == ["memory on nodes 1,3, interleaved: 50.0 % on node 1, 50.0 % on node 3"]
    labels = [m["rows"]["labels"] for m in result(path)["matrices"]]
    assert labels == [["0->2", "0->interleave:0-3"]] * 2
    if weighted["status"]:
        refused(weighted, "numa", "Linux 6.9")
    else:
        assert parts_of(result(weighted)["ranks"][0]) == {0: 0.5, 1: 0.5}
    assert len(cells(result(moved), "migrate")) == 4  # one thread and two, there and back
    assert run["run"]["state"] == "succeeded", run
    ranks = run["matrix"]["ranks"]
    assert [parts_of(r) for r in ranks] == [{0: 0.5, 2: 0.5}] * 2 and ranks[0]["mem_share"] == 1
    assert "node 4 is not there" in problem(missing, "numa")


def test_homes_of_lines(tmp_path):
    three = [(0, -1), (2, -1), (4, -1)]
    third, chosen, second, states, missing = in_guest(tmp_path, "flat4", [
        bench("c2c", three, "--home=third"),
        bench("c2c", three, "--home=third", "--targets=3"),
        bench("c2c", three, "--home=second"),
        bench("c2c", [(0, -1), (6, -1)], "--home=third", "--targets=1,2", "--definition=states"),
        bench("c2c", three, "--home=third", "--targets=0,1"),
    ])
    assert [nodes_of(r) for r in result(third)["ranks"]] == [{1, 2}, {0, 2}, {0, 1}]  # of each pair neither's
    assert [nodes_of(r) for r in result(chosen)["ranks"]] == [{3}] * 3
    assert [nodes_of(r) for r in result(second)["ranks"]] == [{0}, {1}, {2}]
    assert [nodes_of(r) for r in result(states)["ranks"]] == [{1, 2}] * 2
    for got in (third, chosen, second):
        assert len(cells(result(got), "cas")) == 9
    refused(missing, "--home", "third needs a node that is neither")


def test_memory_only_node(tmp_path):
    cpus, nodes = {0: [0, 1], 1: [2, 3], 2: [4, 5]}, [0, 1, 2, 3]
    (topology, remote, automatic, ranks, *plans), everything = split(in_guest(tmp_path, "memory-only", [
        ["GET", "/v1/topology", None],
        ["POST", "/v1/runs", {**FAST, "size": "1M", "cpus": "0,4", "numa": "3"}],
        ["POST", "/v1/runs", {**FAST, "size": "1M", "cpus": "0,1,2,3", "numa": "auto"}],
        ["POST", "/v1/runs", {**FAST, "size": "1M", "ranks": "one-per-numa", "dry_run": True}],
        dry("matrix"), dry("matrix", targets="3,0"), dry("firsttouch"), dry("matrix", targets="4"),
        dry("loaded", ranks="one-per-numa"), dry("matrix", size="1G", targets="3", dry_run=False),
        *bench_all(cpus, nodes),
    ]), 10)
    assert [len(n["cpus"]) for n in topology["body"]["nodes"]] == [2, 2, 2, 0]
    assert placed(remote) == [(0, 3), (4, 3)]
    assert placed(automatic) == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert len(ranks["body"]["plan"]["ranks"]) == 3  # a node without CPUs is never an initiator
    matrix, chosen, touch, missing, unloaded, too_much = plans
    assert plan(matrix) == ([(1, 0), (3, 1), (5, 2)], nodes)
    assert plan(chosen) == ([(1, 0), (3, 1), (5, 2)], [0, 3])
    assert [cpu for cpu, _ in plan(touch)[0]] == [1, 3, 5]
    assert "4" in problem(missing, "targets")
    assert "no rank is left" in problem(unloaded, "ranks")
    assert too_much["status"] == 409 and "node 3" in too_much["body"]["detail"], too_much
    check_all(everything, cpus, nodes)


def test_node_without_memory(tmp_path):
    cpus, nodes = {0: [0, 1], 1: [2, 3]}, [0]
    (topology, nearest, wrong, matrix, touch, no_target, touched), everything, no = split(in_guest(tmp_path, "cpu-only", [
        ["GET", "/v1/topology", None],
        ["POST", "/v1/runs", {**FAST, "size": "1M", "cpus": "2,3"}],
        ["POST", "/v1/runs", {**FAST, "size": "1M", "cpus": "2", "numa": "1"}],
        dry("matrix"), dry("firsttouch"), dry("matrix", targets="1"),
        ["POST", "/v1/runs", {"benchmark": "firsttouch", "size": "4M", "quick": True, "launcher": "processes"}],
        *bench_all(cpus, nodes),
        bench("matrix", [(0, 0)], "--targets=1"), bench("matrix", [(0, 0), (2, 1)]), bench("firsttouch", [(2, 1)]),
    ]), 7, 5)
    assert len(topology["body"]["nodes"]) in (1, 2)  # kernels may merge such a node away
    assert [node for _, node in placed(nearest)] == [0, 0]
    problem(wrong, "numa")
    assert plan(matrix) == ([(1, 0), (3, 0)], nodes)
    assert [cpu for cpu, _ in plan(touch)[0]] == [1, 3]
    assert "has no memory" in problem(no_target, "targets")
    assert touched["run"]["state"] == "succeeded", (touched["run"], touched["log"])
    check_all(everything, cpus, nodes)
    for answer, words in zip(no, [("targets", "node 1 has no memory"), ("--bind", "node 1 has no memory"),
                                  ("--bind", "node 1 has no memory")], strict=True):
        refused(answer, *words)


def test_heterogeneous_memory(tmp_path):
    cpus, nodes = {0: [0, 1], 1: [2, 3]}, [0, 1, 2]
    (topology, far), everything = split(in_guest(tmp_path, "hmat", [
        ["GET", "/v1/topology", None],
        ["POST", "/v1/runs", {**FAST, "size": "1M", "cpus": "0,2", "numa": "2"}],
        *bench_all(cpus, nodes),
    ]), 2)
    assert len(topology["body"]["nodes"]) == 3
    assert placed(far) == [(0, 2), (2, 2)]
    check_all(everything, cpus, nodes)


def test_gaps_in_the_numbers(tmp_path):
    cpus, nodes = {0: [0, 1], 1: [2, 3], 2: [4, 5]}, [0, 2, 3]
    (matrix, touch), everything = split(in_guest(tmp_path, "gaps", [
        dry("matrix"), dry("firsttouch"), *bench_all(cpus, nodes),
    ]), 2)
    ranks, targets = plan(matrix)
    assert [cpu for cpu, _ in ranks] == [1, 3, 5] and targets == nodes
    assert [cpu for cpu, _ in plan(touch)[0]] == [1, 3, 5]
    check_all(everything, cpus, nodes)


def test_sixteen_nodes(tmp_path):
    cpus, nodes = {i: [i] for i in range(16)}, list(range(16))
    (local,), everything = split(in_guest(tmp_path, "nodes16", [
        # 16 processes of mpirun take more than 30 s of emulated CPUs until the first rank reports
        ["POST", "/v1/runs", {**FAST, "size": "1M", "ranks": "one-per-numa", "launcher": "processes"}],
        *bench_all(cpus, nodes, [0, 15]),
    ], mib=640), 1)
    assert placed(local) == [(i, i) for i in range(16)]
    check_all(everything, cpus, nodes, [0, 15])


def measured(matrix):
    """[(row, column)] of the cells with a value."""
    return [(row, col) for row, line in zip(matrix["rows"]["values"], matrix["cells"])
            for col, cell in zip(matrix["cols"]["values"], line) if cell and cell["median"]]


def test_some_of_the_pairs_of_sixteen_nodes(tmp_path):
    """Chosen before a run, and in it: emulated CPUs share two real ones, so pairs disturb each other and take long."""
    every = [(cpu, cpu) for cpu in range(16)]
    some, few, handed = in_guest(tmp_path, "nodes16", [
        ["POST", "/v1/runs", {"benchmark": "matrix", "quick": True, "size": "4M", "pairs_most": 64, "cell_ms": 20, "visits": 1,
                              "launcher": "processes", "timeout_s": 900}],
        ["POST", "/v1/runs", {"benchmark": "matrix", "size": "4M", "pairs_most": 31, "dry_run": True}],
        bench("c2c", every, "--budget=2"),
    ], mib=640)
    assert some["run"]["state"] == "succeeded", (some["run"]["error"], some["log"])
    [matrix] = some["matrix"]["matrices"]
    pairs = measured(matrix)
    assert len(pairs) == 64 and set(every) <= set(pairs), pairs  # each rank's own node is among them
    assert {b for a, b in pairs if a == 3} != {3} and {a for a, b in pairs if b == 12} != {12}, pairs
    assert all(r["mem_share"] == 1 for r in some["matrix"]["ranks"])
    assert "32" in problem(few, "pairs_most")
    got = result(handed)
    tables = {m["name"]: measured(m) for m in got["matrices"] if m["rows"]["name"] == "rank"}
    pairs = tables["cas"]
    assert tables["load"] == pairs and len(pairs) in (16, 32, 64) and {n for pair in pairs for n in pair} == set(range(16))
    assert any(f"{len(pairs)} of 120 pairs were measured: a visit of 120 takes" in c["text"] for c in got["conditions"])


def test_cpus_come_and_go(tmp_path):
    """Taken off-line below a daemon, and back: plans follow, and a run on what is gone is refused, not failed."""
    def switch(cpu, on):
        return ["WRITE", f"/sys/devices/system/cpu/cpu{cpu}/online", str(int(on))]

    one = {**FAST, "size": "1M", "launcher": "processes"}
    long = {**one, "cpus": "6,7", "cell_ms": 60000, "precision": 1, "min_samples": 10000}
    answers = in_guest(tmp_path, "flat4", [
        ["POST", "/v1/runs", {**one, "cpus": "6,7", "launcher": "mpi"}],
        ["DURING", "", {"run": long, "behind": {**one, "cpus": "0"}, "steps": [switch(7, False)]}],
        ["POST", "/v1/runs", {**one, "cpus": "6,7"}],
        ["POST", "/v1/runs", {**one, "ranks": "all-cores", "dry_run": True}],
        ["POST", "/v1/runs", {**one, "ranks": "one-per-numa"}],
        switch(6, False),  # now node 3 has memory and no CPU
        ["POST", "/v1/runs", {**one, "ranks": "one-per-numa"}],
        ["GET", "/v1/topology", None],
        switch(6, True), switch(7, True),
        ["POST", "/v1/runs", {**one, "cpus": "6,7"}],
        ["GET", "/readyz", None],
    ])
    before, during, gone, all_cores, three, _, two, topology, _, _, back, ready = answers
    assert placed(before) == placed(back) == [(6, 3), (7, 3)]
    assert during["run"]["state"] == "failed" and during["run"]["error"]["member"] == "cpus", during["run"]
    assert "CPU 7 went off-line during the run" in during["run"]["error"]["text"], during["run"]
    assert during["behind"]["state"] == "succeeded", during["behind"]
    assert "7" in problem(gone, "cpus")
    assert [cpu for cpu, _ in plan(all_cores)[0]] == [0, 1, 2, 3, 4, 5, 6]
    assert placed(three) == [(1, 0), (3, 1), (5, 2), (6, 3)]
    assert placed(two) == [(1, 0), (3, 1), (5, 2)]
    assert [len(n["cpus"]) for n in topology["body"]["nodes"]] == [2, 2, 2, 0]
    assert ready["status"] == 200


def test_memory_comes_and_goes(tmp_path):
    """Off-line and pulled out below a daemon, and back, before runs, while one measures and while one waits: what has no
    memory is refused by name, a run that loses its memory fails and says so, and nothing that was taken is lost."""
    one = {**FAST, "size": "1M", "cpus": "0,2", "numa": "2", "launcher": "processes"}
    long, has = {**one, "cell_ms": 60000, "precision": 1, "min_samples": 10000}, "/sys/devices/system/node/has_memory"
    mpi, elsewhere = {**one, "launcher": "mpi"}, {**one, "numa": "auto"}
    gone, back = [["UNTIL", has, "^0-1$"], ["GET", "/v1/topology", None], ["POST", "/v1/runs", one]], [
        ["UNTIL", has, "^0-2$"], ["UNTIL", "/v1/topology", '"memory_bytes": 805306368,[^}]*"allowed": true'],
        ["POST", "/v1/runs", one]]
    offline, online = ["MEMORY", "2", "offline"], ["MEMORY", "2", "online_movable"]
    out, into = ["PLUG", "device_del", {"id": "dimm"}], ["PLUG", "device_add", {
        "driver": "pc-dimm", "id": "dimm", "memdev": "dimm-memory", "node": 2}]
    answers = in_guest(tmp_path, "dimm", [
        ["POST", "/v1/runs", mpi],
        ["MEMORY", "2/0", "offline"], ["GET", "/v1/topology", None], ["POST", "/v1/runs", one],
        offline, *gone, dry("matrix", targets="0,2"), ["GET", "/v1/node", None], ["POST", "/v1/runs", elsewhere],
        online, *back,
        ["DURING", "", {"run": long, "behind": one, "steps": [offline]}],
        *gone, online, *back,
        out, *gone, into, *back,
        ["DURING", "", {"run": long, "behind": elsewhere, "steps": [out]}],
        *gone, into, *back,
        ["GET", "/v1/runs?limit=100", None], ["GET", "/readyz", None],
    ], timeout=600)  # twelve runs of 4 to 9 s, one of 40 s and 20 s for the rest, measured on two cores with a load of 14
    (before, _, part, of_part), lost, (targets, node, auto), again, first, second, third, (all_runs, ready) = split(
        answers, 4, 4, 3, 4, 1 + 3 + 4, 4 + 4, 1 + 3 + 4)
    assert placed(before) == placed(of_part) == [(0, 2), (2, 2)]
    assert part["body"]["nodes"][2]["memory_bytes"] == (768 - 128) << 20, part
    missing_memory(lost[-2:])
    assert "node 2 has no memory" in problem(targets, "targets")
    assert node["status"] == 200 and placed(auto) == [(0, 0), (2, 1)]
    assert placed(again[-1]) == [(0, 2), (2, 2)]
    for during in (first[0], third[0]):
        assert during["run"]["state"] == "failed", during
        assert during["run"]["error"]["member"] == "numa", during["run"]
        assert "the memory of node 2 went off-line during the run" in during["run"]["error"]["text"], during
    waited = first[0]["behind"]
    assert waited["state"] == "failed" and "node 2 has no memory" in waited["error"]["text"], waited
    assert third[0]["behind"]["state"] == "succeeded", third[0]["behind"]
    for lost in (first[2:4], second[2:4], third[2:4]):
        missing_memory(lost)
    for found in (first, second, third):
        assert placed(found[-1]) == [(0, 2), (2, 2)]
    taken = [a for a in answers if a["status"] == 202]
    assert len(all_runs["body"]["runs"]) == len(taken) + 2 and ready["status"] == 200, all_runs


def missing_memory(answers):
    topology, refused_run = answers
    assert [n["memory_bytes"] > 0 for n in topology["body"]["nodes"]][:2] == [True, True], topology
    assert not any(n["memory_bytes"] for n in topology["body"]["nodes"][2:]), topology
    detail = problem(refused_run, "numa")
    assert detail.startswith("node 2 ") and detail.endswith("nodes with memory are 0-1"), detail


def test_a_run_that_takes_too_much_memory_dies_alone(tmp_path):
    code, text = vm.run(["/usr/bin/python3", str(HERE / "groups.py"), str(BUILD)], "cpu-only", 768, 300, str(tmp_path / "out"))
    assert code == 0, text
    facts = json.loads((tmp_path / "out" / "facts.json").read_text())
    assert 512 << 20 < int(facts["memory.max"]) < 1 << 30 and facts["memory.oom.group"] == "1", facts
    assert facts["cpu.weight"] == "10" and facts["oom_score_adj"] == "1000" and facts["daemon_in"], facts
    assert not any(c["kind"] == "cgroup" for c in facts["conditions"]), facts
    assert facts["state"] == "failed" and facts["removed"] and facts["alive"] and facts["exit"] == 0, facts


# What needs the controllers and nodes of this machine; the rest is asked where it takes seconds (tests/booted).
BOOTED = {"account": "sysusers", "ready": "it_starts_and", "placement": "mpirun_and", "network": "mpirun_listens",
          "rights": "no_privilege", "group": "group_of_its_own", "left": "left_behind", "killed": "when_it_is_killed", "orphaned": "supervisor", "hung": "it_hangs", "stopped": "it_stops"}


def test_unit_in_a_booted_system(tmp_path):
    """The systemd unit booted, with mpirun and numactl in it, on two nodes and with every controller of cgroup v2.

    A process that starts here takes 0.5 to 2 s of an emulated CPU, of which there are no more than this machine has (ranks
    that wait for each other spin), and the checks start some 120. Measured on two cores with a load of 17 and another
    such machine beside it: 5 min until the first check, 7 min for all; the limit is over 1.5 times that."""
    stage, out = tmp_path / "stage", tmp_path / "out"
    subprocess.run(["meson", "install", "-C", str(BUILD), "--no-rebuild", "--quiet", "--destdir", str(stage)], check=True,
                   stdout=subprocess.DEVNULL)
    code, text = vm.run(["/usr/bin/env", "NUMAPROBE_BOOTED_S=1150", "NUMAPROBE_BOOTED_SLOW=4", "NUMAPROBE_BOOTED_OUT=/mnt/out",
                         "NUMAPROBE_BOOTED_CHECKS=" + "|".join(BOOTED.values()),
                         "/usr/bin/python3", str(HERE.parent / "booted" / "booted.py"), str(stage)],
                        "two", 768, 1200, str(out))
    tap = (out / "tap").read_text()
    assert code == 0 and "not ok" not in tap, tap + text[-8000:]
    assert f"1..{len(BOOTED)}" in tap and "controllers: cpu" in tap.replace("cpuset ", ""), tap
