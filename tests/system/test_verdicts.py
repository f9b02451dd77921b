# SPDX-License-Identifier: Apache-2.0
"""One verdict on two runs: compare's JSON, text and exit status, check, its metric and the report say the same and name
the same part."""
import copy
import random
import pathlib
import re
import subprocess

import pytest

from conftest import PATIENCE, ROOT, Daemon, build_dir

NODES = 8
EXIT = {"same": 0, "faster": 0, "slower": 7, "inconclusive": 8}
STATE = {"same": 0, "faster": 0, "inconclusive": 3}


def numaprobe(daemon, *words):
    return subprocess.run([f"{build_dir()}/client/numaprobe", "--url", f"http://127.0.0.1:{daemon.port}", *map(str, words)],
                          capture_output=True, text=True, timeout=PATIENCE)


def cell(value):
    """A quiet cell of many samples."""
    spread = {"n": 30, "disturbed": 0, "lo": 0.99 * value, "hi": 1.01 * value, "sd": 0.005 * value, "converged": 1, "overlap": None}
    return {k: round(v, 3) if isinstance(v, float) else v for k, v in
            {**dict.fromkeys(("median", "min", "p10", "p90", "p99", "mean"), value), **spread}.items()}


def idle(whole, day, factor, rng):
    """The export of a run as if it had been measured on eight nodes of two sockets."""
    run = copy.deepcopy(whole)
    run.update(topology=None, fingerprint=None)
    run["run"].update(ranks=NODES, cells=NODES * NODES, plan=None, **dict.fromkeys(("hardware_hash", "config_hash", "topology_hash")),
                      **{key: f"2026-01-{day:02}T00:00:0{second}.000Z"
                         for second, key in enumerate(("created", "started", "measured", "finished"))})
    own = list(range(NODES))
    base = [[100 if i == j else 140 if i // 4 == j // 4 else 200 for j in own] for i in own]
    run["matrices"][0].update(
        rows={"name": "rank", "unit": "", "values": own}, cols={"name": "target", "unit": "", "values": own},
        cells=[[cell(base[i][j] * factor(i, j) * rng.lognormvariate(0, 0.002)) for j in own] for i in own])
    run["ranks"] = [{**whole["ranks"][0], "rank": i, "cpu": i, "cpu_wanted": i, "cpu_node": i, "mem_node": i, "nodes": []}
                    for i in own]
    return run


SHAPES = {
    "again": (lambda i, j: 1, "same", None),
    "column": (lambda i, j: 1.182 if j == 3 else 1, "slower", "memory of node 3"),
    "row": (lambda i, j: 1.1 if i == 5 else 1, "slower", "rank 5"),
    "link": (lambda i, j: 1.4 if (i, j) == (2, 6) else 1, "slower", "rank 2 on memory of node 6"),
    "everything": (lambda i, j: 1.05, "slower", "all"),
    "fast": (lambda i, j: 0.8 if j == 3 else 1.02, "faster", "memory of node 3"),
}


@pytest.fixture(scope="module")
def fleet(numaprobed, tmp_path_factory):
    """Runs by the name of their shape; "first" is what they are held against."""
    daemon = Daemon(numaprobed, tmp_path_factory.mktemp("numaprobed")).start()
    run = daemon.run(benchmark="matrix", quick=True, cpus="0", size="1M", launcher="processes")
    assert run["state"] == "succeeded", run
    whole = daemon.get(f"/v1/runs/{run['id']}/export").json
    rng = random.Random(7)
    runs = [idle(whole, 1, lambda i, j: 1, rng)] + [
        idle(whole, day + 2, shape[0], rng) for day, shape in enumerate(SHAPES.values())]
    ids = []
    for one in runs:
        answer = daemon.post("/v1/imports", one)
        assert answer.status == 201, answer.body
        ids.append(answer.json["id"])
    assert daemon.request("PUT", "/v1/baselines/peers", {"run": ids[0]}).status == 200
    yield daemon, dict(zip(["first", *SHAPES], ids))
    daemon.stop()


def test_history_ends_with_the_verdict_of_check(fleet):
    """The newest run of a metric: history, check and compare say the same of it."""
    daemon, ids = fleet
    series = [s for s in daemon.get("/v1/history").json["series"] if s["last_run"] == ids["fast"]]
    assert series, "the newest run has metrics"
    shown = numaprobe(daemon, "history", series[0]["metric"], "--node", series[0]["node"], "--variant", series[0]["variant"])
    told = daemon.get(f"/v1/compare?base={ids['first']}&target={ids['fast']}").json
    line = " ".join(shown.stdout.split())
    check = daemon.get(f"/v1/check?run={ids['fast']}").json
    assert re.search(rf"run {ids['fast']} of matrix \(.*\) against baseline peers: {told['verdict']}; ", line), shown
    assert told["text"] in line and told["text"] in check["text"] and told["verdict"] == check["verdict"] == "faster", check


def test_check_of_a_run_of_the_baseline_itself(fleet):
    daemon, ids = fleet
    own = "the run is one of the baseline: no run was measured in this way since"
    assert {name for name in ids if own in daemon.get(f"/v1/check?run={ids[name]}").json["line"]} == {"first"}


def test_check_names_another_core(fleet):
    """As compare does: a rank measured on another one."""
    daemon, ids = fleet
    other = daemon.get(f"/v1/runs/{ids['again']}/export").json
    for rank, cpu in zip(other["ranks"], (0, 9, 2)):
        rank.update(cpu=cpu, cpu_wanted=cpu)
    other["run"]["measured"] = "2026-03-01T00:00:00.000Z"
    run = daemon.post("/v1/imports", other).json["id"]
    check = daemon.get(f"/v1/check?baseline=peers&run={run}").json
    assert check["verdict"] == "same", check
    assert "placement of rank 1 differs: CPU 1 in A, CPU 9 in B" in check["notes"], check
    assert daemon.request("DELETE", f"/v1/runs/{run}").status == 204


@pytest.mark.parametrize("name", SHAPES)
def test_one_verdict_everywhere(fleet, name):
    daemon, ids = fleet
    _, verdict, part = SHAPES[name]
    told = daemon.get(f"/v1/compare?base={ids['first']}&target={ids[name]}").json
    assert told["verdict"] == verdict, told["text"]
    assert part is None or part in told["text"], told["text"]
    assert [m["verdict"] for m in told["matrices"]] == [told["comparison"]["verdict"]] == [verdict]
    loud = [g for g in told["comparison"]["groups"] if g["verdict"] == "slower"]
    assert verdict == "slower" or not loud, "no group contradicts it"
    shown = numaprobe(daemon, "compare", ids["first"], ids[name])
    assert shown.returncode == EXIT[verdict], shown
    assert shown.stdout.splitlines()[0] == f"{verdict.upper()}: {told['text']}"
    assert numaprobe(daemon, "-o", "json", "compare", ids["first"], ids[name]).returncode == EXIT[verdict]
    check = daemon.get(f"/v1/check?baseline=peers&run={ids[name]}").json
    assert check["verdict"] == verdict and told["text"] in check["text"], check
    assert check["notes"] == told["comparison"]["notes"], (check, told["comparison"])
    assert (check["code"] in (1, 2)) == (verdict == "slower"), check
    assert verdict == "slower" or check["code"] == STATE[verdict]
    assert numaprobe(daemon, "check", "peers", f"--run={ids[name]}").returncode == check["code"]
    if verdict == "slower":
        assert check["worst"]["name"] == part and check["worst"]["percent"] > 3, check["worst"]


def test_the_metric_is_the_check(fleet):
    """What /metrics exports is what /v1/check says of the same baseline."""
    daemon, _ = fleet
    check = daemon.get("/v1/check?baseline=peers").json
    state = re.search(r'^numaprobe_check_state\{baseline="peers"[^}]*\} (\d)', daemon.get("/metrics").body.decode(), re.M)
    assert state and int(state[1]) == check["code"], check


def test_a_run_and_its_copy_are_the_same(fleet):
    daemon, ids = fleet
    whole = daemon.get(f"/v1/runs/{ids['column']}/export").json
    for key in ("created", "started", "measured", "finished"):
        whole["run"][key] = whole["run"][key].replace("2026-01", "2026-02")
    copied = daemon.post("/v1/imports", whole)
    assert copied.status == 201, copied.body
    for other in (ids["column"], copied.json["id"]):
        told = daemon.get(f"/v1/compare?base={ids['column']}&target={other}").json
        assert told["verdict"] == "same" and told["comparison"]["identical"], told["text"]
        assert {g["verdict"] for g in told["comparison"]["groups"]} == {"same"}
        assert numaprobe(daemon, "compare", ids["column"], other).returncode == 0


def test_the_report_names_the_column(fleet):
    daemon, ids = fleet
    text = daemon.get(f"/v1/runs/{ids['column']}/report.md").body.decode()
    assert re.search(r"Memory of node 3 is slower than that of other nodes.*\+18\.\d %", text), text
    assert "Rank 5 is slower" in daemon.get(f"/v1/runs/{ids['row']}/report.md").body.decode()
    assert "slower" not in daemon.get(f"/v1/runs/{ids['again']}/report.md").body.decode()


def test_compare_begins_with_a_headline_and_has_rows_with_all(fleet):
    daemon, ids = fleet
    short = numaprobe(daemon, "compare", ids["first"], ids["column"]).stdout
    rows = numaprobe(daemon, "compare", "--all", ids["first"], ids["column"]).stdout
    assert re.match(r"SLOWER: idle memory of node 3 \+18\.\d % \[\+1\d\.\d, \+1\d\.\d\]; the rest same ", short), short
    assert "target" not in short and "--all" in short and len(short.splitlines()) <= 8
    assert "target 3" in rows and "target 4" in rows and "--all" not in rows
    assert numaprobe(daemon, "-o", "csv", "compare", ids["first"], ids["column"]).stdout.count("\n") > 20


def test_exit_statuses_are_one_table():
    """--help and the manual page list the same."""
    shown = subprocess.run([f"{build_dir()}/client/numaprobe", "--help"], capture_output=True, text=True).stdout
    listed = re.findall(r"^  (\d+) +(.+)$", shown[shown.index("exit status"):], re.M)
    page = pathlib.Path(build_dir(), "docs/numaprobe.1").read_text()
    section = page[page.index(".SH EXIT STATUS"):page.index(".SH ENVIRONMENT")]
    assert re.findall(r"^\.B (\d+)\n(.+)$", section, re.M) == listed
    assert [int(status) for status, _ in listed] == [*range(10), 130]
    assert "compare" in dict(listed)["7"] and "compare" in dict(listed)["8"]
