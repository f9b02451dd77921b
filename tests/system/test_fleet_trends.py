# SPDX-License-Identifier: Apache-2.0
"""What numaprobe-fleetd says of time and of groups, against virtual nodes whose truth is known and against the client."""
import datetime
import json
import math
import re
import urllib.request
import xml.etree.ElementTree

import pytest

from client import run
from conftest import PATIENCE, until
from test_fleet import METRIC
from test_fleetd import collect  # noqa: F401 (a fixture)


def known(c, path):
    """The response, once the documents of facts are stored too."""
    return until(lambda: not c.rows("SELECT 1 FROM machine WHERE config NOT IN (SELECT hash FROM document) LIMIT 1")
                 and not c.rows("SELECT 1 FROM machine WHERE class NOT IN (SELECT hash FROM document) LIMIT 1")) and c.get(path)


def same_as_command(c, path, *words, status=0):
    """The collector's response, which is what the command says: one function gives both. A window ends now, so a run may leave it
    between the two: the collector has said the same before and after the command."""
    def said():
        before, theirs = c.get(path), judged(c.fleet.json(*words, "-w", c.fleet.all, status=status))
        return before == c.get(path) and (before, theirs)
    ours, theirs = until(said)
    assert ours == theirs
    return ours


def judged(document):
    """Without what became of the nodes, which only the command line requests."""
    return {k: v for k, v in document.items() if k not in ("failures", "wrong_clocks", "copied_histories")}


def test_a_rollout_is_listed_with_its_waves_and_its_price(collect):  # noqa: F811
    c = collect(200, "--runs=30", "--interval-s=43200", "--waves=3", "--rollout-percent=2", "--bad=0").start()
    c.wait_up(200)
    [rollout] = [r for r in known(c, "/v1/fleet/rollouts")["rollouts"] if r["fact"] == "microcode"]
    rolled = {n["node"] for n in c.fleet.truth["world"]["nodes"] if n["rolled_round"] is not None}
    assert rollout["nodes"] == len(rolled) and rollout["remaining"] == 200 - len(rolled) and not rollout["reverted"], rollout
    assert sum(w["nodes"] for w in rollout["waves"]) == len(rolled) and len(rollout["waves"]) == rollout["days"] >= 2
    assert [w["day"] for w in rollout["waves"]] == sorted(w["day"] for w in rollout["waves"])
    some = sorted(rolled)[0]
    setup = c.get(f"/v1/fleet/nodes/{some}/metrics")["setup"]
    [change] = [f for f in setup["fact_changes"] if f["name"] == "microcode"]
    assert setup["setups"] == 2 and (change["before"], change["after"]) == (rollout["from"], rollout["to"]) and \
        setup["facts"]["microcode"] == rollout["to"] and rollout["first"] <= setup["since"] <= rollout["last"], (setup, rollout)
    assert any(some in w["names"] or re.search(r"\[", w["names"]) for w in rollout["waves"])
    effect = same_as_command(c, "/v1/fleet/effect?fact=microcode", "effect", "microcode", status=7)
    assert {k: effect[k] for k in ("from", "to", "nodes", "days", "first", "last")} == \
        {k: rollout[k] for k in ("from", "to", "nodes", "days", "first", "last")}
    row = next(m for m in effect["metrics"] if m["metric"] == METRIC)
    # The interval is another one at each time of the day, because the days of the runs are.
    assert row["verdict"] == "worse" and abs(row["percent"] - 2) < 0.5 and row["lo"] < row["percent"] < row["hi"], row


def test_a_rollout_without_effect_is_none(collect):  # noqa: F811
    c = collect(300, "--runs=30", "--interval-s=43200", "--waves=3", "--rollout-percent=0", "--bad=0",
                "--drift-percent=0.2").start()
    c.wait_up(300)
    effect = known(c, "/v1/fleet/effect?fact=microcode")
    assert not [m for m in effect["metrics"] if m["verdict"] in ("worse", "better")], "what changed for all is not its effect"
    assert all(m["controls"] >= 20 for m in effect["metrics"])


