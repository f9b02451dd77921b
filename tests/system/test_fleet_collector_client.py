# SPDX-License-Identifier: Apache-2.0
"""numaprobe fleet --fleet=URL over a collector: the same bytes and statuses as -w over the same virtual nodes."""
import contextlib
import json
import os
import re
import subprocess
import time

import pytest

from client import run
from conftest import until
from test_fleet import slurm
from test_fleetd import FLEETD, NO_NODE_IS_LATE, collect  # noqa: F401  (a fixture)

FORMATS = ("table", "json", "ndjson", "csv")
METRIC = "latency.n0.n0.median_ns"
COMMANDS = (("status",), ("coverage",), ("outliers",), ("ranking", METRIC), ("compare", METRIC), ("compare", METRIC, "--group-by=microcode"),
            ("history", "node07", METRIC), ("effect", "microcode"), ("reference",))


def ask(c, *words, **kw):
    """The command by the collector."""
    return run("fleet", *words, env={"NUMAPROBE_FLEET": c.url, **kw.pop("env", {})}, **kw)


@pytest.fixture
def collected(collect):  # noqa: F811
    def make(nodes, *options, **kw):
        c = collect(nodes, *options, collector=[NO_NODE_IS_LATE], **kw).start()
        c.wait_known(nodes)
        return c
    return make


AGES = r'"staleness_s":{[^}]*}'  # of the newest runs, at the time of the request


def settled(text):
    """Without the time of the request, which no two requests share, and what only a collector knows."""
    return re.sub(AGES, "", re.sub(r'("(?:evaluated|created)":")[^"]*', r"\1", text)).replace(',"states":{}', "")


def ages(text):
    return [age for of in re.findall(AGES, text) for age in json.loads("{" + of + "}")["staleness_s"].values()]


@pytest.mark.parametrize("options", [("--classes=2", "--runs=8", "--bad=2"), ("--runs=20", "--waves=3", "--rollout-percent=8"),
                                     ("--runs=2",)], ids=["outliers", "rollout", "few"])
def test_every_command_says_the_same(collected, options):
    c = collected(60, *options)
    said = []

    def same(words, form):
        begun = time.monotonic()
        theirs, ours = c.fleet.run(*words, "-w", c.fleet.all, "-o", form), ask(c, *words, "-o", form)
        passed = time.monotonic() - begun + 1  # they are whole seconds
        said[:] = ((done.returncode, settled(done.stdout), done.stderr) for done in (ours, theirs))
        older = [a - b for a, b in zip(ages(ours.stdout), ages(theirs.stdout))]
        return said[0] == said[1] and all(0 <= n <= passed for n in older)
    for words in COMMANDS:
        for form in FORMATS:
            with contextlib.suppress(AssertionError):  # on a busy machine a response may take too long: both are requested again
                until(lambda words=words, form=form: same(words, form))
                continue
            raise AssertionError((words, form, said))
    assert any(c.fleet.run(*words, "-w", c.fleet.all).stdout for words in COMMANDS)


def test_names_that_are_unknown_are_told_the_same(collected):
    c = collected(20, "--runs=8", "--bad=0")
    metric = "latency.local.dram.median_ns"
    for words, said in (
            (("ranking", metric + "x"), f'metric: no node has the metric "{metric}x"; did you mean "{metric}"?'),
            (("ranking", metric, "--class=zz"), r"--class: no node is of a class zz; there are [0-9a-f]{12} \(20 nodes\)"),
            (("compare", metric, "--group-by=microcde"), 'fact: no node has the fact "microcde"; did you mean "microcode"?'),
            (("history", "node01", metric + "x"), f'metric: the node has no metric "{metric}x"; did you mean "{metric}"?'),
            (("history", "node99", metric), r"node99 is not among the nodes that are named \(--nodes\)"),
            (("effect", "kernl"), 'fact: no node has the fact "kernl"; did you mean "kernel"?'),
            (("effect", "kernel", "--to=x"), "fact: kernel changed on no node")):
        for done in (c.fleet.run(*words, "-w", c.fleet.all), ask(c, *words, "-w", c.fleet.all)):
            assert done.returncode == 5 and not done.stdout, (words, done)
            assert re.fullmatch("numaprobe: " + said.replace("?", r"\?"), done.stderr.rstrip("\n")), done.stderr
    said = ask(c, "history", "nod01", metric).stderr
    assert said == 'numaprobe: node: there is no run of node "nod01"; did you mean "node01"?\n', said


