# SPDX-License-Identifier: Apache-2.0
"""numaprobe-fleetd over virtual nodes (tests/fleet/vnodes): what it stores and says is held against their truth."""
import contextlib
import datetime
import gzip
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import sqlite3
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request

import pytest

from conftest import PATIENCE, UnixConnection, build_dir, replace_text, until, without_fault
from test_fleet import Fleet

FLEETD = build_dir() / "fleet" / "numaprobe-fleetd"
# An option of a collector for which no node is late: one that sends nothing for a quarter of it has failed.
NO_NODE_IS_LATE = f"--node-timeout={4 * PATIENCE}"


class Collector:
    """numaprobe-fleetd over a fleet of virtual nodes. stop() and start() keep its history."""

    def __init__(self, home, fleet, *options):
        self.home, self.fleet, self.log = home, fleet, home / "log"
        self.list = home / "list"
        self.name(fleet.names)
        self.options = [f"--state-dir={home}/state", f"--run-dir={home}/run", f"--hostfile={self.list}",
                        f"--hosts-file={fleet.home}/hosts", f"--url=http://%h:{fleet.port}", "--listen=127.0.0.1:0",
                        "--every=1", *options]
        self.process, self.program = None, FLEETD

    def name(self, names):
        replace_text(self.list, "\n".join(names) + "\n")  # the collector may be reading it

    def start(self):
        seen = self.log.read_text().count("event=ready") if self.log.exists() else 0
        self.process = subprocess.Popen([self.program, *self.options], stderr=open(self.log, "a"), stdin=subprocess.DEVNULL)
        ready = until(lambda: self.process.poll() is not None or
                      re.findall(r"event=ready listen=(\S+)", self.log.read_text())[seen:])
        assert self.process.poll() is None, self.log.read_text()
        self.url = f"http://{ready[-1]}"
        return self

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(PATIENCE) == 0, self.log.read_text()
        without_fault(self.log.read_text())

    def kill(self):
        """Its children notice that it is gone, and end when they have done what they were doing: that is waited for."""
        left = self.children()
        self.process.kill()
        self.process.wait()
        until(lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in left))

    def close(self):
        if self.is_running():
            self.stop()
        self.fleet.close()
        if self.log.exists():
            without_fault(self.log.read_text())  # of those that were killed too

    def ask(self, path):
        """What one request gets; HTTPError if it is refused."""
        return json.loads(self.ask_bytes(path))

    def ask_bytes(self, path):
        with urllib.request.urlopen(self.url + path, timeout=PATIENCE) as response:
            return response.read()

    def get(self, path):
        return json.loads(self.get_bytes(path))

    def get_bytes(self, path):
        """What a patient client gets: a collector that reads its sources for the first time, whose process that reads is
        busy, or that has many requests of this address says later."""
        def found():
            try:
                return [self.ask_bytes(path)]
            except urllib.error.HTTPError as e:
                if e.code not in (429, 503):
                    raise
                said.append(e)
        said = []
        try:
            return until(found)[0]
        except AssertionError:
            raise said[-1] from None

    def problem(self, path):
        """(status, document) of the refusal that a patient client gets, as get()."""
        with pytest.raises(urllib.error.HTTPError) as caught:
            self.get(path)
        return caught.value.code, json.load(caught.value)

    def refusal(self, path):
        """(status, document) of one request that is refused, also if it is for now."""
        with pytest.raises(urllib.error.HTTPError) as caught:
            self.ask(path)
        return caught.value.code, json.load(caught.value)

    def status(self):
        return self.get("/v1/fleet/status")

    def node(self, name):
        return self.get(f"/v1/fleet/nodes/{name}")

    def wait_up(self, n):
        """Until so many nodes respond, and all that they have sent is stored. Facts come later: wait_known()."""
        return until(lambda: (s := self.status())["states"]["up"] == n and not s["backlog_bytes"] and s)

    def wait_known(self, n):
        """Until so many nodes respond, and the facts that their runs name are stored, and known to be."""
        self.wait_up(n)
        return until(lambda: all(k["cpu"] for k in self.get("/v1/fleet/classes")["classes"]) and not self.rows(
            "SELECT 1 FROM machine WHERE class NOT IN (SELECT hash FROM document) OR config NOT IN (SELECT hash FROM document) LIMIT 1"))

    def wait_judged(self, **open_findings):
        """Until a judgement is stored, and so many findings of each kind are open: outlier=2."""
        def counted():
            found = self.status()["findings"]
            return found["judged"] and all(sum(found["open"][kind].values()) == n for kind, n in open_findings.items()) and found
        return until(counted)

    def rows(self, query):
        with contextlib.closing(sqlite3.connect(f"file:{self.home}/state/fleet.db?mode=ro", uri=True, timeout=PATIENCE)) as db:
            return db.execute(query).fetchall()

    def children(self):
        return [int(p) for p in
                pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()]

    def find_child(self, option):
        """The process that was started with this option, or None."""
        for pid in self.children():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                if option in pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0"):
                    return pid
        return None

    def child(self, option):
        return until(lambda: self.find_child(option))

    def kill_reader(self):
        """The collector notices it with the next request, see read_again(). It ends by itself when nobody requests anything."""
        if pid := self.find_child("--work"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def wait_cleared(self):
        """Until no page is in doubt: if it was on the way when the process that stores was killed, and is when it is killed again,
        the node is at fault for both. A document of facts that was stored at that moment does not come again."""
        def in_doubt():
            found = re.findall(r"event=(?:ready |ingest\.cleared |ingest\.ended .*doubtful=\S* of=(\S*))", self.log.read_text())
            return bool(found and found[-1] == "page")
        until(lambda: not in_doubt())

    def kill_child(self, option):
        """And waits until the collector knows."""
        pid = self.child(option)
        with contextlib.suppress(ProcessLookupError):  # it has ended by itself
            os.kill(pid, signal.SIGKILL)
        until(lambda: pid not in self.children())


def measure(fleet, nodes, times=1):
    """Each of so many nodes measures `times` more."""
    for node in range(nodes):
        for _ in range(times):
            url = f"http://127.1.0.{node + 1}:{fleet.port}/v1/runs"
            with urllib.request.urlopen(url, json.dumps({"benchmark": "latency"}).encode(), timeout=PATIENCE):
                pass


@pytest.fixture
def collect(tmp_path):
    made = []

    def make(nodes, *options, collector=()):
        home = tmp_path / str(len(made))
        home.mkdir()
        fleet = Fleet(home, nodes, *options)
        made.append(Collector(home, fleet, *collector))
        return made[-1]
    yield make
    for one in made:
        one.close()


def test_every_run_is_stored_once_and_judged_as_the_client_judges(collect):
    c = collect(60, "--classes=2", "--runs=8", "--bad=2").start()
    c.wait_known(60)
    assert c.status()["runs_stored"] == 60 * 16
    assert c.rows("SELECT count(*), count(DISTINCT feed || '.' || seq) FROM run") == [(960, 960)]
    verdict = c.get("/v1/fleet/outliers")
    assert verdict["findings"][0]["differs_from_peers"] is not None
    theirs = c.fleet.json("outliers", "-w", c.fleet.all, status=7)["verdict"]
    bad = {n["node"] for n in c.fleet.truth["world"]["nodes"] if n["bad"]}
    assert {f["node"] for f in verdict["findings"]} == bad
    same = ("node", "grade", "worst", "p", "q", "metrics_worse", "of", "runs", "class")
    assert ([{k: f[k] for k in same} for f in verdict["findings"]] ==
            [{k: f[k] for k in same} for f in theirs["findings"]]), "one function gives the verdict, whoever asks"
    classes = c.get("/v1/fleet/classes")["classes"]
    assert sorted(k["nodes"] for k in classes) == [30, 30] and all(k["enough_runs"] == 30 for k in classes)


def names_of(runs):
    """node[09-10] as names."""
    found = []
    for run in runs:
        part = re.fullmatch(r"(.*)\[(\d+)-(\d+)\](.*)", run)
        found += [run] if not part else [f"{part[1]}{i:0{len(part[2])}}{part[4]}" for i in range(int(part[2]), int(part[3]) + 1)]
    return found


def test_what_is_read_from_the_history_is_compressed_for_clients_that_prefer_it(collect):
    c = collect(40, "--runs=3").start()
    c.wait_up(40)

    def ask(path, coding):
        with urllib.request.urlopen(urllib.request.Request(c.url + path, headers={"Accept-Encoding": coding}), timeout=PATIENCE) as r:
            return r.headers["Content-Encoding"], r.headers["Vary"], r.read()
    large, small = "/v1/fleet/runs?form=summary&newest=3", "/v1/fleet/classes"
    coding, vary, packed = ask(large, "br;q=0.5, gzip")
    plain = ask(large, "identity")
    assert coding == "gzip" and vary == "Accept, Accept-Encoding" and len(packed) < len(plain[2]) / 2
    assert plain[:2] == (None, vary) and json.loads(gzip.decompress(packed))["runs"] == json.loads(plain[2])["runs"]
    assert ask(large, "deflate, gzip;q=0")[0] is None and ask(small, "gzip")[0] is None, "a small one stays as it is"


def test_tiles_and_metrics_say_what_the_verdict_says(collect):
    c = collect(60, "--classes=2", "--runs=8", "--bad=2", "--faults=node07 refuses").start()
    c.wait_known(59)
    others = [n for n in c.fleet.names if n != "node07"]
    until(lambda: names_of(c.get("/v1/fleet/states")["up"]) == others)  # one that was late is so at its next page
    verdict, tiles = c.get("/v1/fleet/outliers"), c.get("/v1/fleet/tiles")
    assert names_of(tiles["nodes"]) == others and tiles["sure"] == verdict["sure"] > 0 and tiles["tested_nodes"] == verdict["tested_nodes"]
    assert tiles["classes"] == c.get("/v1/fleet/classes")["classes"]
    for path in "tiles", "outliers", "runs", "classes/xyz", "ranking":
        query = "" if "xyz" in path else f"?class=xyz{'&metric=latency.local.dram.median_ns' if path == 'ranking' else ''}"
        status, problem = c.problem(f"/v1/fleet/{path}{query}")
        assert (status, problem["member"], problem["detail"]) == (404, "class", "no node is of a class xyz"), (path, problem)
    found = {f["node"]: f for f in verdict["findings"]}
    for i, name in enumerate(others):
        assert tiles["grade"][i] == {"suspect": 1, "sure": 2}.get(found.get(name, {}).get("grade"), 0)
        if name in found:
            worst = found[name]["worst"]
            assert tiles["hashes"][tiles["class"][i]] == found[name]["class"] and tiles["metrics"][tiles["metric"][i]] == worst["metric"]
            assert abs(tiles["percent"][i] - abs(worst["percent"])) < 0.06
            place = next(m for m in c.get(f"/v1/fleet/nodes/{name}/metrics")["metrics"] if m["metric"] == worst["metric"])
            assert abs(place["percent"] - abs(worst["percent"])) < 0.011 and place["nodes"] == worst["nodes"]
            for key in ("value", "class_median", "limit"):
                assert abs(place[key] / worst[key] - 1) < 1e-3, key
    place = place["percentile"], place["z"]  # of the last of them
    assert place[0] > 90 and place[1] > 3, place
    good = next(n for n in others if n not in found)
    of = c.get(f"/v1/fleet/nodes/{good}/metrics")
    assert all(0 <= m["percentile"] <= 100 for m in of["metrics"]) and any(m["percentile"] < 90 for m in of["metrics"])
    assert all((m["z"] > 0) == (m["percent"] > 0) for m in of["metrics"] if m["percent"])
    assert of["setup"]["setups"] == 1 and of["setup"]["fact_changes"] is None and "kernel" in of["setup"]["facts"], of["setup"]
    assert c.problem("/v1/fleet/nodes/node07/metrics")[0] == 404
    assert sum(g > 0 for g in tiles["grade"]) == len(found)


def test_findings_are_chosen_from_the_verdict_over_all(collect):
    c = collect(60, "--classes=2", "--runs=8", "--bad=4").start()
    c.wait_known(60)
    everything = c.get("/v1/fleet/outliers")

    def chosen(**query):
        verdict = c.get("/v1/fleet/outliers?" + urllib.parse.urlencode(query))
        assert all(verdict[k] == everything[k] for k in ("sure", "suspect", "groups", "nodes", "tested_nodes")), "its counts are of all"
        return [f["node"] for f in verdict["findings"]]
    findings = everything["findings"]
    first = findings[0]
    assert len(findings) == 4 and all(f["worst"]["metric"] in f["metrics"] and len(f["metrics"]) == f["metrics_worse"] for f in findings)
    for grade in ("suspect", "sure"):
        assert chosen(grade=grade) == [f["node"] for f in findings if f["grade"] == grade]
    metric = first["metrics"][-1]
    assert chosen(metric=metric) == [f["node"] for f in findings if metric in f["metrics"]]
    assert chosen(where=first["node"]) == [first["node"]] and chosen(where=c.fleet.all + "!" + first["node"]) == [f["node"] for f in findings[1:]]
    good = next(n for n in c.fleet.names if n not in {f["node"] for f in findings})
    assert chosen(where=good) == [] == chosen(where=first["node"], grade="suspect" if first["grade"] == "sure" else "sure")
    for query, status, member, said in (
            ("metric=" + metric[:-1], 404, "metric", f'did you mean "{metric}"?'), ("where=nope", 404, "where", "nope"),
            ("where=n[1-", 422, "where", ""), ("grade=bad", 422, "grade", "suspect or sure"), ("anew=maybe", 422, "anew", "true or false")):
        got, problem = c.problem(f"/v1/fleet/outliers?{query}")
        assert (got, problem["member"]) == (status, member) and said in problem["detail"], (query, got, problem)
    until(lambda: (kept := c.get("/v1/fleet/outliers")["evaluated"]) == c.get("/v1/fleet/outliers")["evaluated"] and
          c.get("/v1/fleet/outliers?anew=true")["evaluated"] > kept == c.get("/v1/fleet/outliers")["evaluated"])


def test_nodes_of_a_class_and_the_state_of_the_whole(collect):
    c = collect(30, "--classes=2", "--runs=5").start()
    c.wait_known(30)
    hashes = {k["class"]: k["nodes"] for k in c.get("/v1/fleet/classes")["classes"]}
    assert sorted(hashes.values()) == [15, 15]
    for one in hashes:
        of = c.get(f"/v1/fleet/nodes?class={one[:8]}&limit=10")
        rest = c.get(f"/v1/fleet/nodes?class={one}&limit=10&cursor={of['cursor']}")
        names = [n["node"] for n in of["nodes"] + rest["nodes"]]
        assert len(names) == 15 and rest["cursor"] is None and {n["class"] for n in of["nodes"]} == {one}
        assert c.get(f"/v1/fleet/nodes/{names[0]}/metrics")["class"] == one == c.get(f"/v1/fleet/nodes/{names[0]}")["class"]
    for query, status, said in (("class=xyz", 404, "no node is of a class xyz"), ("class=", 422, "several classes")):
        got, problem = c.problem(f"/v1/fleet/nodes?{query}")
        assert (got, problem["member"]) == (status, "class") and said in problem["detail"], (query, got, problem)
    status = c.status()
    versions = {v["version"]: v["nodes"] for v in status["versions"]}
    assert sum(versions.values()) == 30 and "" not in versions and status["other_versions"] == 0
    assert 0 <= status["lag_s"] < PATIENCE
    held = until(lambda: (s := c.status())["store_runs"] == status["runs_stored"] == 300 and s)
    assert 10000 < held["store_bytes"] <= os.stat(f"{c.home}/state/fleet.db").st_size + (64 << 20), "some pages may still be in its log"
    with urllib.request.urlopen(c.url + "/metrics", timeout=PATIENCE) as metrics:
        assert "\nnumaprobe_fleet_store_runs 300\n" in metrics.read().decode()


def test_a_restart_continues_where_it_was(collect):
    c = collect(20, "--runs=5").start()
    c.wait_up(20)
    place = {n["node"]: n["next"] for n in c.get("/v1/fleet/nodes?limit=100")["nodes"]}
    assert set(place.values()) == {10}
    newest = {r["node"]: r["newest"] for r in c.get("/v1/fleet/nodes?limit=100")["nodes"]}
    c.stop()
    c.start()
    assert [n["node"] for n in c.get("/v1/fleet/nodes?where=node03")["nodes"]] == ["node03"]
    one = c.node("node07")
    [class_of] = [k["class"] for k in c.get("/v1/fleet/classes")["classes"]]
    assert one["class"] == class_of and one["newest"] == newest["node07"], "the history says so: no request for classes was before"
    c.wait_up(20)
    nodes = c.get("/v1/fleet/nodes?limit=100")["nodes"]
    assert {n["node"]: n["newest"] for n in nodes} == newest and {n["class"] for n in nodes} == {class_of}
    assert {n["node"]: n["next"] for n in c.get("/v1/fleet/nodes?limit=100")["nodes"]} == place
    assert c.status()["runs_stored"] == 0, "nothing is stored again"
    assert c.rows("SELECT count(*) FROM run") == [(200,)]


def read_again(c, path="/v1/fleet/outliers"):
    """None: the process that reads is about to be started again."""
    with contextlib.suppress(urllib.error.HTTPError):
        return c.ask(path)


def test_processes_that_are_killed_lose_nothing(collect):
    c = collect(300, "--runs=30").start()

    def complete():
        return c.rows("SELECT count(*) FROM run") == [(18000,)]
    for killed in range(1, 13):
        until(lambda: c.status()["store_ready"])
        before = c.status()["runs_stored"]
        until(lambda: c.status()["runs_stored"] > before or complete())
        c.wait_cleared()
        c.kill_child("--ingest")
        if killed % 4 == 0:
            c.process.kill()
            c.process.wait()
            c.start()
        if complete():
            break
    until(complete)
    assert c.rows("SELECT count(*) FROM (SELECT DISTINCT feed, seq FROM run)") == [(18000,)]
    until(lambda: read_again(c))
    c.kill_reader()
    assert until(lambda: read_again(c))["nodes"] == 300, "another process reads"


def test_a_page_that_ends_its_reader_stops_no_other_node(collect):
    c = collect(5, "--bad=0")
    c.program = build_dir() / "tests" / "fakes" / "numaprobe-fleetd_poisoned"  # its reader ends by a page of node3
    c.start()
    c.wait_up(4)
    poisoned = until(lambda: (n := c.node("node3"))["poison"] and n)
    assert poisoned["problem"] == "what it sent ended the process that reads it" and poisoned["received"] is None
    until(lambda: c.status()["store_ready"] and c.rows("SELECT count(*) FROM run") == [(4 * 12,)])  # of all others
    c.wait_up(4)
    assert all(c.node(n)["poison"] is None for n in c.fleet.names if n != "node3")
    finding = until(lambda: next(iter(c.get("/v1/fleet/findings?what=poison")["findings"]), None))
    assert (finding["node"], finding["state"], finding["grade"]) == ("node3", "open", "sure"), finding
    assert re.search(r"event=ingest\.ended suspect= doubtful=node3 .*\n(.*\n)*.*event=ingest\.ended suspect=node3 ", c.log.read_text()), "twice"
    ended = c.log.read_text().count("event=ingest.ended")
    before = c.status()["requests"]
    until(lambda: c.status()["requests"] >= before + 3 * 4)
    assert c.log.read_text().count("event=ingest.ended") == ended, "it is left alone for an hour"



def test_whole_runs_that_end_their_reader_stop_no_page_of_their_node(collect, monkeypatch, tmp_path):
    monkeypatch.setenv("POISON_CLOCK", str(tmp_path / "ahead"))
    c = collect(6, "--bad=0", "--faults=node6 slow=0.7", collector=("--archive=all",))  # some of it is always on the way
    c.program = build_dir() / "tests" / "fakes" / "numaprobe-fleetd_poisoned"  # its reader ends by each whole run of node6
    c.name([n for n in c.fleet.names if n != "node3"])
    c.start()
    until(lambda: c.node("node6")["poison"])
    kept = "SELECT node.name, sum(archive.state) FROM archive JOIN node ON node.id = archive.node GROUP BY 1 ORDER BY 1"
    until(lambda: c.status()["store_ready"] and c.rows(kept) == [("node1", 12), ("node2", 12), ("node4", 12), ("node5", 12), ("node6", 0)])
    assert re.search(r"event=ingest\.ended suspect=node6 doubtful=node6 of=run ", c.log.read_text())
    why = "SELECT state, count(*) FROM archive WHERE why = 'it ends the process that reads it' GROUP BY 1"
    until(lambda: c.rows(why) == [(0, 1)])  # given up when that happens for hours
    measure(c.fleet, 6)
    until(lambda: c.status()["store_ready"] and c.rows("SELECT count(*) FROM run") == [(5 * 13,)])
    # On a busy machine a page of it may be late: then this is its problem until the next one.
    assert until(lambda: (n := c.node("node6"))["state"] == "up" and not n["problem"] and n)["poison"]
    finding = until(lambda: next(iter(c.get("/v1/fleet/findings?what=poison")["findings"]), None))
    assert (finding["node"], finding["text"]) == ("node6", "node6: what it sent ended the process that reads it"), finding
    assert c.log.read_text().count("suspect=node6 ") == 1, "they are left alone for an hour, and so is what was on the way"
    (tmp_path / "ahead").write_text(str(2 * 3600 * 1000))
    until(lambda: "ahead of that of most nodes" in c.status()["clock_problem"])
    before = c.status()["requests"]
    until(lambda: c.status()["requests"] >= before + 3 * 5)
    assert c.node("node6")["poison"] and c.log.read_text().count("suspect=node6 ") == 1, "the hour is not that of a clock that jumps"


def test_what_nodes_do_wrong_is_said_and_others_are_not_held_up(collect):
    faults = ("node01 refuses; node02 silent; node03 garbage; node04 json; node05 name; node06 endless; node07 cut; "
              "node08 older; node09 newer; node10 clock=300; node11 unavailable=1")
    c = collect(40, f"--faults={faults}", collector=("--node-timeout=2",)).start()

    def nodes():
        return {x["node"]: x for x in c.get("/v1/fleet/nodes?limit=100")["nodes"]}
    # A response may also be late on a busy machine: then this is the problem until the next one.
    for name, why in (("node01", "refused|no process"), ("node08", "too old for the collector"), ("node11", "503"), *((f"node{i:02}", ".") for i in (2, 3, 4, 6, 7))):
        until(lambda name=name, why=why: (n := nodes().get(name)) and re.search(why, n["problem"]))
    well = {"node09", "node10", *c.fleet.names[11:]}
    said = until(lambda: (n := nodes()) and all(n[name]["received"] for name in well) and n["node05"]["outcome"] == "alien" and n)
    assert said["node05"]["other"] and said["node11"]["received"] is None, said
    assert said["node09"]["outcome"] == "stored", "members that are not known are passed over"
    assert said["node10"]["skew_ms"] == pytest.approx(300000, abs=60000), "its response took a part of that"
    assert c.rows("SELECT count(*) FROM run r JOIN node n ON n.id = r.node WHERE n.name = 'node05'") == [(0,)]
    assert until(lambda: c.node("node01")["state"] == "down")


def test_a_node_that_takes_long_has_the_time_that_is_set(collect):
    c = collect(3, "--faults=node2 slow=6", collector=("--node-timeout=120",)).start()
    c.wait_up(3)


def test_a_list_of_one_node_is_named_in_the_singular(collect):
    c = collect(3).start()
    c.wait_up(3)
    c.name(c.fleet.names[:1])
    c.process.send_signal(signal.SIGHUP)
    problem = until(lambda: c.status()["sources_problem"])
    assert "it names 1 node, and 1 of the 3 that it named before" in problem, problem


def test_a_reload_names_settings_that_need_a_restart(collect, tmp_path):
    conf = tmp_path / "conf"
    conf.write_text("at_once = 8\n")
    c = collect(1, collector=(f"--config={conf}",)).start()
    c.wait_up(1)

    def reloaded(text):
        seen = c.log.read_text().count("\n")
        if text is None:
            conf.unlink()
        else:
            conf.write_text(text)
        c.process.send_signal(signal.SIGHUP)
        lines = until(lambda: (new := c.log.read_text().split("\n")[seen:]) and "are read again" in "".join(new) and new)
        return re.findall(r"event=reload .*?(?:setting=(\w+)|text=\"(.*?)\"$)", "\n".join(lines), re.M)
    done = ("", "the sources of nodes and the files of TLS are read again")
    assert reloaded("at_once = 8\nevery = 70\n") == [done], "an option has precedence"
    assert reloaded("at_once = 9\nkeep_days = 5\nconnections = 20\n") == [
        (name, "") for name in ("at_once", "keep_days", "connections")] + [done]
    assert reloaded("at_once = 8\nkeep_days = x\n")[0][1].startswith(f"{conf}:2: keep_days: must be a whole number")
    assert reloaded(None)[0][1].startswith(f"cannot read {conf}")
    assert reloaded("at_once = 8\n") == [done]
    c.wait_up(1)


def test_nodes_come_and_go_with_their_source(collect):
    c = collect(30).start()
    c.wait_up(30)
    c.name(c.fleet.names[:29])
    c.process.send_signal(signal.SIGHUP)
    until(lambda: c.node(c.fleet.names[29])["state"] == "gone")
    c.name(c.fleet.names[:5])
    c.process.send_signal(signal.SIGHUP)
    until(lambda: "believed if it says so again" in c.status()["sources_problem"])
    assert c.status()["nodes"] == 29, "half of a fleet does not disappear by one list"
    assert c.refusal("/readyz")[0] == 503
    c.process.send_signal(signal.SIGHUP)
    until(lambda: c.status()["nodes"] == 5)
    c.list.unlink()
    c.process.send_signal(signal.SIGHUP)
    until(lambda: c.status()["sources_problem"])
    assert c.status()["nodes"] == 5, "a source that fails keeps its last word"
    c.name(c.fleet.names)
    c.process.send_signal(signal.SIGHUP)
    assert c.wait_up(30)["sources_problem"] == ""
    assert c.rows("SELECT count(*) FROM run") == [(30 * 12,)], "their history continues"


@pytest.mark.parametrize("others", [16, 30])
def test_other_nodes_in_place_of_more_than_half_are_believed_when_that_is_said_again(collect, others):
    c = collect(90)
    c.name(c.fleet.names[:30])
    c.start().wait_known(30)

    def named(begin):
        c.name(c.fleet.names[begin:begin + 30])
        c.process.send_signal(signal.SIGHUP)
    named(others)
    until(lambda: f"it names 30 nodes, and {30 - others} of the 30 that it named before; believed" in c.status()["sources_problem"])
    assert c.status()["nodes"] == 30 and c.node(c.fleet.names[0])["state"] != "gone"
    named(60)
    until(lambda: "it names 30 nodes, and 0 of the 30 that" in c.status()["sources_problem"])
    assert c.node(c.fleet.names[0])["state"] != "gone", "two lists that do not agree"
    named(45)
    until(lambda: c.node(c.fleet.names[0])["state"] == "gone")
    assert (s := c.status())["nodes"] == 30 and not s["sources_problem"], "half of it is as in the list before"


def test_a_rollout_is_a_change_with_its_cause(collect):
    c = collect(4, "--runs=20", "--waves=1", "--rollout-percent=8", "--bad=0").start()
    c.wait_up(4)
    metric = "latency.n0.n0.median_ns"
    histories = until(lambda: (h := [c.get(f"/v1/fleet/history?metric={metric}&node={n}") for n in c.fleet.names])
                      and all(x["fact_changes"] for y in h for x in y["change_points"]) and h)
    changed = [h for h in histories if h["change_points"]]
    assert all(len(h["points"]) == 20 and h["unit"] == "ns" for h in histories) and changed
    for h in changed:
        [change] = h["change_points"]
        assert 5 < change["percent"] < 11 and "microcode" in json.dumps(change["fact_changes"]), change
    late = c.get(f"/v1/fleet/history?metric={metric}&node={c.fleet.names[0]}&since={histories[0]['points'][15]['measured']}")
    assert len(late["points"]) == 5
    for query, member in (("node=node1", "metric"), (f"metric={metric}", "node"), (f"metric={metric}&node=x", "node"),
                          (f"metric={metric}&node=node1&since=noon", "since")):
        assert c.problem(f"/v1/fleet/history?{query}")[1]["member"] == member


def test_a_change_point_beside_the_change_of_set_up_has_its_cause(collect):
    """Noise of half of the step moves some change points by some runs."""
    c = collect(60, "--runs=20", "--waves=3", "--rollout-percent=8", "--run-percent=4", "--bad=0").start()
    c.wait_known(60)
    metric, moved = "latency.n0.n0.median_ns", []
    began = dict(c.rows("SELECT name, max(from_ms) FROM setup JOIN node ON node.id = setup.node GROUP BY name HAVING count(*) = 2"))
    for name, from_ms in began.items():
        h = c.get(f"/v1/fleet/history?metric={metric}&node={name}")
        times = [p["measured"] for p in h["points"]]
        ms = [datetime.datetime.fromisoformat(t.replace("Z", "+00:00")).timestamp() * 1000 for t in times]
        first = next((i for i, at in enumerate(ms) if at >= from_ms - 1), len(ms))
        for change in h["change_points"]:
            runs = first - times.index(change["at"])
            near = abs(runs) <= 2 and first < len(ms)
            assert change["setup_runs"] == (runs if near else None), (name, change, runs)
            assert ("microcode" in json.dumps(change["fact_changes"])) == near, (name, change, runs)
            moved += [runs] if near and runs else []
    assert moved, "no change point was beside the change of set-up"


def test_the_collector_is_reached_by_the_host_name_of_its_machine(collect):
    c = collect(1, collector=("--listen=127.0.0.1:0,0.0.0.0:0", "--insecure-plaintext", "--insecure-anonymous")).start()
    url = f"http://127.0.0.1:{re.search(r'0[.]0[.]0[.]0:([0-9]+)', c.log.read_text())[1]}/healthz"
    for host in (socket.gethostname(), socket.gethostname().split(".")[0], "evil.test"):
        request = urllib.request.Request(url, headers={"Host": host})
        with contextlib.suppress(urllib.error.HTTPError):
            urllib.request.urlopen(request, timeout=PATIENCE).close()
            assert host != "evil.test"
            continue
        assert host == "evil.test", host


def test_old_months_are_deleted(collect):
    def months():
        return [m for (m,) in c.rows("SELECT DISTINCT strftime('%Y-%m', measured_ms / 1000, 'unixepoch') FROM run ORDER BY 1")]

    def look(event, times):
        """A start that is followed by a run: what comes behind the first look waits an hour for the next one."""
        c.start()
        c.wait_up(5)
        with urllib.request.urlopen(f"http://127.1.0.1:{c.fleet.port}/v1/runs", b'{"benchmark": "latency"}', timeout=PATIENCE):
            pass
        until(lambda: len(re.findall(rf"event={event} ", c.log.read_text())) == times)
        c.stop()
    c = collect(5, "--runs=13", "--run-ms=0", f"--interval-s={20 * 86400}").start()
    c.wait_up(5)
    assert c.status()["runs_stored"] == 130
    c.stop()
    before = months()
    c.options.append("--keep-days=60")
    look("retention.held", 1)
    assert months()[0] == before[2], "two months of a day"
    look("retention.held", 2)
    assert months()[0] == before[2], "a restart deletes no more"
    assert len(re.findall("event=retention ", c.log.read_text())) == 1
    with contextlib.closing(sqlite3.connect(f"{c.home}/state/fleet.db")) as db, db:
        db.execute("UPDATE meta SET value = value - 86400000 WHERE name = 'retained'")
    look("retention", 2)
    assert months()[0] == before[4], "two on the next day"
    [(least, most)] = c.rows("SELECT min(measured_ms), max(measured_ms) FROM run")
    assert most - least >= 40 * 86400000, "what is younger stays"  # of the runs of each 20 days


def test_lists_are_filtered_and_paged(collect):
    c = collect(25).start()
    c.wait_up(25)
    first = c.get("/v1/fleet/nodes?limit=10")
    second = c.get(f"/v1/fleet/nodes?limit=10&cursor={first['cursor']}")
    third = c.get(f"/v1/fleet/nodes?limit=10&cursor={second['cursor']}")
    assert [n["node"] for p in (first, second, third) for n in p["nodes"]] == sorted(c.fleet.names)
    assert third["cursor"] is None
    assert [n["node"] for n in c.get("/v1/fleet/nodes?where=node[03,07],other")["nodes"]] == ["node03", "node07"]
    until(lambda: c.get("/v1/fleet/runs?where=node03,other")["runs"])
    for path in ("nodes?where={}", "runs?where={}", "findings?where={}", "findings?node={}"):
        for name, near in (("nope", ""), ("nod03", '"nod03"; did you mean "node03"?')):
            status, problem = c.problem("/v1/fleet/" + path.format(name))
            assert status == 404 and problem["member"] == path[:-3].partition("?")[2] and near in problem["detail"], (path, name, problem)
        c.get("/v1/fleet/" + path.format("node03" if "node=" in path else "node03,nope"))
    assert 'did you mean "node03"' in c.problem("/v1/fleet/nodes/nod03")[1]["detail"]
    assert c.get("/v1/fleet/nodes?state=down")["nodes"] == []
    for query, member in (("state=asleep", "state"), ("limit=0", "limit"), ("where=n[1-", "where"),
                          ("where=n[1-40000]!n[1-40000],node03", "where")):
        status, problem = c.problem(f"/v1/fleet/nodes?{query}")
        assert status in (400, 422) and problem["member"] == member, (query, status, problem)
    assert c.problem("/v1/fleet/nodes/node99")[0] == 404
    assert c.problem("/v1/fleet/outliers?window_days=0")[1]["member"] == "window_days"
    assert c.problem("/v1/runs")[0] == 404


def test_requests_for_several_nodes_wait_for_one_reading_of_the_history(collect):
    """What is read is of all nodes. While the first of them waits for it, the others are no further long requests of the client."""
    c = collect(12).start()
    c.wait_up(12)
    c.get("/v1/fleet/classes")  # the process that reads has been started
    reader = c.child("--work")
    os.kill(reader, signal.SIGSTOP)
    host, port = c.url.removeprefix("http://").split(":")
    asked = [http.client.HTTPConnection(host, int(port), timeout=PATIENCE) for _ in c.fleet.names]
    try:
        for connection, name in zip(asked, c.fleet.names):
            connection.request("GET", f"/v1/fleet/nodes/{name}")
        c.ask("/healthz")
    finally:
        os.kill(reader, signal.SIGCONT)
    said = [connection.getresponse() for connection in asked]
    assert [r.status for r in said] == [200] * 12, [r.read() for r in said]
    assert all(json.load(r)["class"] for r in said)
    for connection in asked:
        connection.close()


def test_the_contract_names_its_routes(collect):
    routes = subprocess.run([FLEETD, "--routes"], capture_output=True, text=True, check=True).stdout.split("\n")
    served = {(m, p): set() if q == "-" else set(q.split(",")) for m, p, q in (r.split() for r in routes if r)
              if p != "/" and not p.startswith("/web/")}  # files of the page
    c = collect(1).start()
    contract = c.get("/openapi.json")
    request = urllib.request.Request(c.url + "/openapi.json", headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:
        assert json.loads(gzip.decompress(response.read())) == contract and response.headers["Vary"] == "Accept-Encoding"
    shared = contract["components"]["parameters"]
    described = {(method.upper(), path): {p["name"] for p in (shared[q["$ref"].rpartition("/")[2]] if "$ref" in q else q
                                                              for q in operation.get("parameters", [])) if p["in"] == "query"}
                 for path, operations in contract["paths"].items() for method, operation in operations.items()}
    assert served == described


def numbers_of(contract):
    """Path, name, what else the path needs, least and most of each number that a query may have."""
    shared = contract["components"]["parameters"]
    for path, operations in contract["paths"].items():
        parameters = [shared[p["$ref"].rpartition("/")[2]] if "$ref" in p else p
                      for p in operations.get("get", {}).get("parameters", [])]
        needed = {p["name"]: "latency.local" for p in parameters if p["in"] == "query" and p.get("required")}
        for p in parameters:
            if p["in"] == "query" and "maximum" in p["schema"]:
                yield path, p["name"], needed, p["schema"]["minimum"], p["schema"]["maximum"]


def test_numbers_have_the_limits_of_the_contract(collect):
    c = collect(1).start()
    c.wait_up(1)

    def refused(url):
        """Status and member at fault; None: a busy machine, or a store that is being opened."""
        try:
            with urllib.request.urlopen(c.url + url, timeout=PATIENCE) as response:
                return response.status, None
        except urllib.error.HTTPError as e:
            problem = json.load(e)
            return None if e.code == 429 or e.code >= 500 else (e.code, problem.get("member"))
    found = list(numbers_of(c.get("/openapi.json")))
    assert len(found) > 10
    for path, name, needed, least, most in found:
        for number in (least - 1, most + 1):
            url = f"{path.format(name='node1', id=1, hash=64 * '0')}?{urllib.parse.urlencode({**needed, name: number})}"
            assert until(lambda url=url: refused(url)) in ((400, name), (422, name)), url


@pytest.mark.parametrize("options, said", [
    (["--url=ftp://%h"], "http:// or https://"), (["--url=http://node:7780"], "%h"),
    (["--node-token-file=/dev/null"], "https://"), (["--node-key=/x"], "node_certificate"), (["--every=0"], "every"),
    (["word"], "unexpected word"), (["--nope"], "nope"), (["--config=/nowhere"], "/nowhere"),
    (["--hostfile=n1\nanonymous = admin"], "hostfile has a control character (U+000A)"), (["--store=\udcff"], "store is not UTF-8"),
    (["--every=\x1b[2J"], 'got "?[2J"'), (["--check-config", "--nodes=n1", "--listen=127.0.0.1"], "listen: must be ADDRESS:PORT"),
    (["--check-config", "--nodes=n1", "--node-ca=/nowhere/ca"], "node_ca: /nowhere/ca: No such file"),
    (["--check-config", "--nodes=n1", "--node-ca=/etc"], "node_ca: /etc must be a file")])
def test_wrong_settings_are_refused(options, said):
    done = subprocess.run([FLEETD, *options], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2 and said in done.stderr, (done.returncode, done.stderr)


@pytest.mark.parametrize("name, value, said", [
    ("tls_key", "/x", "tls_key: tls_certificate and tls_key belong together"),
    ("node_key", "/x", "node_certificate and node_key need each other"),
    ("node_certificate", "/x", "node_certificate and node_key need each other"), ("store", "a\x7f", "store has a control character (U+007F)")])
def test_the_place_of_a_wrong_setting_is_named(tmp_path, name, value, said):
    config, variable = tmp_path / "conf", f"NUMAPROBE_FLEETD_{name.upper()}"
    config.write_text(f"nodes = n1\nstate_dir = {tmp_path}\n" + f"{name} = {value}\n" * value.isprintable())
    ways = [(f"{config}:3", {})] * value.isprintable() + [(variable, {variable: value})]
    for place, more in ways:
        done = subprocess.run([FLEETD, f"--config={config}", "--check-config"], capture_output=True, text=True, timeout=PATIENCE,
                              env={**os.environ, **more})
        assert (done.returncode, done.stderr) == (2, f"numaprobe-fleetd: {place}: {said}\n")


@pytest.mark.parametrize("option, content, mode, said", [
    ("--hosts-file", None, 0, "hosts_file: cannot read {path}: No such file"),
    ("--hosts-file", "", 0o755, "hosts_file: {path} is a directory; it must be a regular file"),
    ("--hosts-file", "127.0.0.1 n1\nn2 127.0.0.2\n", 0o644, 'hosts_file: {path}: line 2: "n2" is no IPv4 or IPv6 address'),
    ("--node-token-file", None, 0, "node_token_file: cannot read {path}: No such file"),
    ("--node-token-file", "", 0o755, "node_token_file: {path} is a directory; it must be a regular file"),
    ("--node-token-file", "\n", 0o600, "node_token_file: {path} must have one token, and nothing else"),
    ("--node-token-file", "np_1\nnp_2\n", 0o600, "node_token_file: {path} must have one token, and nothing else"),
    ("--node-token-file", "secret\n", 0o640, "node_token_file: others may read {path}; its mode must be 0600")])
def test_a_check_refuses_the_files_that_a_start_refuses(tmp_path, option, content, mode, said):
    path = tmp_path / "file"
    if content == "":
        path.mkdir(mode)
    elif content:
        path.write_text(content)
        path.chmod(mode)
    words = [FLEETD, "--config=/dev/null", "--nodes=n1", "--url=https://%h:7780", "--listen=127.0.0.1:0", f"--state-dir={tmp_path}/s",
             f"--run-dir={tmp_path}/r", f"{option}={path}"]
    check, start = (subprocess.run([*words, *more], capture_output=True, text=True, timeout=PATIENCE) for more in (["--check-config"], []))
    said = said.format(path=path)
    assert check.returncode == 2 and said in check.stderr, check
    assert start.returncode and said in start.stderr.replace('\\"', '"'), start


def test_a_file_of_settings_may_begin_with_a_mark(tmp_path):
    (tmp_path / "conf").write_bytes(b"\xef\xbb\xbfevery = 77\r\nnodes = n1")
    done = subprocess.run([FLEETD, f"--config={tmp_path}/conf", "--print-config"], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and "\nevery = 77\n" in done.stdout and "\nnodes = n1\n" in done.stdout, done


def test_what_a_request_lacks_does_not_fill_the_log(collect):
    c = collect(3).start()
    c.wait_up(3)
    for n in range(3):
        assert c.problem(f"/v1/fleet/effect?fact=kernel&from={n}&to=b")[0] == 404
    assert "event=reading" not in c.log.read_text()


@pytest.mark.parametrize("variable", ["STATE_DIRECTORY", "RUNTIME_DIRECTORY"])
def test_a_path_that_is_too_long_is_not_cut(tmp_path, variable):
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), variable: f"{tmp_path}/{'x' * 250}"}
    done = subprocess.run([FLEETD, "--nodes=n1", "--listen=127.0.0.1:0", "--check-config"], env=env, capture_output=True, text=True,
                          timeout=PATIENCE)
    assert done.returncode == 2 and f"{variable} leads to" in done.stderr and list(tmp_path.iterdir()) == [], done


@pytest.mark.parametrize("store, said", [
    ("/nowhere/x/fleet.db", "store: there can be no store in /nowhere/x: No such file or directory"),
    ("/dev/null/x", "store: there can be no store in /dev/null: Not a directory"), ("/tmp", "store: /tmp is not a file"),
    ("/dev/null", "store: /dev/null is not a file"), ("/var/lib/numaprobe-fleet/fleet.db", ""), ("/tmp/not-yet.db", "")])
def test_a_check_refuses_a_store_that_no_file_can_be(tmp_path, store, said):
    (tmp_path / "conf").write_text(f"nodes = n1\nstore = {store}\n")
    done = subprocess.run([FLEETD, f"--config={tmp_path}/conf", f"--state-dir={tmp_path}/s", f"--run-dir={tmp_path}/r", "--check-config"],
                          capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "") if not said else done.returncode == 2 and f"conf:2: {said}" in done.stderr, done


def test_a_start_logs_what_a_check_refuses_of_a_store(collect):
    c = collect(1)
    folder = c.home / "folder"
    folder.mkdir()
    c.options.append(f"--store={folder}")
    c.start()
    until(lambda: c.status()["store_state"] == "unwritable")
    assert f'event=store code=invalid member=store text="store: {folder} is not a file"' in c.log.read_text()
    folder.rmdir()
    c.wait_up(1)


def test_a_socket_that_a_child_of_a_killed_collector_still_has_is_waited_for(collect):
    c = collect(1)
    (c.home / "run").mkdir()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(f"{c.home}/run/numaprobe-fleetd.sock")
        left.listen()
        left.settimeout(PATIENCE)

        def end_when_seen():
            left.accept()[0].close()
            left.close()
        child = threading.Thread(target=end_when_seen, daemon=True)
        child.start()
        c.start()
        child.join()
    c.wait_up(1)


def test_the_socket_of_another_collector_is_left_to_it(collect):
    c = collect(3).start()
    other = subprocess.run([FLEETD, "--nodes=n1", "--listen=127.0.0.1:0", f"--state-dir={c.home}/other", f"--run-dir={c.home}/run"],
                           capture_output=True, text=True, timeout=PATIENCE)
    assert other.returncode == 1 and "numaprobe-fleetd.sock is in use by another program" in other.stderr, other
    with contextlib.closing(UnixConnection(f"{c.home}/run/numaprobe-fleetd.sock")) as connection:
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
    c.kill()  # a socket that is left over is replaced
    c.start()


def test_the_store_has_one_writer(collect):
    c = collect(3).start()
    c.wait_up(3)
    other = Collector(c.home, c.fleet, f"--store={c.home}/state/fleet.db", f"--run-dir={c.home}/other").start()
    try:
        assert until(lambda: other.status()["store_problem"])
        assert other.refusal("/readyz")[0] == 503
    finally:
        other.stop()
    assert c.status()["store_ready"]


def test_programs_print_what_they_would_do(collect, tmp_path):
    (tmp_path / "groups").write_text("rack1: n[1-3]\n")
    done = subprocess.run([FLEETD, "--print-nodes", "--nodes=@rack1,x", f"--groups-file={tmp_path}/groups"],
                          capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (0, "n1\nn2\nn3\nx\n"), done
    printed = subprocess.run([FLEETD, "--print-config", "--every=60"], capture_output=True, text=True, timeout=PATIENCE)
    assert "\nevery = 60\n" in printed.stdout and "\n#listen = 127.0.0.1:7790" in printed.stdout.replace("# listen", "#listen")
    (tmp_path / "conf").write_text(printed.stdout)
    assert subprocess.run([FLEETD, "--check-config", f"--config={tmp_path}/conf"], timeout=PATIENCE).returncode == 0
    assert all(len(line) <= 80 for line in subprocess.run([FLEETD, "--help"], capture_output=True, text=True)
               .stdout.splitlines())