def test_rollouts_of_a_stretch_and_of_some_nodes(collect):  # noqa: F811
    c = collect(60, "--runs=20", "--waves=3", "--bad=0").start()
    c.wait_up(60)
    [all_] = [r for r in known(c, "/v1/fleet/rollouts?fact=microcode")["rollouts"]]
    middle = all_["waves"][1]["day"]
    [late] = c.get(f"/v1/fleet/rollouts?fact=microcode&since={middle}T00:00:00Z")["rollouts"]
    assert late["nodes"] == all_["nodes"] - all_["waves"][0]["nodes"]
    [few] = c.get("/v1/fleet/rollouts?fact=microcode&where=node[01-20]")["rollouts"]
    assert few["nodes"] + few["remaining"] == 20
    assert c.get("/v1/fleet/rollouts?fact=kernel")["rollouts"] == []
    assert c.get("/v1/fleet/effect?fact=microcode&where=node[01-20]")["nodes"] == few["nodes"]
    to = all_["to"]
    assert c.get(f"/v1/fleet/effect?fact=microcode&to={to}")["to"] == to
    for query, member, status in (("effect", "fact", 422), ("effect?fact=nothing", "fact", 404),
                                  ("effect?fact=microcode&to=0x0", "fact", 404),
                                  ("effect?fact=microcode&since=noon", "since", 422),
                                  ("effect?fact=microcode&since=2026-02-01T00:00:00Z&until=2026-01-01T00:00:00Z", "since", 422),
                                  ("effect?fact=microcode&where=n[1-", "where", 422),
                                  ("effect?fact=microcode&where=n1", "where", 404), ("rollouts?where=n1", "where", 404),
                                  ("rollouts?fact=kernels", "fact", 404), (f"ranking?metric={METRIC}&where=n1", "where", 404),
                                  (f"compare?by=kernel&metric={METRIC}&where=n1", "where", 404),
                                  ("compare?base=node01:1&target=node02:1&metric=x", "metric", 422),
                                  (f"history?metric={METRIC}&node=nowhere", "node", 404), (f"history?metric={METRIC}&node=-x", "node", 422),
                                  ("nodes/.x", None, 404), ("compare?base=:1&target=node02:1", "base", 422), ("nodes?cursor=%1b", "cursor", 422),
                                  ("effect?fact=microcode&until=2020-01-01", "since", 404),
                                  (f"history?metric={METRIC}&class=&until=2020-01-01", "since", 404),
                                  ("export.csv?since=2026-02-01&until=2026-01-01", "since", 422), ("export.csv?until=1970-01-01", "until", 422),
                                  ("rollouts?limit=0", "limit", 422), ("rollouts?until=now", "until", 422)):
        got, problem = c.problem(f"/v1/fleet/{query}")
        assert (got, problem.get("member")) == (status, member), (query, got, problem)
    assert "kernel" in c.problem("/v1/fleet/rollouts?fact=kernels")[1]["detail"], "what is like it is named"
    assert c.problem("/v1/fleet/effect?fact=nothing")[1]["detail"] == 'no node has the fact "nothing"'


def test_a_stretch_since_1970_is_everything(collect):  # noqa: F811
    """A time of 0 is a time, and not the default of 60 days."""
    c = collect(10, "--runs=14", "--interval-s=10d", "--run-ms=0", "--waves=1").start()
    c.wait_known(10)
    row = c.get("/v1/fleet/classes")["classes"][0]
    for path, part in ((f"history?metric={METRIC}&class={row['class']}", "days"), ("rollouts?limit=9", "rollouts"),
                       (f"history?metric={METRIC}&band=true&node={c.fleet.names[0]}", "band"), ("effect?fact=microcode", "nodes")):
        first, second = (c.get(f"/v1/fleet/{path}&since=1970-01-0{day}")[part] for day in (1, 2))
        assert first and first == second, path
    days = c.get(f"/v1/fleet/history?metric={METRIC}&class={row['class']}")["days"]
    assert len(days) < len(c.get(f"/v1/fleet/history?metric={METRIC}&class={row['class']}&since=1970-01-01")["days"])
    assert c.get("/v1/fleet/rollouts?until=1970-01-10")["rollouts"] == []


