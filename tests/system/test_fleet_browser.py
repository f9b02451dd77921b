# SPDX-License-Identifier: Apache-2.0
"""The collector's page in a real Chromium, over virtual nodes whose truth is known."""
import json
import re
import signal
import urllib.request

import pytest

from client import run
from conftest import ROOT, replace_text, until
from test_fleet import Fleet
from test_fleetd import NO_NODE_IS_LATE, Collector

NODES, BAD = 200, 2
DOWN = "node005"
VIEWS = ["#/", "#/nodes/node001", f"#/nodes/{DOWN}", "#/rollouts", "#/campaigns", "#/findings"]


def collector_over(home, nodes, *options, collector=()):
    """A collector whose page Browser.open() takes: it has a port."""
    c = Collector(home, Fleet(home, nodes, *options), NO_NODE_IS_LATE, *collector).start()
    c.port = int(c.url.rpartition(":")[2])
    return c


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """Two classes, two slow nodes, and one that does not respond."""
    c = collector_over(tmp_path_factory.mktemp("fleet"), NODES, "--runs=8", "--classes=2", f"--bad={BAD}", f"--faults={DOWN} refuses")
    c.wait_known(NODES - 1)
    until(lambda: c.node(DOWN)["state"] == "down")
    c.wait_judged(outlier=len(bad_nodes(c)), down=1)
    yield c
    c.close()


# Pixels of the band that a chart has.
GREEN = """(() => { const c = document.querySelector('.plot canvas'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
    let n = 0; for (let i = 0; i < d.length; i += 4) n += d[i + 3] > 20 && d[i + 1] > d[i] + 50 && d[i + 1] > d[i + 2] + 20; return n; })()"""


def bad_nodes(c):
    return sorted(n["node"] for n in c.fleet.truth["world"]["nodes"] if n["bad"] and n["node"] != DOWN)


def cells(page, table):
    return page.evaluate(f"[...document.querySelectorAll('{table} tbody tr')].map((r) => [...r.children].map((c) => c.textContent))")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("view", VIEWS)
def test_views_have_no_violation(browser, fleet, view, dark):
    page = browser.open(fleet, view, dark=dark)
    assert page.axe() == []
    page.check()


@pytest.mark.parametrize("width", [390, 1280, 3840])
@pytest.mark.parametrize("view", VIEWS)
def test_views_fit_the_window(browser, fleet, view, width):
    page = browser.open(fleet, view, width=width)
    assert page.overflow() == 0 and page.unsigned() == [] and page.rows_of_tabs() == 1
    page.check()


def test_what_the_page_sends_is_small_and_its_own(browser, fleet):
    page = browser.open(fleet, VIEWS[0])
    for view in VIEWS[1:]:
        page.go(view)
    files = {path: size for path, size in page.requests.items() if path in ("", "#/") or path.startswith("web/")}
    assert "web/main.js" in files and "web/view_fleet.js" in files
    assert all(path in files or path.startswith("v1/") for path in page.requests), "nothing comes from elsewhere"
    assert sum(files.values()) <= 120 << 10, files
    with urllib.request.urlopen(fleet.url + "/") as reply:
        assert reply.headers["Content-Security-Policy"].startswith("default-src 'none'")
    for path in files:
        with urllib.request.urlopen(fleet.url + "/" + path.removeprefix("#/")) as reply:
            text = reply.read()
        assert "uPlot" in path or not re.search(rb"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b", text), path
    listed = {p.name for folder in ("fleet/web", "web") for p in (ROOT / folder).rglob("*") if p.suffix in (".js", ".css", ".html")}
    assert {path.removeprefix("web/") for path in files} - {"", "#/"} <= listed
    page.check()


