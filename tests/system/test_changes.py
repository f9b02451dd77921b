# SPDX-License-Identifier: Apache-2.0
"""The feed of finished runs: whole, in order, resumable; a collector misses nothing."""
import contextlib
import json
import shutil
import sqlite3
import sys
import threading
import urllib.parse

import pytest

from client import run
from conftest import FAKE_BENCH, PATIENCE, until

BENCHMARKS = ("latency", "matrix", "bandwidth", "loaded")
pytestmark = pytest.mark.usefixtures("needs_fake_bench")


def feed(daemon, after, **options):
    query = "&".join(f"{k}={v}" for k, v in {"after": after, **options}.items())
    answer = daemon.get(f"/v1/feed?{query}")
    assert answer.status == 200, answer.body
    return answer.json


def end(daemon):
    return feed(daemon, 0, limit=1)["last"]


def test_every_run_once_and_whole(daemon):
    start = end(daemon)
    runs = [daemon.run(size="1,2", cpus="0")["id"] for _ in range(3)]
    seen, after = [], start
    while True:
        page = feed(daemon, after, limit=2)
        seen += page["runs"]
        after = page["next"]
        if not page["more"]:
            break
    assert [w["run"]["id"] for w in seen] == runs
    assert [w["run"]["seq"] for w in seen] == [start + 1, start + 2, start + 3]
    for whole in seen:
        assert whole["format"] == "numaprobe-run"
        assert whole["matrices"][0]["cells"][0][0]["median"] > 0 and whole["ranks"]
        assert whole["log"] is None and whole["topology"]["xml"] is None
    assert feed(daemon, after)["runs"] == [] and feed(daemon, after)["next"] == after
    large = feed(daemon, start, limit=1, topology="true", log="true")["runs"][0]
    assert "<topology" in large["topology"]["xml"] and large["log"] is not None


def test_a_deleted_run_is_passed_over(daemon):
    start = end(daemon)
    gone, kept, last = [daemon.run(size="1", cpus="0")["id"] for _ in range(3)]
    for run in (gone, last):
        assert daemon.request("DELETE", f"/v1/runs/{run}").status == 204
    page = feed(daemon, start)
    assert [w["run"]["id"] for w in page["runs"]] == [kept]
    assert page["next"] == start + 2 and page["more"]
    assert feed(daemon, page["next"]) | {"runs": []} == feed(daemon, page["next"])
    assert feed(daemon, page["next"])["next"] == start + 3


def test_waiting_for_the_next(daemon):
    start, got = end(daemon), []
    waiting = threading.Thread(target=lambda: got.append(feed(daemon, start, wait=60)))
    waiting.start()
    run = daemon.run(size="1", cpus="0")
    waiting.join(PATIENCE)
    assert [w["run"]["id"] for w in got[0]["runs"]] == [run["id"]]


def test_imports_are_told_too(daemon):
    start, got = end(daemon), []
    waiting = threading.Thread(target=lambda: got.append(feed(daemon, start, wait=60)))
    waiting.start()
    answer = daemon.request("POST", "/v1/imports?node=other&date=2026-01-01T00:00:00Z",
                            "size (MB),0,1\n1,10.5,11.5\n2,12.5,13.5\n", {"Content-Type": "text/csv"})
    assert answer.status == 201, answer.body
    waiting.join(PATIENCE)
    assert [w["run"]["id"] for w in got[0]["runs"]] == [answer.json["id"]]


def test_wrong_places(daemon):
    page = feed(daemon, 0, limit=1)
    assert feed(daemon, 0, history_id=page["history_id"])["history_id"] == page["history_id"]
    other = daemon.get("/v1/feed?history_id=0123")
    assert other.status == 409 and other.json["member"] == "history_id"
    beyond = daemon.get("/v1/feed?after=999999")
    assert beyond.status == 409 and beyond.json["member"] == "after" and "ends at" in beyond.json["detail"]
    for name, value in (("after", "-1"), ("limit", "0"), ("limit", "101"), ("wait", "x"), ("log", "x")):
        answer = daemon.get(f"/v1/feed?{name}={value}")
        assert answer.status == 422 and answer.json["member"] == name, (name, answer.body)
        assert name != "limit" or "from 1 to 100" in answer.json["detail"], answer.body


