# SPDX-License-Identifier: Apache-2.0
"""Runs over HTTP against a bench that replays: create, wait, follow, list, read, cancel, delete."""
import csv
import io
import json
import math
import re
import subprocess
import xml.etree.ElementTree

import pytest

from conftest import FAKE_BENCH, Bench, build_dir, fake_bench_env, until

pytestmark = pytest.mark.usefixtures("needs_fake_bench")
SPEC = {"benchmark": "latency", "size": "1,2", "cpus": "0"}


@pytest.fixture(scope="module")
def done(daemon):
    run = daemon.run(**{k: v for k, v in SPEC.items() if k != "benchmark"})
    assert run["state"] == "succeeded", (run, daemon.get(f"/v1/runs/{run['id']}/log").body)
    return run


def test_accepted_run_has_a_place(daemon):
    answer = daemon.post("/v1/runs", SPEC)
    assert answer.status == 202
    assert answer.headers["Location"] == "/v1/runs/%d" % answer.json["id"]
    assert answer.json["state"] in ("queued", "running")
    assert daemon.wait(answer.json["id"])["spec"]["size"] == "1,2"


def test_prefer_wait(daemon):
    """200 is a run that is finished, 202 one that is not, whichever way the client asks to wait."""
    answer = daemon.post("/v1/runs", SPEC, Prefer="respond-async, wait=60")
    assert answer.status == 200 and answer.json["state"] == "succeeded"
    assert answer.headers["Preference-Applied"] == "wait=60"
    path = answer.headers["Location"]
    assert path == "/v1/runs/%d" % answer.json["id"]
    asked = daemon.post("/v1/runs?wait=60", SPEC, Prefer="wait=5")
    assert asked.status == 200 and "Preference-Applied" not in asked.headers, "the parameter was applied"
    for _ in range(2):  # the second answer is one that was kept
        shown = daemon.get(path, Prefer="wait=99")
        assert shown.status == 200 and shown.headers["Preference-Applied"] == "wait=60"
    same = daemon.get(path, Prefer="wait=9", If_None_Match=shown.headers["ETag"])
    assert same.status == 304 and same.headers["Preference-Applied"] == "wait=9"
    gone = daemon.get("/v1/runs/99999999", Prefer="wait=9")
    assert gone.status == 404 and "Preference-Applied" not in gone.headers
    ignored = daemon.get(path, Prefer="wait=never")
    assert ignored.status == 200 and "Preference-Applied" not in ignored.headers


def test_what_is_not_finished_is_202(make_daemon, tmp_path):
    bench = tmp_path / "fake_bench-hang"
    bench.symlink_to(FAKE_BENCH)
    for folder in (tmp_path, *list(tmp_path.parents)[:2]):
        folder.chmod(folder.stat().st_mode | 0o011)  # the account of the ranks comes through
    daemon = make_daemon({**fake_bench_env(), "NUMAPROBE_BENCH": str(bench)})
    run = daemon.post("/v1/runs", SPEC, Idempotency_Key="same")
    assert run.status == 202 and run.json["state"] in ("queued", "running")
    until(lambda: daemon.get(f"/v1/runs/{run.json['id']}").json["state"] == "running")
    for how in ({"Prefer": "wait=1"}, {}):
        query = "" if how else "?wait=1"
        again = daemon.post("/v1/runs" + query, SPEC, Idempotency_Key="same", **how)
        assert again.status == 202 and again.json["state"] == "running", again.body
        assert again.headers.get("Preference-Applied") == how.get("Prefer")
    assert daemon.get(f"/v1/runs/{run.json['id']}", Prefer="wait=1").status == 200
    waiting = daemon.post("/v1/runs", SPEC).json["id"]
    at_once = daemon.post(f"/v1/runs/{waiting}/cancel")
    assert at_once.status == 200 and at_once.json["state"] == "canceled"
    daemon.post(f"/v1/runs/{run.json['id']}/cancel")
    daemon.wait(run.json["id"])
    again = daemon.post("/v1/runs", SPEC, Idempotency_Key="same")
    assert again.status == 200 and again.json["state"] == "canceled"


