# SPDX-License-Identifier: Apache-2.0
"""Campaigns of numaprobe-fleetd over virtual nodes, which remember each run that was requested of them."""
import collections
import contextlib
import csv
import datetime
import http.client
import itertools
import json
import os
import re
import signal
import sqlite3
import subprocess
import urllib.error
import urllib.request

import pytest

from client import run
from conftest import PATIENCE, UnixConnection, replace_text, until
from postgresql import make_postgresql  # noqa: F401 (a fixture)
from test_fleetd import collect  # noqa: F401 (a fixture)
from test_storage import faked_clock, needs_faketime, set_clock

SPEC = {"benchmark": "latency", "size": "1-64"}


def send(c, path, body=None):
    """(status, document)"""
    with contextlib.closing(UnixConnection(f"{c.home}/run/numaprobe-fleetd.sock")) as connection:
        connection.request("POST", path, json.dumps(body or {}), {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, json.load(response)


def begin(c, **members):
    status, document = send(c, "/v1/fleet/campaigns", {"name": "probe", "spec": SPEC, **members})
    assert status == 201, document
    return document["campaign"]["id"]


def show(c, number, query="limit=1000"):
    with contextlib.suppress(urllib.error.URLError, ConnectionError):
        return c.get(f"/v1/fleet/campaigns/{number}?{query}")


def counted(c, number, member):
    """So many nodes of it, once the collector says it."""
    return until(lambda: show(c, number))["campaign"][member]


def ended(c, number):
    return until(lambda: (d := show(c, number)) and d["campaign"]["state"] in ("done", "cancelled", "stopped") and
                 not d["campaign"]["running"] and d)


def probed(c, node):
    """Runs that were requested of a node: those behind the ones that it began with."""
    at = int(re.sub(r"\D", "", node))
    url = f"http://127.1.{at // 256}.{at % 256}:{c.fleet.port}/v1/feed?form=summary&limit=100"

    def feed():
        with contextlib.suppress(http.client.IncompleteRead):  # its responses may be cut
            with urllib.request.urlopen(url, timeout=PATIENCE) as response:
                return json.load(response)
    return [r for r in until(feed)["runs"] if r["seq"] > 12]


def states(document):
    return collections.Counter(n["state"] for n in document["node_states"])


def times(document):
    """(begin, end) of each probe in ms, by node."""
    def at(text):
        return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1e3
    return {n["node"]: (at(n["requested"]), at(n["ended"])) for n in document["node_states"] if n["requested"] and n["ended"]}


def most_at_once(spans):
    edges = sorted([(a, 1) for a, _ in spans] + [(b, -1) for _, b in spans])
    count = most = 0
    for _, step in edges:
        count += step
        most = max(most, count)
    return most


def test_each_node_is_probed_once_a_few_at_a_time(collect):
    c = collect(50, "--run-ms=100").start()
    c.wait_up(50)
    number = begin(c, at_once=8, at_once_each={"by": "class", "n": 3})
    done = ended(c, number)
    assert done["campaign"]["state"] == "done" and states(done) == {"done": 50}, done["campaign"]
    assert done["campaign"]["done"] == 50 and done["campaign"]["pending"] == 0
    assert all(len(probed(c, n)) == 1 for n in c.fleet.names)
    assert most_at_once(times(done).values()) <= 8
    assert until(lambda: c.rows("SELECT count(*) FROM run") == [(50 * 13,)]), "the runs come to the collector at once"
    assert 0 < done["campaign"]["spent_node_minutes"] < 50


def test_nodes_that_are_busy_are_tried_again(collect):
    c = collect(12, "--run-ms=50", "--faults=node0[1-3] busy=1 0-6; node05 busy=3600; node07 refuses",
                collector=("--every=2",)).start()
    c.wait_up(11)
    number = begin(c, retry_for="1d")

    def named(d):
        return {n["node"]: n for n in d["node_states"]}
    # What the node says is shown. A node that was late before is tried again soon, and then it says that.
    waiting = until(lambda: (d := show(c, number)) and d["campaign"]["state"] == "waiting" and "88213" in named(d)["node05"]["why"] and d)
    assert re.fullmatch(r"(1 node is|[2-9] nodes are) left: busy, or without a response", waiting["campaign"]["why"]) and waiting["campaign"]["until"], waiting["campaign"]
    # What a busy node waits is its own word: an hour for node05, which no client should wait for here.
    until(lambda: counted(c, number, "done") == 10)
    # It counts as running while it is tried again.
    until(lambda: (d := show(c, number)) and (n := named(d)["node07"])["state"] == "pending" and n["why"])
    assert all(len(probed(c, n)) == 1 for n in c.fleet.names if n not in ("node05", "node07"))
    assert probed(c, "node05") == []
    given_up = ended(c, begin(c, name="soon", nodes="node07", retry_for="2s"))
    assert states(given_up) == {"skipped": 1} and given_up["node_states"][0]["why"], given_up


def test_failures_stop_a_campaign(collect):
    c = collect(40, "--run-ms=50", "--faults=node[01-40] fails").start()
    c.wait_up(40)
    number = begin(c, at_once=2, stop_after={"failed_percent": 10})
    done = ended(c, number)
    assert done["campaign"]["state"] == "stopped" and "probes failed, more than 10 %" in done["campaign"]["why"]
    assert 5 <= done["campaign"]["failed"] <= 7 and done["campaign"]["pending"] >= 33, done["campaign"]
    failed = c.get(f"/v1/fleet/campaigns/{number}?state=failed")["node_states"]
    assert len(failed) == done["campaign"]["failed"] and "a rank has crashed" in failed[0]["why"]
    patient = ended(c, begin(c, nodes="node[01-08]", stop_after={"failed_percent": 100}))
    assert patient["campaign"]["state"] == "done" and states(patient) == {"failed": 8}


def test_a_refusal_names_what_the_node_does_not_take(collect):
    """A node of an older version does not know a parameter: "is not a parameter of …" alone does not say which."""
    c = collect(2).start()
    c.wait_up(2)
    refused = ended(c, begin(c, nodes="node1", spec={"benchmark": "c2c"}))
    assert [n["why"] for n in refused["node_states"]] == ["benchmark: a virtual node measures latency and bandwidth"], refused


def test_a_budget_ends_a_round(collect):
    c = collect(30, "--run-ms=3000").start()
    c.wait_up(30)
    plan = send(c, "/v1/fleet/campaigns", {"name": "probe", "spec": SPEC, "dry_run": True})[1]["plan"]
    each = plan["cost_node_minutes"] / 30
    number = begin(c, at_once=1, budget_node_minutes=each * 1.1)
    done = ended(c, number)
    assert done["campaign"]["state"] == "done" and "budget has no room" in done["campaign"]["why"]
    assert 1 <= done["campaign"]["done"] < 30 and done["campaign"]["pending"] > 0
    longest = max(n["seconds"] or 0 for n in done["node_states"]) / 60
    assert done["campaign"]["spent_node_minutes"] <= each * 1.1 + longest


def test_nothing_begins_while_the_window_is_closed(collect):
    c = collect(5, "--run-ms=50").start()
    c.wait_up(5)
    tomorrow = (datetime.datetime.now() + datetime.timedelta(days=1)).strftime("%a")
    number = begin(c, window=f"{tomorrow} 10:00-11:00")
    waiting = until(lambda: (d := show(c, number)) and d["campaign"]["state"] == "waiting" and d)
    assert "window is closed" in waiting["campaign"]["why"] and states(waiting) == {"pending": 5}
    opens = datetime.datetime.fromisoformat(waiting["campaign"]["until"].replace("Z", "+00:00"))
    assert opens.astimezone().strftime("%a %H:%M") == f"{tomorrow} 10:00"
    dry = send(c, "/v1/fleet/campaigns", {"name": "x", "spec": SPEC, "dry_run": True, "window": f"{tomorrow} 10:00-11:00"})[1]
    assert dry["plan"]["begins"] == waiting["campaign"]["until"] and dry["plan"]["nodes"] == "node[1-5]"
    assert [probed(c, n) for n in c.fleet.names] == [[]] * 5
    status, refused = send(c, f"/v1/fleet/campaigns/{number}/cancel", {"nodes": "node1"})
    assert status == 422 and refused["member"] == "nodes" and show(c, number)["campaign"]["state"] == "waiting", refused
    status, cancelled = send(c, f"/v1/fleet/campaigns/{number}/cancel")
    assert status == 200 and cancelled["campaign"]["state"] == "cancelled", cancelled
    assert send(c, f"/v1/fleet/campaigns/{number}/cancel")[0] == 409
    assert send(c, "/v1/fleet/campaigns/99/cancel")[0] == 404


def test_cancelling_ends_the_runs_in_progress(collect):
    c = collect(10, "--run-ms=600000").start()
    c.wait_up(10)
    number = begin(c, at_once=4)
    until(lambda: (d := show(c, number)) and sum(n["run"] is not None for n in d["node_states"]) == 4)
    status, document = send(c, f"/v1/fleet/campaigns/{number}/cancel")
    assert status == 200 and document["campaign"]["why"].startswith("cancelled by uid:")
    done = ended(c, number)
    assert states(done) == {"skipped": 4, "pending": 6}, done
    for n in done["node_states"]:
        assert [r["state"] for r in probed(c, n["node"])] == (["canceled"] if n["state"] == "skipped" else [])
    assert begin(c, nodes="node01") == number + 1, "the name is free again"


def let_the_list_come_late(c):
    """The source has no list. What this returns writes it."""
    names = c.list.read_text()
    c.list.unlink()

    def write_list():
        replace_text(c.list, names)  # an empty one would be believed
        c.process.send_signal(signal.SIGHUP)
    return write_list


def test_a_kill_after_the_cancelling_leaves_no_probe_in_progress(collect):
    """Nor when the collector does not know its nodes at first."""
    c = collect(10, "--run-ms=600000").start()
    c.wait_up(10)
    number = begin(c, at_once=4)
    until(lambda: c.rows("SELECT count(*) FROM campaign_node WHERE run > 0") == [(4,)])  # that is stored before a cancellation
    c.kill()
    with contextlib.closing(sqlite3.connect(f"{c.home}/state/fleet.db", timeout=PATIENCE)) as db:
        db.execute("UPDATE campaign SET state = 3, why = 'cancelled by a test'")
        db.commit()
    write_list = let_the_list_come_late(c)
    c.start()
    until(lambda: c.status()["store_ready"])
    for _ in range(300):
        assert states(until(lambda: show(c, number))) == {"running": 4, "pending": 6}
    write_list()
    done = ended(c, number)
    assert done["campaign"]["state"] == "cancelled" and states(done) == {"skipped": 4, "pending": 6}, done
    assert [r["state"] for n in c.fleet.names for r in probed(c, n)] == ["canceled"] * 4


def killed_in_the_middle(c, name):
    """Begins a campaign and kills the collector; its number, or None if it had ended: on a busy machine we may be late."""
    number = begin(c, name=name, at_once=2)
    until(lambda: counted(c, number, "done") >= 2)
    c.kill()
    if c.rows(f"SELECT count(*) FROM campaign_node WHERE campaign = {number} AND state = 2")[0][0] < 12:  # done
        return number
    c.start()
    c.wait_up(12)
    return None


def test_nodes_of_a_campaign_are_awaited_after_a_start(collect):  # noqa: F811
    """The list of the source comes late."""
    c = collect(12, "--run-ms=1000").start()  # six seconds: it is killed before the end
    c.wait_up(12)
    names = itertools.count()
    number = until(lambda: killed_in_the_middle(c, f"c{next(names)}"))
    write_list = let_the_list_come_late(c)
    c.start()
    assert until(lambda: (d := show(c, number)) and not d["campaign"]["running"] and d)["campaign"]["state"] == "running"
    for _ in range(100):  # what was running is not reached now, so it is the turn of others
        assert counted(c, number, "skipped") == 0
    write_list()
    assert states(ended(c, number)) == {"done": 12}


def killed_until_it_ends(c, number):
    """How often the collector and its process that stores were killed, one after the other, and the campaign at its end."""
    kills, seen = 0, -1
    while (d := until(lambda: show(c, number)))["campaign"]["state"] in ("running", "waiting"):
        at = d["campaign"]["done"]
        if at == seen:
            continue
        seen = at
        kills += 1
        if kills % 2:
            c.wait_cleared()
            c.kill_child("--ingest")
        else:
            c.process.kill()
            c.process.wait()
            c.start()
    return kills, d


@pytest.mark.parametrize("where", ["sqlite", "postgresql"])
def test_kills_at_any_moment_probe_no_node_twice(collect, make_postgresql, where):
    options = (f"--store={make_postgresql().uri}",) if where == "postgresql" else ()
    faults = "--faults=node0[1-5] busy=1 0-8; node[41-44] fails; node[11-30] cuts=5"
    c = collect(50, "--run-ms=400", faults, collector=options).start()
    c.wait_up(50)
    kills = campaigns = 0
    while kills < 4:  # on a busy machine we may be late for most of one
        campaigns += 1
        number = begin(c, name=f"c{campaigns}", at_once=6, at_once_each={"by": "prefix", "n": 6}, stop_after={"failed_percent": 50})
        more, d = killed_until_it_ends(c, number)
        kills += more
        assert states(d) == {"done": 46, "failed": 4}, (kills, d["campaign"])
        assert most_at_once(times(d).values()) <= 6 + 6, "those of before a kill are seen to end after it"
    assert {n: len(probed(c, n)) for n in c.fleet.names} == {n: campaigns for n in c.fleet.names}


def test_rounds_follow_each_other(collect):
    c = collect(4, "--run-ms=2000").start()
    c.wait_up(4)
    number = begin(c, each="10m")
    # It waits for a node too that was late, on a busy machine.
    waiting = until(lambda: (d := show(c, number)) and d["campaign"]["state"] == "waiting" and states(d) == {"done": 4} and d)
    assert waiting["campaign"]["round"] == 1, waiting["campaign"]
    c.stop()
    with contextlib.closing(sqlite3.connect(f"{c.home}/state/fleet.db")) as db:
        db.execute("UPDATE campaign SET round_ms = round_ms - 600000")
        db.commit()
    c.start()
    again = until(lambda: (d := show(c, number)) and d["campaign"]["round"] == 2 and states(d) == {"done": 4} and d)
    assert all(len(probed(c, n)) == 2 for n in c.fleet.names)
    assert again["campaign"]["spent_node_minutes"] > again["campaign"]["round_node_minutes"] > 0


def test_a_round_has_the_nodes_that_there_are_when_it_begins(collect):
    c = collect(5, "--run-ms=50")
    first, later = c.fleet.names[:3], c.fleet.names[1:]
    c.name(first)
    c.start()
    c.wait_up(3)
    everything, named = begin(c, name="all", each="10m"), begin(c, name="named", each="10m", nodes=",".join(first))

    def over(number, nth):
        return until(lambda: (d := show(c, number)) and (d["campaign"]["state"], d["campaign"]["round"]) == ("waiting", nth) and
                     not states(d)["pending"] and d)
    for number in everything, named:
        assert [n["node"] for n in over(number, 1)["node_states"]] == first
    c.stop()
    c.name(later)
    with contextlib.closing(sqlite3.connect(f"{c.home}/state/fleet.db")) as db:
        db.execute("UPDATE campaign SET round_ms = round_ms - 600000")
        db.commit()
    c.start()
    now = over(everything, 2)
    assert [n["node"] for n in now["node_states"]] == later and states(now) == {"done": 4} and now["campaign"]["nodes"] == 4
    kept = over(named, 2)
    assert [(n["node"], n["state"]) for n in kept["node_states"]] == [(first[0], "skipped"), (first[1], "done"), (first[2], "done")]
    assert [len(probed(c, n)) for n in c.fleet.names] == [2, 4, 4, 1, 1]
    c.stop()
    c.start()
    assert [n["node"] for n in over(everything, 2)["node_states"]] == later, "they are stored"


@needs_faketime
@pytest.mark.parametrize("now, window, begins", [
    ("2027-03-26 12:00:00", "Sun 04:00-05:00", "2027-03-28T02:00"), ("2027-10-30 12:00:00", "Sun 04:00-05:00", "2027-10-31T03:00"),
    ("2027-03-26 23:30:00", "Fri 22:00-02:00", "2027-03-26T22:30")])
def test_a_window_is_in_local_time_on_both_sides_of_its_changes(collect, tmp_path, monkeypatch, now, window, begins):
    """The zone of Berlin, written out: it changes on the last Sundays of March and October."""
    clock = tmp_path / "clock"
    clock.mkdir()
    c = collect(2)
    with monkeypatch.context() as patch:
        for name, value in faked_clock(clock).items():
            patch.setenv(name, value)
        patch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
        c.start()
    c.wait_up(2)
    set_clock(clock, f"@{now}")
    status, document = send(c, "/v1/fleet/campaigns", {"name": "dst", "spec": SPEC, "window": window, "dry_run": True})
    assert status == 200 and document["plan"]["begins"].startswith(begins), document


@needs_faketime
@pytest.mark.parametrize("jump", ["+2h", "-2h"])
def test_a_clock_that_is_set_ends_no_round_and_no_retry(collect, tmp_path, monkeypatch, jump):
    clock = tmp_path / "clock"
    clock.mkdir()
    c = collect(2, "--run-ms=3000", "--faults=node2 busy=1 0-6", collector=("--every=2",))
    with monkeypatch.context() as patch:
        for name, value in faked_clock(clock).items():
            patch.setenv(name, value)
        c.start()
    c.wait_up(2)
    number = begin(c, each="10m", retry_for="1h")
    until(lambda: [n for n in show(c, number)["node_states"] if n["state"] == "pending" and n["why"]])  # node2 was refused
    for step in (jump, "+0"):
        set_clock(clock, step)
        last = until(lambda: (d := show(c, number)) and not states(d)["pending"] and not states(d)["running"] and d)
        assert states(last) == {"done": 2}, last
        touch = begin(c, name="touch")  # so that the clock is looked at
        ended(c, touch)

        def left():
            ends = show(c, number)["campaign"]["until"]
            return ends and datetime.datetime.fromisoformat(ends[:-1]) - datetime.datetime.fromisoformat(c.status()["now"][:-1])
        until(lambda: (rest := left()) and datetime.timedelta(minutes=5) < rest < datetime.timedelta(minutes=10))
        assert show(c, number)["campaign"]["round"] == 1
    assert [len(probed(c, n)) for n in c.fleet.names] == [3, 3]


def test_a_round_of_a_clock_that_was_ahead_delays_no_other(collect):
    c = collect(2, "--run-ms=50").start()
    c.wait_up(2)
    number = begin(c, each="10m")
    until(lambda: (d := show(c, number)) and d["campaign"]["state"] == "waiting")
    c.stop()
    with contextlib.closing(sqlite3.connect(f"{c.home}/state/fleet.db")) as db:
        db.execute("UPDATE campaign SET round_ms = round_ms + 365 * 86400000, until_ms = until_ms + 365 * 86400000")
        db.commit()
    c.start()
    soon = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=30)).isoformat()  # which may be next year
    next_round = until(lambda: (d := show(c, number)) and (u := d["campaign"]["until"]) and u < soon and u)
    assert next_round > c.status()["now"]


