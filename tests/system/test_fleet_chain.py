# SPDX-License-Identifier: Apache-2.0
"""A collector that follows another collector: what that one has arrives once, whatever is killed, with the nodes' own names
and histories."""
import contextlib
import json
import re
import signal
import sqlite3
import subprocess
import time
import urllib.request

import pytest

from conftest import PATIENCE, until
from ports import free_port
from postgresql import make_postgresql  # noqa: F401
from test_fleetd import FLEETD, Collector, collect, measure  # noqa: F401

NODES, RUNS = 12, 10
EVERY = NODES * RUNS * 2

# What of a run must be the same in both stores.
RUN_LITE = ("SELECT n.name, f.history, r.seq, r.run, r.measured_ms, r.state, r.label, hex(r.v), hex(r.w), m.class, m.config FROM run r "
            "JOIN node n ON n.id = r.node JOIN feed f ON f.id = r.feed JOIN machine m ON m.id = r.machine ORDER BY 1, 2, 3")


def set_label(c, node, run, text):
    """Of a virtual node, by its place."""
    request = urllib.request.Request(f"http://127.1.0.{node + 1}:{c.fleet.port}/v1/runs/{run}/label",
                                     json.dumps({"label": text}).encode(), method="PUT")
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:
        assert response.status == 200


class Upper(Collector):
    """A collector whose one source is another collector; `nodes` are those that it contacts itself."""

    def __init__(self, home, lower, *options, nodes=()):
        home.mkdir(exist_ok=True)
        super().__init__(home, lower.fleet, f"--source=collector:{lower.url}", *options)
        if nodes:
            self.name(nodes)
        else:
            self.options = [o for o in self.options if not o.startswith("--hostfile")]

    def below(self):
        return self.status()["collectors"]

    def again(self):
        """Sources are read now."""
        self.process.send_signal(signal.SIGHUP)

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def chain(collect, tmp_path):  # noqa: F811
    """chain(*options of the nodes, lower=…, upper=…, nodes=…, before=…) -> a collector of nodes, and one that follows it, both
    started; before(lower) ends when the upper one may start."""
    made = []

    def make(*options, lower=(), upper=(), nodes=(), before=lambda below: None):
        below = collect(NODES, f"--runs={RUNS}", "--run-ms=0", *options, collector=(f"--listen=127.0.0.1:{free_port()}", *lower)).start()
        below.wait_up(NODES)
        before(below)
        made.append(Upper(tmp_path / "upper", below, *upper, nodes=nodes))
        made[-1].start()
        until(lambda: made[-1].status()["store_ready"])
        return below, made[-1]
    yield make
    for one in made:
        if one.process and one.process.poll() is None:
            one.kill()


def different(c):
    """(runs, different runs)."""
    return c.rows("SELECT count(*), count(DISTINCT f.history || '.' || r.seq) FROM run r JOIN feed f ON f.id = r.feed")[0]


def wait_runs(c, n):
    until(lambda: different(c) == (n, n))


def wait_same(lower, upper, n):
    wait_runs(lower, n)
    wait_runs(upper, n)
    assert upper.rows(RUN_LITE) == lower.rows(RUN_LITE)


def test_what_a_collector_has_arrives_as_it_is(chain):
    lower, upper = chain("--bad=1", "--bad-percent=30")
    wait_same(lower, upper, EVERY)
    assert upper.wait_up(NODES)["runs_stored"] == EVERY
    # On a busy machine a page of it may be late: then this is its problem until the next one.
    below = until(lambda: (b := upper.below()[0])["state"] == "up" and not b["problem"] and b)
    assert below["collector"] == lower.url and below["lost"] == 0 and len(upper.below()) == 1, below
    assert below["history_id"] == lower.get("/v1/feed?limit=1")["history_id"]
    node = upper.node(lower.fleet.names[3])
    assert node["collector"] == lower.url and node["url"] == "" and not node["duplicate"] and node["sources"] == [f"collector:{lower.url}"]
    for path in ("/v1/fleet/classes", "/v1/fleet/outliers"):
        def same(path=path):
            a, b = lower.get(path), upper.get(path)
            return json.dumps(a).replace(a.get("evaluated", "-"), "") == json.dumps(b).replace(b.get("evaluated", "-"), "")
        until(same)  # the facts of machines come too
    assert upper.get("/v1/fleet/outliers")["findings"], "there is something to find"
    measure(lower.fleet, NODES)
    wait_same(lower, upper, EVERY + NODES)