def label(daemon, run, text):
    assert daemon.request("PUT", f"/v1/runs/{run}/label", {"label": text}).status == 200


def notes(daemon, after, **options):
    return [(n["run"], n["label"], n["baseline"]) for n in feed(daemon, after, **options).get("notes", [])]


@pytest.mark.parametrize("form", ["whole", "summary"])
def test_labels_and_baselines_that_come_later_are_in_the_feed(daemon, form):
    start = end(daemon)
    one, two = [daemon.run(size="1,2", cpus="0")["id"] for _ in range(2)]
    page = until(lambda: (p := feed(daemon, start, form=form, limit=100))["next"] == start + 2 and p)
    assert len(page["runs"]) == 2 and "notes" not in page, "as before"
    label(daemon, one, "noted")
    [note] = feed(daemon, start + 2, form=form)["notes"]
    assert note == {"seq": start + 3, "run_seq": start + 1, "run": one, "label": "noted", "baseline": False}
    label(daemon, one, "noted")
    assert end(daemon) == start + 3, "the same label is no news"
    assert daemon.request("PUT", f"/v1/baselines/{form}", {"runs": [one, two]}).status == 200
    assert notes(daemon, start + 3, form=form) == [(one, "noted", True), (two, "", True)]
    label(daemon, one, "")
    page = feed(daemon, start, form=form, limit=100)
    assert len(page["runs"]) == 2 and page["next"] == page["last"] and not page["more"]
    assert [(n["run"], n["label"], n["baseline"]) for n in page["notes"]] == [(two, "", True), (one, "", True)]
    first = feed(daemon, start, form=form, limit=3)
    assert first["more"] and len(first["runs"]) + len(first["notes"]) == 3, "limit counts both"
    assert notes(daemon, first["next"], form=form) == [(one, "", True)]
    assert daemon.request("DELETE", f"/v1/baselines/{form}").status == 204
    assert sorted(notes(daemon, start, form=form, limit=100)) == [(one, "", False), (two, "", False)]
    assert daemon.request("DELETE", f"/v1/runs/{one}").status == 204
    assert notes(daemon, start, form=form, limit=100) == [(two, "", False)], "it goes with its run"


DRAM = "latency.local.dram.median_ns"


def values(page, run):
    """Metrics of a run of a page: name -> (value, lo, hi)."""
    layout = page["layouts"][run["layout"]] if run["layout"] >= 0 else []
    assert len(run["values"]) == len(layout) and len(run["widths"]) == 2 * len(layout)
    return {name: (value, *(None if w < 0 else value * (1 + sign * w / 1e4) for sign, w in zip((-1, 1), widths)))
            for (name, _), value, widths in zip(layout, run["values"], zip(*[iter(run["widths"])] * 2))}


def test_summaries_have_what_nodes_are_judged_by(daemon):
    start = end(daemon)
    runs = [daemon.run(size="1,2", cpus="0")["id"] for _ in range(2)]
    page = feed(daemon, start, form="summary", limit=100)
    node = daemon.get("/v1/node").json
    assert (page["form"], page["node"], page["after"], page["more"]) == ("summary", node["node"], start, False)
    assert page["history_id"] == feed(daemon, start)["history_id"] and page["next"] == page["last"] == start + 2
    assert [r["id"] for r in page["runs"]] == runs
    first, second = page["runs"]
    assert first["layout"] == second["layout"] == 0 and ["latency.largest.median_ns", "ns"] in page["layouts"][0]
    whole = feed(daemon, start, limit=1)["runs"][0]["run"]
    for name in ("seq", "state", "label", "node", "measured", "finished"):
        assert first[name] == (whole[name] or ""), name
    assert first["duration_s"] == whole["seconds"] and first["imported"] is first["forced"] is False
    assert 0 < first["disturbed"] <= 1 and first["metrics_version"] > 0
    for name, (value, lo, hi) in values(page, first).items():
        variant = urllib.parse.quote(first["variant"])
        point, = [p for p in daemon.get(f"/v1/history?metric={name}&variant={variant}").json["points"]
                  if p["run"] == first["id"]]
        assert abs(value / point["value"] - 1) < 1e-5, name
        assert lo is None or lo <= point["lo"] <= point["hi"] <= hi <= point["hi"] + 2e-4 * value, name
    assert len(values(page, first)) > 3 and not set(values(page, first)) - {m for m, _ in page["layouts"][0]}