def test_run_beyond_its_time_limit_is_refused(daemon):
    """Both numbers are named, and nothing is stored."""
    long = {**SPEC, "size": "1-1024", "mode": "both", "timeout_s": 1}
    estimate = daemon.post("/v1/runs?dry_run=true", {**long, "timeout_s": 900}).json["plan"]["estimate_s"]
    assert 1 < estimate < 900
    automatic = daemon.post("/v1/runs?dry_run=true", {k: v for k, v in long.items() if k != "timeout_s"}).json
    assert automatic["plan"]["timeout_s"] == 900 and "--deadline=900 " in automatic["command"], automatic
    longer = daemon.post("/v1/runs?dry_run=true", {**SPEC, "size": "1-4096", "mode": "serial", "visits": 100,
                                                   "cell_ms": 100000}).json["plan"]
    assert longer["timeout_s"] == pytest.approx(2 * longer["estimate_s"], abs=2) and longer["timeout_s"] > 900, longer
    for query in ("", "?dry_run=true"):
        refused = daemon.post("/v1/runs" + query, long)
        assert refused.status == 422 and refused.json["member"] == "timeout_s", refused.body
        about = f"{estimate:.1f}" if estimate < 10 else str(math.ceil(estimate))
        said = f"is 1 s, but the run takes about {about} s, and 0.25 s of the limit are kept for starting and ending it: "
        assert said in refused.json["detail"], refused.body
    # What is kept is no more than a quarter of the limit, and less of a longer one.
    assert daemon.post("/v1/runs?dry_run=true", {**long, "timeout_s": math.floor(estimate)}).status == 422
    accepted = daemon.post("/v1/runs", {**long, "timeout_s": math.ceil(estimate * 4 / 3)})
    assert accepted.status == 202
    daemon.wait(accepted.json["id"])  # on a busy machine it fails: other tests list the runs that failed
    assert daemon.request("DELETE", accepted.headers["Location"]).status == 204


def test_a_budget_lowers_effort(daemon):
    """The plan, the command line and a condition state it; what is too little is refused with both numbers."""
    asked = {**SPEC, "size": "1-64", "mode": "both", "cell_ms": 400}
    usual = daemon.post("/v1/runs?dry_run=true", asked).json["plan"]
    assert usual["shortened"] == [] and usual["estimate_s"] > 3, usual
    budget = math.floor(usual["estimate_s"] - 1)
    dry = daemon.post("/v1/runs?dry_run=true", {**asked, "budget_s": budget}).json
    assert dry["plan"]["estimate_s"] <= budget and dry["plan"]["shortened"], dry
    for one in dry["plan"]["shortened"]:
        assert one["to"] < one["from"] and f"--{one['name'].replace('_', '-')}={one['to']}" in dry["command"], dry
    refused = daemon.post("/v1/runs", {**asked, "size": "1-4096", "budget_s": 1})
    assert refused.status == 422 and refused.json["member"] == "budget_s", refused.body
    assert "is 1 s, but the run with the least effort takes about " in refused.json["detail"], refused.body
    assert usual["estimate_most_s"] == usual["estimate_s"] and dry["plan"]["estimate_most_s"] == dry["plan"]["estimate_s"]
    scan = daemon.post("/v1/runs?dry_run=true", {"benchmark": "scan"}).json["plan"]
    assert scan["estimate_s"] * 1.5 < scan["estimate_most_s"] <= 60, scan
    run = daemon.run(**{k: v for k, v in asked.items() if k != "benchmark"}, budget_s=budget)
    assert run["plan"]["shortened"] == dry["plan"]["shortened"]
    assert all(run["spec"][one["name"]] == one["to"] for one in run["plan"]["shortened"]), run["spec"]
    assert [c["text"] for c in run["conditions"] if c["kind"] == "budget"][0].startswith(f"to fit the budget of {budget} s: ")


PAIRS = {"benchmark": "c2c", "definition": "cas", "lines": 1, "concurrent_pairs": "one", "cpus": ",".join(["0,1"] * 45),
         "oversubscribe": True, "launcher": "processes", "repetitions": 20, "min_samples": 7, "visits": 1}