def test_what_another_collector_contacts_is_never_late(chain):
    _, upper = chain()
    upper.wait_up(NODES)

    def lag():
        with urllib.request.urlopen(upper.url + "/metrics", timeout=PATIENCE) as response:
            text = response.read().decode()
        assert "numaprobe_fleet_staleness_seconds{" not in text, "it has no page of a node itself"
        return float(re.search(r"^numaprobe_fleet_feed_lag_seconds (\S+)", text, re.M)[1])
    began, before = time.monotonic(), upper.status()["requests"]
    until(lambda: upper.status()["requests"] >= before + 5)
    assert lag() < time.monotonic() - began, "the collector below was contacted meanwhile"


@pytest.mark.parametrize("who", ["upper", "lower", "upper's --ingest", "lower's --ingest"])
def test_nothing_is_lost_or_twice_when_one_is_killed(chain, who):
    lower, upper = chain("--faults=100% cuts=10")
    total = EVERY
    c = upper if who.startswith("upper") else lower
    for _ in range(5):
        before = c.status()["runs_stored"]
        measure(lower.fleet, NODES, 2)
        total += 2 * NODES
        if "ingest" in who:
            c.kill_child("--ingest")
            # One that was killed between a commit and its report has stored runs that are counted nowhere.
            until(lambda before=before, total=total: c.status()["runs_stored"] > before or different(c) == (total, total))
            c.wait_cleared()
        else:
            c.process.kill()
            c.process.wait()
            c.start()
    wait_same(lower, upper, total)
    assert upper.below()[0]["lost"] == 0


def test_postgresql_above_and_below(chain, make_postgresql):  # noqa: F811
    stores = make_postgresql(), make_postgresql()
    lower, upper = chain(lower=[f"--store={stores[0].uri}"], upper=[f"--store={stores[1].uri}"])
    query = ("SELECT n.name, f.history, r.seq, r.run, r.measured, r.state, r.label, r.v, r.w, m.class, m.config FROM run r "
             "JOIN node n ON n.id = r.node JOIN feed f ON f.id = r.feed JOIN machine m ON m.id = r.machine ORDER BY 1, 2, 3")
    until(lambda: upper.status()["store_ready"] and len(stores[1].rows(query)) == EVERY)
    assert stores[0].rows(query) == stores[1].rows(query)
    stores[0].stop(signal.SIGKILL)
    stores[0].start()
    measure(lower.fleet, NODES)
    upper.process.kill()
    upper.process.wait()
    upper.start()
    until(lambda: len(stores[1].rows(query)) == EVERY + NODES)
    assert stores[0].rows(query) == stores[1].rows(query)


def test_a_node_that_comes_two_ways_is_a_duplicate_and_its_runs_are_stored_once(chain):
    lower, upper = chain(nodes=["node01", "node02"])
    assert lower.fleet.names[0] == "node01"
    wait_same(lower, upper, EVERY)
    upper.again()
    until(lambda: (n := upper.node("node01"))["duplicate"] and n["collector"] == "" and n["state"] == "up")
    assert not upper.node("node03")["duplicate"]
    found = until(lambda: upper.get("/v1/fleet/findings?what=duplicate")["findings"])
    assert {f["node"] for f in found} <= {"node01", "node02"} and "two ways" in found[0]["text"], found
    measure(lower.fleet, NODES, 3)
    wait_same(lower, upper, EVERY + 3 * NODES)
    upper.name(["node01"])
    upper.again()
    until(lambda: upper.node("node02")["collector"] == lower.url)
    measure(lower.fleet, NODES)
    wait_same(lower, upper, EVERY + 4 * NODES)


def test_what_was_deleted_below_is_reported(collect, chain):  # noqa: F811
    lower, upper = chain(f"--interval-s={20 * 86400}", lower=["--keep-days=60"], before=lambda c: until(lambda: different(c)[0] < EVERY))
    kept = different(lower)[0]
    until(lambda: (b := upper.below()[0])["lost"] == EVERY - kept and b["state"] == "up")
    wait_runs(upper, kept)
    assert f"lost={EVERY - kept}" in upper.log.read_text()


