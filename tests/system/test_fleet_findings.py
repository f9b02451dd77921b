# SPDX-License-Identifier: Apache-2.0
"""Findings that numaprobe-fleetd keeps, over virtual nodes (tests/fleet/vnodes) whose truth is known."""
import contextlib
import csv
import http.client
import json
import os
import re
import signal
import socket
import sqlite3
import threading
import time
import urllib.request

from client import run, terminal  # noqa: F401: terminal is a fixture
from conftest import PATIENCE, replace_text, until
from test_fleet import Fleet
from test_fleetd import collect, measure, read_again  # noqa: F401: a fixture
from test_storage import faked_clock, needs_faketime, set_clock

WHOLE = {"id", "what", "grade", "node", "class", "text", "metric", "percent", "lo", "hi", "since", "found", "seen", "opened",
         "closed", "marked", "drained", "times", "state", "note", "by", "evidence"}


def findings(c, query=""):
    return c.get(f"/v1/fleet/findings{query}")["findings"]


def found(c, what, node=None, state="open"):
    """The finding of this kind about this node, once it is there."""
    until(lambda: c.status()["store_ready"])
    query = f"?what={what}&state={state}" + (f"&node={node}" if node else "")
    return until(lambda: next(iter(findings(c, query)), None))


def put(c, number, whole=None, **body):
    """By the Unix socket, as the account that runs the collector: over TCP it takes a token."""
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(f"{c.home}/run/numaprobe-fleetd.sock")
    with contextlib.closing(connection):
        connection.request("PUT", f"/v1/fleet/findings/{number}", json.dumps(whole or body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, json.load(response)


def judged(c):
    """The first judgement after a start is stored."""
    return until(lambda: c.status()["findings"]["judged"])


def test_a_slow_node_is_a_finding_with_its_evidence(collect):  # noqa: F811
    c = collect(100, "--runs=8").start()
    c.wait_up(100)
    bad = {n["node"] for n in c.fleet.truth["world"]["nodes"] if n["bad"]}
    def complete():
        kept = findings(c) + findings(c, "?state=forming")
        verdict = {f["node"]: f for f in c.get("/v1/fleet/outliers")["findings"]}
        one_by_one = [c.get(f"/v1/fleet/findings/{f['id']}") for f in kept]
        return {f["node"]: f["evidence"] for f in kept} == verdict and one_by_one == kept and kept
    kept = until(complete)  # documents of facts come after the runs, and all is judged again then
    assert {f["node"] for f in kept} >= bad
    for f in kept:
        worst = f["evidence"]["worst"]
        assert set(f) == WHOLE and f["what"] == "outlier" and f["grade"] == f["evidence"]["grade"], f
        assert (f["state"], f["times"]) == (("open", 1) if f["grade"] == "sure" else ("forming", 0)), "only what is sure opens at once"
        assert (f["metric"], f["percent"]) == (worst["metric"], worst["percent"]) and f["node"] in f["text"]
    sure = sum(f["grade"] == "sure" for f in kept)
    # A moment after the rows: the counts first, then the coverage.
    status = until(lambda: (s := c.status())["findings"]["open"]["outlier"]["sure"] == sure and s["coverage"] and
                   [k["up"] for k in s["coverage"]["classes"]] == [100] and s)
    assert status["findings"]["open"]["outlier"] == {"suspect": 0, "sure": sure, "ungraded": 0}
    assert status["findings"]["states"]["open"] == sure > 0 and status["findings"]["problem"] == ""
    [covered] = status["coverage"]["classes"]
    assert (covered["known"], covered["up"], covered["fresh"], covered["enough_runs"]) == (100, 100, 100, 100)
    assert status["coverage"]["unmeasured"] == 0 and 0 <= status["coverage"]["staleness_s"]["median"] < 86400


def test_a_mark_stays_over_restarts_and_kills(collect):  # noqa: F811
    c = collect(30, "--runs=8", "--bad=1").start()
    number, node = (found(c, "outlier")[member] for member in ("id", "node"))
    status, body = put(c, number, state="acknowledged", note="DIMM ordered")
    assert (status, body["state"], body["note"]) == (200, "acknowledged", "DIMM ordered"), body
    for kill in (lambda: c.kill_child("--ingest"), c.kill_reader,
                 lambda: (c.process.kill(), c.process.wait(), c.start(), judged(c)), lambda: (c.stop(), c.start(), judged(c))):
        c.get(f"/v1/fleet/findings/{number}")
        kill()
        until(lambda: c.status()["store_ready"])
        f = until(lambda: read_again(c, f"/v1/fleet/findings/{number}"))
        assert (f["state"], f["note"], f["times"]) == ("acknowledged", "DIMM ordered", 1), f
    assert f["by"] == body["by"] and f["marked"]
    assert put(c, number, state="open")[0] == 200
    f = c.get(f"/v1/fleet/findings/{number}")
    assert (f["state"], f["note"]) == ("open", "DIMM ordered"), "without a note the note stays"
    assert put(c, number, state="fixed", note="")[0] == 200
    c.stop()
    c.start()
    judged(c)
    f = c.get(f"/v1/fleet/findings/{number}")
    assert (f["state"], f["note"]) == ("fixed", ""), "what was measured before says nothing of the repair"
    assert c.rows(f"SELECT id FROM finding WHERE what = 'outlier' AND node = '{node}'") == [(number,)]


@needs_faketime
def test_closed_findings_outlive_a_clock_that_is_ahead(collect, tmp_path, monkeypatch):  # noqa: F811
    """Their age counts from the newest run that was received, and in a day those of two months go."""
    def closed():
        return [row for (row,) in c.rows("SELECT node FROM finding WHERE state = 5 ORDER BY node")]

    def another_run():
        with urllib.request.urlopen(f"http://127.1.0.1:{c.fleet.port}/v1/runs", b'{"benchmark": "latency"}', timeout=PATIENCE):
            pass
    c = collect(30, "--runs=8", "--bad=1").start()
    found(c, "outlier")
    c.stop()
    with contextlib.closing(sqlite3.connect(f"{c.home}/state/fleet.db")) as db, db:
        names = [row[1] for row in db.execute("PRAGMA table_info(finding)")]
        # The one with the highest number stays, so that its number is not given again: that is y1.
        for node, days in (("y5", 700), ("y4", 600), ("y3", 500), ("y2", 100), ("y1", 10)):
            made = {"id": "(SELECT max(id) + 1 FROM finding)", "identity": f"'alien {node}'", "node": f"'{node}'", "state": "5",
                    "proof": "0", "misses": "0", "closed_ms": str(int(time.time() - days * 86400) * 1000)}
            db.execute(f"INSERT INTO finding ({', '.join(f'{n!r}' for n in names)}) SELECT "
                       f"{', '.join(made.get(n, chr(34) + n + chr(34)) for n in names)} FROM finding LIMIT 1")
    with monkeypatch.context() as m:
        for name, value in faked_clock(tmp_path).items():
            m.setenv(name, value)
        set_clock(tmp_path, "+2y")
        c.start()
    c.wait_up(30)
    judged(c)
    another_run()
    until(lambda: "event=findings.held" in c.log.read_text())
    assert closed() == ["y1", "y2", "y3"], "two months of a day"
    set_clock(tmp_path, "+0")
    assert "text=\"more months of findings were closed over 400 days ago; 2 are deleted each day" in c.log.read_text()
    assert "event=findings.retention deleted=2" in c.log.read_text()


def test_a_mark_that_is_lost_names_the_store(collect):  # noqa: F811
    """On the command line the member `state` would be the option --state."""
    c = collect(30, "--runs=8", "--bad=1").start()
    number = found(c, "outlier")["id"]
    c.stop()
    c.options[c.options.index("--every=1")] = "--every=3600"  # so that after the first pages nothing but the mark waits for the store
    c.start().wait_known(30)
    judged(c)  # so that no judgement waits for it either
    c.wait_up(30)
    ingest, said = c.child("--ingest"), []
    os.kill(ingest, signal.SIGSTOP)
    marking = threading.Thread(target=lambda: said.append(put(c, number, state="fixed")), daemon=True)
    marking.start()
    until(lambda: c.status()["backlog_bytes"])
    os.kill(ingest, signal.SIGKILL)
    marking.join(PATIENCE)
    [(status, body)] = said
    assert (status, body["member"]) == (503, "store") and "process that stores has ended" in body["detail"], body


def test_a_repaired_node_closes_its_finding(collect):  # noqa: F811
    c = collect(30, "--runs=8", "--bad=1").start()
    f = found(c, "outlier")
    c.stop()
    c.fleet.close()
    # The same nodes with new histories: their machines were repaired and reinstalled.
    c.fleet = Fleet(c.fleet.home, 30, "--runs=8", "--bad=0", "--seed=7")
    c.options = [o for o in c.options if not o.startswith("--url=")] + [f"--url=http://%h:{c.fleet.port}"]
    c.start()
    closed = found(c, "outlier", f["node"], "closed")
    assert closed["id"] == f["id"] and closed["closed"] and closed["times"] == 1
    status, problem = put(c, f["id"], state="acknowledged")
    assert status == 409 and problem["member"] == "state", "nothing is left to acknowledge"
    assert len(until(lambda: (r := findings(c, "?what=reinstalled")) and len(r) == 30 and r)) == 30
    c.stop()  # as if the clock had been a year ahead then
    with contextlib.closing(sqlite3.connect(f"{c.home}/state/fleet.db")) as db, db:
        db.execute("UPDATE feed SET first_ms = first_ms + 31536000000")
    c.start()
    until(lambda: len(findings(c, "?what=reinstalled&state=closed")) == 30)


def test_what_nodes_respond_is_found_and_closes_by_itself(collect):  # noqa: F811
    faults = "--faults=node06 refuses; node02 copy; node03 clock=300; node04 name; node08 text"
    c = collect(20, "--bad=0", f"{faults}; node05 clock=300").start()
    assert "does not respond" in found(c, "down", "node06")["text"]
    assert "ahead" in found(c, "clock", "node03")["text"]
    assert found(c, "down", "node08")["text"] == f"node08 does not respond: {c.node('node08')['problem']}", "no reason is cut"
    assert found(c, "alien", "node04")["evidence"]["other"]
    twins = until(lambda: len(t := findings(c, "?what=twin")) == 2 and t)
    assert {t["node"]: t["evidence"]["other"] for t in twins} == {"node01": "node02", "node02": "node01"}
    assert found(c, "clock", "node05")["opened"]
    c.stop()
    c.fleet.close()
    c.fleet = Fleet(c.fleet.home, 20, "--bad=0", faults)
    c.options = [o for o in c.options if not o.startswith("--url=")] + [f"--url=http://%h:{c.fleet.port}"]
    c.start()
    assert found(c, "clock", "node05", "closed")["opened"], "the clock is right again"
    assert all(f["grade"] == "sure" and f["class"] is None and f["metric"] is None for f in findings(c))
    before = {f["id"]: f["times"] for f in findings(c)}
    c.process.kill()
    c.process.wait()
    c.start()
    judged(c)
    after = {f["id"]: f["times"] for f in findings(c)}
    assert after == before, "what is not known after a restart closes nothing, and opens nothing again"


def is_twin(c, node):
    return c.node(node)["outcome"] == "twin"


def test_a_twin_that_is_gone_after_a_restart_is_none(collect):  # noqa: F811
    """It had no history of its own, and claimed that of the other one."""
    c = collect(12, "--bad=0", "--faults=node02 copy").start()
    c.wait_up(12)
    until(lambda: is_twin(c, "node01") and len(findings(c, "?what=twin")) == 2)
    c.stop()
    c.name([n for n in c.fleet.names if n != "node02"])
    c.start().wait_up(11)
    until(lambda: not is_twin(c, "node01"))
    until(lambda: findings(c, "?what=twin&state=closed") and not findings(c, "?what=twin"))
    def stored():
        return c.rows("SELECT count(*) FROM run JOIN node ON node.id = run.node WHERE name = 'node01'")
    before = stored()
    measure(c.fleet, 1)
    until(lambda: stored() > before)


def test_nodes_that_were_renamed_during_a_stop_are_no_twins(collect):  # noqa: F811
    """Their old names have ten minutes to be named again. A finding would say that databases are to be deleted."""
    c = collect(12, "--bad=0").start()
    c.wait_up(12)
    c.stop()
    renamed = [f"{n}.x url=http://127.1.0.{int(n[4:])}:{c.fleet.port}" for n in c.fleet.names]
    c.name(renamed)
    c.start().wait_up(12)
    until(lambda: all(is_twin(c, f"{n}.x") for n in c.fleet.names))
    c.name([*renamed, "later url=http://127.0.0.1:1"])
    c.process.send_signal(signal.SIGHUP)
    found(c, "down")  # of what is named later: by a judgement that came after all that
    assert not findings(c, "?what=twin") and not findings(c, "?what=twin&state=forming")
    c.stop()
    c.name(c.fleet.names)
    c.start().wait_up(12)
    until(lambda: not any(is_twin(c, n) for n in c.fleet.names))


def judged_again(c, times):
    """So many judgements more, each of something new."""
    for _ in range(times):
        before = judged(c)
        measure(c.fleet, 1)
        until(lambda: judged(c) != before)


def test_a_collector_without_nodes_closes_its_findings(collect):  # noqa: F811
    c = collect(3, "--faults=node[1-3] refuses").start()
    found(c, "down")
    until(lambda: len(findings(c, "?what=down")) == 3)
    c.stop()
    c.name([])
    c.start()
    found(c, "down", state="closed")
    until(lambda: len(findings(c, "?what=down&state=closed")) == 3)
    status = c.wait_judged(down=0)
    assert status["states"]["closed"] == 3 and status["problem"] == "", status
    assert until(lambda: c.status()["coverage"])["classes"] == []


def test_a_source_that_fails_after_a_restart_closes_nothing(collect):  # noqa: F811
    c = collect(20, "--bad=0", "--faults=node[19-20] refuses")
    other = c.home / "other"
    replace_text(other, "node[19-20]\n")
    c.name(c.fleet.names[:18])
    c.options.append(f"--source=file:{other}")
    c.start()
    found(c, "down")
    until(lambda: len(findings(c, "?what=down")) == 2)
    before = {f["id"]: f["opened"] for f in findings(c, "?what=down")}
    c.stop()
    other.unlink()
    c.start().wait_up(18)
    judged_again(c, 4)
    assert {f["id"]: f["opened"] for f in findings(c, "?what=down")} == before, "what is not known closes nothing"
    replace_text(other, "\n")
    c.process.send_signal(signal.SIGHUP)
    until(lambda: {f["id"] for f in findings(c, "?what=down&state=closed")} == set(before))


def test_a_list_that_lost_most_nodes_over_a_restart_closes_nothing_yet(collect):  # noqa: F811
    c = collect(20, "--bad=0", "--faults=node[19-20] refuses").start()
    found(c, "down")
    until(lambda: len(findings(c, "?what=down")) == 2)
    c.wait_up(18)
    c.stop()
    c.name(c.fleet.names[:2])
    c.start().wait_up(2)
    judged_again(c, 4)
    assert len(findings(c, "?what=down")) == 2, "the others have ten minutes to be named"


def test_a_node_that_is_gone_does_not_keep_its_finding_for_ever(collect):  # noqa: F811
    """While its runs are new it is judged by them."""
    c = collect(30, "--runs=8", "--bad=1").start()
    f = found(c, "outlier")
    c.stop()
    with contextlib.closing(sqlite3.connect(f"{c.home}/state/fleet.db")) as db, db:
        [(node,)] = db.execute("SELECT id FROM node WHERE name = ?", (f["node"],))
        db.execute("UPDATE run SET measured_ms = measured_ms - 5184000000 WHERE node = ?", (node,))
        db.execute("UPDATE span SET first_month = first_month - 3 WHERE node = ?", (node,))
    c.start().wait_up(30)
    judged_again(c, 4)
    assert c.get(f"/v1/fleet/findings/{f['id']}")["state"] == "open", "a node that is not measured is not known to be repaired"
    c.name([n for n in c.fleet.names if n != f["node"]])
    c.process.send_signal(signal.SIGHUP)
    assert found(c, "outlier", f["node"], "closed")["id"] == f["id"]


def test_outcomes_count_nodes_that_are_named(collect):  # noqa: F811
    c = collect(4, "--bad=0", "--faults=node4 name").start()
    found(c, "alien", "node4")
    assert c.status()["outcomes"]["alien"] == 1
    c.name(c.fleet.names[:3])
    c.process.send_signal(signal.SIGHUP)
    until(lambda: c.node("node4")["state"] == "gone")
    assert c.status()["outcomes"]["alien"] == 0
    found(c, "alien", "node4", "closed")


def test_lists_are_filtered_paged_and_refuse_what_they_do_not_know(collect):  # noqa: F811
    c = collect(12, "--faults=node[01-07] refuses").start()
    found(c, "down")
    until(lambda: len(findings(c, "?what=down")) == 7)
    pages, cursor = [], ""
    while cursor is not None:
        page = c.get(f"/v1/fleet/findings?limit=3{cursor and f'&cursor={cursor}'}")
        pages.append([f["id"] for f in page["findings"]])
        cursor = page["next"]
    assert [len(p) for p in pages] == [3, 3, 1] and sum(pages, []) == sorted(sum(pages, []), reverse=True)
    assert {f["node"] for f in findings(c, "?where=node[02-03],x")} == {"node02", "node03"}
    assert findings(c, "?state=closed") == [] and findings(c, "?node=node12") == []
    for query, member in (("state=asleep", "state"), ("what=tired", "what"), ("limit=0", "limit"), ("where=n[1-", "where"),
                          ("cursor=x", "cursor"), ("node=%1b", "node")):
        status, problem = c.problem(f"/v1/fleet/findings?{query}")
        assert status in (400, 422) and problem["member"] == member, (query, status, problem)
    assert c.problem("/v1/fleet/findings/999")[0] == 404
    number = findings(c)[0]["id"]
    status, problem = put(c, number, [1])
    assert (status, problem["detail"]) == (422, 'must be a JSON object: {"state":"acknowledged","note":…}'), problem
    for body, status, member in (({"state": "closed"}, 422, "state"), ({}, 422, "state"), ({"state": "open", "x": 1}, 422, "x"),
                                 ({"state": "open", "note": "n" * 501}, 422, "note"), ({"state": "open", "note": "\x1b[2J"}, 422, "note"), ({"state": "open", "note": 7}, 422, "note")):
        got, problem = put(c, number, **body)
        assert (got, problem["member"]) == (status, member), (body, problem)
    status, problem = put(c, 999, state="fixed")
    assert (status, problem["member"]) == (404, "id"), problem


def test_a_judge_that_is_killed_is_started_again(collect):  # noqa: F811
    c = collect(300, "--runs=30").start()

    def struck(times):
        if pid := c.find_child("--judge"):
            with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                os.kill(pid, signal.SIGKILL)
        else:
            measure(c.fleet, 1)  # something to judge
        return c.log.read_text().count("has ended without a judgement") >= times
    until(lambda: struck(2))
    assert until(lambda: (s := c.status())["findings"]["judged"] and not s["findings"]["problem"] and s)
    assert found(c, "outlier")


def test_the_command_line_lists_and_marks(collect, terminal):  # noqa: F811
    c = collect(12, "--faults=node[01-03] refuses").start()
    found(c, "down")
    until(lambda: len(findings(c, "?what=down")) == 3)
    env = {"NUMAPROBE_FLEET": f"unix:{c.home}/run/numaprobe-fleetd.sock", "COLUMNS": "80"}

    def said(*words, status=0):
        done = run("fleet", "findings", *words, env=env)
        assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout if status == 0 else done.stderr
    table = said("--what=down").splitlines()
    assert table[0].split() == ["ID", "WHAT", "GRADE", "STATE", "SINCE", "FINDING"] and len(table) == 4, table
    shown, status = terminal(columns=60, env={**env, "PAGER": ""}).ran("fleet", "findings", "--what=down")
    assert status == 0 and shown.split() == " ".join(table).split(), (shown, table)  # none is cut
    assert len(shown.rstrip().splitlines()) > len(table), "the test needs long findings"
    # Unless judged in between.
    until(lambda: [f["id"] for f in json.loads(said("-o", "json"))["findings"]] == [f["id"] for f in findings(c)])
    until(lambda: json.loads(said("--what=down", "-o", "json"))["findings"] == findings(c, "?what=down"))
    rows = list(csv.DictReader(said("--where=node[02-03]", "--what=down", "-o", "csv").splitlines()))
    assert {r["node"] for r in rows} == {"node02", "node03"} and {r["state"] for r in rows} == {"open"}
    assert len(said("--what=down", "-o", "ndjson").splitlines()) == 3
    groups = c.home / "groups"
    groups.write_text("two: node[02-03]\n")
    rows = list(csv.DictReader(said("-w", "@two", f"--groups-file={groups}", "--what=down", "-o", "csv").splitlines()))
    assert {r["node"] for r in rows} == {"node02", "node03"}, "--nodes narrows, with groups that the collector does not know"
    assert said("-w", "other", status=5).startswith("numaprobe: --nodes: "), "the option that was given"
    number = rows[0]["id"]
    assert "acknowledged" in said("acknowledge", number, "--note=DIMM ordered")
    assert c.get(f"/v1/fleet/findings/{number}")["note"] == "DIMM ordered"
    assert "acknowledged" in said("acknowledge", number, "--note==cmd|A1")
    rows = list(csv.DictReader(said("--state=acknowledged", "-o", "csv").splitlines()))
    assert [r["note"] for r in rows] == ["'=cmd|A1"], "no spreadsheet takes a note for a formula"
    assert "note: has a control character (U+001B)" in said("acknowledge", number, "--note=\x1b[2J", status=2)
    assert "acknowledged" in said("acknowledge", number, "--note=DIMM\tordered")
    assert c.get(f"/v1/fleet/findings/{number}")["note"] == "DIMM\tordered"
    rows = list(csv.DictReader(said("--state=acknowledged", "-o", "csv").splitlines()))
    assert [r["note"] for r in rows] == ["DIMM ordered"], "a tab is a blank, as a browser shows it"
    assert json.loads(said("fix", number, "-o", "json"))["state"] == "fixed"
    assert f" {number} " in " " + said("--state=fixed").replace("\n", " ")
    assert said("reopen", number) and c.get(f"/v1/fleet/findings/{number}")["state"] == "open"
    assert "There is no such finding" in said("--what=twin")
    assert "state" in said("--state=asleep", status=2) and "what" in said("--what=tired", status=2)
    assert "fix ID" in said("fix", status=2) and "unknown action" in said("close", "1", status=2)
    assert "--note" in said("--note=x", status=2) and "--what" in said("fix", number, "--what=down", status=2)
    assert "999" in said("fix", "999", status=5)
    denied = run("fleet", "findings", "fix", number, f"--fleet={c.url}", env=env)
    assert denied.returncode == 4 and denied.stderr.endswith(
        "use a token (--token-file=FILE) or the collector's Unix socket (--fleet=unix:/run/numaprobe-fleet/numaprobe-fleetd.sock)\n")
    env.clear()
    assert "--fleet=URL" in said(status=2)


def test_metrics_count_what_is_kept(collect):  # noqa: F811
    c = collect(12, "--bad=0", "--faults=node[01-03] refuses").start()
    number = found(c, "down")["id"]
    until(lambda: len(findings(c, "?what=down")) == 3)
    assert put(c, number, state="acknowledged")[0] == 200

    def values():
        with urllib.request.urlopen(c.url + "/metrics", timeout=PATIENCE) as response:
            text = response.read().decode()
        return dict(line.rsplit(" ", 1) for line in text.splitlines() if re.match("numaprobe_fleet_(kept|open)_findings", line))
    counted = until(lambda: (v := values()).get('numaprobe_fleet_kept_findings{state="acknowledged"}') == "1" and v)
    assert counted['numaprobe_fleet_open_findings{what="down"}'] == "2", counted

    def states():
        return {f'numaprobe_fleet_kept_findings{{state="{s}"}}': str(n) for s, n in c.status()["findings"]["states"].items()}
    until(lambda: states().items() <= values().items())  # unless judged in between