def test_nodes_in_order_of_a_metric(collect):  # noqa: F811
    c = collect(40, "--runs=8", "--bad=1").start()
    c.wait_up(40)
    [bad] = [n["node"] for n in c.fleet.truth["world"]["nodes"] if n["bad"]]
    ranking = same_as_command(c, f"/v1/fleet/ranking?metric={METRIC}", "ranking", METRIC)
    rows = ranking["ranking"]
    assert rows[0]["node"] == bad and len(rows) == 40 and [r["rank"] for r in rows] == list(range(1, 41))
    best = c.get(f"/v1/fleet/ranking?metric={METRIC}&order=best&limit=3")["ranking"]
    assert best == rows[:-4:-1]
    few = c.get(f"/v1/fleet/ranking?metric={METRIC}&where=node[01-05]")
    assert {r["node"] for r in few["ranking"]} == {f"node0{i}" for i in range(1, 6)}
    assert c.get(f"/v1/fleet/ranking?metric={METRIC}&class={ranking['class'][:8]}")["class"] == ranking["class"]
    for query, member, status in (("", "metric", 422), (f"metric={METRIC}&order=middle", "order", 422),
                                  (f"metric={METRIC}&limit=0", "limit", 422), ("metric=latency.local", "metric", 404),
                                  (f"metric={METRIC}&class=ffff", "class", 404)):
        got, problem = c.problem(f"/v1/fleet/ranking?{query}")
        assert (got, problem["member"]) == (status, member), (query, got, problem)


def test_groups_by_a_fact_and_two_runs(collect):  # noqa: F811
    c = collect(60, "--runs=20", "--waves=2", "--rollout-percent=6", "--bad=0").start()
    c.wait_up(60)
    known(c, "/v1/fleet/status")
    groups = same_as_command(c, f"/v1/fleet/compare?by=microcode&metric={METRIC}", "compare", METRIC, "--group-by=microcode")
    assert len(groups["groups"]) == 2 and groups["fact"] == "microcode"
    node = next(n["node"] for n in c.fleet.truth["world"]["nodes"] if n["rolled_round"] is not None)
    runs = c.rows("SELECT r.seq FROM run r JOIN node n ON n.id = r.node JOIN kind k ON k.id = r.kind "
                  f"WHERE n.name = '{node}' AND k.benchmark = 'latency' ORDER BY r.measured_ms")
    pair = c.get(f"/v1/fleet/compare?base={node}:{runs[0][0]}&target={node}:{runs[-1][0]}")
    assert pair["base"]["seq"] == runs[0][0] and pair["target"]["node"] == node
    assert any(x["name"] == "microcode" for x in pair["fact_changes"]), pair["fact_changes"]
    row = next(m for m in pair["metrics"] if m["metric"] == METRIC)
    assert row["lo"] < 6 < row["hi"] and row["verdict"] == "slower", row
    other = c.get(f"/v1/fleet/compare?base={node}:{runs[0][0]}&target={node}:{runs[1][0]}")
    assert other["fact_changes"] == [] and other["slower"] < pair["slower"], "the same set-up"
    other_benchmark = c.rows("SELECT r.seq FROM run r JOIN node n ON n.id = r.node JOIN kind k ON k.id = r.kind "
                             f"WHERE n.name = '{node}' AND k.benchmark <> 'latency' LIMIT 1")[0][0]
    for query, member, status in (("", "by", 422), (f"by=microcode&base={node}:1", "by", 422), ("by=microcode", "metric", 422),
                                  (f"by=nothing&metric={METRIC}", "by", 404), (f"base={node}&target={node}:1", "base", 422),
                                  (f"base={node}:1", "target", 422), (f"base={node}:99999&target={node}:1", "base", 404),
                                  (f"base={node}:{runs[0][0]}&target={node}:{other_benchmark}", "target", 409)):
        got, problem = c.problem(f"/v1/fleet/compare?{query}")
        assert (got, problem["member"]) == (status, member), (query, got, problem)


