# SPDX-License-Identifier: Apache-2.0
"""The daemon's page in a real Chromium: every view, with and without runs, by mouse, keyboard and token."""
import json
import sqlite3
import subprocess
import time

import pytest

from conftest import ROOT, Bench, Daemon, fake_bench_env
from ports import free_port

VIEWS = ["#/", "#/topology", "#/runs", "#/runs/1", "#/runs/1/distribution", "#/start"]


@pytest.fixture(scope="module")
def ran(numaprobed, tmp_path_factory):
    """A daemon with one finished run."""
    d = Daemon(numaprobed, tmp_path_factory.mktemp("numaprobed"), fake_bench_env()).start()
    assert d.run(size="1,2,4", cpus="0")["state"] == "succeeded"
    yield d
    assert d.stop() == 0, "\n".join(d.log)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("view", VIEWS)
def test_views_have_no_violation(browser, ran, view, dark):
    page = browser.open(ran, view, dark=dark)
    assert page.axe() == []
    page.check()


@pytest.mark.parametrize("width", [390, 1280, 3840])
@pytest.mark.parametrize("view", VIEWS)
def test_views_fit_the_window(browser, ran, view, width):
    page = browser.open(ran, view, width=width)
    assert page.overflow() == 0 and page.unsigned() == [] and page.rows_of_tabs() == 1
    page.check()


def test_what_the_page_sends_is_small(browser, ran):
    """Every view in one tab, from an empty cache: the files of the page, compressed."""
    page = browser.open(ran, VIEWS[0])
    for view in VIEWS[1:]:
        page.go(view)
    files = {path: size for path, size in page.requests.items() if path in ("", "#/") or path.startswith("web/")}
    assert "web/main.js" in files and "web/view_start.js" in files
    assert sum(files.values()) <= 120 << 10, files
    page.check()


def test_back_returns_to_the_view_before(browser, ran):
    page = browser.open(ran, "#/")
    page.go("#/runs")
    assert page.evaluate("document.title").startswith("Runs · ")
    page.click("#runs a")
    page.wait("document.querySelector('figure.chart .plot canvas')")
    assert page.evaluate("location.hash") == "#/runs/1"
    assert page.evaluate("document.title").startswith("Run 1: succeeded · ")
    assert page.focused() == "#title" and page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.evaluate("history.back()")
    page.wait("document.title.startsWith('Runs · ') && document.querySelector('#runs table')")
    assert page.evaluate("document.querySelector('nav [aria-current]').textContent") == "Runs"
    page.check()


def test_distribution_of_a_cell_that_is_chosen(browser, ran):
    page = browser.open(ran, "#/runs/1")
    page.click("figure.chart + .links a")
    page.wait("document.title.startsWith('Run 1: Concurrent latency, every rank, working set 4M')")
    page.choose("#choose-col", str(2 << 20))
    drawn = "document.querySelector('#distribution figure') && document.title.includes('%s')"
    page.wait(drawn % "every rank, working set 2M")
    assert page.evaluate("location.hash") == f"#/runs/1/distribution?row=all&col={2 << 20}"
    assert page.evaluate("document.querySelector('.picture').shadowRoot.querySelectorAll('path title').length") == 3
    page.choose("#choose-row", "0")
    page.wait(drawn % "rank 0, working set 2M")
    cells = page.evaluate("[...document.querySelectorAll('#distribution tbody tr')].map((r) => r.children[2].textContent)")
    assert cells == ["2", "4", "0", "5"]
    page.evaluate("history.back()")
    page.wait(drawn % "every rank, working set 2M")
    page.check()


def test_distribution_of_an_older_run(browser, make_daemon):
    daemon = make_daemon(fake_bench_env())
    table = {"Content-Type": "text/csv"}
    made = daemon.request("POST", "/v1/imports?node=old", "size (MB),0\n1,11.5\n", table).json["id"]
    page = browser.open(daemon, f"#/runs/{made}/distribution?row=77&col=99")
    assert "no distribution is stored" in page.text()
    page.check()


