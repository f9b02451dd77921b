# SPDX-License-Identifier: Apache-2.0
"""Curves, heat maps, histories and comparisons of the page in a real Chromium: published results of LUMI, many ranks,
16 x 16 nodes, histories with a change, and what is empty, refused or named like markup."""
import json

import pytest

import large
from conftest import ROOT, Daemon, fake_bench_env, until

RESULTS = ROOT / "tests" / "data" / "results"
DRAM = "latency.dram.median_ns"
DAYS = 14


def cell(value, disturbed=0):
    names = ("median", "lo", "hi", "min", "p10", "p90", "p99", "mean")
    return {"n": 20, "disturbed": disturbed, "sd": 1, "overlap": None, "converged": 1,
            **{n: round(value * f, 3) for n, f in zip(names, (1, .99, 1.01, .9, .95, 1.05, 1.1, 1))}}


def nodes(count, value, disturbed=0):
    axis = {"unit": "", "values": list(range(count))}
    cells = [[cell(value(i, j), disturbed) for j in range(count)] for i in range(count)]
    return json.dumps({"spec": {"benchmark": "matrix"}, "matrices": [
        {"name": "idle", "quantity": "latency", "unit": "ns", "rows": {"name": "rank", **axis}, "cols": {"name": "target", **axis}, "cells": cells}]})


def distance(i, j):
    return 100 if i == j else 140 if i // 4 == j // 4 else 210


def store(daemon, text, kind="application/json", **about):
    about = "&".join(f"{k}={v}" for k, v in about.items())
    made = daemon.request("POST", f"/v1/imports?{about}", text, {"Content-Type": kind})
    assert made.status in (200, 201), made.body
    return made.json["id"]


def scaled(text, ranks, factor):
    document = json.loads(text)
    for rank in ranks:
        for c in document["matrices"][0]["cells"][rank]:
            c.update({n: c[n] * factor for n in ("median", "lo", "hi", "min", "p10", "p90", "p99")})
    return json.dumps(document)


@pytest.fixture(scope="module")
def full(numaprobed, tmp_path_factory):
    """A daemon with runs of every form. `ids` has their numbers."""
    d = Daemon(numaprobed, tmp_path_factory.mktemp("numaprobed"), fake_bench_env()).start()
    many = large.document(ranks=128, sizes=12, modes=("concurrent",))
    d.ids = {
        "own": d.run(size="1,2,4", cpus="0")["id"],
        "again": d.run(size="1,2,4", cpus="0", seed=2)["id"],
        "lumi": store(d, (RESULTS / "lumig-8ranks-concurrent.txt").read_text(), "text/plain", node="lumi", file="concurrent.txt"),
        "serial": store(d, (RESULTS / "lumig-8ranks-serial.txt").read_text(), "text/plain", node="lumi", file="serial.txt"),
        "many": store(d, many, node="many"), "slow": store(d, scaled(many, (17, 80), 1.4), node="many"),
        "nodes": store(d, nodes(16, distance), node="nodes"),
        "worse": store(d, nodes(16, lambda i, j: distance(i, j) * (1.18 if j == 3 else 1 + (i + j) % 3 / 1000)), node="nodes"),
        "even": store(d, nodes(2, lambda i, j: 100 + i + j), node="even"),
        "single": store(d, nodes(1, lambda i, j: 150.5), node="single"),
        "noisy": store(d, nodes(3, distance, disturbed=30), node="noisy"),
        "wide": store(d, large.document(ranks=1024, sizes=4, modes=("serial",)), node="wide"),
    }
    assert d.request("PUT", f"/v1/runs/{d.ids['many']}/label", {"label": "<img src=x onerror=fail()>"}, unix=True).status == 200
    for day in range(DAYS):
        factor = 1.2 if day >= DAYS / 2 else 1 + day % 2 / 1000
        text = "size (MB),0,1\n" + "".join(f"{1 << i},{v * factor},{v * factor + 1}\n" for i, v in enumerate([10] * 4 + [100] * 6))
        last = store(d, text, "text/csv", node="nights", date=f"2025-03-{day + 1:02}")
    d.ids["last"] = last
    until(lambda: not d.get("/v1/history").json["pending"])
    yield d
    assert d.stop() == 0, "\n".join(d.log)


