# SPDX-License-Identifier: Apache-2.0
"""The collector and Prometheus: its metrics, the nodes that it names, its rules and dashboard, by promtool and a real Prometheus."""
import json
import re
import signal
import shutil
import subprocess
import urllib.request

import pytest

from conftest import PATIENCE, ROOT, until
from ports import free_port
from test_fleetd import collect  # noqa: F401 (a fixture)
from test_history import PROMTOOL, parse
from test_integrations import PROMETHEUS, fetched, needs_prometheus, running

MONITORING = ROOT / "docs" / "monitoring"
needs_promtool = pytest.mark.skipif(not PROMTOOL, reason="promtool is not there (tools/promtool.sh)")


def scrape(c, accept="text/plain"):
    with urllib.request.urlopen(urllib.request.Request(c.url + "/metrics", headers={"Accept": accept}), timeout=PATIENCE) as response:
        return response.read().decode(), response.headers["Content-Type"]


def labels_of(text):
    return dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', text))


@pytest.fixture
def small(collect):  # noqa: F811
    c = collect(60, "--classes=2", "--runs=8", "--bad=2").start()
    c.wait_known(60)
    return c


def test_metrics_are_those_of_the_fleet(small):
    text, kind = scrape(small)
    assert kind.startswith("text/plain; version=0.0.4")
    types, samples = parse(text, "")
    values = {(name, labels): value for name, labels, value in samples}
    assert values["numaprobe_fleet_nodes", '{state="up"}'] == 60
    assert values["numaprobe_fleet_ingest_runs_total", ""] == 960
    assert values["numaprobe_fleet_ready", '{part="store"}'] == values["numaprobe_fleet_ready", '{part="sources"}'] == 1
    quantiles = [v for n, _, v in samples if n == "numaprobe_fleet_staleness_seconds"]
    assert quantiles == sorted(quantiles) and len(quantiles) == 4
    verdict, classes = small.get("/v1/fleet/outliers"), small.get("/v1/fleet/classes")["classes"]
    assert values["numaprobe_fleet_findings", '{what="outlier",grade="sure"}'] == verdict["sure"] == 2
    deviations = {labels_of(l)["node"]: v for n, l, v in samples if n == "numaprobe_fleet_deviation_ratio"}
    assert deviations == {f["node"]: pytest.approx(f["worst"]["percent"] / 100, abs=1e-3) for f in verdict["findings"]}
    assert {labels_of(l)["class"] for n, l, _ in samples if n == "numaprobe_fleet_class_info"} == {k["class"] for k in classes}
    medians = {(labels_of(l)["class"], labels_of(l)["metric"]): v for n, l, v in samples
               if n.startswith("numaprobe_fleet_class_median")}
    assert len(medians) == 60, "30 metrics of each class"
    for finding in verdict["findings"]:
        worst = finding["worst"]
        scale = 1e9 if worst["metric"].endswith("gbps") else 1e-9
        assert medians[finding["class"], worst["metric"]] == pytest.approx(worst["class_median"] * scale, rel=0.01)
    assert all(0 < v < 0.2 for n, _, v in samples if n == "numaprobe_fleet_class_mad_ratio")
    assert types["numaprobe_fleet_staleness_seconds"] == "summary" and "process_cpu_seconds_total" in types


def test_openmetrics_for_those_who_accept_it(small):
    text, kind = scrape(small, "application/openmetrics-text; version=1.0.0")
    assert kind.startswith("application/openmetrics-text") and text.endswith("# EOF\n")
    types, samples = parse(text, "_total")
    assert types["numaprobe_fleet_ingest_runs"] == "counter" and len(samples) > 150