def test_nodes_side_by_side_are_the_same(collected):
    c = collected(20, "--runs=8", "--bad=1", "--bad-percent=20")
    [bad] = [n["node"] for n in c.fleet.truth["world"]["nodes"] if n["bad"]]
    others = [n for n in c.fleet.names if n != bad][:3]
    for nodes in ((bad, others[0]), others, (bad, *others)):
        for form in FORMATS:
            words = ("compare", "-w", ",".join(nodes), "-o", form)

            def same(words=words):
                theirs, ours = c.fleet.run(*words), ask(c, *words)
                return (theirs.returncode, theirs.stdout, theirs.stderr) == (ours.returncode, ours.stdout, ours.stderr) and ours
            assert until(same).stdout, words
    first, second = sorted((bad, others[0]))
    done = ask(c, "compare", "-w", f"{first},{second}")
    assert done.stdout.startswith("the facts of these nodes do not differ\n\nMETRIC "), done.stdout
    assert (done.returncode, "slower" in done.stdout.splitlines()[3]) == ((7, True) if second == bad else (0, False)), done.stdout
    assert re.search(rf"\n{second} is (slower in [1-9]\d* metrics?, faster in 0|slower in 0 metrics, faster in [1-9]\d*)\n$", done.stdout), done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80, done.stdout
    rows = ask(c, "compare", "-w", f"{first},{second}", "-o", "csv").stdout.splitlines()
    assert rows[0] == "kind,name,node,text,value,lo,hi,runs,unit,benchmark,variant,percent,percent_lo,percent_hi,verdict"
    assert all(line.startswith("metric,") for line in rows[1:]) and len(rows) % 2, rows[:3]
    for words, status, said in ((("-w", "node[01-05]"), 2, "2 to 4 nodes"), (("-w", "node01"), 2, "2 to 4 nodes"),
                                (("-w", "node01,node02", "--group-by=microcode"), 2, "--group-by needs a METRIC"),
                                (("-w", "node01,node02", "--class=ab"), 2, "--class needs a METRIC"), ((), 2, "2 to 4 nodes"),
                                (("-w", "node01,nosuch"), 5, "there are runs of node01 alone")):
        done = ask(c, "compare", *words)
        assert (done.returncode, done.stdout) == (status, "") and said in done.stderr, (words, done)


def test_two_nodes_with_few_runs_are_not_judged(collected):
    c = collected(4, "--runs=2", "--bad=1", "--bad-percent=20")
    done = ask(c, "compare", "-w", ",".join(c.fleet.names[:2]))
    assert done.returncode == 8 and "not known" in done.stdout and not re.search("slower$|faster$", done.stdout.splitlines()[3]), done


def test_drain_says_the_same(collected, tmp_path):
    c = collected(100, "--runs=8", "--bad=6", "--bad-percent=20")
    slurm(c.fleet, tmp_path, {"node01": "numaprobe +9% x"})
    theirs = c.fleet.run("drain", "-w", c.fleet.all)
    ours = ask(c, "drain", env={"PATH": c.fleet.env["PATH"]})
    assert theirs.returncode == 7 and "scontrol" in theirs.stdout
    assert (ours.returncode, ours.stdout, ours.stderr) == (theirs.returncode, theirs.stdout, theirs.stderr)


def test_a_set_narrows(collected):
    c = collected(40, "--runs=8")
    theirs = c.fleet.run("ranking", METRIC, "-w", "node[05-09]", "-o", "csv")
    ours = ask(c, "ranking", METRIC, "-w", "node[05-09]", "-o", "csv")
    assert (ours.stdout, ours.returncode) == (theirs.stdout, 0) and ours.stdout.count("node0") == 5
    long = ",".join(c.fleet.names[::2])
    assert json.loads(ask(c, "status", "-w", long, "-o", "json").stdout)["nodes"] == 20
    many = ask(c, "status", "-w", "node[01-09],x[1-40000]", "-o", "json")  # more than where may name
    assert json.loads(many.stdout)["nodes"] == 40009 and "does not know" in many.stderr, many.stderr
    unknown = ask(c, "ranking", METRIC, "-w", "node05,nosuch", "-o", "csv")
    assert unknown.returncode == 9 and re.search("nosuch +not-found: the collector does not know it", unknown.stderr), unknown
    assert "the collector follows 1 of 2 nodes" in unknown.stderr
    assert ask(c, "ranking", METRIC, "-w", "node05,nosuch", "--partial-ok").returncode == 0
    alone = ask(c, "outliers", "-w", "nosuch")
    assert alone.returncode == 1 and "does not know it" in alone.stderr, alone