def test_an_address_that_is_no_view(browser, ran):
    page = browser.open(ran, "#/nothing/here")
    assert "There is no such view" in page.text()
    page.go("#/runs/99")
    assert "99" in page.evaluate("document.querySelector('#view [role=alert]').textContent")
    page.go("#/")
    assert "Newest runs" in page.text()
    page.check()


def test_the_page_takes_a_token(browser, make_daemon):
    daemon = make_daemon(fake_bench_env(), args=["--anonymous=none"])
    made = daemon.request("POST", "/v1/tokens", {"name": "x", "scope": "run"}, unix=True)
    page = browser.open(daemon, "#/start")
    assert "Reading requires a token." in page.text() and "Bearer" not in page.text()
    page.give_token("np_wrong")
    assert "This token is not valid." in page.text()
    page.give_token(made.json["token"])
    page.fill("[name=size]", "1")
    page.click("#start button[type=submit]")
    page.wait("document.querySelector('figure.chart .plot canvas')")
    assert page.evaluate("document.title").startswith("Run 1: succeeded")
    page.go("#/runs")
    page.wait("document.querySelector('#runs table')")
    assert page.evaluate("document.getElementById('token-form').hidden") and "latency" in page.text()


def test_a_change_requests_a_token_and_keeps_the_form(browser, make_daemon):
    daemon = make_daemon(fake_bench_env(), args=["--anonymous=read"])
    made = daemon.request("POST", "/v1/tokens", {"name": "x", "scope": "run"}, unix=True)
    page = browser.open(daemon, "#/start")
    page.fill("[name=size]", "2")
    page.click("#start button[type=submit]")
    page.wait("!document.getElementById('token-form').hidden")
    assert "This requires a token with the scope run." in page.text() and page.focused() == "#token"
    page.fill("#token", made.json["token"])
    page.key("Enter")
    page.wait("document.getElementById('token-form').hidden")
    assert page.evaluate("document.querySelector('[name=size]').value") == "2"
    page.click("#start button[type=submit]")
    page.wait("document.title.startsWith('Run 1')")
    page.wait("document.querySelector('figure.chart .plot canvas')")


def test_the_page_keeps_nodes_apart(browser, make_daemon):
    daemon = make_daemon(fake_bench_env())
    own = daemon.run(size="1,2", cpus="0")["id"]
    table = "size (MB),0,1\n1,10,11\n2,20,21\n"
    for node in ("nid1", "nid2"):
        made = daemon.request("POST", f"/v1/imports?node={node}&date=2025-03-14", table, {"Content-Type": "text/csv"})
        assert made.status == 201
    name = daemon.get("/v1/node").json["node"]
    page = browser.open(daemon, "#/runs")
    assert "nid" not in page.evaluate("document.getElementById('runs').textContent")
    page.choose("#runs-of", "*")
    page.wait("document.getElementById('runs').textContent.includes('nid2')")
    shown = page.evaluate("document.getElementById('runs').textContent")
    assert all(word in shown for word in ("Node", "nid1", "nid2", name, "2025-03-14 00:00", "imported"))
    page.choose("#runs-of", "nid2")
    page.wait("!document.getElementById('runs').textContent.includes('nid1')")
    assert page.evaluate("[...document.querySelectorAll('#runs tbody a')].map((a) => a.textContent)") == [str(made.json["id"])]
    page.go(f"#/runs/{made.json['id']}")
    assert page.evaluate("document.title").startswith(f"Run {made.json['id']} of nid2, imported: succeeded")
    page.go("#/")
    assert "nid" not in page.text() and page.evaluate("document.querySelectorAll('#view tbody tr').length") == 1
    assert own == 1
    page.check()


# ---- the verdict

