# SPDX-License-Identifier: Apache-2.0
"""numaprobe fleet over virtual nodes (tests/fleet/vnodes), whose truth is known, and over one real daemon."""
import contextlib
import csv
import datetime
import json
import os
import pathlib
import random
import re
import resource
import shlex
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request

import pytest

from client import CLIENT, run, terminal  # noqa: F401: terminal is a fixture
from conftest import PATIENCE, build_dir, fake_bench_env, until

SEED = int(os.environ.get("NUMAPROBE_SEED", "1"))


class Fleet:
    """Virtual nodes; `env` is what the client needs to reach them."""

    def __init__(self, home, nodes, *options):
        self.home, self.nodes = home, nodes
        self.process = subprocess.Popen(
            [build_dir() / "tests" / "fleet" / "vnodes", f"--nodes={nodes}", f"--truth={home}/truth",
             f"--hosts={home}/hosts", *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ready = json.loads(self.process.stdout.readline())
        self.port = ready["port"]
        self.truth = json.loads((home / "truth").read_text())
        self.names = [n["node"] for n in self.truth["world"]["nodes"]]
        self.all = f"node[{self.names[0][4:]}-{self.names[-1][4:]}]"
        self.env = {"NUMAPROBE_FLEET_URL": f"http://%h:{ready['port']}", "NUMAPROBE_HOSTS_FILE": f"{home}/hosts",
                    "NUMAPROBE_NODE_TIMEOUT": str(PATIENCE // 2)}

    def run(self, *words, **kw):
        return run("fleet", *words, env=self.env, **kw)

    def json(self, *words, status=0):
        done = self.run(*words, "-o", "json")
        assert done.returncode == status, (done.returncode, done.stdout[-500:], done.stderr)
        return json.loads(done.stdout)

    def run_of(self, node, run_id):
        """The run of a node, or None."""
        with contextlib.suppress(urllib.error.HTTPError):
            with urllib.request.urlopen(f"http://127.1.0.{node}:{self.port}/v1/runs/{run_id}", timeout=PATIENCE) as response:
                return json.load(response)

    def state(self, node, run_id):
        run = self.run_of(node, run_id)
        return run and run["state"]

    def is_followed(self, node, run_id):
        """Whether the run runs and somebody waits for its end: who requested it has the response, and counts it as started."""
        run = self.run_of(node, run_id)
        return bool(run) and run["state"] == "running" and run["progress"]["phase"] == "measure"

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(PATIENCE) == 0, "a sanitizer build says so by its status"


@pytest.fixture
def make_fleet(tmp_path):
    made = []

    def make(nodes, *options):
        home = tmp_path / str(len(made))
        home.mkdir()
        made.append(Fleet(home, nodes, *options))
        return made[-1]
    yield make
    for one in made:
        one.close()


# --- verdicts

def test_the_slow_node_is_found_and_nothing_else(make_fleet):
    fleet = make_fleet(100, "--runs=8")
    [bad] = [n["node"] for n in fleet.truth["world"]["nodes"] if n["bad"]]
    verdict = fleet.json("outliers", "-w", fleet.all, status=7)["verdict"]
    assert [f["node"] for f in verdict["findings"]] == [bad] and verdict["findings"][0]["grade"] == "sure", verdict
    table = fleet.run("outliers", "-w", fleet.all)
    assert table.returncode == 7 and re.search(rf"^{bad} +sure ", table.stdout, re.M), table.stdout
    assert fleet.run("outliers", "-w", f"{fleet.all}!{bad}").returncode == 0, "all others are like each other"


def test_few_nodes_are_no_verdict(make_fleet):
    done = make_fleet(4).run("outliers", "-w", "node[1-4]")
    assert done.returncode == 8 and "class" in done.stdout, (done.returncode, done.stdout)


def test_programs_get_numbers(make_fleet):
    fleet = make_fleet(100, "--runs=8")
    [one] = fleet.json("outliers", "-w", fleet.all, status=7)["verdict"]["findings"]
    [line] = [json.loads(line) for line in fleet.run("outliers", "-w", fleet.all, "-o", "ndjson").stdout.splitlines()]
    [row] = list(csv.DictReader(fleet.run("outliers", "-w", fleet.all, "-o", "csv").stdout.splitlines()))
    for member in ("value", "class_median", "percent", "lo", "hi"):
        assert abs(line[member] - one["worst"][member]) <= 1e-4 * abs(one["worst"][member]) + 0.01, (member, line, one)
    assert (line["metrics_worse"], line["of"], line["unit"]) == (one["metrics_worse"], one["of"], one["worst"]["unit"]), line
    metric = one["worst"]["metric"]
    for words in (("ranking", metric), ("compare", metric, "--group-by=kernel"), ("history", fleet.names[0], metric)):
        table = list(csv.DictReader(fleet.run(*words, "-w", fleet.all, "-o", "csv").stdout.splitlines()))
        assert table and all(row["unit"] == one["worst"]["unit"] for row in table), (words, table[:2])
    assert line["since"] == one["since"] and row == {k: "" if v is None else str(v) for k, v in line.items()}, (line, row)


def test_status_counts_each_class(make_fleet):
    fleet = make_fleet(30, "--classes=2")
    status = fleet.json("status", "-w", fleet.all)
    assert sum(c["nodes"] for c in status["classes"]) == status["nodes"] == 30 and len(status["classes"]) == 2, status
    assert all(c["with_3_runs"] == c["nodes"] for c in status["classes"]), status
    assert fleet.json("status", "-w", "node01", "-w", "node[02-03]")["nodes"] == 3, "sets are joined"


def test_coverage_counts_each_class_and_names_stale_nodes(make_fleet):
    """Newest runs are up to 15 days old: some of them are older than the 14 days that count."""
    fleet = make_fleet(60, "--classes=2", "--bad=0", "--interval-s=2592000", "--faults=node03 refuses")
    said = fleet.json("coverage", "-w", fleet.all, status=9)
    *classes, none = said["classes"]
    assert [(k["nodes"], k["up"], k["with_3_runs"]) for k in classes] == [(30, 30, 30), (29, 29, 29)], classes
    assert (none["class"], none["nodes"], none["up"], none["stale_nodes"]) == (None, 1, 0, "node03"), none
    assert sum(k["stale"] for k in classes) and all(k["fresh"] + k["stale"] == k["nodes"] for k in classes), classes
    assert max(k["staleness_s"]["max"] for k in classes) == said["staleness_s"]["max"] > 14 * 86400, said
    done = fleet.run("coverage", "-w", fleet.all)

    def stale_nodes():
        """As JSON and as CSV. A run becomes stale at any moment, also between the two."""
        rows = csv.DictReader(fleet.run("coverage", "-w", fleet.all, "-o", "csv").stdout.splitlines())
        return [row["stale_nodes"] for row in rows], [k["stale_nodes"] for k in fleet.json("coverage", "-w", fleet.all, status=9)["classes"]]
    until(lambda: len(set(map(tuple, stale_nodes()))) == 1)
    assert re.search(r"^no run for 14 days: node", done.stdout, re.M) and "no run that counts is known: node03" in done.stdout, done.stdout
    assert "stale_nodes" not in done.stdout and done.returncode == 9, done


def slurm(fleet, tmp_path, reasons=None, broken=False):
    """A sinfo that lists all nodes, with reasons of some; its folder becomes the PATH."""
    lines = "".join(f">{name} idle main* {(reasons or {}).get(name, 'none')}\n" for name in fleet.names)
    (tmp_path / "listed").write_text(lines)
    (tmp_path / "sinfo").write_text("#!/bin/sh\nexit 1\n" if broken else f"#!/bin/sh\ncat {tmp_path}/listed\n")
    (tmp_path / "sinfo").chmod(0o755)
    fleet.env["PATH"] = f"{tmp_path}:{os.environ['PATH']}"


def suggested(done):
    return [line for line in done.stdout.splitlines() if not line.startswith("#")]


def test_drain_prints_one_line_and_executes_nothing(make_fleet, tmp_path):
    fleet = make_fleet(100, "--runs=8", "--bad=6", "--bad-percent=20")
    slurm(fleet, tmp_path)
    done = fleet.run("drain", "-w", fleet.all)
    assert done.returncode == 7 and 1 <= len(suggested(done)) <= 2, "at most 2 % of a class"
    assert all(re.fullmatch(r"scontrol update NodeName=node\d+ State=DRAIN Reason='numaprobe [+-][\d.]+% [\w.]+'", line)
               for line in suggested(done)), done.stdout
    assert done.stdout.count("more than 2 % of its class") >= 3, done.stdout


def test_drain_of_a_small_class_is_one_node(make_fleet, tmp_path):
    fleet = make_fleet(60, "--runs=8", "--bad=4", "--bad-percent=20")
    slurm(fleet, tmp_path)
    assert len(suggested(fleet.run("drain", "-w", fleet.all))) == 1, "2 % of 60 are 1.2 nodes"


def test_drain_leaves_other_reasons_alone(make_fleet, tmp_path):
    fleet = make_fleet(100, "--runs=8")
    [bad] = [n["node"] for n in fleet.truth["world"]["nodes"] if n["bad"]]
    slurm(fleet, tmp_path, {bad: "disk is broken; rm -rf /", "node001": "numaprobe +5.0% l3"})
    done = fleet.run("drain", "-w", fleet.all)
    assert done.returncode == 0 and not suggested(done) and "disk is broken" in done.stdout, done.stdout
    assert "# node001: " not in done.stdout and "NodeName=node001 State=RESUME" in done.stdout, done.stdout
    few = fleet.run("drain", "-w", "node[001-003]")
    assert few.returncode == 8 and "RESUME" not in few.stdout, "three nodes are not judged"
    slurm(fleet, tmp_path, broken=True)
    blind = fleet.run("drain", "-w", fleet.all)
    assert blind.returncode == 1 and not suggested(blind) and f"# {bad}: is not suggested" in blind.stdout, blind.stdout


METRIC = "latency.local.dram.median_ns"


def test_ranking_has_every_node_and_the_slow_one_first(make_fleet):
    fleet = make_fleet(40, "--runs=8")
    [bad] = [n["node"] for n in fleet.truth["world"]["nodes"] if n["bad"]]
    document = fleet.json("ranking", METRIC, "-w", fleet.all)
    rows = document["ranking"]
    assert document["metric"] == METRIC and document["nodes"] == 40 and document["better"] == "less", document
    assert rows[0]["node"] == bad and sorted(r["node"] for r in rows) == fleet.names, rows[0]
    assert all(r["lo"] <= r["value"] <= r["hi"] for r in rows)
    assert len(fleet.run("ranking", METRIC, "-w", fleet.all, "--limit=3").stdout.splitlines()) == 7
    done = fleet.run("ranking", "latency.local.dram.median", "-w", fleet.all)
    assert done.returncode == 5 and METRIC in done.stderr, done.stderr
    assert fleet.run("ranking", METRIC, "-w", fleet.all, "--class=ffff").returncode == 5


def test_a_rollout_that_costs_two_percent(make_fleet):
    fleet = make_fleet(200, "--runs=30", "--interval-s=43200", "--waves=3", "--rollout-percent=2", "--bad=0")
    effect = fleet.json("effect", "microcode", "-w", fleet.all, status=7)
    rows = {r["metric"]: r for r in effect["metrics"]}
    assert rows[METRIC]["verdict"] == "worse" and abs(rows[METRIC]["percent"] - 2) < 0.7, rows[METRIC]
    assert effect["nodes"] + effect["untouched"] == 200 and effect["days"] >= 2 and effect["from"] != effect["to"], effect
    assert effect["failures"] == [], effect
    groups = fleet.json("compare", METRIC, "-w", fleet.all, "--group-by=microcode", status=0)["groups"]
    assert [g["verdict"] for g in groups] == ["largest group", "faster"], groups
    done = fleet.run("effect", "no_such_fact", "-w", fleet.all)
    assert done.returncode == 5 and "no_such_fact" in done.stderr, done.stderr


def test_history_shows_the_node_in_its_class(make_fleet):
    fleet = make_fleet(20, "--runs=12")
    points = fleet.json("history", fleet.names[2], METRIC, "-w", fleet.all)["points"]
    banded = [p for p in points if p["class_low"] is not None]  # on other days fewer than eight were measured
    assert len(points) == 12 and len(banded) >= 8, points
    assert all(float(p["class_low"]) < float(p["class_median"]) < float(p["class_high"]) for p in banded), points
    assert fleet.run("history", "elsewhere", METRIC, "-w", fleet.all).returncode == 5
    assert "newest" not in fleet.run("history", fleet.names[2], METRIC, "-w", fleet.all).stdout


def test_history_states_how_many_runs_it_has(make_fleet):
    fleet = make_fleet(2, "--runs=30")
    done = fleet.run("history", fleet.names[0], METRIC, "-w", fleet.all)
    assert done.returncode == 0 and "; the newest 25 runs" in " ".join(done.stdout.split()), done


# --- runs

def test_run_measures_each_node_and_prints_the_fleet(make_fleet):
    fleet = make_fleet(20, "--run-ms=50")
    done = fleet.run("run", "-w", fleet.all, "latency", "--quick", "--at-once=5")
    assert done.returncode == 0 and "20 of 20 nodes" in done.stderr, done.stderr
    assert re.search(r"^latency\.local\.dram\.median_ns +ns +20 ", done.stdout, re.M), done.stdout
    nodes = [json.loads(line) for line in fleet.run("run", "-w", fleet.all, "-o", "ndjson").stdout.splitlines()]
    assert sorted(n["node"] for n in nodes) == fleet.names and all(n["metrics"] for n in nodes), "as each is done"


@pytest.mark.parametrize("newer, table, others", [("01-08", "node[09-20]", "node[01-08]"), ("01-10", "node[01-10]", "node[11-20]"),
                                                  ("03-20", "node[03-20]", "node[01-02]")])
def test_run_does_not_mix_versions_of_the_metrics(make_fleet, newer, table, others):
    """While a fleet is updated, a metric of two versions can be two quantities. Most nodes count; of as many, the later version."""
    fleet = make_fleet(20, "--run-ms=50", f"--faults=node[{newer}] newer")
    done = fleet.run("run", "-w", fleet.all, "latency", "--quick")
    n = sum(int(b) - int(a) + 1 for a, b in re.findall(r"(\d+)-(\d+)", table))
    assert done.returncode == 0 and re.search(rf"^latency\.local\.dram\.median_ns +ns +{n} ", done.stdout, re.M), done.stdout
    said = f"^{re.escape(others)} +another method or version of the metrics: "
    assert re.search(said + "not in the table$", done.stderr, re.M), done.stderr
    done = fleet.run("run", "-w", fleet.all, "latency", "--quick", "-o", "json")
    assert re.search(said + "do not compare with others$", done.stderr, re.M), done.stderr
    kinds = {(n["method"], n["metrics_version"]) for n in json.loads(done.stdout)["nodes"]}
    assert len(kinds) == 2, kinds


def test_nodes_of_two_versions_side_by_side(make_fleet):
    fleet = make_fleet(2, "--faults=node2 newer")
    done = fleet.run("compare", "-w", fleet.all)
    assert done.returncode == 8 and "no metric in common" in done.stdout, done
    [(alone, otherwise)] = re.findall(r"^(\d+) more metrics of one node alone\n(\d+) of them by another method or version of the metrics "
                                      "than that of another node: not compared$", done.stdout, re.M)
    assert alone == otherwise and fleet.json("compare", "-w", fleet.all, status=8)["otherwise"] == int(otherwise)


def test_an_effect_without_runs_before_and_after_states_why(make_fleet):
    """As when the nodes got another numaprobe, with other metrics, at the same time."""
    fleet = make_fleet(20, "--runs=2", "--waves=1")
    done = fleet.run("effect", "microcode", "-w", fleet.all)
    assert done.returncode == 8 and "VERDICT" not in done.stdout, done
    assert "measured by the same method and version of the metrics" in " ".join(done.stdout.split()), done.stdout


def test_busy_nodes_are_tried_again(make_fleet):
    busy = make_fleet(4, "--run-ms=20", "--faults=node[1-2] busy=1")
    done = busy.run("run", "-w", busy.all)
    assert done.returncode == 9 and re.search(r"^node\[1-2\] +busy: ", done.stderr, re.M), done.stderr
    for_a_while = make_fleet(4, "--run-ms=20", "--faults=node[1-2] busy=1 0-12")
    assert for_a_while.run("run", "-w", for_a_while.all, "--wait-for-node=60").returncode == 0


def test_each_document_lists_the_nodes_that_are_missing(make_fleet):
    """Not only stderr: a program reads the document."""
    fleet = make_fleet(20, "--runs=12", "--faults=node[05,06] refuses")
    for words in (("status",), ("outliers",), ("drain",), ("ranking", METRIC), ("compare", METRIC), ("compare", METRIC, "--group-by=kernel"),
                  ("history", fleet.names[0], METRIC), ("reference",)):
        done = fleet.run(*words, "-w", fleet.all, "-o", "json")
        assert done.returncode in (7, 8, 9), (words, done)
        missing = [f["nodes"] for f in json.loads(done.stdout)["failures"]]
        assert missing == ["node[05-06]"], (words, done.stdout)


def test_a_dry_run_starts_nothing(make_fleet):
    done = make_fleet(3).run("run", "-w", "node[1-3]", "--dry-run")
    assert done.returncode == 0 and done.stdout.startswith("node[1-3]"), (done.stdout, done.stderr)


# --- nodes that fail

FAULTS = {"refuses": "unreachable: connection refused", "silent": "unreachable: ", "garbage": "unreachable: ",
          "cut": "unreachable: ", "length": "unreachable: ", "json": "unreachable|invalid|bad-request", "name": "another node responds",
          "older": "too old for fleet commands", "unavailable=1": "unavailable: ", "drips=1": "unreachable: "}
# Seconds, where a node that sends little or nothing is waited for: the others may be silent for a quarter of them.
FAULT_S = dict.fromkeys(("silent", "drips=1", "length"), PATIENCE // 2)


@pytest.mark.parametrize("fault", FAULTS)
def test_what_some_nodes_do_wrong_is_named_and_the_others_count(make_fleet, fault):
    fleet = make_fleet(24, f"--faults=node[07,13] {fault}")
    limit = f"--node-timeout={FAULT_S.get(fault, 4 * PATIENCE)}"
    done = fleet.run("outliers", "-w", fleet.all, limit, "-o", "json")
    found = json.loads(done.stdout)
    assert sum(f["count"] for f in found["failures"]) == 2, found["failures"]
    assert all(re.search(FAULTS[fault], f"{f['error']}: {f['text']}") for f in found["failures"]), found["failures"]
    assert found["verdict"]["tested_nodes"] == 22 and done.returncode in (7, 9), done.returncode
    partial = fleet.run("status", "-w", fleet.all, limit, "--partial-ok")
    assert partial.returncode == 0 and "22 of 24 nodes responded" in partial.stderr, partial.stderr


def test_a_page_that_cannot_be_read_names_the_member(make_fleet):
    failures = make_fleet(3, "--faults=node3 json").json("status", "-w", "node[1-3]", status=9)["failures"]
    assert [f["text"] for f in failures] == ["node: must be a text of at most 63 bytes"], failures


def test_a_node_that_takes_long_has_the_time_that_is_set(make_fleet):
    fleet = make_fleet(3, "--faults=node2 slow=6")
    assert fleet.run("status", "-w", fleet.all, "--node-timeout=20").returncode == 9
    assert fleet.run("status", "-w", fleet.all, "--node-timeout=120").returncode == 0


def test_an_endless_body_ends(make_fleet):
    fleet = make_fleet(3, "--faults=node2 endless")
    done = fleet.run("status", "-w", fleet.all)
    assert done.returncode == 9 and "node2" in done.stderr, done.stderr


def test_hostile_text_does_not_reach_the_terminal(make_fleet):
    fleet = make_fleet(3, "--faults=node[1-3] text")
    for words in (["status"], ["coverage"], ["outliers"], ["run"]):
        done = fleet.run(*words, "-w", fleet.all)
        assert "\x1b" not in done.stdout + done.stderr, words


def test_wrong_clocks_are_named(make_fleet):
    fleet = make_fleet(5, "--faults=node4 clock=3600")
    done = fleet.run("status", "-w", fleet.all)
    assert re.search(r"^node4 +the clock differs", done.stderr, re.M), done.stderr


def test_a_node_under_two_names_counts_once(make_daemon, tmp_path):
    daemon = make_daemon()
    own = daemon.get("/v1/runs?form=summary").json["node"].split(".")[0]
    (tmp_path / "hosts").write_text(f"127.0.0.1 {own} {own}.cluster\n")
    env = {"NUMAPROBE_FLEET_URL": f"http://%h:{daemon.port}", "NUMAPROBE_HOSTS_FILE": f"{tmp_path}/hosts"}
    done = run("fleet", "status", "-w", f"{own},{own}.cluster", env=env)
    assert done.returncode == 9 and re.search(rf"^{own}\S* +conflict: is the same node as {own}", done.stderr, re.M), done.stderr


def test_copied_histories_are_named(make_fleet):
    fleet = make_fleet(6, "--faults=node[2-3] copy")
    done = fleet.run("status", "-w", fleet.all)
    assert done.returncode == 0 and re.search(r"^node\[1-3\] +have the same history", done.stderr, re.M), done.stderr
    assert fleet.json("outliers", "-w", fleet.all, status=8)["copied_histories"] == "node[1-3]"


def test_none_reached_and_all_busy(make_fleet):
    fleet = make_fleet(3, "--faults=node[1-3] refuses")
    assert fleet.run("status", "-w", fleet.all).returncode == 3
    busy = make_fleet(3, "--faults=node[1-3] busy=1")
    assert busy.run("run", "-w", busy.all).returncode == 6


# --- bad input

@pytest.mark.parametrize("words, said", [
    ([], "no "), (["-w", "n[1-"], "n[1-"), (["-w", "n[1-1000000]"], "65536"), (["-w", "n" * 65536], "nodes"),
    (["-w", "x", "--fleet-url=http://one:7780"], "%h"), (["-w", "x", "--fleet-url=ftp://%h"], "http"),
    (["-w", "x", "--hosts-file=/nonexistent"], "/nonexistent"), (["-w", "x", "--at-once=0"], "at-once"),
    (["-w", "-o"], ""), (["-w", "x", "--hosts-file=/etc/passwd"], "line 1"),
    (["--stored", "-w", ""], "--nodes must not be empty"), (["--fleet=http://127.0.0.1:9", "--nodes="], "--nodes must not be empty"),
    (["--stored", "--hostfile="], "--hostfile must not be empty"), (["--stored", "--from-slurm="], "--from-slurm must not be empty"),
])
def test_wrong_words(words, said):
    done = run("fleet", "status", *words, env={"NUMAPROBE_FLEET_URL": "http://%h:1"})
    assert done.returncode in (2, 5) and said in done.stderr and not done.stdout, (done.returncode, done.stderr)


METRIC = "latency.local.dram.median_ns"


@pytest.mark.parametrize("command, options", [
    (("ranking", METRIC), ("class",)), (("compare", METRIC), ("class", "group-by")), (("effect", "kernel"), ("from", "to")),
    (("run",), ("idempotency-key", "ssh")), (("findings",), ("state", "what", "where", "note", "nodes", "hostfile")),
    (("campaign", "start"), ("name", "at-once-each", "window", "each", "retry-for", "order", "through"))])
def test_an_option_without_a_value_is_no_default(command, options):
    for option in options:
        done = run("fleet", *command, f"--{option}=")
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"numaprobe: --{option} must not be empty\n")


@pytest.mark.parametrize("words, said", [
    (("ranking", ""), "fleet ranking: word 1 of METRIC must not be empty"),
    (("history", "n1", ""), "fleet history: word 2 of NODE METRIC must not be empty"),
    (("demo", "--bad=500"), "--bad: must be at most the number of nodes, 100"),
    (("demo", "--nodes=n1"), "unknown option --nodes (see --help)"),
    (("demo", "--stored"), "unknown option --stored (see --help)"),
    (("reference", "-w", "n1", "-o", "csv"), "fleet reference writes JSON, not csv; fleet ranking has a metric of each node as csv"),
    (("campaign", "cancel", "3", "--dry-run"), "--dry-run is of start, not of cancel"),
    (("campaign", "list", "--window=Mon 01:00-02:00"), "--window is of start, not of list"),
    (("campaign", "show", "3", "--failed-percent=3"), "--failed-percent is of start, not of show"),
    (("campaign", "cancel", "3", "-w", "n1"), "--nodes has no effect on cancel"),
    (("campaign", "list", "--idle"), "--idle has no effect on list"),
    (("campaign", "list", "--at-once=3"), "--at-once has no effect on list"),
    (("campaign", "cancel", "3", "--ssh=rsh"), "--ssh has no effect on cancel"),
    (("campaign", "start", "-w", "n1", "--stored"), "--stored has no effect on start"),
    (("status", "--stored", "--fleet=http://127.0.0.1:9"), "--stored and --fleet exclude each other: --stored judges what the "
     "daemon of --url has stored, --fleet what the collector has"),
    (("outliers", "--stored", "--ssh=rsh"), "--ssh has no effect with --stored"),
    (("coverage", "--stored", "--at-once=3"), "--at-once has no effect with --stored"),
    (("compare", "-w", "a,b", "--stored", "--fleet-url=http://%h:1"), "--fleet-url has no effect with --stored"),
    (("drain", "--fleet=http://127.0.0.1:9", "--node-timeout=3"),
     "--node-timeout has no effect with --fleet=URL; --fleet= contacts the nodes"),
    (("reference", "--fleet=http://127.0.0.1:9", "--hosts-file=/etc/hosts"),
     "--hosts-file has no effect with --fleet=URL; --fleet= contacts the nodes"),
    (("status", "-w", "n1", "--fleet-url=http://%h:1", "--ssh=rsh"),
     "--ssh has no effect with --fleet-url; --fleet-url= contacts the nodes through ssh"),
    (("status", "-w", "n1", "--hosts-file=/etc/hosts"), "--hosts-file has no effect without --fleet-url"),
    (("run", "-w", "n1", "--stored"), "--stored has no effect on run"),
    (("run", "-w", "n1", "--fleet=http://127.0.0.1:9"), "--fleet has no effect on run"),
    (("run", "-w", "n1", "--hosts-file=/etc/hosts"), "--hosts-file has no effect without --fleet-url"),
    (("findings", "--node-timeout=3"), "--node-timeout has no effect on findings"),
    (("findings", "fix", "3", "--partial-ok"), "--partial-ok has no effect on fix"),
    (("findings", "acknowledge", "3", "-w", "n1"), "--nodes has no effect on acknowledge"),
    (("findings", "fix", "3", "--hostfile=/dev/null"), "--hostfile has no effect on fix"),
    (("findings", "reopen", "3", "--from-slurm"), "--from-slurm has no effect on reopen"),
])
def test_words_that_would_have_no_effect_are_refused(words, said):
    done = run("fleet", *words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"numaprobe: {said}\n")


def test_settings_give_way_to_what_the_command_line_names():
    both = {"NUMAPROBE_FLEET": "http://127.0.0.1:9", "NUMAPROBE_STORED": "true", "NUMAPROBE_SSH": "rsh", "NUMAPROBE_AT_ONCE": "3"}
    of_collector = run("fleet", "status", "--fleet=http://127.0.0.1:1", env=both)
    assert of_collector.returncode == 3 and "127.0.0.1:1 " in of_collector.stderr, of_collector
    assert run("fleet", "status", "--stored", url="http://127.0.0.1:1", env={**both, "NUMAPROBE_STORED": "false"}).returncode == 3


def test_ten_thousand_reasons_are_a_few_lines(make_fleet):
    fleet = make_fleet(60, "--faults=100% json")
    done = fleet.run("status", "-w", fleet.all)
    assert done.returncode in (1, 3) and len(done.stderr.splitlines()) <= 42, done.stderr


def test_few_descriptors_mean_fewer_nodes_at_once(make_fleet):
    fleet = make_fleet(100)
    done = fleet.run("status", "-w", fleet.all, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (90, 90)))
    assert done.returncode == 0 and "nodes at once, because only 90 files" in done.stderr, done.stderr


def test_settings_of_the_environment_concern_fleet_commands_alone():
    wrong = {"NUMAPROBE_AT_ONCE": "x", "NUMAPROBE_FLEET_URL": "http://%h:1"}
    done = run("fleet", "status", "-w", "x", env=wrong)
    assert (done.returncode, done.stderr) == (2, 'numaprobe: NUMAPROBE_AT_ONCE: must be a whole number, got "x"\n'), done
    assert run("version", env=wrong).returncode == run("help", "fleet", env=wrong).returncode == 0
    done = run("version", env={"NUMAPROBE_HTTP_TIMEOUT": "x"})
    assert (done.returncode, done.stderr) == (2, 'numaprobe: NUMAPROBE_HTTP_TIMEOUT: must be a whole number in s, or with m, h or d such as 5m, got "x"\n'), done


def test_help_may_stand_behind_the_family():
    for words in ([], ["run"]):
        done = run("fleet", "help", *words)
        assert done.returncode == 0 and done.stdout == run("help", "fleet", *words).stdout and "usage: " in done.stdout, done


def test_options_stand_behind_the_command():
    done = run("fleet", "-w", "node001", "status")
    assert done.returncode == 2 and "the command comes before its options" in done.stderr, done.stderr


# --- Ctrl-C

def test_ctrl_c_lets_what_has_started_finish(make_fleet):
    fleet = make_fleet(100, "--run-ms=1500")  # two at once: not all have had their turn when the signal comes late
    client = subprocess.Popen([CLIENT, "fleet", "run", "-w", fleet.all, "--at-once=2", "-o", "ndjson"], text=True,
                              env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **fleet.env},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    first = json.loads(client.stdout.readline())
    assert first["state"] == "done", first
    client.send_signal(signal.SIGINT)
    states = [json.loads(line) for line in client.stdout]
    said = client.stderr.read()
    # Both may be between two runs at that moment: what is requested may start.
    assert client.wait(PATIENCE) == 130 and re.search("ha(s|ve) started|what starts there is waited for", said), said
    assert len(states) == 99, states
    done = {s["node"] for s in (first, *states) if s["state"] == "done"}
    ran = {name: fleet.state(i, 13) for i, name in enumerate(fleet.names, 1)}
    assert ran == {name: "succeeded" if name in done else None for name in fleet.names}, (ran, states)
    assert any("interrupted before its turn" in s.get("text", "") for s in states), states


def test_ctrl_c_drains_nothing(make_fleet, tmp_path):
    """A shell that reads the lines would drain what is slow among the nodes that came before it."""
    fleet = make_fleet(40, "--bad=1", "--bad-percent=30", "--runs=8", "--faults=node40 silent")
    (tmp_path / "sinfo").write_text("#!/bin/sh\n" + "".join(f"echo '>{n} idle all none'\n" for n in fleet.names))
    (tmp_path / "sinfo").chmod(0o755)
    env = {**fleet.env, "PATH": f"{tmp_path}:{os.environ['PATH']}", "NUMAPROBE_NODE_TIMEOUT": str(4 * PATIENCE)}
    assert "scontrol update" in run("fleet", "drain", "-w", f"{fleet.all}!node40", env=env).stdout
    client = subprocess.Popen([CLIENT, "fleet", "drain", "-w", fleet.all], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env={"HOME": "/nonexistent", **env})
    open_to = re.compile(rf"^ *\d+: \S+ (\w+):{fleet.port:04X} 01", re.M)  # 01: established
    until(lambda: open_to.findall(pathlib.Path("/proc/net/tcp").read_text()) == ["2800017F"])
    client.send_signal(signal.SIGINT)
    out, said = client.communicate(timeout=PATIENCE)
    assert (client.returncode, out) == (130, "") and "39 of 40 nodes responded" in said, (out, said)


def test_ctrl_c_while_ssh_connects_starts_nothing(tmp_path):
    slow = tmp_path / "ssh"
    slow.write_text("#!/bin/sh\nexec sleep 30\n")
    slow.chmod(0o755)
    client = subprocess.Popen([CLIENT, "fleet", "run", "-w", "n[1-3]", f"--ssh={slow}"], text=True, stderr=subprocess.PIPE,
                              env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"})
    until(lambda: pathlib.Path(f"/proc/{client.pid}/task/{client.pid}/children").read_text())
    client.send_signal(signal.SIGINT)
    said = client.stderr.read()
    assert client.wait(PATIENCE) == 130 and "interrupted before its turn" in said, said


def test_ctrl_c_cancels_what_has_started(make_fleet):
    fleet = make_fleet(2, "--run-ms=60000")
    client = subprocess.Popen([CLIENT, "fleet", "run", "-w", fleet.all, "--cancel-on-interrupt"], text=True,
                              stderr=subprocess.PIPE, env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **fleet.env})
    until(lambda: fleet.is_followed(1, 13) and fleet.is_followed(2, 13))
    client.send_signal(signal.SIGINT)
    said = client.stderr.read()
    assert client.wait(PATIENCE) == 130 and "canceling" in said and "the run canceled" in said, said


@pytest.mark.parametrize("cancels", [False, True])
def test_a_reader_that_has_gone_ends_it(make_fleet, cancels):
    fleet = make_fleet(3, "--run-ms=60000")
    client = subprocess.Popen([CLIENT, "fleet", "run", "-w", fleet.all, "--at-once=2", "-o", "ndjson",
                               *(["--cancel-on-interrupt"] if cancels else [])], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **fleet.env})
    until(lambda: fleet.is_followed(1, 13) and fleet.is_followed(2, 13))
    client.stdout.close()  # as `| head` does
    said = client.stderr.read()
    assert client.wait(PATIENCE) == 130 and "the output has no reader any more" in said and "interrupted before its turn" in said, said
    until(lambda: [fleet.state(n, 13) for n in (1, 2, 3)] == ["canceled" if cancels else "running"] * 2 + [None])


def test_a_second_ctrl_c_ends(make_fleet):
    fleet = make_fleet(2, "--run-ms=60000")
    client = subprocess.Popen([CLIENT, "fleet", "run", "-w", fleet.all], text=True, stderr=subprocess.PIPE,
                              env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **fleet.env})
    until(lambda: fleet.is_followed(1, 13))  # six rounds of two benchmarks were there
    client.send_signal(signal.SIGINT)
    assert "Ctrl-C again" in client.stderr.readline()
    client.send_signal(signal.SIGINT)
    assert client.wait(PATIENCE) == 130 and "interrupted" in client.stderr.read()


@pytest.mark.parametrize("cancels, signo", [(False, signal.SIGTERM), (False, signal.SIGHUP), (True, signal.SIGTERM)])
def test_a_signal_ends_it(make_fleet, cancels, signo):
    fleet = make_fleet(3, "--run-ms=60000")
    client = subprocess.Popen([CLIENT, "fleet", "run", "-w", fleet.all, "--at-once=2", *(["--cancel-on-interrupt"] if cancels else [])],
                              text=True, stderr=subprocess.PIPE, env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **fleet.env})
    until(lambda: fleet.is_followed(1, 13) and fleet.is_followed(2, 13))
    client.send_signal(signo)
    said = client.stderr.read()
    assert client.wait(PATIENCE) == 130 and "the command was ended: " in said and "interrupted before its turn" in said, said
    assert ("canceling the" if cancels else "which continue on their nodes") in said, said
    until(lambda: [fleet.state(n, 13) for n in (1, 2, 3)] == ["canceled" if cancels else "running"] * 2 + [None])