def test_lists_are_paged_and_requests_are_checked(collect):
    c = collect(3, "--run-ms=50").start()
    c.wait_up(3)
    numbers = []
    for i in range(3):
        numbers.append(begin(c, name=f"c{i}", nodes="node[1-3]"))
        ended(c, numbers[-1])
    page = c.get("/v1/fleet/campaigns?limit=2")
    assert [x["id"] for x in page["campaigns"]] == [3, 2] and page["cursor"] == 2
    rest = c.get(f"/v1/fleet/campaigns?limit=2&cursor={page['cursor']}")
    assert [x["id"] for x in rest["campaigns"]] == [1] and rest["cursor"] is None
    assert c.get("/v1/fleet/campaigns?active=true")["campaigns"] == []
    first = c.get(f"/v1/fleet/campaigns/{numbers[0]}?limit=2")
    assert [n["node"] for n in first["node_states"]] == ["node1", "node2"] and first["cursor"] == "node2"
    assert [n["node"] for n in c.get(f"/v1/fleet/campaigns/{numbers[0]}?limit=2&cursor=node2")["node_states"]] == ["node3"]
    assert c.problem("/v1/fleet/campaigns/99")[0] == 404
    for cursor in ("7", "node4", "%1b"):  # of another path
        assert c.problem(f"/v1/fleet/campaigns/{numbers[0]}?cursor={cursor}")[1]["member"] == "cursor"
    for wrong, member in (({"name": "a b"}, "name"), ({"name": None}, "name"), ({"spec": {"benchmark": "x"}}, "spec.benchmark"),
                          ({"spec": {**SPEC, "force": True}}, "spec.force"), ({"spec": {**SPEC, "queue_s": 5}}, "spec.queue_s"),
                          ({"spec": {**SPEC, "note": "a\u0007b"}}, "spec.note"), ({"name": "a\u0007b"}, "name"), ({"nodes": "node1\u0007"}, "nodes"),
                          ({"spec": {**SPEC, "size": "nothing"}}, "spec.size"), ({"nodes": "node[1-9]"}, "nodes"),
                          ({"nodes": "node["}, "nodes"), ({"at_once": 0}, "at_once"), ({"at_once": 257}, "at_once"),
                          ({"at_once_each": {"by": "rack"}}, "at_once_each"), ({"at_once_each": []}, "at_once_each"),
                          ({"at_once_each": {"by": "colour", "n": 1}}, "at_once_each.by"),
                          ({"at_once_each": {"by": "rack", "n": 1}}, "at_once_each.by"),
                          ({"at_once_each": {"by": "class", "n": 1, "m": 1}}, "at_once_each.m"),
                          ({"window": "at night"}, "window"), ({"window": 5}, "window"), ({"budget_node_minutes": -1}, "budget_node_minutes"),
                          ({"each": "7"}, "each"), ({"each": "1m"}, "each"), ({"retry_for": "never"}, "retry_for"),
                          ({"order": "random"}, "order"), ({"stop_after": {"failed_percent": 101}}, "stop_after.failed_percent"),
                          ({"stop_after": 5}, "stop_after"), ({"dry_run": "yes"}, "dry_run"), ({"at_most": 5}, "at_most")):
        status, problem = send(c, "/v1/fleet/campaigns", {"name": "probe", "spec": SPEC, **wrong})
        assert status == 422 and problem["member"] == member, (wrong, status, problem)
    for member, text, limits in (("retry_for", "soon", "1s to 366d"), ("retry_for", "0s", "1s to 366d"), ("retry_for", "53w", "1s to 366d"),
                                 ("each", "9m", "10m to 366d"), ("each", "", "10m to 366d")):
        problem = send(c, "/v1/fleet/campaigns", {"name": "probe", "spec": SPEC, member: text})[1]
        assert problem["detail"].endswith(f'must be a duration such as "12h" or "7d" (s, m, h, d, w), from {limits}, got "{text}"'), problem
    assert send(c, "/v1/fleet/campaigns", {"name": "x"})[1]["member"] == "spec"
    assert send(c, "/v1/fleet/campaigns", [1])[0] in (400, 422)
    for members, said in (({"budget_node_minutes": 1e12}, "must be a number of minutes above 0, and at most 1000000000"),
                          ({"nope": 1}, "is unknown; the members are name, "),
                          ({"nodes": "n[1-65536]!n[1-65536],node1"},
                           '"n[1-65536]!n[1-65536],node1", character 12: all operands together have more than 65536 names'),
                          ({"nodes": "node1,@x"}, '"node1,@x", character 7: groups are not looked up here: list their nodes, as in n[1-4] '
                                                  "(numaprobe fleet -w looks them up itself)"),
                          ({"at_once_each": {"z": 1}}, "is unknown; the members are by, n"),
                          ({"stop_after": {"z": 1}}, "is unknown; the members are failed_percent")):
        detail = send(c, "/v1/fleet/campaigns", {"name": "x", "spec": SPEC, **members})[1]["detail"]
        assert detail.startswith(said), (members, detail)
    tomorrow = (datetime.datetime.now() + datetime.timedelta(days=1)).strftime("%a")
    for i in range(16):
        begin(c, name=f"n{i}", window=f"{tomorrow} 10:00-11:00")
    assert send(c, "/v1/fleet/campaigns", {"name": "n0", "spec": SPEC})[1]["type"] == "/problems/conflict"
    status, problem = send(c, "/v1/fleet/campaigns", {"name": "one-more", "spec": SPEC})
    assert status == 429 and "16 campaigns" in problem["detail"], problem
    with contextlib.closing(UnixConnection(f"{c.home}/run/numaprobe-fleetd.sock")) as connection:
        connection.request("POST", "/v1/fleet/campaigns", json.dumps({"name": "one-more", "spec": SPEC}), {"Content-Type": "application/json"})
        assert connection.getresponse().headers["Retry-After"] == "60"
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(c.url + "/v1/fleet/campaigns", method="POST", data=b"{}",
                                                      headers={"Content-Type": "application/json"}), timeout=PATIENCE)
    assert refused.value.code == 401, "scope run is needed"