@pytest.fixture(scope="module")
def judged(numaprobed, tmp_path_factory):
    """A daemon whose node became slower after its tenth run, with a baseline from before."""
    folder = tmp_path_factory.mktemp("bench")
    bench = Bench(folder)
    d = Daemon(numaprobed, tmp_path_factory.mktemp("numaprobed"), bench.env).start()
    factors = [1, 1.002, 0.998, 1.001, 0.999]
    for level in (1, 1, 1.06, 1.06):
        for factor in factors:
            bench.behave(f"scaled {level * factor:.4f}")
            assert d.run(cpus="0", size="1-512")["state"] == "succeeded"
    assert d.request("PUT", "/v1/baselines/default", {"runs": [1, 2, 3]}).status == 200
    yield d
    assert d.stop() == 0, "\n".join(d.log)


def test_the_verdict_is_the_first_thing(browser, judged):
    check = judged.get("/v1/check").json
    assert check["state"] == "WARNING" and check["verdict"] == "slower"
    page = browser.open(judged)
    banner = page.evaluate("document.querySelector('#view .banner').innerText")
    first = page.evaluate("document.querySelector('#view > div').firstElementChild.className")
    since = judged.get("/v1/history?metric=latency.local.dram.median_ns").json["change_points"][0]
    assert first == "banner warn" and since["run"] == 11
    assert f"Slower by {check['overall']['percent']:.1f} % since {since['at'][:16].replace('T', ' ')}" in banner
    for text in ("Run 20 of latency is slower than baseline default", "Worst at " + check["worst"]["name"],
                 "No recorded fact of the machine changed then.", "Last run: ", "A run would start now."):
        assert text in banner, banner
    large, small = (page.evaluate(f"parseFloat(getComputedStyle(document.querySelector('{s}')).fontSize)")
                    for s in (".banner h2", "h1"))
    assert large > 1.5 * small
    assert page.evaluate("document.querySelector('.tile .spark .mark title').textContent").endswith("(run 11)")
    assert page.axe() == []
    page.dark(True)
    assert page.axe() == []
    page.check()


def test_what_changed_on_the_machine_is_named(browser, judged):
    """The sentences alone: facts of this machine do not change."""
    page = browser.open(judged)
    said = page.evaluate("""import("./web/verdict.js").then(({ verdict, turn, turnText }) => {
      const group = { percent: 18.2, lo_percent: 17, hi_percent: 19, verdict: "slower", name: "memory of node 3" };
      const check = { state: "CRITICAL", verdict: "slower", run: 9, benchmark: "matrix", baseline: "peers", fact_changes: null,
        overall: { ...group, percent: 1, verdict: "same" }, worst: group };
      const change = { name: "microcode", before: "0x65", after: "0x70" };
      const series = { better: "more", change_points: [{ at: "2026-10-30T01:02:03Z", run: 5, percent: -3, fact_changes: [change, change, change, change] },
        { at: "2026-11-01T01:02:03Z", run: 7, percent: 4, fact_changes: [] }] };
      return [verdict(check, turn(series)), verdict({ ...check, state: "OK", verdict: "same" }, null),
        verdict({ ...check, state: "UNKNOWN", overall: null, worst: null, text: "no run like it" }, null),
        verdict(check, null), turn({ ...series, better: "less" }).run, turn(null),
        ...[-1, 2].map((setup_runs) => verdict(check, { at: "", run: 5, setup_runs, fact_changes: [change] }).sentences.at(-1)),
        turnText({ ...series.change_points[0], setup_runs: -1, fact_changes: [change] }), turnText(series.change_points[1])]; })""")
    assert said[0]["tone"] == "bad" and said[0]["headline"] == "Slower by 18.2 % at memory of node 3 since 2026-10-30 01:02"
    assert said[0]["sentences"][-1] == "Then changed (run 5): " + "; ".join(["microcode: 0x65 → 0x70"] * 3) + "; and 1 more."
    assert said[1] == {**said[1], "tone": "good", "headline": "This node is fine"}
    assert said[2] == {"tone": "none", "headline": "No verdict", "sentences": ["no run like it"]}
    assert said[3]["headline"] == "Slower by 18.2 % at memory of node 3" and said[4:6] == [7, None]
    assert said[8:] == ["-3.0 % since 2026-10-30 01:02. Changed on the machine 1 run earlier: microcode: 0x65 → 0x70.", "+4.0 % since 2026-11-01 01:02."]
    assert [s.split(":")[0] for s in said[6:8]] == ["Changed 1 run before run 5", "Changed 2 runs after run 5"]