def test_status_has_the_states_that_the_collector_knows(collect):  # noqa: F811
    c = collect(30, "--bad=0", "--faults=node01 refuses; node03 name; node10 clock=300", collector=[NO_NODE_IS_LATE]).start()
    c.wait_up(29)
    until(lambda: c.node("node01")["state"] == "down" and c.node("node03")["outcome"] == "alien")
    shown = ask(c, "status")
    assert shown.returncode == 9 and re.search(r"^down: node01$", shown.stdout, re.M), shown
    assert re.search(r"^alien: node03$", shown.stdout, re.M), shown.stdout
    assert re.search("node01 +unreachable: the collector does not reach it: ", shown.stderr), shown.stderr
    assert re.search("node03 +conflict: another node responds: ", shown.stderr), shown.stderr
    assert re.search("node10 +the clock differs", shown.stderr), shown.stderr
    assert "the collector follows 28 of 30 nodes" in shown.stderr
    document = json.loads(ask(c, "status", "-o", "json").stdout)
    assert document["states"] == {"down": "node01", "alien": "node03"} and document["wrong_clocks"] == "node10", document
    assert sorted(f["nodes"] for f in document["failures"]) == ["node01", "node03"], document
    assert ask(c, "outliers", "--partial-ok").returncode == 0, "what is stored is judged"


def test_coverage_is_that_of_the_status_of_the_collector(collect):  # noqa: F811
    c = collect(30, "--classes=2", "--interval-s=2592000", "--bad=0", "--faults=node01 refuses", collector=[NO_NODE_IS_LATE])
    c.start()
    c.wait_known(29)
    until(lambda: c.node("node01")["state"] == "down")
    until(lambda: (s := c.status()["coverage"]) and [k["up"] for k in s["classes"]] == [15, 14])

    def both():
        """A run becomes stale at any moment, also between the two: the status has said the same before and after."""
        before, said = c.status()["coverage"], json.loads(ask(c, "coverage", "-o", "json").stdout)
        ours = [(k["class"], k["nodes"], k["up"], k["fresh"], k["with_3_runs"], k["stale"]) for k in said["classes"][:-1]]
        theirs = [(k["class"], k["known"], k["up"], k["fresh"], k["enough_runs"], k["stale"]) for k in before["classes"]]
        seen[:] = ours, theirs
        return ours == theirs and (said, before)
    seen = []
    try:
        said, status = until(both)
    except AssertionError:
        raise AssertionError(seen) from None
    *classes, none = said["classes"]
    assert none["class"] is None and none["stale_nodes"] == "node01" and (none["nodes"], none["up"]) == (1, 0), none
    assert status["unmeasured"] == 1 and any(k["stale"] for k in classes), (status, said)
    for ours, theirs in zip(classes, status["classes"]):
        assert all(abs(age - theirs["staleness_s"][share]) < 3600 for share, age in ours["staleness_s"].items()), (ours, theirs)


def test_a_node_that_is_gone_keeps_its_history(collected):
    c = collected(20, "--runs=8")
    c.name(c.fleet.names[:19])
    c.process.send_signal(1)
    until(lambda: c.node("node20")["state"] == "gone")
    assert json.loads(ask(c, "status", "-o", "json").stdout)["nodes"] == 19, "it is not judged"
    gone = ask(c, "ranking", METRIC, "-w", "node20", "-o", "csv")
    assert "node20" in gone.stdout and "no source of the collector names it any more" in gone.stderr, gone