def test_the_verdict_is_first_and_names_the_slow_nodes(browser, fleet):
    page = browser.open(fleet, "#/")
    bad = bad_nodes(fleet)
    page.wait("document.querySelector('.banner[data-judged]')")
    heading = page.evaluate("document.querySelector('#verdict').textContent")
    assert heading == (f"{len(bad)} nodes are slow" if len(bad) > 1 else f"{bad[0]} is slow")
    assert f"{NODES} nodes: {NODES - 1} up" in page.text() and f"Found: {len(bad)} sure." in page.text()
    page.wait("document.querySelector('#collector')")
    slow = cells(page, "#slow")
    assert sorted(row[0] for row in slow) == bad and all(row[2] == "slow, sure" and row[3].startswith("+") for row in slow)
    classes = cells(page, "#coverage")
    assert sorted(int(row[3]) for row in classes) == sorted(c["nodes"] for c in fleet.get("/v1/fleet/classes")["classes"])
    page.check()


def test_every_node_is_a_tile_and_a_row(browser, fleet):
    """By the keyboard: the groups are reached with Tab, and each lists its nodes."""
    page = browser.open(fleet, "#/")
    page.wait("document.querySelector('.groups button')")
    labels = page.evaluate("[...document.querySelectorAll('.groups button')].map((b) => b.getAttribute('aria-label'))")
    assert [label.split(":")[0] for label in labels] == ["node[001-100]", "node[101-200]"]
    assert "1 does not respond" in labels[0] and "sure" in "".join(labels)
    names = []
    page.evaluate("document.querySelector('#find').focus()")
    page.key("Tab")
    for group in range(2):
        page.key("Tab")
        assert page.evaluate(f"document.activeElement === document.querySelectorAll('.groups button')[{group}]")
        page.key("Enter")
        page.wait("document.querySelector('#unfolded table')")
        assert page.evaluate("document.activeElement === document.querySelector('#unfolded h3')")
        assert page.axe() == []
        names += [row[:3] for row in cells(page, "#unfolded")]
        page.evaluate(f"document.querySelectorAll('.groups button')[{group}].focus()")
    assert [name for name, _, _ in names] == fleet.fleet.names
    assert [name for name, state, _ in names if state != "up"] == [DOWN]
    assert sorted(name for name, _, verdict in names if verdict.startswith("slow")) == bad_nodes(fleet)
    page.key("Enter")
    page.wait("!document.querySelector('#unfolded table')")  # a second time folds it again
    tiles = page.evaluate("""[...document.querySelectorAll('.groups .map path:not(.t-absent)')].reduce((n, p) => n + p.getAttribute('d').split('Z').length - 1, 0)""")
    assert tiles == NODES, "one tile a node"
    page.key("Enter")
    page.wait("document.activeElement === document.querySelector('#unfolded h3')")
    page.key("Tab")  # into the table
    page.key("Escape")
    assert page.evaluate("!document.querySelector('#unfolded table') && document.activeElement === document.querySelectorAll('.groups button')[1]")
    page.check()


def test_tiles_stand_by_rack_where_racks_are_known(browser, tmp_path):
    """Racks of groups_file first, the other nodes by their names; and what is wrong in the file is said."""
    groups = tmp_path / "groups"
    groups.write_text("rack10: node[05-08]\nrack2: node[01-04],node11,stranger[1-2]\nlogin: node12\n")
    c = collector_over(tmp_path, 12, collector=(f"--groups-file={groups}",))
    try:
        c.wait_known(12)
        assert c.get("/v1/fleet/racks")["racks"] == [{"rack": "rack10", "nodes": ["node[05-08]"]},
                                                     {"rack": "rack2", "nodes": ["node[01-04]", "node11", "stranger[1-2]"]}]
        page = browser.open(c, "#/")
        page.wait("document.querySelector('.groups button')")
        labels = page.evaluate("[...document.querySelectorAll('.groups button')].map((b) => b.getAttribute('aria-label').split(',')[0])")
        assert labels == ["rack2: 5 nodes", "rack10: 4 nodes", "node09 to node12: 3 nodes"]
        replace_text(groups, "rack1: node[1-\n")
        c.stop()
        c.start()  # a change is seen after a minute
        c.port = int(c.url.rpartition(":")[2])
        c.wait_known(12)
        page = browser.open(c, "#/")
        page.wait("document.querySelector('#tiles [role=alert]:not(:empty)')")
        assert "The racks cannot be read: " in page.text() and "node[01-12]" in page.text()
        page.check()
    finally:
        c.close()


