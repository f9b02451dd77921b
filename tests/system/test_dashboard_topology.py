# SPDX-License-Identifier: Apache-2.0
"""The page's view of the machine, in a real Chromium: recorded and large machines, small and large windows."""
import pytest

import node_runs

DRAWN = "document.querySelector('.picture') && document.querySelector('.picture').shadowRoot.querySelectorAll('.card').length"
LARGE = "pack:2 group:4 [numa(memory=68719476736)] l3:4(size=33554432) core:16 pu:1"
SIXTEEN = "pack:16 [numa(memory=68719476736)] l3:1(size=40370176) core:28 pu:1"


def measured(daemon):
    """The address of the view with the values of two imported runs."""
    runs = [node_runs.imported(daemon, make(daemon)) for make in (node_runs.matrix_run, node_runs.bandwidth_run)]
    return "#/topology?measured=" + ",".join(map(str, runs))


def good(page):
    assert page.overflow() == 0 and page.axe() == []
    page.check()


@pytest.mark.parametrize("name, cards", [("16amd64-8n2c", 8), ("fakememinitiators-1np2c+1npp+gi", 11),
                                         ("64amd64-4s2n4ca2co", 8)])
def test_recorded_machines(browser, make_daemon, tmp_path, name, cards):
    daemon = node_runs.recorded(make_daemon, tmp_path, name)
    page = browser.open(daemon, measured(daemon))
    assert page.wait(DRAWN) == cards
    text = page.text()
    assert "Measured by run 1 (matrix, 2026-11-20 10:00 UTC), run 2 (bandwidth" in text
    assert page.evaluate("document.querySelector('.picture').shadowRoot.querySelectorAll('title').length") > 16
    page.evaluate("void document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    topology = daemon.get("/v1/topology").json
    i, j = node_runs.initiators(topology)[0], node_runs.targets(topology)[0]
    first = page.evaluate("document.querySelector('details table tbody td').textContent")
    assert float(first) == pytest.approx(node_runs.latency(i, j), rel=0.01)
    good(page)


@pytest.mark.parametrize("machine, cards", [(LARGE, 8), (SIXTEEN, 16)])
@pytest.mark.parametrize("width, dark", [(390, False), (1280, True), (3840, False)])
def test_large_machines(browser, make_daemon, machine, cards, width, dark):
    daemon = make_daemon(env={"HWLOC_SYNTHETIC": machine})
    page = browser.open(daemon, measured(daemon), width=width, dark=dark)
    assert page.wait(DRAWN) == cards
    # Texts keep their size: the daemon draws for the width of the window.
    scale = page.evaluate("(() => { const s = document.querySelector('.picture').shadowRoot.querySelector('svg');"
                          " return s.getBoundingClientRect().width / s.viewBox.baseVal.width; })()")
    assert scale > 0.7, scale
    good(page)


def test_the_window_changes(browser, make_daemon, tmp_path):
    daemon = node_runs.recorded(make_daemon, tmp_path, "16amd64-8n2c")
    page = browser.open(daemon, measured(daemon))
    wide = page.wait("document.querySelector('.picture').shadowRoot.querySelector('svg').viewBox.baseVal.width")
    page.resize(390, 800)
    page.wait("document.querySelector('.picture').shadowRoot.querySelector('svg').viewBox.baseVal.width < " + str(wide / 2))
    page.check()


def test_without_values_and_with_wrong_ones(browser, make_daemon, tmp_path):
    daemon = node_runs.recorded(make_daemon, tmp_path, "16amd64-8n2c")
    page = browser.open(daemon, "#/topology")
    assert page.wait(DRAWN) == 8 and "Nothing is measured between the nodes yet" in page.text()
    good(page)
    page.go("#/topology?measured=99")
    assert "there is no run 99" in page.text()