def side_by_side(c, *nodes, status=0):
    """What the collector and the command say of these nodes."""
    path, words = f"/v1/fleet/compare?where={','.join(nodes)}", ("compare", "-w", ",".join(nodes))

    def said():
        before, theirs = c.get(path), judged(c.fleet.json(*words, status=status))
        return before == c.get(path) and (before, theirs)
    ours, theirs = until(said)
    assert ours == theirs and [n["node"] for n in ours["nodes"]] == sorted(nodes)
    return ours


def test_nodes_side_by_side(collect):  # noqa: F811
    c = collect(40, "--classes=2", "--runs=20", "--waves=2", "--rollout-percent=8", "--bad=0").start()
    c.wait_up(40)
    known(c, "/v1/fleet/status")
    world = {n["node"]: n for n in c.fleet.truth["world"]["nodes"]}
    classes = {}
    for name, node in world.items():
        classes.setdefault(node["class"], {}).setdefault(node["rolled_round"] is not None, []).append(name)
    [same, other] = list(classes.values())[:2]
    first, second = sorted((same[False][0], same[True][0]))
    said = side_by_side(c, first, second, status=7 if second in same[True] else 0)
    [fact] = [f for f in said["facts"] if f["name"] == "microcode"]
    assert fact["kind"] == "config" and len(set(fact["values"])) == 2 and all(n["facts_known"] for n in said["nodes"]), fact
    row = next(m for m in said["metrics"] if m["metric"] == METRIC)
    assert row["verdict"] == ("slower" if second in same[True] else "faster") and row["percent_lo"] < row["percent"] < row["percent_hi"]
    assert [v["runs"] for v in row["values"]] == [5, 5] and all(v["lo"] < v["value"] < v["hi"] for v in row["values"]), row
    ranking = c.get(f"/v1/fleet/ranking?metric={METRIC}&where={first},{second}")["ranking"]
    assert {r["node"]: (r["value"], r["lo"], r["hi"]) for r in ranking} == \
        {n: (v["value"], v["lo"], v["hi"]) for n, v in zip((first, second), row["values"])}, "one function gives both"
    sizes = [abs(math.log1p(m["percent"] / 100)) for m in said["metrics"]]
    assert sizes == sorted(sizes, reverse=True) and said["slower"] == sum(m["verdict"] == "slower" for m in said["metrics"])
    alike = side_by_side(c, *max(same.values(), key=len)[:3])
    assert alike["facts"] == [] and len(alike["metrics"]) == len(said["metrics"]) and "verdict" not in alike["metrics"][0], alike["facts"]
    names = sorted((same[False][0], next(iter(other.values()))[0]))
    apart = c.get(f"/v1/fleet/compare?where={','.join(names)}")
    assert len({n["class"] for n in apart["nodes"]}) == 2 and apart["facts"][0]["kind"] == "hardware" and apart["metrics"], apart["facts"]
    for query, member, status in (("where=node01", "where", 422), ("where=node[01-05]", "where", 422), ("where=n1,n2", "where", 404),
                                  ("where=node01,n2", "where", 404), ("where=n[1-", "where", 422),
                                  (f"where=node01,node02&metric={METRIC}", "metric", 422), ("where=node01,node02&class=ab", "class", 422)):
        got, problem = c.problem(f"/v1/fleet/compare?{query}")
        assert (got, problem["member"]) == (status, member), (query, got, problem)
    assert "2 to 4 nodes" in c.problem("/v1/fleet/compare?where=node[01-05]")[1]["detail"]


