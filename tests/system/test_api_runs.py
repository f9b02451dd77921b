# SPDX-License-Identifier: Apache-2.0
"""Runs over HTTP against a bench that replays: create, wait, follow, list, read, cancel, delete."""
import csv
import io
import json
import math
import re
import xml.etree.ElementTree

import pytest

from conftest import FAKE_BENCH, fake_bench_env, until

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
        assert f"is 1 s, but the run takes about {math.ceil(estimate)} s" in refused.json["detail"], refused.body
    assert daemon.post("/v1/runs", {**long, "timeout_s": math.ceil(estimate)}).status == 202


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
    run = daemon.run(**{k: v for k, v in asked.items() if k != "benchmark"}, budget_s=budget)
    assert run["plan"]["shortened"] == dry["plan"]["shortened"]
    assert [c["text"] for c in run["conditions"] if c["kind"] == "budget"][0].startswith(f"to fit the budget of {budget} s: ")


def test_what_was_measured_before_the_time_limit_is_kept(make_daemon, tmp_path):
    """The run has failed: it has its cells, and belongs to no history."""
    bench = tmp_path / "fake_bench"
    bench.symlink_to(FAKE_BENCH)
    (tmp_path / "fake_bench.behaviour").write_text("slow 0.5")
    for folder in (tmp_path, *list(tmp_path.parents)[:2]):
        folder.chmod(folder.stat().st_mode | 0o011)  # the account of the ranks comes through
    daemon = make_daemon({**fake_bench_env(), "NUMAPROBE_BENCH": str(bench)})
    run = daemon.run(size=",".join(f"{n}K" for n in range(1, 41)), cell_ms=5, visits=1, timeout_s=12, launcher="processes")
    assert run["state"] == "failed" and run["error"]["type"] == "timeout", run
    [matrix] = daemon.get(f"/v1/runs/{run['id']}/matrix").json["matrices"]
    medians = [cell["median"] for row in matrix["cells"] for cell in row]
    assert None in medians and any(medians) and run["cells"] == len(medians)
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
    assert daemon.get(path, Accept="image/png").status == 406


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
