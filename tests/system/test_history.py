# SPDX-License-Identifier: Apache-2.0
"""Metrics over runs, baselines and the verdict against them, for Nagios and for Prometheus."""
import collections
import contextlib
import csv
import html.parser
import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
import xml.etree.ElementTree

import pytest

from conftest import PATIENCE, ROOT, Bench, build_dir, until

pytestmark = pytest.mark.usefixtures("needs_fake_bench")
PROMTOOL = shutil.which("promtool") or shutil.which(ROOT / "build/promtool/usr/bin/promtool")
DRAM = "latency.local.dram.median_ns"
SPEC = {"cpus": "0", "size": "1-512"}


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return Bench(tmp_path_factory.mktemp("bench"))


@pytest.fixture
def own(make_daemon, bench):
    """A daemon of its own with an empty history."""
    bench.behave("good")
    return make_daemon(bench.env)


def succeed(daemon, **spec):
    run = daemon.run(**{**SPEC, **spec})
    assert run["state"] == "succeeded", run
    return run["id"]


def history(daemon, query):
    answer = daemon.get("/v1/history?" + query)
    assert answer.status == 200, answer.body
    return answer.json


def baseline(daemon, name, *runs):
    return daemon.request("PUT", f"/v1/baselines/{name}", {"runs": list(runs)})


def cli(daemon, *words):
    return subprocess.run(
        [str(build_dir() / "client" / "numaprobe"), *words], capture_output=True, text=True, timeout=PATIENCE,
        env={"PATH": os.environ["PATH"], "NUMAPROBE_URL": f"http://127.0.0.1:{daemon.port}"})


# --- History -------------------------------------------------------------------------------------

def test_a_run_leaves_its_metrics(own):
    run = succeed(own, mode="both")
    # The fake's cells are 10 + 10 * column, half of it in serial mode: the tenth size is 512 MiB.
    answer = history(own, f"metric={DRAM}")
    assert [p["run"] for p in answer["points"]] == [run]
    point = answer["points"][0]
    assert (point["value"], point["lo"], point["hi"]) == (100, 99.875, 100.125)
    assert answer["unit"] == "ns" and answer["better"] == "less" and answer["change_points"] == []
    names = {s["metric"]: s for s in own.get("/v1/history").json["series"]}
    assert names["latency.serial.local.dram.median_ns"]["last_value"] == 50
    assert names["contention.median_ratio"]["last_value"] == 2
    assert names[DRAM]["count"] == 1 and names[DRAM]["last_run"] == run


def test_another_way_of_measuring_is_another_series(own):
    first = succeed(own)
    second = succeed(own, pages="4k")
    newest = history(own, f"metric={DRAM}")
    assert [p["run"] for p in newest["points"]] == [second]
    assert "pages=4k" in newest["variant"] and len(newest["series"]) == 2
    other = next(s["variant"] for s in newest["series"] if s["variant"] != newest["variant"])
    query = f"metric={DRAM}&variant=" + other.replace(" ", "%20").replace("=", "%3D")
    assert [p["run"] for p in history(own, query)["points"]] == [first]
    effort = succeed(own, precision=5, quick=True, note="rough")
    assert [p["run"] for p in history(own, query)["points"]] == [first, effort]
    assert history(own, query + "&limit=1")["more"] is True
    assert history(own, query + "&until=2001-01-01")["points"] == []


def test_a_run_of_a_clock_that_was_ahead_does_not_choose_the_variant(own):
    succeed(own, pages="4k")
    usual = succeed(own)
    own.stop()
    with contextlib.closing(sqlite3.connect(own.home / "state" / "numaprobe.db")) as db, db:
        later = "UPDATE metric SET measured_ms = measured_ms + 40 * 86400000 WHERE series IN (SELECT id FROM series WHERE {})"
        assert db.execute(later.format("variant LIKE '%pages=4k%'")).rowcount > 0
    own.start()
    now = history(own, f"metric={DRAM}")
    assert [p["run"] for p in now["points"]] == [usual] and "pages=4k" not in now["variant"] and len(now["series"]) == 2
    own.stop()
    with contextlib.closing(sqlite3.connect(own.home / "state" / "numaprobe.db")) as db, db:
        assert db.execute(later.format("variant NOT LIKE '%pages=4k%'")).rowcount > 0
    own.start()
    assert [p["run"] for p in history(own, f"metric={DRAM}")["points"]] == [usual], "all are ahead: the last of them"


@pytest.mark.parametrize("query, status, member", [
    ("metric=nonsense", 422, "metric"), (f"metric={DRAM}", 404, "metric"), ("limit=3", 422, "limit"),
    (f"metric={DRAM}&limit=0", 422, "limit"), (f"metric={DRAM}&since=soon", 422, "since"),
    (f"metric={DRAM}&since=2026-01-02&until=2026-01-02", 422, "since"), (f"metric={DRAM}&until=1970-01-01", 422, "until"),
    ("node=", 422, "node"), (f"metric={DRAM}&node=", 422, "node"), ("nonsense=1", 400, "nonsense")])
def test_wrong_questions(daemon, query, status, member):
    answer = daemon.get("/v1/history?" + query)
    assert answer.status == status and answer.json["member"] == member, answer.body


def test_a_change_is_found_with_what_changed(own, bench):
    for factor in (1, 1.2):
        bench.behave(f"scaled {factor}")
        for _ in range(7):
            first_after = succeed(own)
    answer = history(own, f"metric={DRAM}")
    change, = answer["change_points"]
    assert change["run"] == first_after - 6 and change["run_before"] == first_after - 7
    assert change["percent"] == 20 and change["before"] == 100 and change["after"] == 120
    assert change["fact_changes"] == []  # the same machine, set up as before
    text = cli(own, "history", DRAM).stdout
    assert re.search(rf"\+20\.0 % since \S+ \(run {change['run']}\): 100 -> 120 ns", text), text
    assert "no recorded fact of the machine changed" in text
    assert "'numaprobe check' judges the newest run" in text
    rows = cli(own, "history", DRAM, "-o", "csv").stdout.splitlines()
    assert len(rows) == 15 and rows[0] == "run,measured,value,lo,hi,unit" and rows[1].endswith(",100.000,99.875,100.125,ns")