def test_a_class_in_full(collect):  # noqa: F811
    c = collect(80, "--classes=2", "--runs=8", "--bad=1", "--kind-share=0.3", "--kind-percent=10", "--kind-hidden").start()
    c.wait_up(80)
    known(c, "/v1/fleet/status")
    for row in c.get("/v1/fleet/classes")["classes"]:
        full = c.get(f"/v1/fleet/classes/{row['class'][:10]}")
        assert full["class"] == row["class"] and full["facts"]["cpu_model"] == row["cpu"]
        assert full["nodes"] == row["nodes"] == len(full["names"]) and len(full["setups"]) == row["setups"]
        assert sum(s["nodes"] for s in full["setups"]) == full["nodes"]
        metric = next(m for m in full["metrics"] if m["metric"] == METRIC)
        assert len(metric["values"]) == full["nodes"] and len(metric["kinds"]) == 2, metric["kinds"]
        fewer = {n["node"] for n in c.fleet.truth["world"]["nodes"] if n["fewer_dimms"]}
        cut = sum(k["median"] for k in metric["kinds"]) / 2
        slow = {n for n, v in zip(full["names"], metric["values"]) if v > cut}
        bad = {n["node"] for n in c.fleet.truth["world"]["nodes"] if n["bad"]}
        assert slow - bad == fewer & set(full["names"]) - bad, "the kinds are those of the world"
        ranking = c.get(f"/v1/fleet/ranking?metric={METRIC}&class={full['class']}")["ranking"]
        # A ranking reads fewer runs of each node. What the oldest day did is known from some 20 of them, and they differ by 1 %.
        assert {r["node"]: r["value"] for r in ranking} == pytest.approx(dict(zip(full["names"], metric["values"])), rel=1e-2)
        [one] = c.get(f"/v1/fleet/classes/{full['class']}?metric={METRIC}")["metrics"]
        assert one == metric
        assert full["drift"]["grade"] == "fine" and full["drift"]["class"] == full["class"], full["drift"]
    assert c.problem("/v1/fleet/classes/ffff")[0] == 404
    assert c.problem(f"/v1/fleet/classes/{full['class']}?metric=x")[1]["member"] == "metric"
    assert c.problem(f"/v1/fleet/classes/{full['class']}?window_days=0")[1]["member"] == "window_days"


def test_the_history_of_a_class_and_of_a_node_inside_it(collect):  # noqa: F811
    c = collect(40, "--runs=30", "--bad=1", "--bad-percent=20", "--drift-percent=0.3").start()
    c.wait_up(40)
    [row] = c.get("/v1/fleet/classes")["classes"]
    whole = c.get(f"/v1/fleet/history?metric={METRIC}&class={row['class'][:9]}")
    assert whole["class"] == row["class"] and whole["unit"] == "ns" and whole["better"] == "less"
    full = [d for d in whole["days"] if d["nodes"] == 40]
    assert len(full) >= 25 and all(d["low"] < d["q1"] < d["median"] < d["q3"] < d["high"] for d in full)
    assert whole["days"] == sorted(whole["days"], key=lambda d: d["day"])
    [bad] = [n["node"] for n in c.fleet.truth["world"]["nodes"] if n["bad"]]
    inside = c.get(f"/v1/fleet/history?metric={METRIC}&node={bad}&band=true")
    assert inside["class"] == row["class"] and inside["band"] == whole["days"]
    band = {d["day"]: d for d in inside["band"]}
    outside = [p for p in inside["points"] if p["value"] > (band[p["measured"][:10]]["high"] or 1e9)]
    assert len(outside) >= 25, "a node that is 20 % slow is outside of the band of its class"
    done = run("fleet", "history", bad, METRIC, "-o", "json", env={"NUMAPROBE_FLEET": c.url})
    ends = {d["day"] for d in full[-20:]}  # the client reads the newest 25 runs: of the first days, of some nodes only
    banded = [p for p in json.loads(done.stdout)["points"] if p["measured"][:10] in ends]
    assert len(banded) == 20 and all(abs(float(p["class_median"]) / band[p["measured"][:10]]["median"] - 1) < 1e-4 for p in banded), "one median of a day"
    assert "band" not in c.get(f"/v1/fleet/history?metric={METRIC}&node={bad}")
    middle = full[10]["day"]
    late = c.get(f"/v1/fleet/history?metric={METRIC}&class={row['class']}&since={middle}T00:00:00Z")
    assert late["days"] == [d for d in whole["days"] if d["day"] >= middle]
    now = datetime.datetime.now(datetime.timezone.utc)
    ahead = (now + datetime.timedelta(seconds=40)).strftime("%FT%TZ")  # the clock of a node may be
    later = (now + datetime.timedelta(days=2)).strftime("%F")
    for query, member, status in ((f"metric={METRIC}", "node", 422), (f"metric={METRIC}&node={bad}&since={ahead}", "metric", 404), (f"metric={METRIC}&node={bad}&class=a", "node", 422),
                                  (f"metric={METRIC}&class=ffff", "class", 404), (f"metric=x&class={row['class']}", "metric", 404),
                                  (f"metric=x&node={bad}", "metric", 404), ("metric=&node=n", "metric", 422),
                                  (f"metric={METRIC}&node={bad}&since={later}", "since", 422),
                                  (f"metric=latency.n7.n7.median_ns&class={row['class']}", "metric", 404),
                                  (f"metric={METRIC}&node={bad}&band=perhaps", "band", 422)):
        got, problem = c.problem(f"/v1/fleet/history?{query}")
        assert (got, problem["member"]) == (status, member), (query, got, problem)


