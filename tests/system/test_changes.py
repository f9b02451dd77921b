# SPDX-License-Identifier: Apache-2.0
"""The feed of finished runs: whole, in order, resumable; a collector misses nothing."""
import threading

import pytest

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
    waiting.join(30)
    assert [w["run"]["id"] for w in got[0]["runs"]] == [run["id"]]


def test_imports_are_told_too(daemon):
    start, got = end(daemon), []
    waiting = threading.Thread(target=lambda: got.append(feed(daemon, start, wait=60)))
    waiting.start()
    answer = daemon.request("POST", "/v1/imports?node=other&date=2026-01-01T00:00:00Z",
                            "size (MB),0,1\n1,10.5,11.5\n2,12.5,13.5\n", {"Content-Type": "text/csv"})
    assert answer.status == 201, answer.body
    waiting.join(30)
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