SVG = "{http://www.w3.org/2000/svg}"


def picture(daemon, path):
    answer = daemon.get(path)
    assert answer.status == 200 and answer.headers["Content-Type"] == "image/svg+xml", answer.body
    root = xml.etree.ElementTree.fromstring(answer.body)
    assert not root.findall(f".//{SVG}script") and "sandbox" in answer.headers["Content-Security-Policy"]
    assert daemon.get(path, If_None_Match=answer.headers["ETag"]).status == 304
    return root, [text.text for text in root.iter(SVG + "text")], answer.body.decode()


def test_pictures_of_a_history_and_of_two_runs(own, bench, tmp_path):
    for factor in (1, 1.2):
        bench.behave(f"scaled {factor}")
        for _ in range(7):
            last = succeed(own)
    root, words, svg = picture(own, f"/v1/history.svg?metric={DRAM}")
    assert len(root.findall(f".//{SVG}circle")) == 14
    assert any(re.fullmatch(rf"\+20\.0 % since .* UTC \(run {last - 6}\): 100.0 to 120.0 ns", w) for w in words)
    assert "no recorded fact of the machine changed with it" in words
    assert cli(own, "plot", "history", DRAM).stdout == svg
    text = cli(own, "plot", "history", DRAM, "--text").stdout
    assert "*" in text and f"+20.0 % since" in text and f"(run {last - 6})" in text
    to = tmp_path / "history.svg"
    assert cli(own, "plot", "history", DRAM, "--since=2d", f"--file={to}").returncode == 0
    assert to.read_text() == svg
    assert "no run in this time" in " ".join(picture(own, f"/v1/history.svg?metric={DRAM}&until=2001-01-01")[1])

    query = f"base={last - 13}&target={last}"
    root, words, svg = picture(own, "/v1/compare.svg?" + query)
    sentence = own.get("/v1/compare?" + query).json["text"]
    assert words[2].startswith("SLOWER: ") and " ".join(words).count(sentence[:40]) == 1
    assert "No recorded fact of the machine differs." in words and "+20" in words
    assert cli(own, "plot", "compare", str(last - 13), "last").stdout == svg
    text = cli(own, "plot", "compare", str(last - 13), "last", "--text").stdout
    assert text.startswith("slower: ") and sentence in text and re.search(r"\+20 +\+20", text), text


@pytest.mark.parametrize("path", [
    f"history{{}}?metric={DRAM}&limit=0", "history{}?metric=nonsense", f"history{{}}?metric={DRAM}&since=soon",
    f"history{{}}?metric={DRAM}&node=nobody", "compare{}?base=1", "compare{}?base=987&target=988",
    "compare{}?base=x&target=1", "history{}?nonsense=1"])
def test_pictures_refuse_what_their_numbers_refuse(own, path):
    whole, drawn = own.get("/v1/" + path.format("")), own.get("/v1/" + path.format(".svg"))
    assert whole.status == drawn.status >= 400 and whole.json.get("member") == drawn.json.get("member"), drawn.body