def test_the_mouse_reads_and_opens_a_tile(browser, fleet):
    page = browser.open(fleet, "#/")
    page.wait("document.querySelector('.groups .map')")
    fifth = page.evaluate("""(() => { const s = document.querySelector('.groups .map'); s.scrollIntoView({block: 'center'}); const b = s.getBoundingClientRect(),
        u = b.width / s.viewBox.baseVal.width; return [b.x + (2 + 4.5 * 12) * u, b.y + (2 + 6) * u]; })()""")
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=fifth[0], y=fifth[1])
    page.wait(f"document.querySelector('#pointed').textContent.startsWith('{DOWN}: ')")
    assert "not judged" in page.evaluate("document.querySelector('#pointed').textContent")
    for kind in ("mousePressed", "mouseReleased"):
        page.call("Input.dispatchMouseEvent", type=kind, x=fifth[0], y=fifth[1], button="left", clickCount=1)
    page.wait(f"location.hash === '#/nodes/{DOWN}'")


def test_a_node_beside_its_peers_and_over_time(browser, fleet):
    slow = bad_nodes(fleet)[0]
    page = browser.open(fleet, "#/")
    page.wait("document.querySelector('#slow a')")
    page.click(f"#slow a[href='#/nodes/{slow}']")
    page.wait("document.querySelector('#history .chart details')")
    assert page.focused() == "#title" and page.evaluate("document.title").startswith(f"{slow} · ")
    said = fleet.get(f"/v1/fleet/nodes/{slow}/metrics")
    rows = cells(page, "#metrics")
    assert len(rows) == len(said["metrics"]) and float(rows[0][1].split()[0]) > 3, "the worst first"
    worst = max(said["metrics"], key=lambda m: m["percent"])
    assert rows[0][0] == worst["metric"] == page.evaluate("document.querySelector('#metric').value")
    history = fleet.get(f"/v1/fleet/history?node={slow}&metric={worst['metric']}")
    page.evaluate("document.querySelector('.chart details').open = true")
    assert len(cells(page, "#history")) == len(history["points"]) == 8
    assert "where 95 % of the nodes of its class were" in page.text()
    assert page.evaluate(GREEN) > 1000, "the node is outside the band of its class, and both are in view"
    other = next(m["metric"] for m in said["metrics"] if m["metric"] != worst["metric"])
    page.choose("#metric", other)
    page.wait(f"location.hash === '#/nodes/{slow}?metric={other}' && document.querySelector('.plot').getAttribute('aria-label').startsWith('{other} ')")
    assert page.evaluate("document.querySelector('#state a').href") == fleet.node(slow)["url"] + "/"
    assert page.axe() == []
    page.check()


@pytest.fixture(scope="module")
def rollout(tmp_path_factory):
    """New microcode that is 4 % slower, over the fleet in waves."""
    c = collector_over(tmp_path_factory.mktemp("rollout"), 300, "--runs=30", "--bad=0", "--waves=3", "--rollout-percent=4")
    c.wait_known(300)
    yield c
    c.close()


def test_a_change_of_a_node_has_its_cause(browser, rollout):
    # What time it is decides which nodes are in a wave, and on a few of them noise hides the change or moves it far.
    metric = "latency.local.dram.median_ns"
    changed = [name for name, in rollout.rows("SELECT name FROM setup JOIN node ON node.id = setup.node GROUP BY name HAVING count(*) = 2 LIMIT 40")]
    explained = [name for name in changed if any(c["fact_changes"] for c in rollout.get(
        f"/v1/fleet/history?node={name}&metric={metric}")["change_points"])]
    assert len(explained) >= 0.8 * len(changed) > 0
    page = browser.open(rollout, f"#/nodes/{explained[0]}?metric={metric}")
    page.wait("document.querySelector('#history .changes')")
    assert re.search(r"^Set-upIt has changed once since the first run, at \S+ \S+ UTC:microcode: .* → ", page.evaluate("document.querySelector('#setup').textContent"))
    assert re.search(r"\+[345]\.\d % since .*Changed on the machine( \d runs? (earlier|later))?:.*microcode: ", page.evaluate("document.querySelector('.changes').textContent"))
    page.check()