def views(ids):
    return [f"#/runs/{ids[name]}" for name in ("own", "lumi", "many", "nodes", "even", "single", "noisy", "wide")] + [
        "#/history", "#/history/latency.largest.median_ns", f"#/history/{DRAM}?node=nights", "#/history?node=none", f"#/compare/{ids['own']}/{ids['again']}",
        f"#/compare/{ids['lumi']}/{ids['serial']}", f"#/compare/{ids['many']}/{ids['slow']}", f"#/compare/{ids['nodes']}/{ids['worse']}"]


@pytest.mark.parametrize("width, dark", [(390, False), (1280, True), (3840, False)])
def test_every_view_fits_and_has_no_violation(browser, full, width, dark):
    page = browser.open(full, "#/", width=width, dark=dark)
    for address in views(full.ids):
        page.go(address)
        assert page.evaluate("[...document.querySelectorAll('#view [role=alert]')].map((e) => e.textContent).join('')") == "", address
        assert page.overflow() == 0, address
        assert page.axe() == [], address
    page.check()


def readout(page):
    return page.evaluate("document.querySelector('.readout').textContent")


def box(page):
    return page.evaluate("(() => { const o = document.querySelector('.u-over'); o.scrollIntoView({block: 'center'}); "
                         "const b = o.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; })()")


def mouse(page, kind, x, y, clicks=0):
    page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **({"button": "left", "buttons": 1, "clickCount": clicks} if clicks else {}))


def lines_drawn(page):
    """Pixels of the canvas that have the colour of a line."""
    return page.evaluate("""(() => { const c = document.querySelector('.plot canvas'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        let n = 0; for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 200 && Math.max(d[i], d[i + 1], d[i + 2]) - Math.min(d[i], d[i + 1], d[i + 2]) > 60) n++;
        return n; })()""")


def test_a_curve_by_mouse(browser, full):
    page = browser.open(full, f"#/runs/{full.ids['lumi']}")
    assert page.evaluate("document.querySelectorAll('.legend button').length") == 8 and lines_drawn(page) > 2000
    invite = readout(page)
    x, y, w, h = box(page)
    mouse(page, "mouseMoved", x + w * .03, y + h * .93)  # the smallest size, where all ranks take 11 ns
    page.wait("document.querySelector('.readout').textContent.includes('working set 1M: 11.')")
    mouse(page, "mousePressed", x + w * .03, y + h * .93, 1)
    mouse(page, "mouseReleased", x + w * .03, y + h * .93, 1)
    page.wait("document.querySelectorAll('.legend [aria-pressed=true]').length === 1")
    mouse(page, "mouseMoved", x - 30, y)
    page.wait(f"document.querySelector('.readout').textContent === {json.dumps(invite)}")
    kept = lines_drawn(page)
    page.click(".controls button:not([hidden])")
    page.wait("!document.querySelector('.legend [aria-pressed=true]')")
    assert lines_drawn(page) > kept, "the other lines are faint while one is kept"
    # Zoom into a part, and back.
    x, y, w, h = box(page)
    mouse(page, "mousePressed", x + w * .5, y + h * .2, 1)
    mouse(page, "mouseMoved", x + w * .7, y + h * .5, 1)
    mouse(page, "mouseReleased", x + w * .7, y + h * .5, 1)
    page.wait("[...document.querySelectorAll('.controls button')].some((b) => b.textContent === 'Reset zoom' && !b.hidden)")
    for clicks in (1, 2):
        mouse(page, "mousePressed", x + w * .5, y + h * .5, clicks)
        mouse(page, "mouseReleased", x + w * .5, y + h * .5, clicks)
    page.wait("[...document.querySelectorAll('.controls button')].every((b) => b.textContent !== 'Reset zoom' || b.hidden)")
    page.check()


