# SPDX-License-Identifier: Apache-2.0
"""A real run with mpirun and numactl: what the API, the database and the command line say is one."""
import contextlib
import csv
import io
import json
import math
import os
import platform
import pty
import sqlite3
import subprocess

import pytest

from conftest import PATIENCE, build_dir

pytestmark = pytest.mark.skipif(
    not any(os.access(f"{d}/mpirun", os.X_OK) for d in os.environ["PATH"].split(":")),
    reason="no mpirun on this machine")

SIZES = [64 << 10, 1 << 20, 4 << 20]


@pytest.fixture(scope="module")
def finished(numaprobed, tmp_path_factory):
    from conftest import Daemon
    d = Daemon(numaprobed, tmp_path_factory.mktemp("numaprobed")).start()
    run = d.run(size="64K,1M,4M", mode="both", cell_ms=200)
    yield d, run
    d.stop()


def medians(matrices):
    return {(m["name"], row, col): cell["median"]
            for m in matrices
            for row, line in zip(m["rows"]["values"], m["cells"])
            for col, cell in zip(m["cols"]["values"], line)}


def test_run_succeeds_and_is_plausible(finished):
    daemon, run = finished
    assert run["state"] == "succeeded", run
    answer = daemon.get(f"/v1/runs/{run['id']}/matrix").json
    assert {m["name"] for m in answer["matrices"]} == {"concurrent", "serial"}
    for m in answer["matrices"]:
        assert m["unit"] == "ns" and m["cols"]["values"] == SIZES
        for line in m["cells"]:
            for cell in line:
                assert cell["min"] <= cell["p10"] <= cell["median"] <= cell["p90"] <= cell["p99"]
                assert cell["lo"] <= cell["median"] <= cell["hi"]
                assert cell["n"] >= 1 and 0.2 < cell["median"] < 1e6
    for rank in answer["ranks"]:
        assert rank["cpu"] == rank["cpu_wanted"]
        assert rank["mem_node"] == rank["mem_wanted"] and rank["mem_share"] > 0.99
        assert rank["pages_checked"] > 0


def test_database_says_the_same(finished):
    daemon, run = finished
    api = medians(daemon.get(f"/v1/runs/{run['id']}/matrix").json["matrices"])
    with sqlite3.connect(f"file:{daemon.home}/state/numaprobe.db?mode=ro", uri=True) as db:
        rows = db.execute("SELECT matrix, rank, working_set_bytes, median_ns FROM measurement WHERE run = ?",
                          (run["id"],)).fetchall()
    stored = {(m, r, c): v for m, r, c, v in rows}
    assert stored.keys() == api.keys()
    for key, value in stored.items():
        assert math.isclose(value, api[key], abs_tol=0.0011), key


def test_csv_and_ndjson_say_the_same(finished):
    daemon, run = finished
    api = medians(daemon.get(f"/v1/runs/{run['id']}/matrix").json["matrices"])
    text = daemon.get(f"/v1/runs/{run['id']}/matrix.csv").body.decode()
    got = {(r["matrix"], int(r["rank"]), int(r["working_set_bytes"])): float(r["median_ns"])
           for r in csv.DictReader(io.StringIO(text))}
    assert got == api
    lines = daemon.get(f"/v1/runs/{run['id']}/matrix.ndjson").body.decode().splitlines()
    got = {(r["matrix"], r["rank"], r["working_set"]): r["median"] for r in map(json.loads, lines)}
    assert got == api