def test_a_rollout_and_its_effect(browser, rollout):
    page = browser.open(rollout, "#/rollouts")
    [said] = rollout.get("/v1/fleet/rollouts")["rollouts"]
    page.wait("document.querySelector('#rollouts li')")
    assert page.evaluate("document.querySelector('#rollouts h2').textContent") == f"microcode: {said['from']} → {said['to']}"
    assert f"{said['nodes']} nodes on {said['days']} day" in page.text()
    assert page.evaluate("document.querySelectorAll('.waves rect').length") == len(said["waves"])
    assert page.axe() == [] and page.overflow() == 0
    page.click("#rollouts .links a")
    page.wait("document.querySelector('#effect table')")
    effect = rollout.get(f"/v1/fleet/effect?fact=microcode&from={said['from']}&to={said['to']}")
    worse = sum(m["verdict"] == "worse" for m in effect["metrics"])
    assert worse > 20, "4 % is seen"
    assert page.evaluate("document.querySelector('#verdict').textContent") == f"{worse} metrics of {len(effect['metrics'])} became worse"
    rows = cells(page, "#effect")
    assert [row[0] for row in rows] == [m["metric"] for m in effect["metrics"]] and [row[4] for row in rows].count("worse") == worse
    assert page.evaluate("document.querySelectorAll('#effect svg.worse').length") == worse and page.focused() == "#title"
    assert page.axe() == [] and page.overflow() == 0
    page.check()


def wrong_at(page, field, said):
    """The error stands at this field, which is marked, and at no other place."""
    page.wait(f"document.querySelector('#new-{field}-wrong').textContent")
    assert said in page.evaluate(f"document.querySelector('#new-{field}-wrong').textContent")
    assert page.evaluate("[...document.querySelectorAll('#new [aria-invalid]')].map((e) => e.id)") == [f"new-{field}"]
    assert page.evaluate("document.querySelector('#plan').textContent + document.querySelector('#begin').hidden") == "true"


def test_a_campaign_is_planned_started_and_cancelled(browser, tmp_path):
    c = collector_over(tmp_path, 12, "--runs=6", "--run-ms=600000", collector=["--anonymous=run"])
    try:
        c.wait_up(12)
        page = browser.open(c, "#/campaigns")
        page.wait("document.querySelector('#campaigns')")
        assert "No campaign yet." in page.text()
        page.fill("#new-name", "weekly")
        page.fill("#new-nodes", "node[1-")
        page.key("Enter")
        wrong_at(page, "nodes", "node[1-")
        page.fill("#new-nodes", "node[01-05]")
        for field, value, said in (("size", "nonsense", "size"), ("retry_for", "soon", "must be a duration"), ("each", "1s", "must be a duration"),
                                   ("window", "Xmas", ""), ("budget_node_minutes", "0", "above 0")):
            page.fill(f"#new-{field}", value)
            page.click("#new button[type=submit]")
            wrong_at(page, field, said)
            page.fill(f"#new-{field}", "")
        page.fill("#new-at_once", "2")
        assert page.evaluate("document.querySelector('#new-n').disabled")
        page.choose("#new-by", "prefix")
        assert page.evaluate("!document.querySelector('#new').checkValidity() && !document.querySelector('#new-n').validity.valid"), "how many?"
        page.fill("#new-n", "1")
        page.fill("#new-retry_for", "6h")
        page.choose("#new-order", "name")
        page.fill("#new-failed_percent", "0")
        page.click("#new button[type=submit]")
        page.wait("!document.querySelector('#begin').hidden")
        assert "It would probe 5 nodes (node[01-05])" in page.evaluate("document.querySelector('#plan').textContent")
        assert c.get("/v1/fleet/campaigns")["campaigns"] == [], "a plan begins nothing"
        assert page.axe() == [] and page.overflow() == 0
        page.click("#begin")
        page.wait("document.querySelector('#probes table')")
        [made] = c.get("/v1/fleet/campaigns")["campaigns"]
        assert made["name"] == "weekly" and page.evaluate("location.hash") == f"#/campaigns/{made['id']}"
        assert made["request"] == {"name": "weekly", "nodes": "node[01-05]", "spec": {"benchmark": "latency"}, "at_once": 2,
                                   "at_once_each": {"by": "prefix", "n": 1}, "retry_for": "6h", "order": "name",
                                   "stop_after": {"failed_percent": 0}}
        assert [row[0] for row in cells(page, "#probes")] == [f"node0{i}" for i in range(1, 6)]
        assert page.axe() == [] and page.overflow() == 0
        page.click("#cancel")
        page.wait("document.title.startsWith('Campaign weekly: cancelled') && document.querySelector('#cancel').hidden")
        assert c.get(f"/v1/fleet/campaigns/{made['id']}")["campaign"]["state"] == "cancelled"
        page.go("#/campaigns")
        page.wait("document.querySelector('#campaigns table')")
        assert cells(page, "#campaigns")[0][:3] == ["weekly", "cancelled", "5"]
        page.fill("#new-name", "jobs")
        page.choose("#new-through", "slurm")
        page.choose("#new-by", "rack")
        page.fill("#new-n", "2")
        page.click("#new button[type=submit]")
        wrong_at(page, "by", "")
        page.choose("#new-by", "")
        page.click("#new button[type=submit]")
        page.wait("!document.querySelector('#begin').hidden")
        page.click("#begin")
        page.wait("document.querySelector('#script')")
        assert c.get("/v1/fleet/campaigns")["campaigns"][0]["request"]["through"] == "slurm" and page.axe() == []
        assert "sbatch" in page.evaluate("fetch(document.querySelector('#script').href).then((r) => r.text())")
        page.check()
    finally:
        c.close()