def test_an_empty_history(browser, make_daemon):
    page = browser.open(make_daemon(fake_bench_env()))
    assert "No runs yet" in page.text() and page.evaluate("document.querySelector('.banner a').hash") == "#/start"
    assert page.axe() == [] and page.overflow() == 0
    page.go("#/runs")
    assert "No runs of " in page.text()
    page.go("#/runs?node=*")
    assert "No runs yet." in page.text()
    page.check()


def test_the_overview_follows_what_others_do(browser, make_daemon):
    daemon = make_daemon(fake_bench_env())
    page = browser.open(daemon, "#/")
    assert "No runs yet" in page.text()
    run = daemon.run(size="1")["id"]
    page.wait(f"document.getElementById('use-baseline') && document.querySelector('#view a[href=\"#/runs/{run}\"]')")
    page.evaluate(f"document.querySelector('#view a[href=\"#/runs/{run}\"]').focus()")
    daemon.request("PUT", "/v1/baselines/default", {"runs": [run]})
    again = daemon.run(size="1")["id"]
    page.wait(f"document.querySelector('.banner').textContent.includes('Run {again} of latency')")
    page.wait(f"document.activeElement.getAttribute('href') === '#/runs/{run}'")
    page.check()


def test_without_a_baseline_it_offers_one(browser, make_daemon):
    daemon = make_daemon(fake_bench_env())
    daemon.run(cpus="0", size="1-64")
    page = browser.open(daemon)
    assert "No baseline to judge by" in page.text() and page.axe() == []
    page.click("#use-baseline")
    page.wait("document.querySelector('.banner.good')")
    assert "This node is fine" in page.text()
    assert daemon.get("/v1/baselines/default").json["runs"] == [1]
    page.check()


def test_what_blocks_a_run_is_named(browser, make_daemon):
    hour = time.localtime().tm_hour
    hours = f"{(hour + 2) % 24:02}:00-{(hour + 3) % 24:02}:00"
    daemon = make_daemon({**fake_bench_env(), "NUMAPROBED_ADMISSION": "refuse"}, args=[f"--hours={hours}"])
    blockers = daemon.get("/v1/availability").json["blockers"]
    assert "outside_hours" in [b["kind"] for b in blockers]
    hours = next(b["text"] for b in blockers if b["kind"] == "outside_hours").partition(";")[0]  # the minutes left count down
    page = browser.open(daemon)
    said = page.evaluate("document.getElementById('blocks').textContent")
    assert said.startswith("A run would not start now: ") and hours in said
    page.go("#/start")
    page.wait("document.querySelector('#now li')")
    assert hours in page.evaluate("document.getElementById('now').textContent") and page.axe() == []
    page.check()


# ---- the list

def shown(page):
    return page.evaluate("[...document.querySelectorAll('#runs tbody a')].map((a) => Number(a.textContent))")


def test_filters_leave_room_for_the_list_on_a_narrow_screen(browser, ran):
    page = browser.open(ran, "#/runs", width=400)
    tops = page.evaluate("[...document.querySelectorAll('.filters label')].map((e) => e.getBoundingClientRect().top)")
    assert len(tops) == 5 and len(set(tops)) == 3 and page.overflow() == 0


def test_times_have_the_unit_that_fits(browser, ran):
    page = browser.open(ran, "#/runs")
    took = page.evaluate("import('./web/format.js').then((f) => [0.94, 119.5, 300, 7260].map(f.took))")
    assert took == ["0.9 s", "119.5 s", "5 min", "2 h"]