def test_the_address_is_one_of_a_daemon(collected, tmp_path):
    c = collected(10, "--runs=4")
    other = c.fleet.port
    wrong = ask(c, "status", f"--fleet=http://127.1.0.1:{other}")
    assert wrong.returncode != 0 and "is no collector of a fleet" in wrong.stderr, wrong
    silent = ask(c, "status", "--fleet=http://127.0.0.1:1")
    assert silent.returncode == 3 and "nothing responds at http://127.0.0.1:1 (--fleet)" in silent.stderr, silent
    assert ask(c, "status", "--fleet=", "-w", "node01", env=c.fleet.env).returncode == 0, "the nodes are contacted"
    c.stop()
    c.options += [f"--socket={tmp_path}/fleet.sock"]
    c.start()
    c.wait_up(10)
    (tmp_path / "numaprobe").mkdir()
    (tmp_path / "numaprobe" / "config").write_text(f"fleet = unix:{tmp_path}/fleet.sock\n")
    configured = run("fleet", "status", "-o", "json", env={"XDG_CONFIG_HOME": str(tmp_path)})
    assert json.loads(configured.stdout)["nodes"] == 10, configured


def test_a_token_and_tls_reach_the_collector(collected, tmp_path):
    c = collected(5, "--runs=4")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout",
                    f"{tmp_path}/key", "-out", f"{tmp_path}/cert"], check=True, capture_output=True)
    os.chmod(tmp_path / "key", 0o600)
    c.stop()
    c.options += ["--listen=127.0.0.1:0,https://127.0.0.1:0", f"--tls-certificate={tmp_path}/cert", f"--tls-key={tmp_path}/key"]
    c.start()
    c.url = c.url.partition(",")[0]
    c.wait_up(5)
    address = re.findall(r"event=ready listen=(\S+)", c.log.read_text())[-1].split(",")
    tls = next(a for a in address if a.startswith("https://"))
    refused = ask(c, "status", f"--fleet={tls}")
    assert refused.returncode == 3 and "certificate" in refused.stderr, refused
    assert ask(c, "status", f"--fleet={tls}", f"--cacert={tmp_path}/cert").returncode == 0


def test_runs_come_in_pages_of_whole_nodes(collected):
    c = collected(25, "--runs=6")
    cursor, nodes, pages = 0, [], 0
    while True:
        page = c.get(f"/v1/fleet/runs?form=summary&newest=3&limit=20&cursor={cursor}")
        named = [r["node"] for r in page["runs"]]
        assert len(named) <= 20 and all(named.count(n) == 6 for n in named), "two benchmarks, three runs of each"
        assert all(len(r["values"]) == len(page["layouts"][r["layout"]]) and len(r["widths"]) == 2 * len(r["values"])
                   for r in page["runs"])
        nodes += list(dict.fromkeys(named))
        pages += 1
        cursor = page["next"]
        if not page["more"]:
            break
    assert pages == 9 and sorted(nodes) == sorted(c.fleet.names)
    one = c.get("/v1/fleet/runs?limit=1&where=node03,node04")
    assert {r["node"] for r in one["runs"]} in ({"node03"}, {"node04"}) and one["more"], "the one that was stored first"
    newest = sorted((r["measured"] for r in c.get("/v1/fleet/runs?newest=50&where=node03")["runs"]), reverse=True)
    assert len(newest) == 12
    assert len(c.get(f"/v1/fleet/runs?where=node03&newest=50&since={newest[3]}")["runs"]) == 4
    known = one["runs"][0]["class"]
    assert len(c.get(f"/v1/fleet/runs?newest=1&class={known}")["runs"]) == 50
    assert len(c.get(f"/v1/fleet/runs?newest=1&class={known[:12]}")["runs"]) == 50
    assert c.problem(f"/v1/fleet/runs?class={'0' * 64}")[0] == 404
    facts = c.get(f"/v1/facts/{known}")
    assert facts["hash"] == known and facts["facts"]["cpu_model"]
    assert c.problem(f"/v1/facts/{'0' * 64}")[0] == 404
    for query, member in (("form=whole", "form"), ("newest=0", "newest"), ("newest=51", "newest"), ("limit=1001", "limit"),
                          ("cursor=x", "cursor"), ("since=noon", "since"), ("since=2999-01-01", "since"), ("where=n[1-", "where"), ("where=", "where"),
                          ("where=n1!n1", "where")):
        assert c.problem(f"/v1/fleet/runs?{query}")[1]["member"] == member, query


def test_the_option_is_described():
    assert "--fleet=URL" in run("help", "fleet").stdout
    assert subprocess.run([FLEETD, "--routes"], capture_output=True, text=True).stdout.count("/v1/fleet/runs") == 1