# Requests of the page fail while `cut` is true, and are counted.
CUTS = """(() => { const real = window.fetch; window.cut = false; window.requests = 0;
    window.fetch = (...all) => { window.requests++; return window.cut ? Promise.reject(new TypeError('cut')) : real(...all); }; })()"""


@pytest.mark.parametrize("listed", [True, False])
def test_a_campaign_is_followed_after_a_failed_request_and_a_look_at_its_nodes(browser, tmp_path, listed):
    c = collector_over(tmp_path, 3, "--runs=6", "--run-ms=600000", collector=["--anonymous=run"])
    try:
        c.wait_up(3)
        made = run("fleet", "campaign", "start", "--name=weekly", f"--fleet={c.url}", "-ojson")
        address = f"#/campaigns{'' if listed else '/' + str(json.loads(made.stdout)['campaign']['id'])}"
        table, link = ("#campaigns", "#campaigns td a, #campaigns th a") if listed else ("#probes", "#probes td a, #probes th a")
        page = browser.open(c, address)
        page.wait(f"document.querySelector('{link}')")
        page.evaluate(CUTS)
        page.evaluate("(window.cut = true, 0)")
        page.wait("window.requests && !document.querySelector('#lost').hidden")
        page.evaluate(f"(window.cut = false, document.querySelector('{link}').focus(), 0)")
        assert run("fleet", "campaign", "cancel", "1", f"--fleet={c.url}").returncode == 0
        until(lambda: c.get("/v1/fleet/campaigns/1")["campaign"]["running"] == 0)
        page.evaluate("(window.requests = 0, 0)")
        page.wait("window.requests > 1")  # the first of them may have been for healthz
        page.evaluate("(document.activeElement.blur(), 0)")
        page.wait(f"document.querySelector('{table}').textContent.includes('{'cancelled' if listed else 'skipped'}')")
        page.check()
    finally:
        c.close()