def test_filters_are_in_the_address(browser, ran):
    page = browser.open(ran, "#/runs")
    page.choose("[name=state]", "failed")
    page.wait("document.getElementById('runs').textContent.includes('No run fits')")
    assert page.evaluate("location.hash") == "#/runs?state=failed"
    page.load("#/runs?state=succeeded&benchmark=latency&node=*")
    assert 1 in shown(page) and page.evaluate("document.querySelector('[name=state]').value") == "succeeded"
    page.load("#/runs?label=nothing")
    assert "No run fits these filters." in page.text()
    page.load("#/runs?state=nonsense")
    assert "state" in page.evaluate("document.querySelector('#runs [role=alert]').textContent")
    page.check()


def test_pages_of_200_runs(browser, make_daemon):
    daemon = make_daemon(fake_bench_env())
    table = "size (MB),0,1\n1,10,11\n2,20,21\n"
    for i in range(203):
        made = daemon.request("POST", f"/v1/imports?node=nid&date=2025-03-14&label=n%20{i}", table.replace("11", str(11 + i)), {"Content-Type": "text/csv"})
        assert made.status == 201, made.body
    page = browser.open(daemon, "#/runs?node=nid&limit=200")
    assert shown(page) == list(range(203, 3, -1)) and page.overflow() == 0
    page.click("#older")
    page.wait("document.querySelectorAll('#runs tbody tr').length === 3")
    assert shown(page) == [3, 2, 1] and not page.evaluate("!!document.getElementById('older')")
    page.evaluate("history.back()")
    page.wait("document.querySelectorAll('#runs tbody tr').length === 200")
    page.load("#/runs?node=nid&label=n+7")
    assert shown(page) == [8]
    page.check()


def test_two_runs_are_chosen_to_be_compared(browser, judged):
    """The list by itself, as if there were a view that compares."""
    page = browser.open(judged, "#/topology")
    page.evaluate("""import("./web/view_runs.js").then(({ show }) => { const root = document.createElement("div");
      document.getElementById("view").append(root); return show(root, { query: new URLSearchParams(), leads: () => true }); }).then(() => 0)""")
    for run, said in ((20, "Run 20 is chosen."), (3, "Compare run 3 with run 20"), (7, "Compare run 3 with run 7")):
        page.click(f"[data-run='{run}']")
        assert said in page.evaluate("document.getElementById('pair').textContent")
    assert page.evaluate("document.getElementById('compare').hash") == "#/compare/3/7" and page.axe() == []
    assert page.evaluate("[...document.querySelectorAll('[data-run]')].filter((e) => e.checked).length") == 2
    page.check()


def test_a_run_of_another_user_appears(browser, make_daemon):
    daemon = make_daemon(fake_bench_env())
    page = browser.open(daemon, "#/runs")
    run = daemon.run(cpus="0", size="1")["id"]
    page.wait(f"document.querySelector('#runs a[href=\"#/runs/{run}\"]')")
    page.wait("document.getElementById('news').textContent === 'Run 1 is new.'")
    page.wait("document.querySelector('#runs .state.succeeded')")
    page.check()


MARKUP = '"><img src=x onerror=alert(1)><b>'


def test_names_with_markup_are_text(browser, make_daemon):
    daemon = make_daemon(fake_bench_env())
    run = daemon.run(cpus="0", size="1", note=MARKUP)["id"]
    assert daemon.request("PUT", f"/v1/runs/{run}/label", {"label": MARKUP}).status == 200
    page = browser.open(daemon, f"#/runs/{run}")
    assert page.evaluate("document.getElementById('label').value") == MARKUP and MARKUP in page.text()
    for view in ("#/runs", "#/", f"#/runs?label={MARKUP}"):
        page.go(view)
        page.wait("document.querySelector('#view .cut[title]')")
        assert MARKUP in page.evaluate("[...document.querySelectorAll('.cut')].map((e) => e.title)")
    assert not page.evaluate("!!document.querySelector('#view img, #view b b')")
    page.check()


# ---- one run