def test_racks_come_from_the_groups(collect, tmp_path):
    groups = tmp_path / "groups"
    groups.write_text("rack1: node[01-06]\nrack2: node[07-12]\nlogin: node01\n")
    c = collect(12, "--run-ms=300", collector=(f"--groups-file={groups}",)).start()
    c.wait_up(12)
    done = ended(c, begin(c, at_once_each={"by": "rack", "n": 1}))
    spans = times(done)
    assert states(done) == {"done": 12} and most_at_once(spans.values()) == 2
    assert most_at_once([spans[f"node{i:02}"] for i in range(1, 7)]) == 1


FAKES = {"sbatch": 'printf "%s\\n" "$@" > "$WHERE/sbatch.args"; cat > "$WHERE/job"; echo "77;test"',
         "scontrol": '''echo "$@" >> "$WHERE/scontrol.args"
[ -z "${ENDS_SHELL:-}" ] || kill -s "$ENDS_SHELL" $PPID
[ "$*" != "${REFUSES:-}" ]''',
         "scancel": 'echo "$@" > "$WHERE/scancel.args"',
         "numaprobe": 'printf "%s\\n" "$@" > "$WHERE/numaprobe.args"'}


def as_slurm(tmp_path, script, **env):
    """Runs it with programs that write down how they are started: the process, and a function that reads that."""
    for name, text in FAKES.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(["sh"], input=script, capture_output=True, text=True, timeout=PATIENCE,
                          env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "WHERE": str(tmp_path), **env})
    return done, lambda name: (tmp_path / name).read_text().splitlines()