def test_whole_runs_come_from_the_collector_below(chain):
    def archived(c):
        return c.rows("SELECT count(*), sum(body IS NOT NULL) FROM archive")[0]
    # A run that the lower one does not have yet is requested again after a minute, and then later and later.
    lower, upper = chain(lower=["--archive=all"], upper=["--archive=all"], before=lambda c: until(lambda: archived(c) == (EVERY, EVERY)))
    until(lambda: archived(upper) == (EVERY, EVERY))
    for c in (lower, upper):
        c.get("/v1/fleet/archive/node03/5")
    assert lower.get("/v1/fleet/archive/node03/5") == upper.get("/v1/fleet/archive/node03/5")

    def change(c, values):
        with contextlib.closing(sqlite3.connect(f"{c.home}/state/fleet.db", timeout=PATIENCE)) as db, db:
            db.execute(f"UPDATE archive SET {values} WHERE seq = 6 AND state < 2 AND node = (SELECT id FROM node WHERE name = 'node03')")

    def given_up():
        """Another run, which nobody has read here: an answer may be some seconds old. It is requested until it is given up."""
        change(upper, "state = 0, body = NULL, bytes = 0, tries = 0, due_ms = 0")
        return upper.status()["archive_given_up"] == 1
    change(lower, "state = 2, body = NULL, bytes = 0, why = 'a reason'")
    until(given_up)
    for c, said in ((lower, "a reason"), (upper, "status 410")):
        code, problem = c.problem("/v1/fleet/archive/node03/6")
        assert code == 410 and said in problem["detail"], problem


def test_the_feed_is_the_one_of_a_node(collect):  # noqa: F811
    c = collect(NODES, f"--runs={RUNS}", "--run-ms=0").start()
    c.wait_up(NODES)
    wait_runs(c, EVERY)
    seen, after, history = [], 0, None
    while True:
        page = c.get(f"/v1/feed?form=summary&limit=100&after={after}" + (f"&history_id={history}" if history else ""))
        assert page["after"] == after and page["form"] == "summary" and len(page["runs"]) <= 100 and "deleted" not in page
        assert [r["seq"] for r in page["runs"]] == sorted(r["seq"] for r in page["runs"])
        seen += [(r["node"], r["node_history_id"], r["node_seq"]) for r in page["runs"]]
        after, history = page["next"], page["history_id"]
        if not page["more"]:
            break
    assert len(seen) == len(set(seen)) == EVERY and after == page["last"]
    assert c.problem(f"/v1/feed?after={after + 1}")[0] == 409
    code, problem = c.problem("/v1/feed?history_id=0123")
    assert code == 409 and problem["member"] == "history_id" and history in problem["detail"]
    for query, member in (("form=whole", "form"), ("limit=1001", "limit"), ("after=-1", "after"), ("after=x", "after")):
        code, problem = c.problem(f"/v1/feed?{query}")
        assert code == 422 and problem["member"] == member, problem


@pytest.mark.parametrize("url, said", [("fleet.example:7790", "needs the address"), ("https://fleet.example:7790/v1", "needs the address"),
                                       ("https://" + 60 * "x", "at most 63 bytes"), ("ftp://fleet.example", "needs the address")])
def test_a_wrong_address_is_refused(tmp_path, url, said):
    done = subprocess.run([FLEETD, "--check-config", f"--state-dir={tmp_path}", f"--source=collector:{url}"], capture_output=True,
                          text=True, timeout=PATIENCE)
    assert done.returncode == 2 and said in done.stderr, done


def test_a_node_is_no_collector(collect, tmp_path):  # noqa: F811
    c = collect(NODES, f"--runs={RUNS}", "--run-ms=0")
    c.url = f"http://127.1.0.1:{c.fleet.port}"
    upper = Upper(tmp_path / "upper", c).start()
    try:
        until(lambda: (b := upper.below()[0])["state"] == "down" and "422" in b["problem"])
        until(lambda: "404" in upper.status()["sources_problem"])
        until(lambda: upper.status()["store_ready"])
        assert different(upper) == (0, 0)
    finally:
        upper.kill()


def test_labels_that_come_later_pass_through(chain):
    below, above = chain()
    labelled = "SELECT n.name, r.run, r.label FROM run r JOIN node n ON n.id = r.node WHERE r.label <> '' ORDER BY 1, 2"
    until(lambda: above.status()["store_ready"] and above.rows("SELECT count(*) FROM run") == [(EVERY,)])
    names = below.fleet.names
    set_label(below, 2, 7, "kept")
    set_label(below, 5, 2, "also")
    until(lambda: above.rows(labelled) == sorted([(names[2], 7, "kept"), (names[5], 2, "also")]))
    kept = "SELECT n.name, a.run FROM archive a JOIN node n ON n.id = a.node WHERE a.cited = 0 ORDER BY 1"
    assert above.rows(kept) == sorted([(names[2], 7), (names[5], 2)]), "wanted in the transaction that stores the label"
    above.kill()
    set_label(below, 2, 7, "")
    until(lambda: below.rows(labelled) == [(names[5], 2, "also")])
    above.start()
    until(lambda: above.rows(labelled) == [(names[5], 2, "also")])
    assert above.rows(kept) == [(names[5], 2)]
    assert above.rows(RUN_LITE) == below.rows(RUN_LITE)
    assert [c["lost"] for c in above.below()] == [0], "notes are no runs that were deleted"