@needs_promtool
def test_promtool_finds_no_fault(small):
    done = subprocess.run([PROMTOOL, "check", "metrics"], input=scrape(small)[0].encode(), capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_number_of_series_does_not_depend_on_the_number_of_nodes(collect, small):  # noqa: F811
    more = collect(240, "--classes=2", "--runs=8", "--bad=2").start()
    more.wait_known(240)

    def series(c):
        until(lambda: c.status()["store_bytes"])  # it was judged: what the store holds is known
        return {(n, l) for n, l, _ in parse(scrape(c)[0], "")[1] if n.startswith("numaprobe_fleet") and "deviation" not in n}
    assert series(more) == series(small)


def test_a_series_is_there_once_during_an_update(collect):  # noqa: F811
    """Some nodes measure by a newer method then: their metrics are the same series."""
    c = collect(20, "--runs=8", "--faults=node[01-12] newer").start()
    c.wait_known(20)
    found = [(n, l) for n, l, _ in parse(scrape(c)[0], "")[1] if n.startswith("numaprobe_fleet_class_m")]
    assert len(found) > 50 and len(set(found)) == len(found), "medians and spreads"


def test_errors_are_counted_by_reason(collect):  # noqa: F811
    c = collect(12, "--faults=node01 refuses; node02 garbage; node03 cut", collector=["--node-timeout=2"])
    c.start()

    def failed():
        reasons = {labels_of(l)["reason"]: v for n, l, v in parse(scrape(c)[0], "")[1] if n == "numaprobe_fleet_poll_errors_total"}
        return reasons["refused"] and reasons["broken"] and reasons
    reasons = until(failed)
    assert sum(1 for v in reasons.values() if v) >= 2 and len(reasons) > 15


def test_the_collectors_own_metrics_need_no_history(small):
    """The process that reads is stopped: what it made before is served, and the rest is of now."""
    scrape(small)
    small.kill_reader()
    text, _ = scrape(small)
    assert 'numaprobe_fleet_nodes{state="up"} 60' in text and "numaprobe_fleet_class_mad_ratio{" in text


def test_nodes_for_prometheus(collect, small):  # noqa: F811
    groups = small.get("/v1/fleet/sd")
    classes = {k["class"] for k in small.get("/v1/fleet/classes")["classes"]}
    assert {g["labels"]["class"] for g in groups} == classes and {g["labels"]["__scheme__"] for g in groups} == {"http"}
    assert len(groups) == 2 and {g["labels"]["partition"] for g in groups} == {""}
    class_of = {n["node"]: n["class"] for n in small.fleet.truth["world"]["nodes"]}
    found = {}
    for group in groups:
        for target in group["targets"]:
            with urllib.request.urlopen(f"http://{target}/v1/node", timeout=PATIENCE) as response:
                found[re.search(r"node\d+", response.read().decode())[0]] = group["labels"]["class"]
    assert set(found) == set(small.fleet.names)
    assert len({(class_of[n], c) for n, c in found.items()}) == 2, "nodes of a class are together"
    small.name([])
    small.process.send_signal(signal.SIGHUP)
    until(lambda: small.get("/v1/fleet/status")["sources_problem"])
    assert sum(len(g["targets"]) for g in small.get("/v1/fleet/sd")) == 60, "a list that lost its nodes is not believed at once"
    empty = collect(1)
    empty.name([])
    empty.start()
    assert until(lambda: empty.get("/healthz")) and empty.get("/v1/fleet/sd") == [], "200 and an empty list"


@needs_promtool
@pytest.mark.parametrize("words", [["check", "rules", "numaprobe-fleet.rules.yml"],
                                   ["test", "rules", "numaprobe-fleet.rules.test.yml"],
                                   ["check", "config", "prometheus-fleet.yml"]])
def test_rules_and_configuration(words):
    done = subprocess.run([PROMTOOL, *words], cwd=MONITORING, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0 and "SUCCESS" in done.stdout, done.stdout + done.stderr


def expressions():
    board = json.loads((MONITORING / "numaprobe-fleet-dashboard.json").read_text())
    assert len({p["id"] for p in board["panels"]}) == len(board["panels"])
    yield from (t["expr"] for p in board["panels"] for t in p["targets"])
    yield from (v["query"] for v in board["templating"]["list"] if v["type"] == "query")
    yield from re.findall(r"expr: (.*(?:\n {12}.*)*)", (MONITORING / "numaprobe-fleet.rules.yml").read_text())


def test_dashboard_and_rules_use_metrics_that_exist(small):
    until(lambda: small.status()["store_bytes"])  # it was judged
    types, samples = parse(scrape(small)[0], "")
    known = {n for n, _, _ in samples} | set(types) | {"numaprobe_latency_local_memory_seconds"}
    used = {n for e in expressions() for n in re.findall(r"(?<![:\w])(?:numaprobe|process)_\w+", e)}
    assert len(used) >= 12 and used <= known, used - known


@needs_prometheus
def test_a_real_prometheus_finds_the_nodes(small, tmp_path):
    address, port = small.url.removeprefix("http://"), free_port()
    text = (MONITORING / "prometheus-fleet.yml").read_text()
    assert text.count("fleet:7790") == 2 and "60s" in text
    (tmp_path / "prometheus.yml").write_text(text.replace("fleet:7790", address).replace("60s", "1s").replace("2m", "1s"))
    shutil.copy(MONITORING / "numaprobe-fleet.rules.yml", tmp_path)
    base = f"http://127.0.0.1:{port}"
    with running(PROMETHEUS, f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data",
                 f"--web.listen-address=127.0.0.1:{port}", stdout=open(tmp_path / "log", "w"), stderr=subprocess.STDOUT):

        def targets():
            answer = fetched(base + "/api/v1/targets?state=active")
            found = [t["labels"] for t in json.loads(answer)["data"]["activeTargets"]] if answer else []
            return found if sum(t["job"] == "numaprobe" for t in found) == 60 else None
        nodes = [t for t in until(targets) if t["job"] == "numaprobe"]
        assert len({t["instance"] for t in nodes}) == 60 and all(t["class"] for t in nodes)

        def queried():
            answer = fetched(base + "/api/v1/query?query=numaprobe_fleet_deviation_ratio")
            return answer and json.loads(answer)["data"]["result"]
        assert len(until(queried)) == 2