def script_of(c, number):
    """Its nodes are read after a start and when something has come from one of them: until then it says 503."""
    def written():
        try:
            return get_script(c, number)
        except urllib.error.HTTPError as refused:
            if refused.code != 503:
                raise
    return until(written)


def get_script(c, number):
    with urllib.request.urlopen(f"{c.url}/v1/fleet/campaigns/{number}/script", timeout=PATIENCE) as response:
        assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
        return response.read().decode()


def test_slurm_gets_a_script_in_which_values_stay_values(collect, tmp_path):
    c = collect(6).start()
    c.wait_up(6)
    note = "it's $(touch x) `y` \\ END_OF_JOB \"z\""
    number = begin(c, through="slurm", nodes="node[2-5]", at_once=3, order="name", spec={**SPEC, "note": note, "quick": True})
    script = until(lambda: counted(c, number, "state") == "waiting" and script_of(c, number))
    done, said = as_slurm(tmp_path, script)
    assert (done.returncode, done.stdout, done.stderr) == (0, "job 77: 4 nodes\n", ""), done
    words = said("sbatch.args")
    assert {"--parsable", "--hold", "--array=1-4%3", "--nodes=1", "--exclusive", "--job-name=numaprobe-probe"} <= set(words)
    assert "--time=6" in words, "runs take 12 s: twice as long is a begun minute, and five are added"
    assert said("scontrol.args") == [*(f"update JobId=77_{i} ReqNodeList=node{i + 1}" for i in range(1, 5)), "release 77"]
    assert not (tmp_path / "scancel.args").exists()
    job, said = as_slurm(tmp_path, (tmp_path / "job").read_text())
    assert job.returncode == 0 and said("numaprobe.args") == ["run", "latency", "--quick", "--size=1-64", f"--note={note}"], job
    (tmp_path / "scontrol.args").unlink()
    one = begin(c, through="slurm", nodes="node6", name="one", spec={**SPEC, "quick": True})
    waiting = until(lambda: (d := show(c, one)) and d["campaign"]["state"] == "waiting" and d["campaign"])
    assert waiting["why"].startswith("Slurm is to run it on 1 node: "), waiting
    of_one = script_of(c, one)
    assert f"{waiting['name']}: 1 node, at most" in of_one and as_slurm(tmp_path, of_one)[0].stdout == "job 77: 1 node\n", of_one
    failed, said = as_slurm(tmp_path, script, REFUSES="update JobId=77_2 ReqNodeList=node3")
    assert failed.returncode != 0 and said("scancel.args") == ["77"], "a node that Slurm does not know leaves no job"
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        (tmp_path / "scancel.args").unlink()
        ended_by, said = as_slurm(tmp_path, script, ENDS_SHELL=number.name.removeprefix("SIG"))
        assert ended_by.returncode == (130 if number == signal.SIGINT else 143), (number, ended_by)
        assert said("scancel.args") == ["77"], ("Ctrl-C leaves no array that is held", number)
    assert [probed(c, n) for n in c.fleet.names] == [[]] * 6, "the collector contacts no node for it"


