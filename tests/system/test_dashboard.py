# SPDX-License-Identifier: Apache-2.0
"""The daemon's page in a real Chromium: every view, with and without runs, by mouse, keyboard and token."""
import pytest

from conftest import fake_bench_env

VIEWS = ["#/", "#/topology", "#/runs", "#/runs/1", "#/start"]


@pytest.fixture(scope="module")
def ran(numaprobed, tmp_path_factory):
    """A daemon with one finished run."""
    from conftest import Daemon
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
    assert page.overflow() == 0
    page.check()


def test_back_returns_to_the_view_before(browser, ran):
    page = browser.open(ran, "#/")
    page.go("#/runs")
    assert page.evaluate("document.title").startswith("Runs · ")
    page.click("#runs a")
    page.wait("document.querySelector('figure .picture')")
    assert page.evaluate("location.hash") == "#/runs/1"
    assert page.evaluate("document.title").startswith("Run 1: succeeded · ")
    assert page.focused() == "#title" and page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.evaluate("history.back()")
    page.wait("document.title.startsWith('Runs · ') && document.querySelector('#runs table')")
    assert page.evaluate("document.querySelector('nav [aria-current]').textContent") == "Runs"
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
    page.wait("document.querySelector('figure .picture')")
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
    page.wait("document.querySelector('figure .picture')")


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