def test_a_curve_by_keyboard(browser, full):
    page = browser.open(full, f"#/runs/{full.ids['lumi']}")
    document = full.get(f"/v1/runs/{full.ids['lumi']}/matrix.json").json
    value = document["matrices"][0]["cells"][2][1]["median"]
    page.evaluate("document.querySelectorAll('.legend button')[2].focus()")
    page.key("Enter")
    assert page.evaluate("[...document.querySelectorAll('.legend button')].map((b) => b.getAttribute('aria-pressed') === 'true').indexOf(true)") == 2
    for _ in range(2):
        page.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowRight", code="ArrowRight", windowsVirtualKeyCode=39)
    assert readout(page).startswith(f"rank 2, node {document['ranks'][2]['mem_node']}, working set 2M: {value:.1f} ns")
    page.choose(".controls select", "24")  # from 16M
    page.wait("[...document.querySelectorAll('.controls button')].some((b) => b.textContent === 'Reset zoom' && !b.hidden)")
    before = page.evaluate("document.querySelector('.plot canvas').toDataURL()")
    page.evaluate("document.querySelector('.controls input[type=checkbox]').focus()")
    page.key("Space")
    assert page.evaluate("document.querySelector('.controls input').checked")
    page.wait(f"document.querySelector('.plot canvas').toDataURL() !== {json.dumps(before)}")
    page.evaluate("document.querySelector('.chart summary').focus()")
    page.key("Enter")
    page.wait("document.querySelectorAll('.chart details table tbody tr').length === 8")
    assert page.evaluate("document.querySelectorAll('.chart details table tbody tr')[2].cells[2].textContent") == f"{value:.2f}"
    page.check()


def test_marks_and_intervals(browser, full):
    page = browser.open(full, f"#/runs/{full.ids['own']}")
    run = full.get(f"/v1/runs/{full.ids['own']}").json
    assert run["topology_hash"] and f"v1/topologies/{run['topology_hash']}" in page.requests, "the caches of that machine"
    assert "Bands are the 95 % intervals" in page.text()
    page.check()


def test_many_ranks(browser, full):
    page = browser.open(full, f"#/runs/{full.ids['slow']}")
    texts = page.evaluate("[...document.querySelectorAll('.legend button')].map((b) => b.textContent)")
    assert texts[0] == "median of 128 ranks" and set(texts[1:]) == {"rank 17", "rank 80"}
    assert "128 ranks: the median is emphasized, and so are the 2 ranks furthest from it. The other 126 are faint." in page.text()
    page.choose(".controls label:last-of-type select", "rank 100")
    page.wait("[...document.querySelectorAll('.legend [aria-pressed=true]')].map((b) => b.textContent).join() === 'rank 100'")
    page.go(f"#/runs/{full.ids['wide']}")
    assert "1024 ranks: the median is emphasized, and no rank stands out. The other 1024 are faint." in page.text()
    page.click(".chart summary")
    page.wait("document.querySelectorAll('.chart details tbody tr').length === 256")
    assert "768 more rows are in the CSV" in page.text()
    page.check()


def test_heat_maps(browser, full):
    page = browser.open(full, f"#/runs/{full.ids['nodes']}")
    fills = "new Set([...document.querySelectorAll('.heat g rect')].map((r) => r.getAttribute('fill'))).size"
    assert page.evaluate("document.querySelectorAll('.heat g').length") == 256 and page.evaluate(fills) == 3
    assert page.evaluate("document.querySelector('.heat g title').textContent") == "rank 0, target 0: 100 ns"
    page.go(f"#/runs/{full.ids['even']}")
    assert page.evaluate(fills) == 1 and "All values are within 3 %: one colour." in page.text()
    page.go(f"#/runs/{full.ids['single']}")
    assert page.evaluate("document.querySelector('.single').textContent") == "151 ns rank 0, target 0"
    assert page.evaluate("document.querySelector('.heat')") is None
    page.go(f"#/runs/{full.ids['noisy']}")
    assert "Dashed: disturbed" in page.text() and page.evaluate("document.querySelectorAll('.heat rect[stroke-dasharray]').length") == 9
    page.check()


def test_a_history_with_a_change(browser, full):
    answer = full.get(f"/v1/history?metric={DRAM}&node=nights").json
    change, = answer["change_points"]
    page = browser.open(full, f"#/history/{DRAM}?node=nights")
    text = page.text()
    assert "One change" in text and f"+{change['percent']:.1f} %" in text and f"run {change['run']}" in text
    assert "What changed on the machine is not known." in text and lines_drawn(page) > 500
    assert page.evaluate("document.querySelector('.changes a[href^=\"#/compare/\"]').getAttribute('href')") == f"#/compare/{change['run_before']}/{change['run']}"
    x, y, w, h = box(page)
    mouse(page, "mouseMoved", x + w * .97, y + h * .1)
    page.wait(f"document.querySelector('.readout').textContent.includes('run {full.ids['last']}, 2025-03-{DAYS:02}')")
    mouse(page, "mousePressed", x + w * .97, y + h * .1, 1)
    mouse(page, "mouseReleased", x + w * .97, y + h * .1, 1)
    page.wait(f"location.hash === '#/runs/{full.ids['last']}'")
    page.evaluate("history.back()")
    page.wait("document.title.startsWith('History of') && document.querySelector('#metric')")
    page.choose("#metric", "latency.largest.median_ns")
    page.wait("document.title.startsWith('History of latency.largest.median_ns')")
    assert "node=nights" in page.evaluate("location.hash")
    page.check()