def test_what_a_hash_stands_for(daemon):
    daemon.run(size="1", cpus="0")
    run = daemon.get("/v1/runs?form=summary&limit=1").json["runs"][0]
    node = daemon.get("/v1/node").json
    facts = {name: daemon.get(f"/v1/facts/{run[name]}") for name in ("class", "config")}
    assert facts["class"].json == node["fingerprint"]["hardware"] and facts["config"].json["hash"] == run["config"]
    xml = daemon.get(f"/v1/topologies/{run['topology']}")
    assert xml.body == daemon.get("/v1/topology.xml").body and xml.headers["Content-Type"] == "application/xml"
    for path, answer in ((f"/v1/facts/{run['class']}", facts["class"]), (f"/v1/topologies/{run['topology']}", xml)):
        assert "immutable" in answer.headers["Cache-Control"] and "private" in answer.headers["Cache-Control"]
        again = daemon.request("GET", path, headers={"If-None-Match": answer.headers["ETag"]})
        assert again.status == 304 and not again.body
    for path in ("/v1/facts/", "/v1/topologies/"):
        missing = daemon.get(path + "0" * 64)
        assert missing.status == 404 and "no stored run has" in missing.json["detail"], missing.body
        assert daemon.get(path + "a" * 65).status == 404


def test_the_newest_of_each_benchmark(daemon):
    runs = [daemon.run(size="1", cpus="0")["id"] for _ in range(3)]
    newest = daemon.get("/v1/runs?form=summary&per_benchmark=2").json
    assert [r["id"] for r in newest["runs"] if r["benchmark"] == "latency"] == runs[:0:-1] and not newest["more"]
    assert daemon.get("/v1/runs?form=summary&per_benchmark=2&benchmark=bandwidth").json["runs"] == []
    page = daemon.get("/v1/runs?form=summary&limit=2&state=succeeded").json
    assert [r["id"] for r in page["runs"]] == runs[:0:-1] and page["more"] and page["next"] == runs[1]
    older = daemon.get(f"/v1/runs?form=summary&limit=1&cursor=b{page['next']}").json
    assert [r["id"] for r in older["runs"]] == runs[:1]
    for query, member in (("form=thin", "form"), ("per_benchmark=3", "per_benchmark"),
                          ("form=summary&per_benchmark=0", "per_benchmark"),
                          ("form=summary&per_benchmark=51", "per_benchmark"),
                          ("form=summary&per_benchmark=3&limit=3", "per_benchmark")):
        answer = daemon.get("/v1/runs?" + query)
        assert answer.status == 422 and answer.json["member"] == member, (query, answer.body)
    for query, member in (("form=thin", "form"), ("form=summary&topology=true", "topology"),
                          ("form=summary&log=true", "log")):
        answer = daemon.get("/v1/feed?" + query)
        assert answer.status == 422 and answer.json["member"] == member, (query, answer.body)