def test_command_line_says_the_same(finished):
    daemon, run = finished
    api = medians(daemon.get(f"/v1/runs/{run['id']}/matrix").json["matrices"])
    done = subprocess.run(
        [str(build_dir() / "client" / "numaprobe"), f"--url=http://127.0.0.1:{daemon.port}", "matrix",
         str(run["id"]), "-o", "json"], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert medians(json.loads(done.stdout)["matrices"]) == api


def test_overlap_is_stored(finished):
    """How high it is depends on who else is on the machine (tests/perf says); that it is said, does not."""
    daemon, run = finished
    for m in daemon.get(f"/v1/runs/{run['id']}/matrix").json["matrices"]:
        for line in m["cells"]:
            for cell in line:
                if m["name"] == "concurrent":
                    assert 0 <= cell["overlap"] <= 1
                else:
                    assert cell["overlap"] is None


SMALL = {"size": "4M", "cell_ms": 30, "min_samples": 7, "visits": 1}
# benchmark, members of the request, the matrices that come
OTHERS = [
    ("latency", {"size": "1M", "method": "classic"}, {"concurrent"}),
    ("latency", {"size": "1M", "launcher": "processes", "quick": True}, {"concurrent"}),
    ("latency", {"size": "1M", "ranks": "1", "load": "read", "quick": True}, {"concurrent"}),
    ("matrix", SMALL, {"idle"}),
    ("bandwidth", {"size": "8M", "passes": 3}, {"copy", "scale", "add", "triad", "read", "write"}),
    ("bandwidth", {"size": "8M", "quick": True, "sweep": "threads"}, {"triad"}),
    ("pingpong", {"message_max": "4K", "quick": True}, {"pingpong"}),
    ("pingpong", {"message_max": "64K", "quick": True, "pairs": "all"}, {"latency", "bandwidth"}),
    ("pingpong", {"message_max": 0, "quick": True, "pairs": "all"}, {"latency"}),
    ("c2c", {"quick": True}, {"cas", "load", "cas_lines", "load_lines"}),
    ("c2c", {"quick": True, "definition": "cas", "launcher": "processes"}, {"cas", "cas_lines"}),
    ("c2c", {"quick": True, "definition": "load", "pairs": "classes"}, {"load", "load_lines"}),
    ("firsttouch", SMALL | {"ranks": "all-cores"}, {"access"}),
    ("pagefault", {"size": "4M", "passes": 3}, {"4k", "thp"}),
    ("atomics", {"quick": True}, {"time", "rate", "fairness", "share", "handover"}),
    ("atomics", {"quick": True, "operation": "cas", "launcher": "processes"}, {"time", "rate", "fairness", "share"}),
    ("pagefault", {"size": "4M", "quick": True, "launcher": "processes"}, {"4k", "thp"}),
    ("hierarchy", {"size": "32M", "quick": True, "cell_ms": 5},
     {"latency", "base_pages", "packed", "huge_pages", "parallel", "stride", "cycle", "nodes"}),
    ("scan", {"quick": True, "cell_ms": 6, "visits": 4},
     {"latency", "bandwidth", "transfer", "core", "l3", "node", "pair"}),
    ("loaded", SMALL | {"steps": 2}, {"latency", "bandwidth"}),
    ("loaded", SMALL | {"steps": 2, "mix": "all", "targets": "all"},
     {f"{what}_{mix}" for mix in ("reads", "3r1w", "2r1w", "1r1w", "nt") for what in ("latency", "bandwidth")}),
]
NEEDS_TWO = {"pingpong", "c2c", "loaded", "scan", "atomics"}


def check_lines_of_cells(daemon, run, matrices):
    """No value of the CSV stands below the unit or the axis of another matrix, and no line of NDJSON has a member twice."""
    path, units = f"/v1/runs/{run['id']}/matrix", {m["unit"] for m in matrices}
    lines = list(csv.reader(io.StringIO(daemon.get(path + ".csv").body.decode())))
    heads = lines.pop(0)
    cells = [(m, cell) for m in matrices for row in m["cells"] for cell in row]
    assert len(lines) == len(cells) and len(set(heads)) == len(heads), heads
    at = next(i for i, head in enumerate(heads) if head.startswith("median"))
    for line, (m, cell) in zip(lines, cells):
        assert len(line) == len(heads) and line[0] == m["name"]
        assert (float(line[at]) if line[at] else None) == (cell or {}).get("median")
        assert (heads[at], line[-1]) == ("median", m["unit"]) if len(units) > 1 else heads[at] == f"median_{m['unit']}"
        for head, axis in zip(heads[1:3], (m["rows"], m["cols"])):
            assert head in (axis["name"], f"{axis['name']}_{axis['unit']}", "row", "column"), (head, axis["name"])
    objects = [json.loads(line, object_pairs_hook=list) for line in daemon.get(path + ".ndjson").body.decode().splitlines()]
    assert len(objects) == len(lines)
    for line, members in zip(lines, objects):
        names = [name for name, _ in members]
        assert len(names) == len(set(names)), names
        axes = [n for n in names[3:names.index("n")] if not n.endswith("_label")]
        assert line[1:3] == [str(dict(members).get(f"{a}_label", dict(members)[a])) for a in axes], (line, members)


@pytest.mark.parametrize("benchmark,members,wanted", OTHERS,
                         ids=[f"{i}-{o[0]}" for i, o in enumerate(OTHERS)])
def test_every_benchmark_by_the_daemon(finished, benchmark, members, wanted):
    daemon, _ = finished
    if len(os.sched_getaffinity(0)) < 2 and (benchmark in NEEDS_TWO or "load" in members):
        pytest.skip("it takes two CPUs")
    run = daemon.run(benchmark=benchmark, **members)
    assert run["state"] == "succeeded", run.get("error")
    answer = daemon.get(f"/v1/runs/{run['id']}/matrix").json
    assert {m["name"] for m in answer["matrices"]} == wanted
    check_lines_of_cells(daemon, run, answer["matrices"])
    assert all(r["cpu"] == r["cpu_wanted"] for r in answer["ranks"])
    assert run["method"] == ("classic-v1" if members.get("method") == "classic" else run["method"])
    shown = subprocess.run([f"{build_dir()}/client/numaprobe", "--url", f"http://127.0.0.1:{daemon.port}", "show",
                            str(run["id"])], capture_output=True, text=True, timeout=PATIENCE)
    assert shown.returncode == 0 and f"{benchmark}" in shown.stdout, shown.stderr
    assert len(shown.stdout.splitlines()) > 8, shown.stdout


@pytest.mark.parametrize("benchmark,members,member", [
    ("matrix", {"targets": "200"}, "targets"),
    ("pingpong", {"launcher": "processes"}, "launcher"),
    ("c2c", {"cpus": "0"}, "ranks"),
    ("c2c", {"cpus": "0-1", "pairs": "0-1,1-2"}, "pairs"),
    ("loaded", {"load": "none"}, "load"),
    ("latency", {"load": "read"}, "load"),
    ("latency", {"method": "classic", "locality": "1M"}, "locality"),
    ("bandwidth", {"size": "60T"}, "size"),
    ("latency", {"method": "classic", "visits": 3}, "visits"),
    ("pagefault", {"size": "1K"}, "4K at least"),
    ("bandwidth", {"instructions": "neon" if platform.machine() == "x86_64" else "avx2"}, "must be one of auto, scalar"),
])
def test_impossible_requests_are_refused_by_name(finished, benchmark, members, member):
    daemon, _ = finished
    answer = daemon.post("/v1/runs", {"benchmark": benchmark, **members})
    assert answer.status in (409, 422), answer.body
    assert member in json.dumps(answer.json), answer.json


def test_report_says_what_was_found(finished):
    daemon, run = finished
    answer = daemon.get(f"/v1/runs/{run['id']}/report")
    assert answer.status == 200 and answer.json["run"] == run["id"]
    assert {"serial", "concurrent"} <= set(answer.json["report"])
    text = daemon.get(f"/v1/runs/{run['id']}/report.md")
    assert text.headers["Content-Type"].startswith("text/markdown")
    assert "## All ranks at once" in text.body.decode()
    by_accept = daemon.get(f"/v1/runs/{run['id']}/report", Accept="text/markdown")
    assert by_accept.body == text.body
    shown = numaprobe(daemon, "report", str(run["id"]))
    assert shown.returncode == 0 and "Placement and disturbance" in shown.stdout, shown.stderr


def numaprobe(daemon, *words):
    return subprocess.run([f"{build_dir()}/client/numaprobe", "--url",
                           f"http://127.0.0.1:{daemon.port}", *words],
                          capture_output=True, text=True, timeout=PATIENCE)


def test_a_run_compared_with_itself_is_the_same(finished):
    daemon, run = finished
    answer = daemon.get(f"/v1/compare?base={run['id']}&target={run['id']}")
    assert answer.status == 200, answer.body
    told = answer.json
    assert told["matrix"] == "concurrent" and told["fact_changes"] == []
    assert len(told["comparison"]["cells"]) == len(SIZES) * run["ranks"]
    assert all(c["percent"] == 0 and c["verdict"] == "same" for c in told["comparison"]["cells"])
    assert told["verdict"] == "same" and told["comparison"]["identical"]
    overall = told["comparison"]["groups"][0]
    assert overall["by"] == "overall" and overall["percent"] == 0
    serial = daemon.get(f"/v1/compare?base={run['id']}&target={run['id']}&matrix=serial").json
    assert serial["matrix"] == "serial"
    shown = numaprobe(daemon, "compare", str(run["id"]), str(run["id"]))
    assert shown.returncode == 0 and "No recorded fact of the machine differs" in shown.stdout, shown.stderr


@pytest.mark.parametrize("query,status,member", [
    ("base=1", 422, "target"), ("base=x&target=1", 422, "base"), ("base=1&target=999999", 404, None),
    ("base=1&target=1&threshold=0", 422, "threshold"), ("base=1&target=1&matrix=none", 422, "matrix"),
    ("base=1&target=1&allow_different=perhaps", 422, "allow_different"), ("base=1&target=1&colour=red", 400, "colour"),
])
def test_compare_refuses_by_name(finished, query, status, member):
    daemon, _ = finished
    answer = daemon.get("/v1/compare?" + query)
    assert answer.status == status and (member is None or answer.json["member"] == member), answer.body


def on_a_terminal(daemon, words, **environment):
    """What the command writes to a terminal."""
    primary, secondary = pty.openpty()
    shown = subprocess.Popen([f"{build_dir()}/client/numaprobe", "--url", f"http://127.0.0.1:{daemon.port}", *words],
                             stdout=secondary, stderr=subprocess.DEVNULL,
                             env={k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm"} | environment)
    os.close(secondary)
    text = b""
    try:
        while chunk := os.read(primary, 65536):
            text += chunk
    except OSError:  # the other side is closed
        pass
    os.close(primary)
    shown.wait(timeout=PATIENCE)
    return text.decode()


def test_colour_is_for_terminals(finished):
    daemon, run = finished
    words = ["report", str(run["id"])]
    assert "\x1b[1m## " in on_a_terminal(daemon, words)
    assert "\x1b" not in on_a_terminal(daemon, words, NO_COLOR="1")
    assert "\x1b" not in on_a_terminal(daemon, ["--colour=never", *words])
    assert "\x1b" not in numaprobe(daemon, *words).stdout
    assert "\x1b[1m## " in numaprobe(daemon, "--colour=always", *words).stdout
    for name in ("slower", "faster", "inconclusive", "same"):
        shown = on_a_terminal(daemon, ["compare", str(run["id"]), str(run["id"])])
        plain = sum(line.rstrip().endswith(name) for line in shown.splitlines())
        assert plain == 0 or name == "same", shown


def test_a_comparison_is_json_for_programs(finished):
    daemon, run = finished
    other = daemon.run(size="64K,1M,4M", quick=True)
    lines = numaprobe(daemon, "-o", "ndjson", "compare", str(run["id"]), str(other["id"])).stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    assert rows[0]["what"] == "all" and isinstance(rows[0]["percent"], (int, float))
    assert {"64K", "1M", "4M"} <= {row["what"] for row in rows}


def test_other_questions_are_not_compared(finished):
    daemon, run = finished
    classic = daemon.run(size="64K,1M,4M", method="classic")
    answer = daemon.get(f"/v1/compare?base={run['id']}&target={classic['id']}")
    assert answer.status == 409 and "method" in answer.json["detail"], answer.body
    assert daemon.get(f"/v1/compare?base={run['id']}&target={classic['id']}&allow_different=true").status == 200
    other = daemon.run(size="64K,1M,4M", stride=128, quick=True)
    answer = daemon.get(f"/v1/compare?base={run['id']}&target={other['id']}")
    assert answer.status == 409 and answer.json["member"] == "stride", answer.body
    assert "0 in A, 128 in B" in answer.json["detail"], answer.body
    warned = daemon.get(f"/v1/compare?base={run['id']}&target={other['id']}&allow_different=true").json
    assert any("stride" in note for note in warned["comparison"]["notes"]), warned["comparison"]["notes"]
    less = daemon.run(size="64K,4M", precision=5, quick=True, note="less effort, same question")
    told = daemon.get(f"/v1/compare?base={run['id']}&target={less['id']}")
    assert told.status == 200 and {c["working_set"] for c in told.json["comparison"]["cells"]} == {64 << 10, 4 << 20}


def test_serial_and_concurrent_are_no_pair_to_compare(finished):
    """They measure different things: no verdict, but the report that puts them side by side."""
    daemon, _ = finished
    pair = [daemon.run(size="64K", mode=mode, quick=True)["id"] for mode in ("serial", "concurrent")]
    answer = daemon.get(f"/v1/compare?base={pair[0]}&target={pair[1]}")
    assert answer.status == 409 and answer.json["member"] == "mode", answer.body
    assert "measure different things" in answer.json["detail"]
    shown = numaprobe(daemon, "compare", *map(str, pair))
    assert shown.returncode not in (0, 7, 8) and f"numaprobe report {pair[0]} {pair[1]}" in shown.stderr, shown
    assert numaprobe(daemon, "report", *map(str, pair)).returncode == 0, "what it offers works"


def test_a_pair_of_runs_has_one_report(finished):
    daemon, run = finished
    pair = [daemon.run(size="64K,1M,4M", mode=mode, quick=True)["id"] for mode in ("serial", "concurrent")]
    answer = daemon.get(f"/v1/runs/{pair[0]}/report?with={pair[1]}")
    assert answer.status == 200 and answer.json["with"] == pair[1], answer.body
    assert {"serial", "concurrent", "contention", "placement"} <= set(answer.json["report"])
    turned = daemon.get(f"/v1/runs/{pair[1]}/report.md?with={pair[0]}").body
    assert b"## Concurrent against serial" in turned
    shown = numaprobe(daemon, "report", str(pair[0]), str(pair[1]))
    assert shown.returncode == 0, shown.stderr
    head, findings = shown.stdout.encode().split(b"\n", 1)
    assert head.startswith(b"# Runs %d and %d: latency on " % tuple(pair))
    assert findings == turned.split(b"\n", 1)[1], "whichever is named first"
    for other, why in ((run["id"], "pair"), (pair[0], "pair")):
        bad = daemon.get(f"/v1/runs/{pair[0]}/report?with={other}")
        assert bad.status == 409 and bad.json["member"] == "with" and why in bad.json["detail"], bad.body
    assert daemon.get(f"/v1/runs/{pair[0]}/report?with=x").status == 422
    assert daemon.get(f"/v1/runs/{pair[0]}/report?with=999999").status == 404


@pytest.mark.parametrize("benchmark,members,heading", [
    ("matrix", {}, "Local and remote memory"), ("bandwidth", {"size": "8M"}, "Bandwidth"),
    ("bandwidth", {"size": "8M", "sweep": "threads", "kernel": "triad"}, "Bandwidth"),
    ("pingpong", {"message_max": "1K"}, "Messages"), ("c2c", {}, "cache line"),
    ("c2c", {"pairs": "0-1"}, "cache line"),
    ("firsttouch", {"size": "8M"}, "touched first"), ("loaded", {"size": "8M"}, "under load"),
    ("pagefault", {"size": "4M"}, "first touching a page"), ("atomics", {"operation": "fetch_add"}, "on one cache line"),
    ("hierarchy", {"size": "32M", "cell_ms": 5}, "latency is made of"),
    ("scan", {"cell_ms": 6, "visits": 4}, "slower than its peers"),
])
def test_every_benchmark_compares_and_reports(finished, benchmark, members, heading):
    daemon, _ = finished
    run = daemon.run(benchmark=benchmark, quick=True, **members)
    assert run["state"] == "succeeded", run
    report = daemon.get(f"/v1/runs/{run['id']}/report")
    assert report.status == 200 and report.json["report"]["findings"], report.body
    text = daemon.get(f"/v1/runs/{run['id']}/report.md").body.decode()
    assert heading in text and "## Placement" in text
    for finding in report.json["report"]["findings"]:
        assert finding["text"] in text and any(c.isdigit() for c in finding["text"]), finding
    terms = [f["text"] for f in report.json["report"]["findings"] if f["kind"] == "rank" and benchmark == "hierarchy"]
    printed = " ".join(numaprobe(daemon, "show", str(run["id"])).stdout.split())
    assert all(line in printed for line in terms) and bool(terms) == (benchmark == "hierarchy"), (terms, printed)
    same = daemon.get(f"/v1/compare?base={run['id']}&target={run['id']}")
    assert same.status == 200, same.body
    matrices = {m["name"] for m in daemon.get(f"/v1/runs/{run['id']}/matrix").json["matrices"]}
    assert {m["matrix"] for m in same.json["matrices"]} == matrices
    assert same.json["verdict"] == "same" and same.json["comparison"]["identical"]
    assert all(c["percent"] == 0 and c["verdict"] == "same"
               for c in same.json["comparison"]["cells"] if c["percent"] is not None)
    assert same.json["comparison"]["more_is_better"] == (benchmark == "bandwidth")
    shown = numaprobe(daemon, "--colour=always", "compare", str(run["id"]), str(run["id"]))
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("SAME: "), shown.stdout
    assert "\x1b" not in numaprobe(daemon, "compare", str(run["id"]), str(run["id"])).stdout
    other = daemon.get(f"/v1/compare?base={run['id']}&target=1")
    assert other.status == 409, other.body


def stretch(daemon, run, cache):
    """Makes the curve of a run of hierarchy one that ends at 1 GiB, of a machine with a cache of so many bytes that no
    kernel lists."""
    where = "WHERE run_id = ? AND matrix = (SELECT matrix FROM matrix WHERE run_id = ? AND name = 'latency')"
    with sqlite3.connect(daemon.home / "state" / "numaprobe.db") as db:
        axis = json.loads(db.execute(f"SELECT col_axis FROM matrix {where}", (run, run)).fetchone()[0])
        axis["values"] = [v * ((1 << 30) // axis["values"][-1]) for v in axis["values"]]
        db.execute(f"UPDATE matrix SET col_axis = ? {where}", (json.dumps(axis), run, run))
        for col, size in enumerate(axis["values"]):
            ns = 10 if size <= cache else 100 - 90 * cache / size
            db.execute(f"UPDATE cell SET median_milli = ? {where} AND col = ?", (round(1000 * ns), run, run, col))
    db.close()
    return min(r["huge_share"] for r in daemon.get(f"/v1/runs/{run}/matrix").json["ranks"])


def test_sizes_follow_from_a_run_of_hierarchy(make_daemon):
    """The plan, the dry run and the command line say from which; without the run all is as before."""
    daemon = make_daemon()
    dry = daemon.post("/v1/runs?dry_run=true", {"benchmark": "matrix"}).json
    before = dry["plan"]
    assert before["sizes_from"] is None and "--found-cache" not in dry["command"], dry
    run = daemon.run(benchmark="hierarchy", size="32M", quick=True, cell_ms=5)
    assert run["state"] == "succeeded", run
    llc = daemon.get("/v1/topology").json["llc_bytes"] or 64 << 20
    cache = max(2 * llc, 48 << 20) if llc < 96 << 20 else llc // 2  # above what a target has at least, 64 MiB
    if stretch(daemon, run["id"], cache) < 0.99:
        pytest.skip("the kernel gave no huge pages")
    dry = daemon.post("/v1/runs?dry_run=true", {"benchmark": "matrix"}).json
    plan = dry["plan"]
    assert plan["sizes_from"] == run["id"], plan
    assert [n for n in plan["notes"] if n.startswith(f"sizes from run {run['id']} (hierarchy): it found ")], plan
    if cache > llc:
        found = plan["found_cache_bytes"]
        assert 1.5 * llc < found <= 2 * cache and f" --found-cache={found} " in dry["command"], dry
        assert plan["bytes_per_target"] >= 4 * found > before["bytes_per_target"], (before, plan)
    small = daemon.run(benchmark="loaded", size="8M", quick=True, mix="reads", steps=2)
    assert small["state"] == "succeeded" and small["plan"]["found_cache_bytes"] == plan["found_cache_bytes"], small
    assert daemon.request("DELETE", f"/v1/runs/{run['id']}").status in (200, 204)
    assert daemon.post("/v1/runs?dry_run=true", {"benchmark": "matrix"}).json["plan"] == before


def test_an_estimate_counts_with_what_pages_cost_here(make_daemon):
    """The plan says by which run, and by how much, which is bounded; a run that was disturbed is no such run."""
    daemon = make_daemon()

    def plan(benchmark):
        ranks = 1 if benchmark == "pagefault" else 2  # of many the bandwidth of memory is the limit
        return daemon.post("/v1/runs?dry_run=true", {"benchmark": benchmark, "ranks": ranks}).json["plan"]

    def change(sql):
        with sqlite3.connect(daemon.home / "state" / "numaprobe.db") as db:
            assert db.execute(sql, (run["id"],)).rowcount > 0, sql
        db.close()
        return plan("pagefault")

    before, other = plan("pagefault"), plan("c2c")
    assert before["estimate_speeds"] == [] and before["estimate_from"] is None, before
    run = daemon.run(benchmark="pagefault", size="4M", quick=True, launcher="processes")
    assert run["state"] == "succeeded", run
    change("UPDATE run SET conditions = '[]' WHERE id = ?")
    slow = change("UPDATE metric SET value_milli = 4552000 WHERE run_id = ?")
    assert {s["speed"]: s for s in slow["estimate_speeds"]}["base_page"] == {
        "speed": "base_page", "benchmark": "pagefault", "run": run["id"], "times": 2}, slow
    assert 1.5 * before["estimate_s"] < slow["estimate_s"] < 2.1 * before["estimate_s"], (before, slow)
    assert plan("c2c")["estimate_s"] > other["estimate_s"], "starting ranks is the kernel's work too"
    bounded = change("UPDATE metric SET value_milli = 4552000000 WHERE run_id = ?")
    assert {s["times"] for s in bounded["estimate_speeds"]} == {4} and bounded["estimate_s"] < 4.1 * before["estimate_s"], bounded
    cut = change("""UPDATE run SET conditions = '[{"kind":"time_limit","severity":"warning"}]' WHERE id = ?""")
    assert cut == before, (before, cut)
    change("UPDATE run SET conditions = NULL WHERE id = ?")
    fresh = change("UPDATE run SET config_hash = (SELECT hash FROM fingerprint WHERE kind = 'class') WHERE id = ?")
    assert fresh == before, "a node that was set up otherwise keeps the assumed speeds"


def test_estimates_learn_from_runs_of_the_same_request(make_daemon):
    """Of another size, with a budget or cut by their time limit they do not count; a run that starts keeps the estimate of its plan."""
    daemon = make_daemon()
    spec = {"benchmark": "latency", "size": "1", "ranks": 1, "quick": True, "launcher": "processes"}

    def plan(**other):
        return daemon.post("/v1/runs?dry_run=true", {**spec, **other}).json["plan"]

    def change(sql):
        with sqlite3.connect(daemon.home / "state" / "numaprobe.db") as db:
            assert db.execute(sql, (run["id"],)).rowcount > 0, sql
        db.close()
        return plan()

    before, usual, other = plan(), plan(quick=False), plan(size="2")
    assert before["estimate_past"] is None, before
    run = daemon.run(**spec)
    assert run["state"] == "succeeded" and run["plan"]["estimate_s"] == before["estimate_s"], run
    ms = round(2000 * before["estimate_s"])
    change("UPDATE run SET conditions = NULL WHERE id = ?")
    slow = change(f"UPDATE run SET finished_ms = started_ms + {ms} WHERE id = ?")
    assert slow["estimate_past"]["run"] == run["id"], slow
    assert slow["estimate_past"]["times"] == pytest.approx(2, rel=0.01), slow
    assert slow["estimate_s"] == pytest.approx(2 * before["estimate_s"], rel=0.01), (before, slow)
    longer = usual["estimate_s"] + before["estimate_s"]
    assert plan(quick=False)["estimate_s"] == pytest.approx(longer, rel=0.01), "what the short run lost, and no more"
    assert plan(size="2") == other, "another size is another request"
    again = daemon.run(**spec)
    assert again["plan"]["estimate_past"] == slow["estimate_past"], again
    for kind in ("time_limit", "budget"):
        cut = change(f"""UPDATE run SET conditions = '[{{"kind":"{kind}","severity":"warning"}}]' WHERE id = ?""")
        assert cut["estimate_past"]["run"] == again["id"], (kind, cut)


@contextlib.contextmanager
def reserved(pages):
    """So many huge pages of 2 MiB more are reserved, as far as this machine lets us."""
    knob = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
    try:
        before = int(open(knob, encoding="ascii").read())
        with open(knob, "w", encoding="ascii") as f:
            f.write(str(before + pages))
    except OSError as e:
        pytest.skip(f"no huge pages can be reserved: {e}")
    try:
        if int(open(knob, encoding="ascii").read()) < before + pages:
            pytest.skip(f"the kernel reserves fewer than {pages} huge pages")
        yield
    finally:
        with open(knob, "w", encoding="ascii") as f:
            f.write(str(before))


def test_reserved_huge_pages(make_daemon):
    """They are counted before the run, used by it and named in its result; too few refuse it with both numbers."""
    daemon = make_daemon()
    spec = {"benchmark": "latency", "size": "4M", "cpus": "0", "quick": True, "pages": "2M"}
    node = daemon.post("/v1/runs?dry_run=true", {**spec, "pages": "thp"}).json["plan"]["ranks"][0]["mem_node"]
    pool = f"/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/free_hugepages"
    with reserved(8):
        free = int(open(pool, encoding="ascii").read())
        refused = daemon.post("/v1/runs", {**spec, "size": f"{2 * free + 2}M"})
        assert refused.status >= 400 and refused.json["member"] == "pages", refused.body
        assert f"{free + 1} huge pages of 2M are needed on node {node}, {free} are free there" in refused.json["detail"], refused.body
        run = daemon.run(**{k: v for k, v in spec.items() if k != "benchmark"})
        assert run["state"] == "succeeded" and run["plan"]["reserved_page_bytes"] == 2 << 20, run
        rank, = daemon.get(f"/v1/runs/{run['id']}/matrix").json["ranks"]
        assert rank["pages_wanted"] == rank["pages_got"] == "2M" and rank["huge_share"] == 1, rank
        assert [c["text"] for c in run["conditions"] if c["kind"] == "pages"] == [
            "memory is on reserved huge pages of 2M, up to 2 of them per rank"], run["conditions"]
        assert int(open(pool, encoding="ascii").read()) == free
    refused = daemon.post("/v1/runs", {**spec, "pages": "1G", "size": "64G"})
    assert refused.json["member"] == "pages" and "huge pages of 1G" in refused.json["detail"], refused.body