@pytest.mark.parametrize("cancels, signos", [(False, ["SIGTERM"]), (True, ["SIGTERM", "SIGINT"]), (False, ["SIGINT", "SIGINT"])])
def test_what_a_node_makes_of_a_request_is_not_known(make_fleet, cancels, signos):
    fleet = make_fleet(1, "--faults=node1 silent")
    client = subprocess.Popen([CLIENT, "fleet", "run", "-w", fleet.all, *(["--cancel-on-interrupt"] if cancels else [])], text=True,
                              stderr=subprocess.PIPE, env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "NUMAPROBE_NODE_TIMEOUT": str(4 * PATIENCE),
                                                          **fleet.env})
    open_to = re.compile(rf"^ *\d+: \S+ (\w+):{fleet.port:04X} 01", re.M)  # 01: established
    until(lambda: open_to.findall(pathlib.Path("/proc/net/tcp").read_text()) == ["0100017F"])
    said = ""
    for signo in signos:
        client.send_signal(getattr(signal, signo))
        said += client.stderr.readline()
    said += client.stderr.read()
    assert client.wait(PATIENCE) == 130 and "no run has started" not in said, said
    assert "1 node has not responded to the request for a run yet: " in said, said
    assert ("canceled" if cancels else "waited for" if len(signos) > 1 else "is not known") in said, said
    assert "before it responded to the request for a run: the run may start" in said, said