def test_the_nodes_of_a_campaign_are_listed_page_by_page(browser, tmp_path):
    c = collector_over(tmp_path, 450, "--runs=2", "--run-ms=1000", collector=["--anonymous=run"])
    try:
        c.wait_up(450)
        assert run("fleet", "campaign", "start", "--name=weekly", "--at-once=1", f"--fleet={c.url}").returncode == 0
        page = browser.open(c, "#/campaigns/1")
        shown = "document.querySelector('#probes .quiet').textContent"
        page.wait(f"{shown} === 'Nodes 1 to 200 of 450, by name.'")
        assert [row[0] for row in cells(page, "#probes")] == c.fleet.names[:200] and page.evaluate("document.querySelector('#back').hidden")
        page.click("#more")
        page.wait(f"{shown} === 'Nodes 201 to 400 of 450, by name.'")
        assert page.evaluate("document.activeElement === document.querySelector('#probes h2')"), "a reader is at the beginning of the list"
        page.click("#more")
        page.wait(f"{shown} === 'Nodes 401 to 450 of 450, by name.'")
        assert [row[0] for row in cells(page, "#probes")] == c.fleet.names[400:] and page.evaluate("document.querySelector('#more').hidden")
        assert page.axe() == [] and page.overflow() == 0
        page.evaluate("(document.querySelector('#cancel').focus(), window.before = document.querySelector('#campaign dl').textContent, 0)")
        page.wait("document.querySelector('#campaign dl').textContent !== window.before")
        assert page.evaluate("document.activeElement.id") == "cancel", "what is made anew takes no focus away"
        assert cells(page, "#probes")[0][0] == c.fleet.names[400], "nor does the page of the list change"
        page.click("#back")
        page.wait(f"{shown} === 'Nodes 201 to 400 of 450, by name.'")
        page.evaluate("(document.querySelector('#cancel').focus(), 0)")
        page.key("Enter")
        page.wait("document.querySelector('#cancel').hidden")
        assert page.evaluate("document.activeElement.id") == "campaign"
        page.click("#back")
        page.wait(f"{shown} === 'Nodes 1 to 200 of 450, by name.' && document.querySelector('#back').hidden")
        page.check()
    finally:
        c.close()


def test_a_class_shows_each_metric_of_its_nodes(browser, fleet):
    slow = bad_nodes(fleet)
    page = browser.open(fleet, "#/")
    page.wait("document.querySelector('#coverage a')")
    page.click("#coverage a")
    page.wait("document.querySelector('#metrics li')")
    said = fleet.get("/v1/fleet/classes/" + page.evaluate("location.hash").rpartition("/")[2])
    assert page.evaluate("document.querySelector('#facts h2').textContent") == f"{said['nodes']} nodes"
    assert said["facts"]["cpu_model"] in page.text()
    strips = page.evaluate("[...document.querySelectorAll('#metrics li')].map((l) => [l.querySelector('h3').textContent, l.querySelector('svg').getAttribute('aria-label'), [...l.querySelectorAll('a')].map((a) => a.textContent)])")
    assert [name for name, _, _ in strips] == [m["metric"] for m in said["metrics"]]
    for (_, label, linked), m in zip(strips, said["metrics"]):
        worse = [name for name, v in zip(said["names"], m["values"]) if v is not None and (v < m["limit"] if m["better"] == "more" else v > m["limit"])]
        assert label.startswith(f"{sum(v is not None for v in m['values'])} nodes from ") and label.endswith(f" {len(worse)} beyond the limit")
        assert sorted(linked) == sorted(worse)[:8] or len(worse) > 8
    assert page.axe() == [] and page.overflow() == 0 and set(slow) & set(said["names"]) <= {n for _, _, linked in strips for n in linked}
    page.check()


def test_findings_are_a_worklist(browser, tmp_path):
    c = collector_over(tmp_path, 100, "--runs=8", "--bad=2", collector=["--anonymous=run"])
    try:
        c.wait_up(100)
        c.wait_judged(outlier=2)
        slow = bad_nodes(c)
        page = browser.open(c, "#/")
        page.wait("document.querySelector('.banner a[href=\\'#/findings\\']')")
        assert "Open findings: 2 sure." in page.text()
        page.click(".banner a")
        page.wait("document.querySelectorAll('#findings > li').length === 2")
        heads = page.evaluate("[...document.querySelectorAll('#findings h2')].map((h) => h.textContent)")
        assert sorted(h.split(":")[0] for h in heads) == slow and all(re.search(r": slower than its peers, [+-]\d+\.\d % \(sure\)$", h) for h in heads)
        assert page.axe() == [] and page.overflow() == 0
        first = int(page.evaluate("document.querySelector('#findings > li').dataset.id"))
        page.fill(f"#note-{first}", "DIMM ordered")
        page.click("#findings > li [data-to=acknowledged]")
        page.wait("document.querySelector('#findings > li').dataset.state === 'acknowledged'")
        kept = c.get(f"/v1/fleet/findings/{first}")
        assert (kept["state"], kept["note"]) == ("acknowledged", "DIMM ordered")
        assert page.evaluate("document.activeElement === document.querySelector('#findings h2')"), "a reader keeps the place"
        page.choose("[name=state]", "acknowledged")
        page.wait("location.hash === '#/findings?state=acknowledged' && document.querySelectorAll('#findings > li').length === 1")
        assert "DIMM ordered" in page.text()
        page.click("#findings > li [data-to=fixed]")
        page.wait("document.querySelector('#findings > li').dataset.state === 'fixed'")
        assert c.get(f"/v1/fleet/findings/{first}")["state"] == "fixed"
        page.go("#/findings?what=twin")
        assert "No finding fits these filters." in page.text()
        page.go(f"#/nodes/{slow[0]}")
        page.wait("document.querySelector('#wrong .finding')")
        assert page.axe() == []
        page.check()
    finally:
        c.close()