def test_progress_and_cancel(browser, make_daemon, tmp_path_factory):
    bench = Bench(tmp_path_factory.mktemp("bench"))
    bench.behave("slow 4")  # more than three minutes, however long the page takes
    daemon = make_daemon(bench.env)
    sizes = ",".join(f"{n}K" for n in range(1, 49))
    run = daemon.post("/v1/runs", {"benchmark": "latency", "size": sizes, "cpus": "0"}).json["id"]
    page = browser.open(daemon, f"#/runs/{run}")
    page.wait("document.querySelector('#live progress').value > 0")
    page.wait("document.querySelector('#live').textContent.includes('cells, about ')")  # its time is known a moment later
    assert page.axe() == []
    page.click("#live button")
    page.wait("document.title.includes('canceled')")
    assert daemon.wait(run)["state"] == "canceled"
    page.wait("!document.querySelector('#live progress')")
    page.check()


def test_a_list_within_a_list_of_the_report(browser, daemon):
    table = (ROOT / "tests/data/results/lumig-8ranks-concurrent.txt").read_bytes()
    made = daemon.request("POST", "/v1/imports?node=nid1", table, {"Content-Type": "text/plain"}).json
    run = made["id"]
    page = browser.open(daemon, f"#/runs/{run}")
    slow = page.wait("[...document.querySelectorAll('.report li ul li')].map((i) => i.textContent)")
    assert len(slow) >= 4 and slow[0].startswith("rank 0 is typically"), slow
    assert not page.evaluate("[...document.querySelectorAll('.report p')].filter((p) => p.textContent.startsWith('-')).length")


def test_a_finished_run_has_everything(browser, make_daemon):
    daemon = make_daemon(fake_bench_env())
    run = daemon.run(size="1-64", cpus="0", mode="both")["id"]
    page = browser.open(daemon, f"#/runs/{run}")
    matrices = daemon.get(f"/v1/runs/{run}/matrix.json").json["matrices"]
    assert page.evaluate("document.querySelectorAll('figure.chart .plot canvas').length") == len(matrices) == 2
    page.wait("document.querySelector('.report li')")
    line = daemon.get(f"/v1/runs/{run}/report.md").body.decode().split("\n- ")[1].split("\n")[0]
    assert line in page.evaluate("document.querySelector('.report').textContent")
    page.click("figure summary")
    shown_value = page.wait("document.querySelector('figure tbody td').textContent")
    assert float(shown_value.removesuffix(" *")) == matrices[0]["cells"][0][0]["median"]
    conditions = daemon.get(f"/v1/runs/{run}").json["conditions"]
    assert page.evaluate("document.querySelector('.conditions summary').textContent").startswith(f"{len(conditions)} condition")
    for path in ("matrix.json", "matrix.csv", "report.md", "log"):
        assert page.evaluate(f"fetch(document.querySelector('a[href$=\"{path}\"]').href).then((r) => r.status)") == 200
    page.fill("#label", "before BIOS update")
    page.key("Enter")
    page.wait("document.querySelector('.actions [role=status]').textContent === 'Label: before BIOS update'")
    assert daemon.get(f"/v1/runs/{run}").json["label"] == "before BIOS update"
    page.fill("#baseline", "night")
    page.key("Enter")
    page.wait("document.querySelector('.actions').textContent.includes('Run 1 is baseline night.')")
    assert daemon.get("/v1/baselines/night").json["runs"] == [run]
    assert page.axe() == []
    page.check()


def test_a_failed_run_shows_why(browser, make_daemon, tmp_path_factory):
    bench = Bench(tmp_path_factory.mktemp("bench"))
    bench.behave("exit 7")
    daemon = make_daemon(bench.env)
    run = daemon.run(cpus="0", size="1")
    page = browser.open(daemon, f"#/runs/{run['id']}")
    assert run["state"] == "failed" and run["error"]["text"] in page.text() and "fake bench: rank 0 of 1" in page.text()
    assert page.axe() == [] and page.evaluate("[...document.querySelectorAll('.links a')].map((a) => a.textContent)") == ["Log"]
    for view in ("#/", "#/runs"):
        page.go(view)
        assert "failed" in page.text()
    page.check()


# ---- the form