def test_a_budget_chooses_pairs(make_daemon):
    """Of 4,005 pairs of 90 ranks; the cells that are not measured are empty, and the series is another one."""
    daemon = make_daemon(env=fake_bench_env())
    full = daemon.run(**PAIRS)
    budget = math.floor(full["plan"]["estimate_s"] / 4)  # of hours: two ranks on a CPU wait for the scheduler
    run = daemon.run(**PAIRS, budget_s=budget)
    assert run["state"] == "succeeded" and run["plan"]["estimate_s"] <= budget < full["plan"]["estimate_s"], run
    most = run["spec"]["pairs_most"]
    assert {"name": "pairs_most", "from": 4005, "to": most} in run["plan"]["shortened"] and 90 <= most < 4005, run["plan"]
    assert f"the budget of {budget} s has room for {most} of 4005 pairs" in \
        [c["text"] for c in run["conditions"] if c["kind"] == "budget"], run["conditions"]
    [matrix] = daemon.get(f"/v1/runs/{run['id']}/matrix").json["matrices"]
    assert sum(bool(cell and cell["median"]) for row in matrix["cells"] for cell in row) == most
    report = daemon.get(f"/v1/runs/{run['id']}/report").json
    assert f"{most} of 4005 pairs were measured" in str(report), report
    until(lambda: not daemon.get("/v1/history").json["pending"])  # metrics of many cells come behind the run
    series = daemon.get("/v1/history").json["series"]
    assert {s["variant"] for s in series if s["metric"] == "c2c.cas.median_ns"} == \
        {full_variant := f"definition=cas lines=1 concurrent_pairs=one cpus={PAIRS['cpus']}",
         full_variant.replace("lines", f"pairs_most={most} lines")}
    compared = daemon.get(f"/v1/compare?base={full['id']}&target={run['id']}").json
    assert f"{4005 - most} of 4005 cells have no value in A or in B" in str(compared), list(compared)
    refused = daemon.request("PUT", "/v1/baselines/default", {"runs": [full["id"], run["id"]]})
    assert refused.status == 409 and f"pairs_most={most}" in refused.json["detail"], refused.body
    exported = daemon.get(f"/v1/runs/{run['id']}/export").json
    assert daemon.post("/v1/imports", exported).status in (200, 201)


def test_a_run_finds_that_a_budget_has_room_for_fewer_pairs(make_daemon, tmp_path):
    """It knows when it has measured control pairs. The plan and the spec that are stored say so too."""
    bench = Bench(tmp_path)
    for folder in list(tmp_path.parents)[:2]:
        folder.chmod(folder.stat().st_mode | 0o011)  # the account of the ranks comes through
    daemon = make_daemon(bench.env)
    asked = {k: v for k, v in PAIRS.items() if k != "concurrent_pairs"}
    full = daemon.run(**asked, timeout_s=86400)
    asked["budget_s"] = math.ceil(full["plan"]["estimate_s"]) + 1
    assert full["state"] == "succeeded" and daemon.run(**asked)["spec"].get("pairs_most", 0) == 0
    bench.behave("fewer-pairs 128")
    run = daemon.run(**asked)
    assert run["state"] == "succeeded" and run["spec"]["pairs_most"] == 128, run
    assert run["plan"]["shortened"] == [{"name": "pairs_most", "from": 4005, "to": 128}], run["plan"]
    [matrix] = daemon.get(f"/v1/runs/{run['id']}/matrix").json["matrices"]
    assert sum(bool(cell and cell["median"]) for row in matrix["cells"] for cell in row) == 128
    until(lambda: not daemon.get("/v1/history").json["pending"])  # metrics of many cells come behind the run
    assert any("pairs_most=128" in s["variant"] for s in daemon.get("/v1/history").json["series"])
    exported = daemon.get(f"/v1/runs/{run['id']}/export").json
    assert daemon.post("/v1/imports", exported).status in (200, 201)
    for behaviour, text in (("fewer-pairs 4005", "4005 of 4005 pairs"), ("fewer-pairs 89", "89 of 4005 pairs"),
                            ("late-pairs 128", "behind a matrix"), ("uncounted-pairs 128", "cells without a value")):
        bench.behave(behaviour)
        bad = daemon.run(**asked)
        assert bad["state"] == "failed" and text in bad["error"]["text"], (behaviour, bad["error"])
        assert bad["plan"]["shortened"] == [] and not bad["cells"], bad