def test_a_class_that_gets_slower_as_a_whole(collect):  # noqa: F811
    c = collect(60, "--runs=25", "--bad=0", "--drift-percent=0.4").start()
    c.wait_up(60)
    assert c.get("/v1/fleet/outliers")["findings"] == [], "no node differs from its peers"
    [row] = c.get("/v1/fleet/classes")["classes"]
    drift = c.get(f"/v1/fleet/classes/{row['class']}")["drift"]
    assert drift["what"] == "drift" and drift["grade"] in ("suspect", "sure") and drift["metrics_worse"] == drift["of"], drift
    sign = -1 if drift["worst"]["unit"] == "GB/s" else 1
    assert abs(drift["worst"]["percent"] - sign * 5) < 0.7, "0.4 % a day, and 12.5 days between the middles"
    assert drift["worst"]["lo"] < drift["worst"]["percent"] < drift["worst"]["hi"] and drift["text"], drift


def test_histories_as_pictures(collect):  # noqa: F811
    c = collect(40, "--runs=30", "--waves=1", "--rollout-percent=8", "--bad=0").start()
    c.wait_up(40)
    known(c, "/v1/fleet/status")
    [row] = c.get("/v1/fleet/classes")["classes"]
    node = next(n["node"] for n in c.fleet.truth["world"]["nodes"] if n["rolled_round"] is not None)

    def picture(query):
        with urllib.request.urlopen(f"{c.url}/v1/fleet/history.svg?metric={METRIC}&{query}", timeout=PATIENCE) as response:
            assert response.headers["Content-Type"].startswith("image/svg+xml")
            text = response.read().decode()
            return text, [e.tag.rpartition("}")[2] for e in xml.etree.ElementTree.fromstring(text).iter()]
    plain, tags = picture(f"node={node}")
    assert tags.count("circle") == 30 and "% since" in plain and "microcode" in plain and "f1" not in plain.partition("</style>")[2]
    banded, tags = picture(f"node={node}&band=true")
    assert tags.count("circle") == 30 and "median of the class" in banded
    whole, tags = picture(f"class={row['class']}")
    assert tags.count("circle") == len(c.get(f"/v1/fleet/history?metric={METRIC}&class={row['class']}")["days"])
    assert f"class {row['class'][:12]} " in whole and "quartiles" in whole and "40 nodes" in whole
    assert c.problem(f"/v1/fleet/history.svg?metric={METRIC}")[1]["member"] == "node"