def test_the_form_has_what_a_benchmark_takes(browser, ran):
    catalogue = ran.get("/v1/benchmarks").json
    common = [p["name"] for p in catalogue["common"]]
    page = browser.open(ran, "#/start")
    for b in catalogue["benchmarks"]:
        page.choose("#benchmark", b["name"])
        names = page.evaluate("[...document.querySelectorAll('#fields [data-kind]')].map((e) => e.name)")
        assert sorted(names) == sorted(common + [p["name"] for p in b["params"]]), b["name"]
    page.check()


def test_the_plan_before_the_run(browser, ran):
    page = browser.open(ran, "#/start")
    page.wait("document.getElementById('now').textContent.includes('would start now')")
    page.fill("[name=size]", "2,4")
    page.fill("[name=cpus]", "0")
    page.click("#dry-run")
    page.wait("document.getElementById('plan')")
    dry = ran.post("/v1/runs?dry_run=true", {"benchmark": "latency", "size": "2,4", "cpus": "0"}).json
    text = page.evaluate("document.getElementById('plan').textContent")
    assert dry["command"].replace("NONCE", "") .split(" --channel")[0] in text and "1 on CPUs 0" in text and "4M per rank" in text
    assert page.axe() == [] and page.focused() == "#plan-head"
    page.check()


def test_the_plan_states_what_a_budget_lowers(browser, make_daemon):
    daemon = make_daemon(env={"HWLOC_SYNTHETIC": "pack:2 group:12 [numa(memory=34359738368)] l3:1 core:8 pu:1"})
    page = browser.open(daemon, "#/start")
    page.choose("#benchmark", "pingpong")
    page.fill("[name=pairs]", "all")
    page.evaluate("document.querySelector('#start details').open = true")
    page.fill("[name=budget_s]", "60")
    page.click("#dry-run")
    page.wait("document.getElementById('plan')")
    text = page.evaluate("document.getElementById('plan').textContent")
    assert "The budget has room for 8192 of 18336 pairs" in text, text
    assert "To fit the budget: repetitions 1000 → " in text and "undefined" not in text, text
    page.check()


def test_wrong_values_are_shown_at_their_field(browser, ran):
    page = browser.open(ran, "#/start")
    page.fill("[name=size]", "nonsense")
    page.wait("document.getElementById('param-size-wrong').textContent.includes('nonsense')")
    assert page.evaluate("document.querySelector('[name=size]').getAttribute('aria-invalid')") == "true"
    page.fill("[name=size]", "1")
    page.wait("!document.querySelector('[aria-invalid]') && document.getElementById('now').textContent.includes('would start')")
    page.evaluate("document.querySelector('#start details').open = true")
    page.fill("[name=visits]", "1000")
    page.evaluate("document.querySelector('#start details').open = false")
    page.click("#start button[type=submit]")
    page.wait("document.getElementById('param-visits-wrong').textContent.includes('must be from')")
    assert page.evaluate("document.querySelector('#start details').open") and page.axe() == []
    page.fill("[name=visits]", "")
    page.fill("[name=size]", "100T")
    page.click("#dry-run")
    page.wait("document.querySelector('#start-error:not(:empty), #param-size-wrong:not(:empty)')")
    page.check()


# ---- the frame

def test_by_keyboard_alone(browser, ran):
    """From the top to a run's numbers: nothing but Tab, Enter and Space."""
    page = browser.open(ran, "#/")

    def tab_to(selector):
        for _ in range(60):
            page.key("Tab")
            if page.evaluate(f"document.activeElement.matches({selector!r})"):
                assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
                return
        raise AssertionError(f"Tab does not reach {selector}")

    tab_to("#skip")
    tab_to("nav a[href='#/runs']")
    page.key("Enter")
    page.wait("document.querySelector('#runs tbody a')")
    assert page.focused() == "#title"
    tab_to("#runs a[href='#/runs/1']")
    page.key("Enter")
    page.wait("document.querySelector('figure summary')")
    tab_to("figure summary")
    page.key("Enter")
    page.wait("document.querySelector('figure details').open")
    page.check()