def test_a_history_says_what_it_leaves_out(browser, full):
    page = browser.open(full, f"#/history/{DRAM}?node=nights&limit=5")
    assert "The newest 5 values are shown." in page.text() and "A change is found from 5 runs on each side of it." in page.text()
    page.click(".note a")
    page.wait("document.querySelector('.changes')")
    page.check()


def test_histories_that_are_short(browser, full, make_daemon):
    page = browser.open(full, "#/history/latency.largest.median_ns")
    assert "A change is found from 5 runs on each side of it." in page.text() and lines_drawn(page) > 0
    empty = make_daemon(fake_bench_env())
    page = browser.open(empty, "#/history")
    assert "has metrics yet" in page.text()
    page.go("#/history/latency.dram.median_ns")
    assert "has this metric" in page.evaluate("document.querySelector('#view [role=alert]').textContent")
    page.go("#/history/no.such.metric")
    assert "is not a metric" in page.evaluate("document.querySelector('#view [role=alert]').textContent")
    run = store(empty, (RESULTS / "lumig-8ranks-serial.txt").read_text(), "text/plain", node="one", date="2025-01-01", file="serial.txt")
    until(lambda: not empty.get("/v1/history").json["pending"])
    page.go("#/history/latency.serial.dram.median_ns?node=one")
    page.click(".u-over")  # the only point is in the middle
    page.wait(f"location.hash === '#/runs/{run}'")
    page.check()


def test_a_comparison(browser, full):
    base, target = full.ids["nodes"], full.ids["worse"]
    answer = full.get(f"/v1/compare?base={base}&target={target}").json
    page = browser.open(full, f"#/compare/{base}/{target}")
    assert answer["verdict"] == "slower" and page.evaluate("document.querySelector('.headline').textContent") == answer["text"]
    assert page.evaluate("document.querySelector('.verdict h2').textContent") == f"Run {target} compared with run {base}: slower"
    strong = sum(c["verdict"] in ("slower", "faster") for c in answer["comparison"]["cells"])
    assert page.evaluate("document.querySelectorAll('.heat .strong').length") == strong == 16
    assert "memory of node 3" in page.evaluate("document.querySelector('table tbody').textContent")
    page.click(".verdict ~ p a:last-child")
    page.wait(f"document.title.startsWith('Run {target} and run {base}') && document.querySelector('.verdict.good')")
    page.check()


def test_a_comparison_of_many_ranks(browser, full):
    page = browser.open(full, f"#/compare/{full.ids['many']}/{full.ids['slow']}")
    text = page.text()
    assert "rank 17 +40" in text and "each tile is the largest difference of up to 2 × 1 cells" in text
    assert "<img src=x onerror=fail()>" in text and page.evaluate("document.querySelector('#view img')") is None
    assert {"rank 17", "rank 80"} <= set(page.evaluate("[...document.querySelectorAll('.legend button')].map((b) => b.textContent)"))
    page.check()


def test_comparisons_without_a_verdict(browser, full):
    a, b = full.ids["lumi"], full.ids["serial"]
    refused = full.get(f"/v1/compare?base={a}&target={b}")
    page = browser.open(full, f"#/compare/{a}/{b}")
    assert refused.status == 409 and refused.json["detail"] in page.evaluate("document.querySelector('.headline').textContent")
    assert "No verdict" in page.text() and "concurrent and serial: both runs" in page.text() and lines_drawn(page) > 1000
    page.go(f"#/compare/{a}/{full.ids['nodes']}")
    assert "No verdict" in page.text()
    page.go(f"#/compare/{a}/999999")
    assert "999999" in page.evaluate("document.querySelector('#view [role=alert]').textContent")
    page.go(f"#/compare/{a}/{a}")
    assert "all values are identical" in page.text()
    page.check()