def test_a_node_is_not_tried_for_longer_because_the_collector_was_restarted(collect):
    c = collect(3, "--run-ms=50", "--faults=node2 refuses").start()
    c.wait_up(2)
    number = begin(c, retry_for="1d")
    refused = "SELECT ended_ms FROM campaign_node WHERE state = 0 AND ended_ms > 0"
    until(lambda: counted(c, number, "done") == 2 and c.rows(refused))
    assert [n["ended"] for n in show(c, number)["node_states"] if n["node"] == "node2"] == [None], "it has not ended"
    first = c.rows(refused)
    c.stop()
    c.start()
    until(lambda: (n := show(c, number)) and n["campaign"]["state"] == "waiting")
    assert c.rows(refused) == first
    c.stop()
    with contextlib.closing(sqlite3.connect(f"{c.home}/state/fleet.db")) as db:
        db.execute("UPDATE campaign_node SET ended_ms = ended_ms - 86400000 WHERE state = 0")
        db.commit()
    c.start()
    done = ended(c, number)
    assert states(done) == {"done": 2, "skipped": 1}
    assert all(n["ended"] >= done["campaign"]["created"] for n in done["node_states"]), "that is when it was skipped"


def test_a_node_whose_newest_run_is_an_import_was_measured_before(collect):
    c = collect(3, "--run-ms=50").start()
    c.wait_up(3)
    c.stop()
    with contextlib.closing(sqlite3.connect(f"{c.home}/state/fleet.db")) as db:
        first = db.execute("SELECT id FROM node WHERE name = 'node1'").fetchone()
        db.execute("UPDATE run SET measured_ms = measured_ms - 300 * 86400000 WHERE node <> ?", first)
        newest = "SELECT kind, max(measured_ms) FROM run WHERE node = ? GROUP BY kind"
        db.execute(f"UPDATE run SET flags = flags | 1 WHERE node = ? AND (kind, measured_ms) IN ({newest})", first * 2)
        assert db.execute("SELECT count(*) FROM run WHERE node = ? AND NOT flags & 1", first).fetchone() != (0,)
        db.commit()
    c.start()
    c.wait_up(3)
    number = begin(c, through="slurm", nodes="node[1-3]")
    until(lambda: (d := show(c, number)) and d["campaign"]["state"] == "waiting")
    order = re.search(r"^nodes='([^']*)'$", script_of(c, number), re.M).group(1).split()
    assert order[-1] == "node1" and sorted(order) == ["node1", "node2", "node3"], order