def test_a_daemon_that_is_started_again(browser, make_daemon):
    listen = [f"--listen=127.0.0.1:{free_port()}"]
    daemon = make_daemon(fake_bench_env(), args=listen)
    daemon.run(cpus="0", size="1")
    page = browser.open(daemon, "#/runs")
    daemon.stop()
    page.wait("!document.getElementById('lost').hidden")
    assert shown(page) == [1]  # what was there stays
    page.go("#/")
    assert "The daemon does not respond." in page.text()
    again = make_daemon(fake_bench_env(), args=listen, home=daemon.home)
    assert again.port == daemon.port
    page.wait("document.getElementById('lost').hidden && document.querySelector('.banner')")
    assert "No baseline to judge by" in page.text()
    page.check()


MACHINES = sorted(p.name.removesuffix(".tar.bz2") for p in (ROOT / "tests/data/topologies").glob("*.tar.bz2"))


@pytest.mark.parametrize("name", MACHINES)
def test_recorded_machines(browser, make_daemon, tmp_path, name):
    subprocess.run(["tar", "-xf", ROOT / f"tests/data/topologies/{name}.tar.bz2", "-C", tmp_path], check=True)
    root = next(p for p in tmp_path.iterdir() if p.is_dir())
    daemon = make_daemon({**fake_bench_env(), "HWLOC_FSROOT": str(root), "HWLOC_COMPONENTS": "linux,stop"})
    page = browser.open(daemon, "#/topology", width=390)
    for view in ("#/topology", "#/", "#/start", "#/runs"):
        page.go(view) if page.evaluate("location.hash") != view else None
        assert not page.evaluate("!!document.querySelector('#view > div > [role=alert]')") and page.overflow() == 0, view
    page.check()


def test_a_database_of_the_first_version(browser, make_daemon, tmp_path):
    """Every view of runs that an earlier version stored: one that succeeded, one that failed."""
    (tmp_path / "state").mkdir(mode=0o700)
    db = sqlite3.connect(tmp_path / "state" / "numaprobe.db")
    db.executescript((ROOT / "schema" / "sql" / "0001-first.sql").read_text() + "PRAGMA user_version=1; PRAGMA application_id=1853189473;")
    run = "INSERT INTO run(seq,state,benchmark,node,created_ms,started_ms,finished_ms,method,n_ranks,n_cells,error,error_text,spec,conditions) " \
          "VALUES(?,?,'latency','old',1790000000000,1790000000001,1790000009000,'prp4-v1',1,2,?,?,?,?)"
    spec = json.dumps({"benchmark": "latency", "size": "1,2", "cpus": "0"})
    db.execute(run, (1, "succeeded", None, None, spec, '["ranks run as root"]'))
    db.execute(run, (2, "failed", "run_failed", "mpirun exited with status 1", spec, "[]"))
    axis = json.dumps
    db.execute("INSERT INTO matrix VALUES(1,0,'concurrent','latency','ns',?,?)",
               (axis({"name": "rank", "unit": "", "values": [0]}), axis({"name": "working_set", "unit": "bytes", "values": [1 << 20, 2 << 20]})))
    for col, value in enumerate((11000, 12500)):
        db.execute("INSERT INTO cell(run_id,matrix,row,col,n,disturbed,median_milli,lo_milli,hi_milli,min_milli,tight) "
                   "VALUES(1,0,0,?,20,0,?,?,?,?,1)", (col, value, value - 100, value + 100, value - 200))
    db.execute("UPDATE counter SET value=2 WHERE name='seq'")
    db.commit()
    db.close()
    daemon = make_daemon(fake_bench_env(), home=tmp_path)
    for view, shown in (("#/", "Overview"), ("#/runs?node=", "failed"), ("#/runs/1", "12.5"), ("#/runs/2", "mpirun exited"),
                        ("#/runs/1/distribution", "no distribution"), ("#/compare/1/1", "Run 1"), ("#/history", "History"),
                        ("#/topology", "Topology")):
        page = browser.open(daemon, view)
        assert shown in page.evaluate("document.body.textContent"), view
        page.check()
