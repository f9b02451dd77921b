# SPDX-License-Identifier: Apache-2.0
"""Stored texts that this version cannot read fail for their run alone. Black box, with the fake bench."""
import contextlib
import sqlite3

import pytest

from client import run as numaprobe
from conftest import fake_bench_env

SPOILED = [
    ("spec", "no JSON", "spec"),
    ("spec", '{"benchmark":"latency","size":"1M","colour":"red"}', "spec"),
    ("spec", '{"benchmark":"of tomorrow"}', "spec"),
    ("plan", '{"ranks":[', "plan"),
    ("conditions", "[1}", "conditions"),
    ("phases", '{"a":', "phases_ms"),
]


def change(daemon, statement, *values):
    assert daemon.stop() == 0
    with contextlib.closing(sqlite3.connect(daemon.home / "state" / "numaprobe.db")) as db, db:
        db.execute(statement, values)
    return daemon.start()


@pytest.fixture(name="two")
def fixture_two(make_daemon):
    """A daemon with a whole run and one to spoil."""
    daemon = make_daemon(env=fake_bench_env())
    return daemon, daemon.run(size="1M")["id"], daemon.run(size="1M")["id"]


@pytest.mark.parametrize("column, text, member", SPOILED)
def test_one_run_is_listed_with_what_is_known(two, column, text, member):
    daemon, whole, spoiled = two
    change(daemon, f"UPDATE run SET {column} = ? WHERE id = ?", text, spoiled)
    listed = daemon.get("/v1/runs")
    assert listed.status == 200, listed.body
    second, first = listed.json["runs"]
    assert (second["id"], first["id"]) == (spoiled, whole)
    assert "unreadable" not in first and first["spec"]["size"] == "1M"
    assert [u["member"] for u in second["unreadable"]] == [member] and second["unreadable"][0]["text"], second
    assert second["spec"]["benchmark"] == "latency" and second["state"] == "succeeded"
    assert daemon.get(f"/v1/runs/{spoiled}").json == second
    shown = numaprobe("show", str(spoiled), url=f"http://127.0.0.1:{daemon.port}")
    assert f"unreadable  {member}: " in shown.stdout, shown
    assert numaprobe("runs", url=f"http://127.0.0.1:{daemon.port}").stdout.count("latency") == 2


def test_what_needs_its_spec_fails_for_it_alone(two):
    daemon, whole, spoiled = two
    change(daemon, "UPDATE run SET spec = '{\"benchmark\":\"latency\",\"colour\":\"red\"}' WHERE id = ?", spoiled)
    for path in (f"/v1/runs/{spoiled}/export", f"/v1/runs/{spoiled}/report",
                 f"/v1/compare?base={whole}&target={spoiled}"):
        answer = daemon.get(path)
        assert answer.status == 409, (path, answer.body)
        assert f"parameters of run {spoiled} cannot be read: colour" in answer.json["detail"], answer.body
    for path in (f"/v1/runs/{whole}/export", f"/v1/compare?base={whole}&target={whole}", "/metrics", "/v1/storage",
                 "/v1/feed?form=summary", "/v1/runs?form=summary", "/v1/history?metric=latency.largest.median_ns"):
        assert daemon.get(path).status == 200, (path, daemon.get(path).body)
    page = daemon.get("/v1/feed").json
    assert [r["run"]["id"] for r in page["runs"]] == [whole]
    assert page["unreadable"] == [{"id": spoiled, "seq": 2, "text": page["unreadable"][0]["text"]}]
    assert page["next"] == 2 and not page["more"]
    assert daemon.request("PUT", f"/v1/runs/{spoiled}/label", {"label": "kept"}).json["label"] == "kept"
    assert daemon.request("PUT", "/v1/baselines/b", {"runs": [whole]}).status in (200, 201)
    check = daemon.get("/v1/check?baseline=b")
    assert check.status == 200 and check.json["run"] == whole, check.body  # not the newer one
    assert daemon.run(size="1M")["state"] == "succeeded"
    assert daemon.request("DELETE", f"/v1/runs/{spoiled}").status == 204


def test_a_picture_has_its_benchmark(make_daemon):
    daemon = make_daemon(env=fake_bench_env())
    run = daemon.run(benchmark="matrix", quick=True)
    change(daemon, "UPDATE run SET spec = 'no JSON' WHERE id = ?", run["id"])
    picture = daemon.get(f"/v1/runs/{run['id']}/matrix.svg")
    assert picture.status == 200 and b" matrix \xc2\xb7" in picture.body and b"latency \xc2\xb7" not in picture.body, picture.body[:900]


def test_a_run_without_its_conditions_is_not_exported(two):
    """It would look undisturbed where it is imported."""
    daemon, _, spoiled = two
    change(daemon, "UPDATE run SET conditions = '[1}' WHERE id = ?", spoiled)
    answer = daemon.get(f"/v1/runs/{spoiled}/export")
    assert answer.status == 409 and "stored conditions of run" in answer.json["detail"], answer.body
    assert [u["id"] for u in daemon.get("/v1/feed").json["unreadable"]] == [spoiled]


def test_a_run_that_waits_fails_with_the_reason(make_daemon):
    daemon = make_daemon(env=fake_bench_env())
    first = daemon.run(size="1M")["id"]
    change(daemon, "INSERT INTO run (id,state,benchmark,node,created_ms,spec) "
           "SELECT id + 1,'queued',benchmark,node,created_ms,'{}' FROM run WHERE id = ?", first)
    over = daemon.wait(first + 1)
    assert over["state"] == "failed" and "cannot be read" in over["error"]["text"], over
    assert daemon.run(size="1M")["state"] == "succeeded"


def test_facts_that_cannot_be_read(two):
    daemon, whole, spoiled = two
    change(daemon, "UPDATE fingerprint SET json = '{' WHERE hash = (SELECT config_hash FROM run WHERE id = ?)", whole)
    assert len(daemon.get("/v1/runs").json["runs"]) == 2
    for path in (f"/v1/runs/{whole}/export", f"/v1/compare?base={whole}&target={spoiled}"):
        answer = daemon.get(path)
        assert answer.status == 409 and "stored facts" in answer.json["detail"], (path, answer.body)
    page = daemon.get("/v1/feed")
    assert page.status == 200 and [u["id"] for u in page.json["unreadable"]] == [whole, spoiled], page.body
    assert page.json["runs"] == [] and page.json["next"] == 2


def test_a_run_of_hierarchy_keeps_no_other_from_starting(make_daemon):
    """Its result is looked for before each plan."""
    daemon = make_daemon()
    run = daemon.run(benchmark="hierarchy", size="32M", quick=True, cell_ms=5)
    assert run["state"] == "succeeded", run
    for statement in ("UPDATE run SET spec = 'x' WHERE id = ?", "UPDATE matrix SET col_axis = 'x' WHERE run_id = ?"):
        change(daemon, statement, run["id"])
        dry = daemon.post("/v1/runs?dry_run=true", {"benchmark": "latency"})
        assert dry.status == 200, dry.body