def test_changes_require_a_token(browser, fleet):
    page = browser.open(fleet, "#/campaigns")
    page.fill("#new-name", "weekly")
    page.key("Enter")
    page.wait("!document.querySelector('#token-form').hidden")
    assert "This requires a token with the scope run." in page.text() and page.focused() == "#token"
    page.check()


def test_a_node_that_does_not_respond_says_why(browser, fleet):
    page = browser.open(fleet, f"#/nodes/{DOWN}")
    assert page.evaluate("document.querySelector('#state [role=alert]').textContent.length") > 5
    assert "No run of it is stored." in page.text()
    page.go("#/nodes/other")
    assert "No source names this node now." in page.text()
    page.check()


def test_a_node_is_found_by_its_name(browser, fleet):
    page = browser.open(fleet, "#/")
    page.fill("#find", "nothing")
    page.key("Enter")
    page.wait("""document.querySelector('#tiles [role=alert]').textContent === 'No source names a node "nothing".'""")
    page.fill("#find", "node123")
    page.key("Enter")
    page.wait("location.hash === '#/nodes/node123'")


def test_an_empty_fleet_says_so(browser, tmp_path):
    c = collector_over(tmp_path, 3, "--faults=100% refuses")
    try:
        until(lambda: c.status()["store_ready"])
        page = browser.open(c, "#/")
        page.wait("document.querySelector('.banner[data-judged]')")
        assert "No verdict yet" in page.text() and "No run is stored yet." in page.text()
        assert page.axe() == []
        page.check()
    finally:
        c.close()


def test_a_fleet_without_nodes_and_of_one_node(browser, tmp_path):
    c = collector_over(tmp_path, 1)
    try:
        c.wait_known(1)
        c.wait_judged()
        page = browser.open(c, "#/")
        page.wait("document.querySelector('.banner[data-judged]') && document.body.innerText.includes('1 has a run of the last days, and 0 were judged')")
        replace_text(tmp_path / "list", "")
        c.process.send_signal(signal.SIGHUP)
        until(lambda: (s := c.status())["nodes"] == 0 or "believed if it says so again" in s["sources_problem"])
        c.process.send_signal(signal.SIGHUP)
        until(lambda: c.status()["nodes"] == 0)
        page.load("#/")
        page.wait("document.querySelector('#tiles')")
        assert "no source names any" in page.text() and "setting source" in page.text() and "0 have" not in page.text()
        assert page.axe() == []
        page.check()
    finally:
        c.close()


def test_a_wrong_clock_of_the_collector_is_shown(browser, tmp_path):
    c = collector_over(tmp_path, 4, "--faults=node[1-4] clock=7200")
    try:
        c.wait_known(4)
        c.wait_judged()
        said = until(lambda: c.status()["clock_problem"])
        page = browser.open(c, "#/")
        page.wait(f"[...document.querySelectorAll('.banner [role=alert]')].some((p) => p.textContent === {json.dumps(said)})")
        assert "All sources can be read" not in page.text() and "findings: none" in page.text()
        assert page.axe() == []
        page.check()
    finally:
        c.close()