def test_a_time_limit_without_room_is_named_while_the_run_is_measured(make_daemon, tmp_path):
    """By GET, by the events, and by the command line; it is not there twice when the run has finished."""
    bench = Bench(tmp_path)
    for folder in list(tmp_path.parents)[:2]:
        folder.chmod(folder.stat().st_mode | 0o011)  # the account of the ranks comes through
    bench.behave("short-limit")
    daemon = make_daemon(bench.env)
    cli = subprocess.Popen([f"{build_dir()}/client/numaprobe", f"--url=http://127.0.0.1:{daemon.port}", "run", "--size=1,2",
                            "--cpus=0"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    line = next(line for line in cli.stderr if line.startswith("warning: "))
    assert "take about 99 s, and the time limit has room for 9 s" in line, line
    [run] = daemon.get("/v1/runs").json["runs"]

    def of_limit(shown):
        return [c for c in shown["conditions"] if c["kind"] == "time_limit"]
    shown = daemon.get(f"/v1/runs/{run['id']}").json
    assert shown["state"] == "running" and len(of_limit(shown)) == 1 and shown["progress"]["eta_ms"] == 1000, shown
    event = next(run for _, _, run in daemon.events(run["id"]))
    assert event["conditions"] == shown["conditions"], event
    (tmp_path / "fake_bench.go").touch()
    rest = cli.stderr.read()
    assert cli.wait() == 0 and "warning: 8 repetitions" not in rest, rest
    assert of_limit(daemon.wait(run["id"])) == of_limit(shown)


def test_a_budget_chooses_pairs_of_a_large_machine(make_daemon):
    daemon = make_daemon(env={"HWLOC_SYNTHETIC": "pack:2 group:12 [numa(memory=34359738368)] l3:1 core:8 pu:1"})
    asked = {"benchmark": "pingpong", "pairs": "all"}
    dry = daemon.post("/v1/runs?dry_run=true", {**asked, "budget_s": 60}).json
    assert {"name": "pairs_most", "from": 18336, "to": 8192} in dry["plan"]["shortened"], dry["plan"]
    assert dry["plan"]["estimate_s"] <= 60 and "--pairs-most=8192" in dry["command"], dry
    refused = daemon.post("/v1/runs?dry_run=true", {**asked, "budget_s": 1})
    assert refused.status == 422 and refused.json["member"] == "budget_s", refused.body


def test_what_was_measured_before_the_time_limit_is_kept(make_daemon, tmp_path):
    """The run has failed: it has its cells, and belongs to no history."""
    bench = tmp_path / "fake_bench"
    bench.symlink_to(FAKE_BENCH)
    (tmp_path / "fake_bench.behaviour").write_text("slow 0.5")
    for folder in (tmp_path, *list(tmp_path.parents)[:2]):
        folder.chmod(folder.stat().st_mode | 0o011)  # the account of the ranks comes through
    daemon = make_daemon({**fake_bench_env(), "NUMAPROBE_BENCH": str(bench)})

    def medians_of_a_run():
        """What it has; on a busy machine its limit may be over before it begins to measure."""
        run = daemon.run(size=",".join(f"{n}K" for n in range(1, 41)), cell_ms=5, visits=1, timeout_s=12, launcher="processes")
        assert run["state"] == "failed" and run["error"]["type"] == "timeout", run
        found = daemon.get(f"/v1/runs/{run['id']}/matrix").json["matrices"]
        medians = [cell["median"] for matrix in found for row in matrix["cells"] for cell in row]
        assert run["cells"] == len(medians), run
        return any(medians) and medians
    assert None in until(medians_of_a_run)
    assert not daemon.get("/v1/history").json["series"]


def test_idempotency_key(daemon):
    first = daemon.post("/v1/runs", SPEC, Idempotency_Key="k1").json["id"]
    assert daemon.post("/v1/runs", SPEC, Idempotency_Key="k1").json["id"] == first
    other = daemon.post("/v1/runs", {**SPEC, "size": "4"}, Idempotency_Key="k1")
    assert other.status == 409 and other.json["member"] == "Idempotency-Key"
    assert daemon.post("/v1/runs", SPEC, Idempotency_Key="a b").status == 422
    daemon.wait(first)


def test_events_end_with_the_final_state(daemon):
    run_id = daemon.post("/v1/runs", SPEC).json["id"]
    seen = list(daemon.events(run_id))
    assert seen[-1][0] == "state" and seen[-1][2]["state"] == "succeeded"
    ids = [event_id for _, event_id, _ in seen]
    assert ids == sorted(ids)
    assert all(run["id"] == run_id for _, _, run in seen)
    last = str(ids[-1])
    assert daemon.get(f"/v1/runs/{run_id}/events", Last_Event_ID=last).status == 204
    assert len(list(daemon.events(run_id))) == 1


def test_who_lacks_the_final_state_gets_it_after_a_restart(make_daemon):
    """Numbers of events begin anew with the daemon; 204 would tell a browser never to come back."""
    first = make_daemon(fake_bench_env())
    run_id = first.run(size="1")["id"]
    last = str(list(first.events(run_id))[-1][1])
    first.stop()
    daemon = make_daemon(fake_bench_env(), home=first.home)
    path = f"/v1/runs/{run_id}/events"
    for seen in ("1", "3", "50", "0", "-1", "x"):
        assert b"event: state\n" in daemon.get(path, Last_Event_ID=seen).body, seen
    assert daemon.get(path, Last_Event_ID=last).status == 204


def test_conditional_get(daemon, done):
    path = f"/v1/runs/{done['id']}"
    tag = daemon.get(path).headers["ETag"]
    again = daemon.get(path, If_None_Match=tag)
    assert again.status == 304 and again.body == b"" and again.headers["ETag"] == tag
    assert daemon.get(path, If_None_Match='"other"').status == 200


def test_an_answer_is_never_older_than_the_run(daemon, done):
    """Answers are kept for a crowd of readers; whatever changes a run, the next answer has it."""
    path = f"/v1/runs/{done['id']}"
    for label in ("first", "second", ""):
        before = daemon.get(path)
        assert daemon.get(path).body == before.body  # this one was kept
        assert daemon.request("PUT", path + "/label", {"label": label}).status == 200
        after = daemon.get(path, If_None_Match=before.headers["ETag"])
        assert after.status == 200 and after.json["label"] == (label or None)
        assert daemon.get(path + "?wait=5").body == after.body
    victim = daemon.run(size="1", cpus="0")["id"]
    for _ in range(2):
        assert daemon.get(f"/v1/runs/{victim}").status == 200
    assert daemon.request("DELETE", f"/v1/runs/{victim}").status == 204
    assert daemon.get(f"/v1/runs/{victim}").status == 404
    assert daemon.get(path + "?wait=never").status == 422, "a wrong wait is wrong for a run that is over too"


def test_list_filters_and_cursor(daemon, done):
    for _ in range(3):
        daemon.run(size="1", cpus="0")
    ids, cursor = [], ""
    while cursor is not None:
        page = daemon.get("/v1/runs?limit=2" + (f"&cursor={cursor}" if cursor else "")).json
        assert len(page["runs"]) <= 2
        ids += [run["id"] for run in page["runs"]]
        cursor = page["next"]
    assert ids == sorted(set(ids), reverse=True) and done["id"] in ids
    assert daemon.get("/v1/runs?state=failed").json["runs"] == []
    assert daemon.get("/v1/runs?until=2001-01-01").json["runs"] == []
    assert len(daemon.get("/v1/runs?since=2001-01-01T00:00:00Z&limit=200").json["runs"]) == len(ids)


def test_matrix_in_three_forms(daemon, done):
    path = f"/v1/runs/{done['id']}/matrix"
    whole = daemon.get(path).json
    assert whole["run"] == done["id"] and whole["state"] == "succeeded" and whole["matrices"]
    medians = [cell["median"] for m in whole["matrices"] for row in m["cells"] for cell in row]
    table = list(csv.DictReader(io.StringIO(daemon.get(path, Accept="text/csv").body.decode())))
    column = next(name for name in table[0] if name.startswith("median"))
    assert [float(row[column]) for row in table] == medians
    lines = daemon.get(path + ".ndjson").body.decode().splitlines()
    assert [json.loads(line)["median"] for line in lines] == medians
    assert daemon.get(path + ".csv").body == daemon.get(path, Accept="text/csv").body
    refused = daemon.get(path, Accept="image/png")
    assert refused.status == 406
    named = refused.json["detail"].partition("available are ")[2].split(", ")
    assert [daemon.get(path, Accept=kind).headers["Content-Type"].partition(";")[0] for kind in named] == named
    assert "text/html" not in named and "image/svg+xml" in named, "what comes, and not what is also understood"


@pytest.mark.parametrize("accept, other", [
    ("{0}", True), ("application/json;q=0.5, {0};q=0.6", True), ("application/json, {0}", False), ("{0};q=0.1, */*", False),
    ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", False), ("*/*;q=0.1, application/json;q=0, {0}", True),
    ("nonsense", False), ("{0};q=x", False), ("", False), ("image/png", None), ("*/*;q=0", None)])
def test_forms_by_preference(daemon, done, accept, other):
    """The same for each response that has several forms: one function decides (request_accepts)."""
    for path, kind in ((f"/v1/runs/{done['id']}/matrix", "text/csv"), (f"/v1/runs/{done['id']}/report", "text/markdown"),
                       ("/v1/check?baseline=none", "text/plain")):
        answer = daemon.get(path, Accept=accept.format(kind))
        if other is None:
            assert answer.status == 406 and answer.json["member"] == "Accept" and kind in answer.json["detail"], (path, answer.body)
        elif answer.status == 200:
            assert answer.headers["Content-Type"].startswith(kind if other else "application/json"), (path, accept)
        else:
            assert "/check" in path and answer.status == 404


def test_picture(daemon, done):
    path = f"/v1/runs/{done['id']}/matrix"
    answer = daemon.get(path + ".svg")
    assert answer.status == 200 and answer.headers["Content-Type"] == "image/svg+xml"
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'") and "script" not in policy
    root = xml.etree.ElementTree.fromstring(answer.body)
    svg = "{http://www.w3.org/2000/svg}"
    assert root.tag == svg + "svg" and not root.findall(f".//{svg}script")
    dots = root.findall(f".//{svg}circle")
    assert len(dots) == 2 and dots[0].find(svg + "title").text.endswith("working set 1M: 10.0 ns (9.9 to 10.1)")
    words = [text.text for text in root.iter(svg + "text")]
    assert "Latency by working set: concurrent" in words and "median latency (ns), less is better" in words
    assert any(f"run {done['id']} · " in word for word in words if word)
    assert daemon.get(path, Accept="image/svg+xml").body == answer.body
    assert daemon.get(path + ".svg?matrix=concurrent").body == answer.body
    assert daemon.get(path, Accept="text/html,image/svg+xml,*/*;q=0.8").json["matrices"]
    again = daemon.get(path + ".svg", If_None_Match=answer.headers["ETag"])
    assert again.status == 304 and again.body == b""


def test_picture_of_nothing(daemon, done):
    wrong = daemon.get(f"/v1/runs/{done['id']}/matrix.svg?matrix=other")
    assert wrong.status == 404 and wrong.json["member"] == "matrix" and "concurrent" in wrong.json["detail"]
    assert daemon.get(f"/v1/runs/{done['id']}/matrix.svg?size=3").status == 400
    assert daemon.get("/v1/runs/987654/matrix.svg").status == 404


def test_distribution_of_a_cell(daemon, done):
    path = f"/v1/runs/{done['id']}/distribution"
    whole = daemon.get(path + "?matrix=concurrent&row=0&col=2M").json
    assert whole["row"] == {"name": "rank", "value": "0"} and whole["col"]["value"] == str(2 << 20)
    counts = [b["count"] for b in whole["bins"]]
    assert counts == [2, 4, 0, 5] and whole["n"] == 11 and whole["cells"] == 1
    edges = [b["lower"] for b in whole["bins"]] + [whole["high"]]
    assert edges[0] == whole["low"] == 19 and 21.5 <= whole["high"] < 21.53
    assert all(b["upper"] == edge for b, edge in zip(whole["bins"], edges[1:]))
    ratios = [b["upper"] / b["lower"] for b in whole["bins"]]
    assert max(ratios) / min(ratios) < 1.0001 and whole["low"] < whole["p50"] < whole["p90"] < whole["p99"] < whole["high"]
    assert [b["cumulative"] for b in whole["bins"]] == [0.18182, 0.54545, 0.54545, 1]
    table = list(csv.DictReader(io.StringIO(daemon.get(path + ".csv?row=0&col=2M").body.decode())))
    assert [int(line["count"]) for line in table] == counts and float(table[3]["upper_ns"]) == whole["high"]
    both = daemon.get(path + "?col=all").json
    assert both["cells"] == 2 and both["n"] == sum(b["count"] for b in both["bins"]) == 22 and both["row"]["value"] is None
    plain = daemon.get(f"/v1/runs/{done['id']}/matrix.json").json["matrices"][0]["cells"][0][1]
    full = daemon.get(f"/v1/runs/{done['id']}/matrix.json?distributions=true").json["matrices"][0]["cells"][0][1]
    assert full.pop("distribution") == f"{whole['high']:.3f} 2 4 -1 5" and full == plain


def test_picture_of_a_distribution(daemon, done):
    answer = daemon.get(f"/v1/runs/{done['id']}/distribution.svg?row=0")
    assert answer.status == 200 and answer.headers["Content-Type"] == "image/svg+xml"
    root = xml.etree.ElementTree.fromstring(answer.body)
    svg = "{http://www.w3.org/2000/svg}"
    bars = [path.find(svg + "title").text for path in root.iter(svg + "path") if path.find(svg + "title") is not None]
    assert len(bars) == 3 and bars[0].endswith(": 2 samples (18.2 %)")
    words = [text.text for text in root.iter(svg + "text")]
    assert "Concurrent latency, rank 0, working set 2M" in words and "ns, logarithmic; 11 samples of 1 cell" in words
    assert [w.split()[0] for w in words if w.startswith("p")] == ["p50", "p90", "p99"]


def test_no_distribution(daemon, done):
    path = f"/v1/runs/{done['id']}/distribution"
    for query, member in (("?row=9", "row"), ("?col=3M", "col"), ("?matrix=other", "matrix")):
        for form in ("", ".csv", ".svg"):
            wrong = daemon.get(path + form + query)
            assert wrong.status == 404 and wrong.json["member"] == member, wrong.body
    assert "it has 1, the last is 0" in daemon.get(path + "?row=9").json["detail"]
    old = daemon.request("POST", "/v1/imports?node=old", "size (MB),0\n1,11.5\n", {"Content-Type": "text/csv"}).json["id"]
    missing = daemon.get(f"/v1/runs/{old}/distribution")
    assert missing.status == 404 and missing.json["member"] == "distribution"
    assert daemon.request("DELETE", f"/v1/runs/{old}").status == 204


def test_log_is_text(daemon, done):
    answer = daemon.get(f"/v1/runs/{done['id']}/log")
    assert answer.status == 200 and answer.headers["Content-Type"].startswith("text/plain")


def test_dry_run_starts_nothing(daemon):
    before = daemon.get("/v1/runs?limit=200").json
    for answer in (daemon.post("/v1/runs", {**SPEC, "dry_run": True}),
                   daemon.post("/v1/runs?dry_run=true", SPEC)):
        assert answer.status == 200 and answer.json["dry_run"] is True
        assert re.search(r"mpirun .* latency .*--bind=0:", answer.json["command"])
        assert [rank["cpu"] for rank in answer.json["plan"]["ranks"]] == [0]
    assert [r["id"] for r in daemon.get("/v1/runs?limit=200").json["runs"]] == [r["id"] for r in before["runs"]]


def test_cancel_and_delete(daemon, done):
    assert daemon.post(f"/v1/runs/{done['id']}/cancel").status == 409
    victim = daemon.run(size="1", cpus="0")["id"]
    assert daemon.request("DELETE", f"/v1/runs/{victim}").status == 204
    assert daemon.get(f"/v1/runs/{victim}").status == 404
    assert daemon.request("DELETE", f"/v1/runs/{victim}").status == 404