def test_the_newest_of_each_benchmark_have_all_of_them_over_several_pages(make_daemon):
    """As a machine of hundreds of CPUs has: 4,000 metrics of a run. One response has no room for all."""
    daemon = make_daemon()
    first = daemon.run(size="1", cpus="0")["id"]
    daemon.stop()
    with contextlib.closing(sqlite3.connect(f"{daemon.home}/state/numaprobe.db")) as db, db:
        names = [row[1] for row in db.execute("PRAGMA table_info(run)")]
        _, ms, node, variant = db.execute("SELECT run_id, measured_ms, node, variant FROM metric JOIN series ON id = series").fetchone()
        series = [db.execute("INSERT INTO series (metric, node, variant, unit) VALUES (?, ?, ?, 'ns')", (f"latency.n{i}.median_ns", node, variant)).lastrowid
                  for i in range(1000, 5000)]
        for i in range(1, 101):
            other = {"id": str(first + i), "seq": f"(SELECT max(seq) + {i} FROM run)", "benchmark": f"'{BENCHMARKS[i % 4]}'"}
            db.execute(f"INSERT INTO run ({', '.join(names)}) SELECT {', '.join(other.get(n, n) for n in names)} FROM run WHERE id = {first}")
            # The first series is of the last benchmark alone.
            db.executemany("INSERT INTO metric VALUES (?, ?, ?, ?, ?, ?)", [(s, ms, first + i, 98765 + s, 98000 + s, 99000 + s) for s in series[i % 4 < 3:]])
    daemon.start()
    path, pages, cursor = "/v1/runs?form=summary&per_benchmark=25", [], ""
    while not pages or pages[-1]["more"]:
        answer = daemon.get(path + cursor)
        assert answer.status == 200 and len(answer.body) < 5 << 20, answer.status
        pages.append(answer.json)
        cursor = f"&cursor=b{pages[-1]['next']}"
    runs = [r for p in pages for r in p["runs"]]
    assert len(pages) > 1 and len(runs) == 100 and runs[-1]["benchmark"] == BENCHMARKS[3]
    for k, name in enumerate(BENCHMARKS):
        assert [r["id"] for r in runs if r["benchmark"] == name] == [first + i for i in range(100, 0, -1) if i % 4 == k]
    gone = daemon.get(f"{path}&cursor=b{first}")
    assert gone.status == 409 and gone.json["member"] == "cursor", gone.body
    (daemon.home / "hosts").write_text(f"127.0.0.1 {node}\n")
    done = run("fleet", "history", node, "latency.n1000.median_ns", "-w", node, "-o", "json",
               env={"NUMAPROBE_FLEET_URL": f"http://%h:{daemon.port}", "NUMAPROBE_HOSTS_FILE": f"{daemon.home}/hosts"})
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["points"]) == 25, "of the benchmark that is last"


def test_the_feed_ends_before_a_run_whose_metrics_are_not_made(make_daemon, tmp_path):
    """Metrics of an import are computed while nothing runs."""
    tmp_path.chmod(0o755)
    bench = tmp_path / "fake_bench"
    shutil.copy(FAKE_BENCH, bench)
    bench.chmod(0o755)
    bench.with_suffix(".behaviour").write_text("hang")
    bench.with_suffix(".behaviour").chmod(0o644)
    own = make_daemon({"NUMAPROBE_BENCH": str(bench), "NUMAPROBE_PYTHON": sys.executable,
                       "NUMAPROBE_MPIRUN": str(FAKE_BENCH.with_name("fake_mpirun.py"))})
    going = own.post("/v1/runs", {"benchmark": "latency", "size": "1", "cpus": "0"}).json["id"]
    until(lambda: own.get(f"/v1/runs/{going}").json["state"] == "running")
    made = own.request("POST", "/v1/imports?node=other&date=2026-01-01T00:00:00Z",
                       "size (MB),0,1\n1,10.5,11.5\n2,12.5,13.5\n", {"Content-Type": "text/csv"}).json["id"]
    page = feed(own, 0, form="summary")
    assert (page["runs"], page["next"], page["last"], page["more"]) == ([], 0, 1, False)
    listed = own.get("/v1/runs?form=summary&node=other").json["runs"][0]
    assert (listed["id"], listed["layout"], listed["metrics_version"], listed["values"]) == (made, -1, 0, [])
    own.post(f"/v1/runs/{going}/cancel")
    own.wait_for_line("event=metrics.filled")
    page = feed(own, 0, form="summary")
    assert [r["id"] for r in page["runs"]][:1] == [made] and page["runs"][0]["imported"]
    assert page["runs"][0]["layout"] == 0 and page["next"] == page["last"]