def test_what_slurm_has_run_is_seen_by_the_feed(collect):
    c = collect(4, "--run-ms=50", "--faults=node3 fails", collector=("--every=1",)).start()
    c.wait_up(4)
    number = begin(c, through="slurm", nodes="node[1-3]", name="weekly")
    waiting = until(lambda: (d := show(c, number)) and d["campaign"]["state"] == "waiting" and d)
    assert "fleet campaign script 1" in waiting["campaign"]["why"] and waiting["campaign"]["until"], waiting

    def run_on(at):
        request = urllib.request.Request(f"http://127.1.0.{at}:{c.fleet.port}/v1/runs", data=json.dumps(SPEC).encode(),
                                         headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            return json.load(response)["id"]
    c.stop()
    with contextlib.closing(sqlite3.connect(f"{c.home}/state/fleet.db")) as db:  # simulated runs say that they took longer than they did
        db.execute("UPDATE campaign SET round_ms = round_ms - 30000")
        db.commit()
    c.start()
    until(lambda: show(c, number))
    first = run_on(2)
    until(lambda: counted(c, number, "done") == 1)
    c.process.kill()
    c.process.wait()
    run_on(1)
    c.start()
    until(lambda: counted(c, number, "done") == 2)
    assert "nodes='node3'" in script_of(c, number), "those that were probed are left out"
    run_on(3)
    done = ended(c, number)
    assert {n["node"]: n["state"] for n in done["node_states"]} == {"node1": "done", "node2": "done", "node3": "failed"}
    assert [n["run"] for n in done["node_states"] if n["node"] == "node2"] == [first]
    assert done["campaign"]["state"] == "done" and done["campaign"]["spent_node_minutes"] > 0
    given_up = ended(c, begin(c, through="slurm", retry_for="2s"))
    assert states(given_up) == {"skipped": 4} and "within retry_for" in given_up["node_states"][0]["why"]


def slurm_of(tmp_path, monkeypatch, **more):
    """Puts programs in front that write down how they are started."""
    for name, text in {**FAKES, "sbatch": 'echo begun >> "$0.times"; printf "%s\\n" "$@" > "$0.args"; echo "77;test"',
                       "scontrol": 'echo "$@" >> "$0.args"', "scancel": 'echo "$@" > "$0.args"', **more}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return lambda name: (tmp_path / name).read_text().splitlines()


def test_programs_of_slurm_get_where_its_configuration_is(collect, tmp_path, monkeypatch):
    """sinfo as a source, sbatch and scontrol. But no token, which sbatch would give to the job."""
    wanted = {"SLURM_CONF": "/opt/slurm.conf", "SLURM_CONF_SERVER": "ctl:6817", "SLURM_SACK_SOCKET": "/run/sack"}
    for name, value in {**wanted, "SLURM_JWT": "token", "SLURM_CLUSTERS": "other"}.items():
        monkeypatch.setenv(name, value)
    writes = 'env | grep ^SLURM_ | sort > "$0.env.part"; mv "$0.env.part" "$0.env"'
    said = slurm_of(tmp_path, monkeypatch, sinfo=f"{writes}; echo '>node1 idle main none'", sbatch=f"{writes}; echo 77", scontrol=writes)
    c = collect(1, collector=("--every=1", "--slurm-submit", "--source=slurm:")).start()
    c.wait_up(1)
    number = begin(c, through="slurm")
    until(lambda: (d := show(c, number)) and "job 77" in d["campaign"]["why"])
    for program in ("sinfo", "sbatch", "scontrol"):
        assert said(f"{program}.env") == [f"{name}={value}" for name, value in sorted(wanted.items())], program


def test_the_collector_submits_where_it_is_allowed_to(collect, tmp_path, monkeypatch):
    said = slurm_of(tmp_path, monkeypatch)
    c = collect(5, collector=("--every=1", "--slurm-submit")).start()
    c.wait_up(5)
    number = begin(c, through="slurm", nodes="node[2-4]", at_once=2, order="name", spec={**SPEC, "note": "it's $x"})
    running = until(lambda: (d := show(c, number)) and "job 77" in d["campaign"]["why"] and d)
    assert running["campaign"]["state"] == "running" and running["campaign"]["running"] == 3, running["campaign"]
    words = said("sbatch.args")
    assert {"--parsable", "--hold", "--array=1-3%2", "--nodes=1", "--exclusive", "--job-name=numaprobe-probe"} <= set(words), words
    assert "--wrap=exec numaprobe run latency '--size=1-64' '--note=it'\\''s $x'" in words, words
    assert said("scontrol.args") == [*(f"update JobId=77_{i} ReqNodeList=node{i + 1}" for i in range(1, 4)), "release 77"]
    assert c.problem(f"/v1/fleet/campaigns/{number}/script")[0] == 409
    c.process.kill()
    c.process.wait()
    c.start()
    until(lambda: (d := show(c, number)) and d["campaign"]["running"] == 3 and script_refused(c, number))
    assert said("sbatch.times") == ["begun"], "a kill submits nothing twice"
    assert send(c, f"/v1/fleet/campaigns/{number}/cancel")[0] == 200
    assert states(ended(c, number)) == {"skipped": 3}


def test_a_kill_during_the_submission_submits_nothing_twice(collect, tmp_path, monkeypatch):
    said = slurm_of(tmp_path, monkeypatch, sbatch='echo begun >> "$0.times"; read -r go < "$0.gate"; echo 77')
    gate = tmp_path / "sbatch.gate"
    os.mkfifo(gate)
    c = collect(3, collector=("--every=1", "--slurm-submit")).start()
    c.wait_up(3)
    number = begin(c, through="slurm")
    until(lambda: (tmp_path / "sbatch.times").exists())
    c.process.kill()
    c.process.wait()
    c.start()
    until(lambda: (d := show(c, number)) and d["campaign"]["running"] == 3 and script_refused(c, number))
    gate.write_text("go\n")
    until(lambda: (tmp_path / "scontrol.args").exists() and said("scontrol.args")[-1:] == ["release 77"])
    assert said("sbatch.times") == ["begun"]


def script_refused(c, number):
    """Its nodes were read after the start, and none is left for a script."""
    try:
        return get_script(c, number) and False
    except urllib.error.HTTPError as refused:
        return refused.code == 409


@pytest.mark.parametrize("fault, why", [({"sbatch": "echo 'sbatch: error: no partition' >&2; exit 1"}, "no partition"),
                                        ({"sbatch": "echo what"}, "no number of a job"),
                                        ({"sbatch": "kill -9 $PPID"}, "the process that submits it ended"),
                                        ({"scontrol": "echo 'Invalid node name' >&2; exit 1"}, "Invalid node name")])
def test_what_slurm_refuses_stops_the_campaign(collect, tmp_path, monkeypatch, fault, why):
    said = slurm_of(tmp_path, monkeypatch, **fault)
    c = collect(2, collector=("--slurm-submit",)).start()
    c.wait_up(2)
    done = ended(c, begin(c, through="slurm"))
    assert done["campaign"]["state"] == "stopped" and why in done["campaign"]["why"], done["campaign"]
    assert states(done) == {"skipped": 2} and not done["campaign"]["why"].endswith("?"), done
    assert "scontrol" not in fault or said("scancel.args") == ["77"], "no job is left"


def test_a_script_is_for_slurm_and_for_campaigns_that_have_not_ended(collect):
    c = collect(2).start()
    c.wait_up(2)
    for wrong, member in (({"at_once_each": {"by": "class", "n": 1}}, "at_once_each"), ({"window": "Sat 00:00-24:00"}, "window"),
                          ({"budget_node_minutes": 5}, "budget_node_minutes"), ({"through": "ssh"}, "through"),
                          ({"spec": {**SPEC, "note": "a\nb"}}, "spec.note"), ({"spec": {**SPEC, "note": "a\x1b[2J"}}, "spec.note")):
        status, problem = send(c, "/v1/fleet/campaigns", {"name": "probe", "spec": SPEC, "through": "slurm", **wrong})
        assert status == 422 and problem["member"] == member, (wrong, status, problem)
    assert c.problem("/v1/fleet/campaigns/9/script")[0] == 404
    tomorrow = (datetime.datetime.now() + datetime.timedelta(days=1)).strftime("%a")
    status, problem = c.problem(f"/v1/fleet/campaigns/{begin(c, window=f'{tomorrow} 10:00-11:00')}/script")
    assert status == 409 and "through" in problem["detail"], problem
    env = {"NUMAPROBE_FLEET": f"unix:{c.home}/run/numaprobe-fleetd.sock"}
    started = run("fleet", "campaign", "start", "--through=slurm", "--name=jobs", "-o", "json", env=env)
    number = json.loads(started.stdout)["campaign"]["id"]
    printed = until(lambda: (done := run("fleet", "campaign", "script", str(number), env=env)).returncode == 0 and done.stdout)
    assert printed == script_of(c, number)
    assert send(c, f"/v1/fleet/campaigns/{number}/cancel")[0] == 200
    assert c.problem(f"/v1/fleet/campaigns/{number}/script")[0] == 409
    assert "has ended" in run("fleet", "campaign", "script", str(number), env=env).stderr


def test_the_command_line_starts_shows_and_cancels(collect):
    c = collect(6, "--run-ms=50", "--faults=node6 fails").start()
    c.wait_up(6)
    env = {"NUMAPROBE_FLEET": f"unix:{c.home}/run/numaprobe-fleetd.sock"}

    def campaign(*words, status=0):
        done = run("fleet", "campaign", *words, env=env)
        assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout if status == 0 else done.stderr
    assert "No campaign is stored" in campaign("list")
    plan = campaign("start", "latency", "--quick", "-w", "node[1-4]", "--node-minutes=1000", "--dry-run")
    assert re.search(r"nodes +node\[1-4\]", plan) and re.search(r"probes +4; for 0", plan), plan
    started = json.loads(campaign("start", "bandwidth", "--name=weekly", "--at-once=2", "--at-once-each=class:1", "-o", "json"))
    assert started["campaign"]["request"]["at_once_each"] == {"by": "class", "n": 1}
    assert started["campaign"]["request"]["spec"]["benchmark"] == "bandwidth" and started["campaign"]["nodes"] == 6
    ended(c, started["campaign"]["id"])
    shown = campaign("show", "1")
    assert re.search(r"^done \(5\)\n  node\[1-5\]$", shown, re.M) and "failed: the run failed: a rank has crashed (1)" in shown
    rows = list(csv.DictReader(campaign("show", "1", "-o", "csv").splitlines()))
    assert [r["node"] for r in rows] == [f"node{i}" for i in range(1, 7)] and all(int(r["run"]) > 12 for r in rows)
    assert re.search(r"^ *1 +weekly +done +6 +1 +5 +1 +0 +0 ", campaign("list"), re.M), campaign("list")
    tomorrow = (datetime.datetime.now() + datetime.timedelta(days=1)).strftime("%a")
    campaign("start", f"--window={tomorrow} 10:00-11:00")
    assert "cancelled by uid:" in campaign("cancel", "2")
    assert "has ended" in campaign("cancel", "2", status=1)
    assert campaign("start", "--at-once-each=colour:1", status=2).startswith("numaprobe: --at-once-each: must be one of: rack, ")
    assert "rack:2" in campaign("start", "--at-once-each=rack", status=2)
    for option, words in (("--nodes", ["-w", "other1"]), ("--at-once", ["--at-once=300"]), ("--force", ["--force"]),
                          ("--size", ["--size=wide"]), ("--through", ["--through=nobody"]),
                          ("--window", ["--through=slurm", "--window=Sat 00:00-24:00"])):
        assert campaign("start", *words, status=2).startswith(f"numaprobe: {option}: "), (option, words)
    little = json.loads(campaign("start", "--name=little", "--node-minutes=0.00012", "--dry-run", "-o", "json"))
    assert little["plan"]["probed"] == 0, "a budget is not rounded to none"
    assert json.loads(campaign("start", "--name=little", "--dry-run", "-o", "ndjson"))["plan"]["probed"] > 0
    assert "--dry-run the output is text or JSON" in campaign("start", "--name=little", "--dry-run", "-o", "csv", status=2)
    assert "the script of a campaign is text" in campaign("script", "1", "-o", "json", status=2)
    assert "show ID" in campaign("show", status=2) and "unknown action" in campaign("begin", status=2)
    url = env.pop("NUMAPROBE_FLEET")
    assert "weekly" in campaign("list", f"--fleet={url}"), "an option, as for the commands that judge"
    assert "(--fleet)" in campaign("list", "--fleet=http://127.0.0.1:1", status=3)
    env.clear()
    assert "--fleet=URL" in campaign("list", status=2)