@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_no_ssh_and_no_socket(tmp_path, signo):
    slow, sockets = tmp_path / "ssh", pathlib.Path(tempfile.mkdtemp(prefix="numaprobe-", dir="/tmp"))  # a socket's path is short
    slow.write_text("#!/bin/sh\nsleep 300 & wait\n")
    slow.chmod(0o755)
    client = subprocess.Popen([CLIENT, "fleet", "run", "-w", "n[1-3]", f"--ssh={slow}"], text=True, stderr=subprocess.PIPE,
                              env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "XDG_RUNTIME_DIR": str(sockets)})

    def below(pid):
        with contextlib.suppress(FileNotFoundError):
            own = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            return [*own, *(p for child in own for p in below(child))]
        return []
    until(lambda: len(below(client.pid)) == 6 and list(sockets.iterdir()))  # three of each: the program, and its child
    started = below(client.pid)
    client.send_signal(signo)
    said = client.stderr.read()
    assert client.wait(PATIENCE) == 130 and "interrupted before its turn" in said, said
    sockets.rmdir()  # it is empty
    until(lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in started))


# --- what one daemon has stored

def copies(whole, nodes, runs, slow):
    """Exports of other nodes, made of one run: values differ by 1 %, those of node `slow` are 20 % above, and all are as sure. They
    have no distribution: its edges would have to move as well."""
    rng = random.Random(SEED)
    now = datetime.datetime.now(datetime.timezone.utc)
    for node in nodes:
        for number in range(runs):
            copy = json.loads(json.dumps(whole))
            time = (now - datetime.timedelta(hours=12 * number + 1)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
            copy["run"].update({"node": node, **dict.fromkeys(("created", "started", "finished", "measured"), time)})
            factor = rng.gauss(1, 0.01) * (1.2 if node == slow else 1)
            for matrix in copy["matrices"]:
                for cell in (cell for row in matrix["cells"] for cell in row):
                    cell.pop("distribution", None)
                    cell.update({k: cell[k] * factor for k in ("median", "lo", "hi", "min", "p10", "p90", "p99", "mean", "sd")
                                 if cell.get(k) is not None}, disturbed=0)
                    cell.update(lo=cell["median"] * 0.99, hi=cell["median"] * 1.01)
            yield copy


def imported(make_daemon, nodes, slow):
    """The address of a daemon with six runs of each node and one of its own."""
    daemon = make_daemon(fake_bench_env())
    whole = daemon.get(f"/v1/runs/{daemon.run(size='1')['id']}/export").json
    for copy in copies(whole, nodes, 6, slow):
        assert daemon.post("/v1/imports", copy).status in (200, 201)
    url = f"http://127.0.0.1:{daemon.port}"
    until(lambda: not json.loads(run("history", "-o", "json", url=url).stdout).get("pending"))
    return url


def test_tables_of_nodes_with_long_names_fit_a_terminal(make_daemon, terminal):  # noqa: F811
    """Names are cut where a terminal ends, and nowhere else."""
    name = "a-node-with-the-longest-name-that-there-may-be.of.a.cluster"
    nodes = [f"n{i:02}-{name}"[:63] for i in range(12)]
    url, metric = imported(make_daemon, nodes, nodes[7]), "latency.largest.median_ns"
    shown = terminal(env={"NUMAPROBE_URL": url})
    for words, status in ((("outliers",), 7), (("ranking", metric), 0), (("compare", metric, "--group-by=kernel"), 8),
                          (("history", nodes[7], metric), 0), (("status",), 0), (("coverage",), 0)):
        lines, ended = shown.ran("fleet", *words, "--stored")
        assert ended == status and lines and max(map(len, lines.splitlines())) <= 80, lines
        assert "…" in lines or words[0] not in ("outliers", "ranking"), lines
        assert "…" not in run("fleet", *words, "--stored", url=url).stdout


def test_stored_runs_are_judged_without_their_nodes(make_daemon):
    daemon = make_daemon(fake_bench_env())
    url = f"http://127.0.0.1:{daemon.port}"
    done = run("fleet", "status", "--stored", url=url)
    assert done.returncode == 0 and "no node has a run" in done.stdout, (done.stdout, done.stderr)
    url = imported(make_daemon, [f"r{i}" for i in range(12)], "r7")
    found = json.loads(run("fleet", "outliers", "--stored", "-w", "r[0-11]", "-o", "json", url=url).stdout)
    assert [f["node"] for f in found["verdict"]["findings"]] == ["r7"], found
    assert found["nodes"] == 12, found
    assert run("fleet", "outliers", "--stored", "-w", "r[0-11]!r7", url=url).returncode == 0
    missing(url)


def test_a_node_of_whose_runs_none_counts(make_daemon):
    """It has runs, so nothing states that it has none."""
    daemon = make_daemon(fake_bench_env())
    [copy] = copies(daemon.get(f"/v1/runs/{daemon.run(size='1')['id']}/export").json, ["busy"], 1, None)
    for cell in (cell for matrix in copy["matrices"] for row in matrix["cells"] for cell in row):
        cell["disturbed"] = 9 * cell["n"]
    assert daemon.post("/v1/imports", copy).status == 201
    url = f"http://127.0.0.1:{daemon.port}"
    assert run("fleet", "status", "--stored", "-w", "busy", url=url).stdout == "without a run that counts: busy\n"
    done = run("fleet", "coverage", "--stored", "-w", "busy", url=url)
    assert done.returncode == 0 and done.stdout.count("no run that counts") == 2, done


def missing(url):
    """Nodes that are named and of which nothing is stored are listed, as those that do not respond are without --stored."""
    some = ("--stored", "-w", "r[0-9],x[1-3]")
    metric = "latency.largest.median_ns"
    failures = [{"nodes": "x[1-3]", "count": 3, "error": "not-found", "text": "no run of it is stored"}]
    for command in (("status",), ("coverage",), ("outliers",), ("ranking", metric), ("history", "r1", metric), ("reference",)):
        for output in ("table", "csv", "json"):
            if command[0] == "reference" and output == "csv":
                continue
            done = run("fleet", *command, *some, "-o", output, url=url)
            lines = done.stderr.splitlines()
            assert lines[-1] == "runs of 10 of 13 nodes are stored" and lines[-2].split(maxsplit=1) == \
                ["x[1-3]", "not-found: no run of it is stored"], (command, output, done.stderr)
            assert done.returncode in (7, 9), (command, output, done.returncode)
            assert output != "json" or json.loads(done.stdout)["failures"] == failures, (command, done.stdout)
    said = json.loads(run("fleet", "status", *some, "-o", "json", url=url).stdout)
    assert said["nodes"] == 13 and "states" not in said, said
    covered = json.loads(run("fleet", "coverage", *some, "-o", "json", url=url).stdout)["classes"]
    assert [(k["nodes"], k["up"]) for k in covered] == [(10, None), (3, None)], covered
    assert said["failures"] == failures, said
    assert run("fleet", "status", *some, "--partial-ok", url=url).returncode == 0
    none = run("fleet", "status", "--stored", "-w", "x[1-3]", url=url)
    assert none.returncode == 1 and "runs of 0 of 3 nodes are stored" in none.stderr and not none.stdout, (none.stdout, none.stderr)
    one = run("fleet", "status", "--stored", "-w", "x1", url=url)
    assert one.returncode == 1 and one.stderr.endswith("runs of 0 of 1 node are stored\n"), (one.stdout, one.stderr)


@pytest.mark.parametrize("source", ["nodes:localhost", "file:LIST", "file_sd:TARGETS"])
def test_localhost_is_the_machine_of_the_collector(make_daemon, tmp_path, source):
    """Its node has the name of the machine, which its pages name too; they were from a node of another name."""
    daemon, log = make_daemon(), tmp_path / "log"
    probe = daemon.run(cpus="0", size="1", quick=True)
    (tmp_path / "LIST").write_text(f"localhost url=http://%h:{daemon.port} class=login\n")
    (tmp_path / "TARGETS").write_text(json.dumps([{"targets": [f"localhost:{daemon.port}"]}]))
    fleetd = subprocess.Popen([build_dir() / "fleet" / "numaprobe-fleetd", f"--state-dir={tmp_path}/state", f"--run-dir={tmp_path}/run",
                               f"--source={re.sub('[A-Z]+$', lambda m: str(tmp_path / m[0]), source)}", "--every=1",
                               f"--url=http://%h:{daemon.port}", "--listen=127.0.0.1:0"], stderr=log.open("w"))
    try:
        url = "http://" + until(lambda: re.findall(r"event=ready listen=(\S+)", log.read_text()))[0]

        def stored():
            status = json.load(urllib.request.urlopen(f"{url}/v1/fleet/status"))
            return status["runs_stored"] == 1 and status
        assert until(stored)["outcomes"]["alien"] == 0
        node = json.load(urllib.request.urlopen(f"{url}/v1/fleet/nodes/{probe['node']}"))
        assert (node["state"], node["url"]) == ("up", f"http://localhost:{daemon.port}"), node
    finally:
        fleetd.terminate()
        fleetd.wait(PATIENCE)


def test_a_real_daemon_through_its_address(make_daemon):
    daemon = make_daemon()
    env = {"NUMAPROBE_FLEET_URL": f"http://%h:{daemon.port}"}
    done = run("fleet", "run", "-w", "127.0.0.1", "--size=1", "--launcher=processes", env=env)
    assert done.returncode == 0 and "latency" in done.stdout, (done.stdout, done.stderr)


def test_the_table_fits_a_terminal(make_fleet, terminal):  # noqa: F811
    fleet = make_fleet(100, "--runs=8")
    shown = terminal(env=fleet.env)
    shown.type("fleet", "outliers", "-w", fleet.all)
    screen = shown.wait_for(r"^ended-1: 7")
    lines = screen.splitlines()[1:]
    assert all(len(line) <= 80 for line in lines) and not any("…" in line for line in lines), screen


def test_a_terminal_without_utf_8_gets_ascii(make_fleet, terminal):  # noqa: F811
    fleet = make_fleet(30, "--runs=8", "--bad=1")
    lines, status = terminal(env={**fleet.env, "LC_ALL": "C"}).ran("fleet", "outliers", "-w", fleet.all)
    assert status == 7 and " % +-" in lines and lines.isascii(), lines
    assert " % ±" in fleet.run("outliers", "-w", fleet.all).stdout, "files have UTF-8"


# --- references

def test_a_reference_judges_one_node(make_fleet, tmp_path):
    fleet = make_fleet(60, "--runs=8")
    [bad] = [n["node"] for n in fleet.truth["world"]["nodes"] if n["bad"]]
    done = fleet.run("reference", "-w", f"{fleet.all}!{bad}")
    assert done.returncode == 0 and json.loads(done.stdout)["version"] == 1, done.stderr
    (tmp_path / "reference.json").write_text(done.stdout)
    for name, statuses in ((bad, (1, 2)), ("node02", (0,))):
        url = f"http://127.1.0.{int(name[4:])}:{fleet.port}"
        checked = run("check", f"--reference={tmp_path}/reference.json", url=url)
        assert checked.returncode in statuses, (name, checked.stdout, checked.stderr)
    assert fleet.run("reference", "-w", "node[01-02]").returncode == 8


@pytest.mark.parametrize("text, said", [
    (None, "cannot open {}: No such file or directory"), ("", "{} is empty; numaprobe fleet reference writes a reference"),
    ("\ufeff", "{} is empty; numaprobe fleet reference writes a reference"), ("{", "{}: not JSON at byte 0"), ('{"format":"numaprobe-run"}', '{}: format must be "numaprobe-reference"'),
    ('{"format":"numaprobe-reference","version":1,"classes":[{}]}', "{}: classes[0].class must be a text"),
    ('{"format":"numaprobe-reference","format":"x"}', '{}: format member "format" appears twice'), (..., "cannot read {}: Is a directory")])
def test_a_reference_that_is_none_is_named_with_what_is_wrong(tmp_path, text, said):
    path = tmp_path / "r" if text is not ... else tmp_path
    if isinstance(text, str):
        path.write_text(text)
    done = run("check", f"--reference={path}")
    assert (done.returncode, done.stdout) == (3, f"NUMAPROBE UNKNOWN - --reference: {said.replace('{}', str(path), 1)}\n")
    assert run("check", "--reference=").stdout == "NUMAPROBE UNKNOWN - --reference must not be empty\n"


# --- the demonstration

def test_demo_finds_the_slow_node_and_leaves_nothing(tmp_path):
    before = set(os.listdir("/tmp"))
    done = run("fleet", "demo")
    assert done.returncode == 0 and re.search(r"^node\d+ +sure ", done.stdout, re.M), (done.stdout, done.stderr)
    assert not [p for p in set(os.listdir("/tmp")) - before if p.startswith("numaprobe-demo")]


def test_demo_that_is_kept_serves_other_commands():
    demo = subprocess.Popen([CLIENT, "fleet", "demo", "--virtual-nodes=30", "--keep"], text=True, stdout=subprocess.PIPE,
                            env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"})
    [line] = [line for line in iter(demo.stdout.readline, "Ctrl-C ends the nodes.\n") if "export" in line]
    env = dict(word.split("=", 1) for word in shlex.split(line)[1:])
    assert run("fleet", "status", env=env).stdout.count("  30") >= 2
    nodes = int(pathlib.Path(f"/proc/{demo.pid}/task/{demo.pid}/children").read_text())
    os.kill(nodes, signal.SIGSTOP)  # as Ctrl-Z does
    until(lambda: ") T " in pathlib.Path(f"/proc/{nodes}/stat").read_text())
    os.kill(nodes, signal.SIGCONT)
    for _ in range(5):
        assert run("fleet", "status", env=env).stdout.count("  30") >= 2
    assert demo.poll() is None
    demo.send_signal(signal.SIGINT)
    assert demo.wait(PATIENCE) == 0 and not os.path.exists(env["NUMAPROBE_HOSTS_FILE"])