class Page(html.parser.HTMLParser):
    """Every element is closed, and nothing refers to elsewhere."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.words = [], collections.Counter(), []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.open += [] if tag == "meta" else [tag]
        for name, value in attrs:
            assert name not in ("src", "href", "xlink:href") and not name.startswith("on"), (tag, name)
            assert name == "xmlns" or "//" not in (value or ""), (tag, name, value)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, (tag, self.open)

    def handle_data(self, data):
        assert "url(" not in data and "@import" not in data
        self.words.append(data)


def test_a_report_to_send(own, tmp_path):
    run = succeed(own, mode="both", note="x")
    label = own.request("PUT", f"/v1/runs/{run}/label", {"label": "<script>alert(1)</script> & co"})
    assert label.status == 200, label.body
    answer = own.get(f"/v1/runs/{run}/report.html")
    assert answer.status == 200 and answer.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = answer.headers["Content-Security-Policy"]
    assert "script-src" not in policy and "sandbox" in policy and "default-src 'none'" in policy
    page = Page(answer.body.decode())
    assert page.tags["svg"] == page.tags["figure"] == 2 and page.tags["table"] >= 3 and not page.tags["script"]
    text = "".join(page.words)
    assert "<script>alert(1)</script> & co" in text and "Placement and disturbance" in text and "Conditions" in text
    assert "against the baseline" not in text and "cpu_model" in text
    assert baseline(own, "default", run).status in (200, 201)
    checked = own.get(f"/v1/runs/{run}/report.html").body.decode()
    assert 'class="verdict' in checked and "against the baseline default" in checked

    to = tmp_path / "report.html"
    assert cli(own, "report", str(run), f"--html={to}").returncode == 0 and to.read_text() == checked
    again = cli(own, "report", str(run), f"--html={to}")
    assert again.returncode == 2 and "exists; --force replaces it" in again.stderr
    to.write_text("longer " * 100000)
    assert cli(own, "report", str(run), f"--html={to}", "--force").returncode == 0 and to.read_text() == checked
    assert cli(own, "report", str(run), "--html=-").stdout == checked
    assert cli(own, "report", str(run), "--html=-", "-o", "json").returncode == 2


@pytest.mark.parametrize("other", [{"benchmark": "matrix", "size": "512"}, {"mode": "serial"}, {"size": "1024"}], ids=str)
def test_a_report_to_send_of_a_run_that_the_baseline_is_not_for(own, other):
    """The only baseline, of other runs, made the page of every run a conflict."""
    mine, theirs = succeed(own, mode="concurrent"), succeed(own, **other)
    assert baseline(own, "default", mine).status in (200, 201)
    page = own.get(f"/v1/runs/{theirs}/report.html")
    assert page.status == 200 and b"against the baseline" not in page.body, page.body
    assert own.get(f"/v1/check?run={theirs}").status == 409  # who asks for it is told why
    assert b"against the baseline default" in own.get(f"/v1/runs/{mine}/report.html").body


def test_a_report_on_a_pair_to_send(own):
    first, second = succeed(own, mode="serial"), succeed(own, mode="concurrent")
    page = Page(own.get(f"/v1/runs/{first}/report.html?with={second}").body.decode())
    assert page.tags["svg"] == 2 and f"Runs {first} and {second}: latency" in "".join(page.words)
    for query in ("", f"?with={first}", "?with=x"):
        other = own.get(f"/v1/runs/{first if query else 99}/report{query}")
        assert own.get(f"/v1/runs/{first if query else 99}/report.html{query}").status == other.status >= 400


def test_words_of_plot(own):
    assert own.get("/v1/history.svg").json["member"] == "metric"
    for words in (["history"], ["history", "a", "b"], ["compare", "1"], ["1", "2"]):
        assert cli(own, "plot", *words).returncode == 2, words


# The last: a later numaprobe with the same schema was here, and the one before it is back. One history has one version of the metrics.
@pytest.mark.parametrize("sql", [("DELETE FROM metric", "UPDATE run SET metrics_version = 0"),
                                 ("UPDATE metric SET value_milli = 2 * value_milli", "UPDATE run SET metrics_version = metrics_version + 1")],
                         ids=("none", "of a later version"))
def test_metrics_are_made_again(own, sql):
    runs = [succeed(own) for _ in range(3)]
    before = history(own, f"metric={DRAM}")
    restart_with(own, *sql)
    assert "runs=3" in own.wait_for_line("event=metrics.filled")
    assert history(own, f"metric={DRAM}")["points"] == before["points"]
    assert [p["run"] for p in before["points"]] == runs
    # And then it sleeps: nothing but the question itself wakes it.
    def wakeups():
        return own.get("/readyz?verbose").json["loop_wakeups"]

    def asleep():
        first, second, third = (wakeups() for _ in range(3))
        return third - second <= second - first + 4 < 40
    until(asleep)  # the end of the process that computed them may wake it too


def test_imports_have_a_history(own):
    table = "size (MB),0,1\n" + "".join(f"{1 << i},{v},{v + 1}\n" for i, v in enumerate([10] * 4 + [100] * 6))
    made = own.request("POST", "/v1/imports?node=elsewhere&date=2025-03-14", table,
                       {"Content-Type": "text/csv"})
    assert made.status == 201, made.body
    own.wait_for_line("event=metrics.filled")
    answer = history(own, "metric=latency.dram.median_ns&node=elsewhere")
    point, = answer["points"]
    assert (point["value"], point["lo"], point["measured"][:10]) == (100.5, None, "2025-03-14")
    assert "imported=true" in answer["variant"]


TABLE = "size (MB),0,1\n" + "".join(f"{1 << i},{v},{v + 1}\n" for i, v in enumerate([10] * 4 + [100] * 6))


def import_nights(daemon, node, days):
    for day in days:
        made = daemon.request("POST", f"/v1/imports?node={node}&date=2025-03-{day:02}", TABLE.replace(",101", f",{101 + day}"),
                              {"Content-Type": "text/csv"})
        assert made.status == 201, made.body


def start(daemon):
    """A run that has begun: from then on no metrics are computed."""
    run = daemon.post("/v1/runs", {"benchmark": "latency", **SPEC}).json["id"]
    until(lambda: daemon.get(f"/v1/runs/{run}").json["state"] == "running")
    return run


def test_nothing_is_concluded_while_runs_are_missing(own, bench):
    """Metrics of imports are computed while nothing runs: until then a history is not whole, and says so."""
    metric, node = "latency.dram.median_ns", "metric=latency.dram.median_ns&node=elsewhere"
    succeed(own)
    bench.behave("hang")
    going = start(own)
    import_nights(own, "elsewhere", range(1, 4))
    none = own.get("/v1/history?" + node)
    assert none.status == 409 and none.json["member"] == "pending" and "3 runs" in none.json["detail"]
    assert own.get("/v1/history").json["pending"] == 3
    assert own.get("/v1/history?node=elsewhere").json["pending"] == 3
    assert own.get("/v1/history?node=nobody").json["pending"] == 0
    assert b"\nnumaprobe_runs_without_metrics 3\n" in own.get("/metrics").body
    early = cli(own, "history", metric, "--node=elsewhere")
    assert early.returncode in (1, 6) and "not computed yet" in early.stderr and not early.stdout, early
    assert history(own, f"metric={DRAM}")["change_points"] == [], "of this node nothing is missing"
    own.post(f"/v1/runs/{going}/cancel")
    own.wait_for_line("event=metrics.filled")
    whole = history(own, node)
    assert whole["pending"] == 0 and len(whole["points"]) == 3 and whole["change_points"] == []
    going = start(own)
    import_nights(own, "elsewhere", range(4, 6))
    part = history(own, node)
    assert part["pending"] == 2 and len(part["points"]) == 3
    assert part["change_points"] is None and part["searched"] == 0
    told = cli(own, "history", metric, "--node=elsewhere")
    assert told.returncode == 0 and "change" not in told.stdout and "2 runs are not computed yet" in told.stderr, told
    listed = cli(own, "history", "--node=elsewhere")
    assert listed.returncode == 0 and "2 runs are not computed yet" in listed.stderr, listed
    own.post(f"/v1/runs/{going}/cancel")
    own.wait(going)
    # It waits as long as there is progress; on a busy machine that may take a while to begin.
    waited = until(lambda: (done := cli(own, "history", metric, "--node=elsewhere")).stderr == "" and done)
    assert "No significant change" in waited.stdout and "judges the newest run" in waited.stdout
    assert not waited.stderr and len(re.findall("2025-03-", waited.stdout)) == 5, waited


# --- Baselines -----------------------------------------------------------------------------------

def test_baselines(own, bench):
    one, two = succeed(own), succeed(own)
    made = baseline(own, "default", two, one)
    assert made.status == 200 and made.json["runs"] == [one, two]
    assert made.json["benchmark"] == "latency"
    assert own.get("/v1/baselines").json["baselines"] == [made.json]
    assert own.get("/v1/baselines/default").json == made.json
    kept = own.request("DELETE", f"/v1/runs/{one}")
    assert kept.status == 409 and '"default"' in kept.json["detail"]
    assert own.request("PUT", "/v1/baselines/single", {"run": two}).json["runs"] == [two]
    assert own.request("DELETE", "/v1/baselines/default").status == 204
    assert own.request("DELETE", "/v1/baselines/default").status == 404
    assert own.request("DELETE", f"/v1/runs/{one}").status == 204
    bench.behave("exit 3")
    failed = own.run(**SPEC)["id"]
    bench.behave("good")
    other = succeed(own, pages="4k")
    short = succeed(own, size="1-4")
    for runs, status, word in [([two, failed], 409, "failed"), ([two, other], 409, "another way"),
                               ([two, short], 409, "another way"), ([999], 404, "999")]:
        answer = baseline(own, "x", *runs)
        assert answer.status == status and word in answer.json["detail"], answer.body
    for body in ({}, {"runs": []}, {"run": two, "runs": [two]}, {"runs": [two, two]}, {"runs": ["2"]},
                 {"runs": 2}, {"run": two, "name": "x"}, {"runs": list(range(1, 18))}):
        assert own.request("PUT", "/v1/baselines/x", body).status == 422, body
    assert own.get("/v1/baselines/x").status == 404
    assert own.request("PUT", "/v1/baselines/a%20b", {"run": two}).status == 404
    assert own.request("POST", "/v1/baselines/x", {"run": two}).headers["Allow"] == \
        "GET, HEAD, PUT, DELETE"


def test_check(own, bench):
    assert own.get("/v1/check").status == 404
    runs = [succeed(own) for _ in range(3)]
    assert baseline(own, "night", *runs).status == 200
    answer = own.get("/v1/check").json
    assert (answer["state"], answer["code"], answer["run"]) == ("OK", 0, runs[-1]), answer
    assert answer["overall"]["verdict"] == "same" and answer["fact_changes"] == []
    bench.behave("scaled 1.06")
    slower = succeed(own)
    answer = own.get("/v1/check").json
    assert (answer["state"], answer["run"]) == ("WARNING", slower), answer
    assert answer["worst"]["verdict"] == "slower" and abs(answer["worst"]["percent"] - 6) < 0.2
    assert own.get("/v1/check?crit=5").json["state"] == "CRITICAL"
    assert own.get("/v1/check?warn=20").json["state"] == "OK"
    assert own.get(f"/v1/check?run={runs[0]}").json["state"] == "OK"
    assert own.get("/v1/check?baseline=night&max_age=100000").json["state"] == "WARNING"
    for query, status, member in [("baseline=x", 404, "baseline"), ("run=x", 422, "run"),
                                  ("warn=0", 422, "warn"), ("warn=5&crit=4", 422, "crit"),
                                  ("max_age=0", 422, "max_age"), ("format=xml", 422, "format"),
                                  ("run=999", 404, None), ("baseline=a%2Fb", 422, "baseline")]:
        wrong = own.get("/v1/check?" + query)
        assert wrong.status == status and wrong.json.get("member") == member, (query, wrong.body)


def test_check_warns_of_a_node_that_loses_its_cpu(own, bench):
    bench.behave("disturbed 0")
    quiet = [succeed(own) for _ in range(3)]
    assert baseline(own, "quiet", *quiet).status == 200
    answer = own.get("/v1/check").json
    assert (answer["state"], answer["disturbed_ratio"], answer["baseline_disturbed_ratio"]) == ("OK", 0, 0), answer
    bench.behave("disturbed 1")
    succeed(own)
    assert own.get("/v1/check").json["state"] == "OK", "a few more are no news"
    bench.behave("disturbed 3")
    loses = succeed(own)
    answer = own.get("/v1/check").json
    assert (answer["state"], answer["run"], answer["verdict"]) == ("WARNING", loses, "same"), answer
    assert abs(answer["disturbed_ratio"] - 3 / 14) < 1e-3 and "21 % of the samples were disturbed" in answer["text"]
    points = own.get("/v1/history?metric=latency.disturbed_ratio").json["points"]
    assert own.get("/v1/history?metric=latency.largest.median_ns").json["detectable"] == \
        {"runs": 5, "cv_percent": 0, "one_run_percent": 0, "three_run_percent": 0}
    assert [p["value"] for p in points] == [0.01, 0.01, 0.01, 0.083, 0.214], points
    assert 'numaprobe_disturbed_ratio{benchmark="latency"' in own.get("/metrics").body.decode()


def test_a_rank_that_loses_its_cpu_shows_everywhere(own, bench):
    bench.behave("off-cpu 0.001")
    quiet = [succeed(own) for _ in range(7)]
    assert baseline(own, "quiet", *quiet[:3]).status == 200
    answer = own.get("/v1/check").json
    assert (answer["state"], answer["off_cpu_ratio"], answer["baseline_off_cpu_ratio"]) == ("OK", 0.001, 0.001), answer
    bench.behave("off-cpu 0.2")
    lose = [succeed(own) for _ in range(7)]
    answer = own.get("/v1/check").json
    assert (answer["state"], answer["run"], answer["off_cpu_ratio"]) == ("WARNING", lose[-1], 0.2), answer
    assert "a rank was off its CPU for 20 % of its time (baseline 0.1 %)" in answer["text"]
    history = own.get("/v1/history?metric=latency.off_cpu.worst_ratio").json
    assert [p["value"] for p in history["points"]] == 7 * [0.01] + 7 * [0.2], history
    [change] = history["change_points"]
    assert change["run"] == lose[0] and abs(change["percent"] - 100 * (1.2 / 1.01 - 1)) < 0.1, change
    metrics = own.get("/metrics").body.decode()
    assert re.search(r'^numaprobe_off_cpu_worst_ratio\{benchmark="latency".*\} 0\.2$', metrics, re.M), metrics
    assert re.search(r'^numaprobe_clock_median_hertz\{benchmark="latency".*\} 4000000000$', metrics, re.M), metrics


def test_a_clock_that_drops_shows_everywhere(own, bench):
    bench.behave("clock 4")
    quiet = [succeed(own) for _ in range(7)]
    assert baseline(own, "quiet", *quiet[:3]).status == 200
    answer = own.get("/v1/check").json
    assert (answer["state"], answer["clock_ghz"], answer["baseline_clock_ghz"]) == ("OK", 4, 4), answer
    bench.behave("clock 3.2")
    slow = [succeed(own) for _ in range(7)]
    answer = own.get("/v1/check").json
    assert (answer["state"], answer["run"], answer["verdict"]) == ("WARNING", slow[-1], "same"), answer
    assert "the cores ran at 3.20 GHz (baseline 4.00 GHz)" in answer["text"], answer
    checked = cli(own, "check")
    assert checked.returncode == 1 and "the cores ran at 3.20 GHz" in checked.stdout, checked
    history = own.get("/v1/history?metric=latency.clock.median_ghz").json
    assert [p["value"] for p in history["points"]] == 7 * [4] + 7 * [3.2], history
    [change] = history["change_points"]
    assert change["run"] == slow[0], change
    metrics = own.get("/metrics").body.decode()
    assert re.search(r'^numaprobe_clock_median_hertz\{benchmark="latency".*\} 3200000000$', metrics, re.M), metrics
    bench.behave("clock 0")
    succeed(own)
    answer = own.get("/v1/check").json
    assert (answer["state"], answer["clock_ghz"], answer["baseline_clock_ghz"]) == ("OK", None, 4), answer


def test_one_slow_core_is_a_warning(own, bench):
    bench.behave("clock 4")
    assert baseline(own, "quiet", *(succeed(own, cpus="0-1") for _ in range(3))).status == 200
    bench.behave("slow-core 3.9")
    succeed(own, cpus="0-1")
    assert own.get("/v1/check").json["state"] == "OK", "turbo moves by as much"
    bench.behave("slow-core 3.7")
    succeed(own, cpus="0-1")
    answer = own.get("/v1/check").json
    assert (answer["state"], answer["verdict"]) == ("WARNING", "same"), answer
    assert (answer["clock_ghz"], answer["least_clock_ghz"], answer["baseline_least_clock_ghz"]) == (3.85, 3.7, 4), answer
    assert "the slowest core ran at 3.70 GHz (baseline 4.00 GHz)" in answer["text"] and "the cores ran" not in answer["text"]
    metrics = own.get("/metrics").body.decode()
    assert re.search(r'^numaprobe_clock_least_hertz\{benchmark="latency".*\} 3700000000$', metrics, re.M), metrics


def test_cycles_leave_the_clock_out(own, bench):
    bench.behave("clock 4")
    fast = succeed(own)
    bench.behave("throttled 1.25")  # 5/4 of the time at 4/5 of the clock
    slow = succeed(own)
    plain = own.get(f"/v1/compare?base={fast}&target={slow}").json
    assert plain["verdict"] == "slower" and plain["unit"] == "ns", plain
    assert any("4.00 GHz in A and at 3.20 GHz in B" in note for note in plain["comparison"]["notes"]), plain
    cycles = own.get(f"/v1/compare?base={fast}&target={slow}&cycles=true").json
    assert (cycles["verdict"], cycles["unit"]) == ("same", "cycles"), cycles
    told = cli(own, "compare", str(fast), str(slow), "--cycles")
    assert told.returncode == 0 and told.stdout.startswith("SAME"), told
    bench.behave("clock 0")
    unknown = succeed(own)
    refused = own.get(f"/v1/compare?base={fast}&target={unknown}&cycles=true")
    assert refused.status == 409 and "the clock of rank 0" in refused.json["detail"], refused.body
    assert cli(own, "compare", str(fast), str(unknown), "--cycles").returncode != 0


def restart_with(daemon, *statements):
    """Stops the daemon, changes its database behind its back, starts it again."""
    assert daemon.stop() == 0
    with sqlite3.connect(daemon.home / "state" / "numaprobe.db") as db:
        for statement in statements:
            db.execute(statement)
    db.close()
    daemon.log.clear()
    daemon.start()


def test_check_of_a_run_of_a_clock_that_was_ahead(own):
    assert baseline(own, "default", succeed(own)).status == 200
    restart_with(own, "UPDATE metric SET measured_ms = measured_ms + 31536000000",
                 "UPDATE run SET measured_ms = measured_ms + 31536000000")
    answer = own.get("/v1/check?max_age=86400").json
    assert answer["state"] == "WARNING" and "(dated in the future)" in answer["text"] and answer["age_s"] == 0, answer
    answer = own.get("/v1/check").json
    assert answer["state"] == "OK" and "(dated in the future)" in answer["text"], answer


def test_check_of_an_old_run_and_of_nothing(own):
    assert baseline(own, "default", succeed(own)).status == 200
    restart_with(own, "UPDATE metric SET measured_ms = measured_ms - 172800000",
                 "UPDATE run SET measured_ms = measured_ms - 172800000")
    answer = own.get("/v1/check?max_age=86400").json
    assert answer["state"] == "WARNING" and "2 d old, too old" in answer["text"], answer
    assert own.get("/v1/check").json["state"] == "OK"
    other = succeed(own, pages="4k")
    assert baseline(own, "small", other).status == 200
    assert own.request("DELETE", "/v1/baselines/default").status == 204
    assert own.get("/v1/check").json["run"] == other  # of the only one left
    assert baseline(own, "again", other).status == 200
    assert own.get("/v1/check").status == 422  # two, and none is named default
    restart_with(own, "UPDATE run SET node = 'elsewhere'")
    succeed(own)
    answer = own.get("/v1/check?baseline=small").json
    assert answer["state"] == "UNKNOWN" and answer["run"] is None and answer["worst"] is None
    assert "none of the newest" in own.get("/v1/check?baseline=small&format=nagios").body.decode()


def test_check_takes_a_run_that_has_what_the_baseline_has(own):
    both = succeed(own, mode="both")
    assert baseline(own, "concurrent", succeed(own)).status == 200
    succeed(own, mode="serial")
    newer = succeed(own, mode="both")
    answer = own.get("/v1/check").json
    assert (answer["state"], answer["run"]) == ("OK", newer), answer  # it has the matrix, too
    assert baseline(own, "both", both).status == 200
    succeed(own)
    answer = own.get("/v1/check?baseline=both").json
    assert (answer["state"], answer["run"]) == ("OK", newer), answer
    serial = succeed(own, mode="serial")
    assert own.get(f"/v1/check?baseline=concurrent&run={serial}").status == 409


def test_a_newer_method_is_not_overlooked(own):
    """After an update of the method no older run is judged in place of the newest."""
    first = own.get(f"/v1/runs/{succeed(own)}/export").json
    ids = []
    for method, day in (("prp4-v1", 1), ("prp4-v1", 2), ("prp4-v2", 3)):
        first["run"].update(method=method, **{key: f"2026-01-0{day}T00:00:0{second}.000Z" for second, key in
                                              enumerate(("created", "started", "measured", "finished"))})
        answer = own.post("/v1/imports", first)
        assert answer.status == 201, answer.body
        ids.append(answer.json["id"])
    assert baseline(own, "default", ids[0]).status == 200
    answer = own.get("/v1/check").json
    text = f"run {ids[2]} was measured by method prp4-v2 and the baseline by prp4-v1: they cannot be compared"
    assert (answer["state"], answer["run"], answer["overall"]) == ("UNKNOWN", ids[2], None), answer
    assert text in answer["line"] and cli(own, "check").returncode == 3, answer
    named = cli(own, "check", f"--run={ids[2]}")
    assert named.returncode == 3 and named.stdout.startswith(f"NUMAPROBE UNKNOWN - {text}"), named
    assert own.get(f"/v1/check?run={ids[1]}").json["state"] == "OK"
    compared = cli(own, "compare", *map(str, ids[1:]))
    assert compared.stderr == "numaprobe: the method differs: A has prp4-v1, B has prp4-v2\n", compared
    mixed = cli(own, "baseline", "set", "both", *map(str, ids[1:]))
    assert mixed.stderr.startswith(f"numaprobe: run {ids[2]} was measured in another way (prp4-v2"), mixed


def test_check_speaks_nagios(own, bench):
    gone = cli(own, "check")
    assert gone.returncode == 3 and gone.stdout.startswith("NUMAPROBE UNKNOWN - ")
    told = cli(own, "check", "-o", "json")
    answer = json.loads(told.stdout)
    assert told.returncode == answer["code"] == 3 and answer["state"] == "UNKNOWN" and told.stderr == "", told
    assert answer["line"] + "\n" == gone.stdout and answer["line"].endswith(answer["text"]), answer
    runs = [succeed(own) for _ in range(3)]
    assert cli(own, "baseline", "set", "default", *map(str, runs)).returncode == 0
    fine = cli(own, "check")
    assert fine.returncode == 0 and fine.stderr == ""
    line = re.fullmatch(r"NUMAPROBE OK - [^|]+ \| difference=-?\d+\.\d+% worst=-?\d+\.\d+%;3;10 "
                        r"age=\d+s;\n", fine.stdout)
    assert line, fine.stdout
    bench.behave("scaled 1.5")
    succeed(own)
    bad = cli(own, "check", "default")
    assert bad.returncode == 2 and bad.stdout.startswith("NUMAPROBE CRITICAL - "), bad
    assert cli(own, "check", "--crit=90").returncode == 1
    assert cli(own, "check", "nobody").returncode == 3
    assert cli(own, "check", "--bogus").returncode == 3
    assert json.loads(cli(own, "check", "-o", "json").stdout)["code"] == 2
    text = own.get("/v1/check", Accept="text/plain")
    assert text.headers["Content-Type"].startswith("text/plain") and \
        text.body.decode().startswith("NUMAPROBE CRITICAL")
    assert own.get("/v1/check?format=nagios").body.count(b"\n") == 1
    shown = cli(own, "baseline", "list").stdout
    assert "default" in shown and " ".join(map(str, runs)) in shown
    assert cli(own, "baseline", "delete", "default").returncode == 0
    assert cli(own, "baseline", "show", "default").returncode == 5
    assert cli(own, "baseline", "put", "x").returncode == 2
    own.stop()
    dead = cli(own, "check")
    assert dead.returncode == 3 and dead.stdout.startswith("NUMAPROBE UNKNOWN - "), dead


def test_a_verdict_is_kept(own):
    """Without the numbers that it was made of, it is the same."""
    assert baseline(own, "default", succeed(own)).status == 200
    first = own.get("/v1/check").json
    with contextlib.closing(sqlite3.connect(own.home / "state" / "numaprobe.db", isolation_level=None)) as db:
        db.execute("DELETE FROM cell")
    again = own.get("/v1/check").json
    assert first["state"] == "OK" and {**again, "age_s": None, "text": None} == {**first, "age_s": None, "text": None}


# --- Prometheus ----------------------------------------------------------------------------------

SAMPLE = re.compile(r'([a-z_0-9]+)(\{[a-z_]+="(?:[^"\\\n]|\\.)*"(?:,[a-z_]+="(?:[^"\\\n]|\\.)*")*\})? (\S+)')


def parse(text, counter_tail):
    """{family: type}, [(name, labels, value)]; fails on anything that the format does not have."""
    types, samples, current = {}, [], None
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, current, kind = line.split(" ")
            assert current not in types, f"{current} comes twice"
            types[current] = kind
        elif line.startswith("#"):
            assert line == "# EOF" or line.split(" ")[1] in ("HELP", "UNIT"), line
        else:
            found = SAMPLE.fullmatch(line)
            assert found, line
            tail = counter_tail if types[current] == "counter" else ""
            assert found.group(1) == current + tail, f"{line} stands below {current}"
            samples.append((found.group(1), found.group(2) or "", float(found.group(3))))
    assert len({(n, labels) for n, labels, _ in samples}) == len(samples), "a sample comes twice"
    return types, samples


@pytest.fixture
def scraped(own, bench):
    run = succeed(own, mode="both")
    assert baseline(own, "default", run).status == 200
    bench.behave("exit 3")
    own.run(**SPEC)
    return own


def test_metrics_in_both_forms(scraped):
    plain = scraped.get("/metrics")
    assert plain.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    types, samples = parse(plain.body.decode(), "")
    values = {name + labels: value for name, labels, value in samples}
    key = '{mode="concurrent",variant="size=1-512 cpus=0"}'
    assert values["numaprobe_latency_local_memory_seconds" + key] == 1e-7
    assert values['numaprobe_latency_node_seconds{mode="serial",initiator="0",target="0",'
                  'variant="size=1-512 cpus=0"}'] == 5e-8
    assert values['numaprobe_runs{state="succeeded"}'] == 1
    assert values['numaprobe_runs_finished_total{state="failed"}'] == 1
    assert values['numaprobe_check_state{baseline="default"}'] == 0
    assert 0 <= values['numaprobe_run_age_seconds{benchmark="latency",variant="size=1-512 cpus=0",mode="concurrent"}'] < 600
    assert values["numaprobe_series_omitted"] == 0 and values["numaprobe_runs_without_metrics"] == 0
    assert abs(values["process_start_time_seconds"] - time.time()) < 600
    assert values["process_open_fds"] > 3 and values["process_resident_memory_bytes"] > 1 << 20
    assert values['numaprobe_http_responses_total{code="200"}'] >= 1
    opened = scraped.get("/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert opened.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    text = opened.body.decode()
    assert text.endswith("# EOF\n") and "# UNIT numaprobe_run_age_seconds seconds\n" in text
    again, _ = parse(text, "_total")
    assert {t.removesuffix("_total") for t in types} == set(again)


def test_another_way_of_measuring_hides_nothing(scraped, bench):
    """One run --size=1 of a user made the series vanish that alerts watch."""
    def local(text):
        return [line for line in text.splitlines() if line.startswith("numaprobe_latency_local_memory_seconds{")]
    before = scraped.get("/metrics").body.decode()
    bench.behave("good")
    succeed(scraped, size="1", quick=True)
    import_nights(scraped, scraped.get("/v1/node").json["node"], [1])
    scraped.wait_for_line("event=metrics.filled")
    after = scraped.get("/metrics").body.decode()
    assert local(before) and local(after) == local(before)
    assert 'numaprobe_latency_largest_seconds{mode="concurrent",variant="size=1 cpus=0"}' in after
    assert "imported=true" not in after, "imports are not shown"
    newer = succeed(scraped, mode="both")
    assert local(scraped.get("/metrics").body.decode()) == local(before), "the same numbers"
    scraped.request("DELETE", f"/v1/runs/{newer}")
    assert local(scraped.get("/metrics").body.decode()) == local(before), "of the run before"


PROCESS = {  # as the client libraries of Prometheus have them
    "process_cpu_seconds_total": ("counter", "Total user and system CPU time spent in seconds."),
    "process_open_fds": ("gauge", "Number of open file descriptors."),
    "process_max_fds": ("gauge", "Maximum number of open file descriptors."),
    "process_virtual_memory_bytes": ("gauge", "Virtual memory size in bytes."),
    "process_resident_memory_bytes": ("gauge", "Resident memory size in bytes."),
    "process_start_time_seconds": ("gauge", "Start time of the process since unix epoch in seconds.")}


def test_process_metrics_are_the_standard_ones(scraped):
    lines = scraped.get("/metrics").body.decode().splitlines()
    mine = {line.split(" ")[2] for line in lines if line.startswith("# TYPE process_")}
    assert mine == set(PROCESS)
    for name, (kind, text) in PROCESS.items():
        assert f"# HELP {name} {text}" in lines and f"# TYPE {name} {kind}" in lines
    without = scraped.get("/metrics?process=false").body.decode()
    assert "process_" not in without and "numaprobe_node_info" in without
    assert scraped.get("/metrics?process=maybe").status == 422


def test_labels_of_the_node(make_daemon, tmp_path):
    """Whatever firmware calls its CPU, a scrape stays one that Prometheus takes."""
    model = 'A "quoted"\n \\ b\u00e9ta \u4e2d'
    file = tmp_path / "machine.xml"
    xml = (ROOT / "tests/fuzz/corpus/topology/this.xml").read_text()
    xml, n = re.subn(r'(name="CPUModel" value=)"[^"]*"', lambda m: '%s"%s"' % (m.group(1), model.replace('"', "&quot;").replace("\n", "&#10;")), xml)
    assert n
    file.write_text(xml)
    daemon = make_daemon({"HWLOC_XMLFILE": str(file)})
    node = daemon.get("/v1/node").json
    line, = [l for l in daemon.get("/metrics").body.decode().splitlines() if l.startswith("numaprobe_node_info{")]
    labels = dict(re.findall(r'(\w+)="((?:[^"\\\n]|\\.)*)"', line))
    assert node["cpu_model"] == model
    assert labels["cpu_model"] == model.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    assert (labels["node"], labels["cpus"], labels["numa_nodes"]) == (node["node"], "2", "1")
    assert labels["hardware_hash"] == node["fingerprint"]["hardware"]["hash"]
    assert labels["config_hash"] == node["fingerprint"]["config"]["hash"] and labels["version"] == node["version"]
    if PROMTOOL:
        done = subprocess.run([PROMTOOL, "check", "metrics"], input=daemon.get("/metrics").body, capture_output=True, timeout=PATIENCE)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_scrape_starts_nothing(scraped):
    before = scraped.get("/v1/runs").json["runs"]
    for _ in range(5):
        assert scraped.get("/metrics").status == 200
    assert scraped.get("/v1/runs").json["runs"] == before


def test_an_empty_daemon_has_metrics(own):
    types, samples = parse(own.get("/metrics").body.decode(), "")
    assert ("numaprobe_queue_length", "", 0) in samples and "numaprobe_run_age_seconds" not in types


@pytest.mark.skipif(not PROMTOOL, reason="promtool is not there (tools/promtool.sh)")
def test_promtool_finds_no_fault(scraped):
    done = subprocess.run([PROMTOOL, "check", "metrics"], input=scraped.get("/metrics").body,
                          capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.skipif(not PROMTOOL, reason="promtool is not there (tools/promtool.sh)")
@pytest.mark.parametrize("words", [["check", "rules", "numaprobe.rules.yml"],
                                   ["test", "rules", "numaprobe.rules.test.yml"]])
def test_alert_rules(words):
    done = subprocess.run([PROMTOOL, *words], cwd=ROOT / "docs" / "monitoring", capture_output=True,
                          text=True, timeout=600)
    assert done.returncode == 0 and "SUCCESS" in done.stdout, done.stdout + done.stderr


def expressions():
    board = json.loads((ROOT / "docs/monitoring/numaprobe-dashboard.json").read_text())
    assert len({p["id"] for p in board["panels"]}) == len(board["panels"])
    yield from (t["expr"] for p in board["panels"] for t in p.get("targets", []))
    yield from (a["expr"] for a in board["annotations"]["list"])
    yield from (v["query"] for v in board["templating"]["list"] if v["type"] == "query")
    rules = (ROOT / "docs/monitoring/numaprobe.rules.yml").read_text()
    yield from re.findall(r"(?<=expr: )[^|\n].*|(?<=expr: \|\n)(?:          .*\n)+", rules)


def test_dashboard_and_rules_use_metrics_that_exist(scraped):
    types, samples = parse(scraped.get("/metrics").body.decode(), "")
    table = (ROOT / "docs/METRICS.md").read_text()
    known = {name for name, _, _ in samples} | set(types) | set(re.findall(r"(?<=\| `)numaprobe_\w+", table))
    used = {name for e in expressions() for name in re.findall(r"\b(?:numaprobe|process)_\w+", e)}
    assert len(used) >= 12 and used <= known, used - known


def reference_of(own, path, factor=1.0, spread=1.0, **change):
    """A reference whose medians are those of the newest run of latency."""
    page = own.get("/v1/runs?form=summary&benchmark=latency&limit=1").json
    run = page["runs"][0]
    metrics = [{"metric": name, "unit": unit, "median": value * factor, "spread_percent": spread, "runs_percent": 0.3,
                "nodes": 40} for (name, unit), value in zip(page["layouts"][run["layout"]], run["values"], strict=True)]
    probe = {"benchmark": run["benchmark"], "variant": run["variant"], "method": run["method"],
             "metrics_version": run["metrics_version"], "metrics": metrics}
    document = {"format": "numaprobe-reference", "version": 1, "created": None,
                "classes": [{"class": run["class"], "cpu": "a CPU", "probes": [probe]}]} | change
    path.write_text(json.dumps(document))
    return f"--reference={path}"


def test_check_against_a_reference(own, bench, tmp_path):
    path = tmp_path / "reference.json"
    path.write_text("{}")
    assert cli(own, "check", f"--reference={path}").returncode == 3
    first = succeed(own)
    flag = reference_of(own, path)
    path.write_text("\ufeff" + path.read_text())
    fine = cli(own, "check", flag)
    assert fine.returncode == 0 and fine.stderr == "", fine
    assert re.fullmatch(rf"NUMAPROBE OK - run {first} of latency \(\d+ s old\) against reference [^|]+: none of \d+ "
                        r"metrics [^|]+; worst [^|]+ \| worst=-?\d+\.\d+%;3;10 age=\d+s;\n", fine.stdout), fine.stdout
    bench.behave("scaled 1.5")
    slow = succeed(own)
    bad = cli(own, "check", flag)
    assert bad.returncode == 2 and f"run {slow} of latency" in bad.stdout and "(40 nodes, spread 1.0 %)" in bad.stdout, bad
    assert cli(own, "check", flag, "--warn=20", "--crit=90").returncode == 1
    assert cli(own, "check", flag, "--warn=60", "--crit=90").returncode == 0
    assert cli(own, "check", flag, f"--run={first}").returncode == 0
    answer = json.loads(cli(own, "check", flag, "-o", "json").stdout)
    assert (answer["code"], answer["run"], answer["state"]) == (2, slow, "CRITICAL") and answer["worst"]["nodes"] == 40
    row, = csv.DictReader(io.StringIO(cli(own, "check", flag, "-o", "csv").stdout))
    assert (row["code"], row["run"], row["state"], row["baseline"]) == ("2", str(slow), "CRITICAL", "")
    assert row["reference"] == str(path) and float(row["worst_percent"]) == answer["worst"]["percent"], row
    assert answer["metrics_worse"] > 0 and answer["line"].startswith("NUMAPROBE CRITICAL - ")
    restart_with(own, "UPDATE run SET measured_ms = measured_ms + 31536000000")
    ahead = cli(own, "check", flag, "--warn=60", "--crit=90", "--max-age=86400")
    assert ahead.returncode == 1 and f"run {slow} of latency (dated in the future) against" in ahead.stdout, ahead


def test_check_against_a_reference_that_cannot_be_used(own, tmp_path):
    path = tmp_path / "reference.json"
    succeed(own)
    flag = reference_of(own, path)
    document = json.loads(path.read_text())
    for change, words in (({"version": 2}, "reference.json: version is newer than this program"),
                          ({"format": "x"}, 'format must be "numaprobe-reference"'),
                          ({"classes": []}, "classes has no metric")):
        path.write_text(json.dumps(document | change))
        done = cli(own, "check", flag)
        assert done.returncode == 3 and done.stdout.startswith("NUMAPROBE UNKNOWN - ") and words in done.stdout, done
    document["classes"][0]["class"] = "f" * 64
    path.write_text(json.dumps(document))
    done = cli(own, "check", flag)
    assert done.returncode == 3 and "the reference is of other hardware: a CPU" in done.stdout, done
    path.write_text("not JSON")
    assert cli(own, "check", flag).returncode == 3
    assert "cannot open" in cli(own, "check", "--reference=/nonexistent").stdout
    reference_of(own, path)
    assert "there is no run 999" in cli(own, "check", flag, "--run=999").stdout
    assert cli(own, "check", "default", flag).returncode == 3  # either a baseline or a reference
    assert cli(own, "check", flag, "--warn=20").returncode == 3  # crit is 10
