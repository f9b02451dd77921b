# SPDX-License-Identifier: Apache-2.0
"""A real Chromium on the daemon's page, by the DevTools protocol over a pipe: the standard library alone.

    def test_something(browser, daemon):                # the fixture `browser` is in conftest.py: one per file,
                                                    # whose tabs are closed after each test
        page = browser.open(daemon, "#/runs/1")         # a new tab, when its view is shown; width=, height=, dark=, token=,
                                                    # before= a script that runs first
        page.go("#/runs")                               # another view, as a link would; waits until it is shown
        page.wait("document.querySelector('figure.chart .plot')")   # until the expression is true; its value
        page.evaluate("document.title")                 # the value of an expression, or of its promise
        page.click("button[type=submit]")               # the mouse, at its middle
        page.fill("input[name=size]", "1-4")            # selects what is in it and types
        page.key("Tab")                                 # one key: Tab, Shift+Tab, Enter, Escape, ArrowDown, Space, a letter
        page.resize(390, 800), page.dark(True)          # the window, the scheme of colours
        page.text()                                     # what a reader sees
        page.axe()                                      # ["rule: element", ...]: violations; skips without build/axe
        page.overflow()                                 # pixels by which the page is wider than its window
        page.unsigned()                                 # [element, ...] that scroll sideways, and nothing says so
        page.rows_of_tabs()                             # rows that the navigation takes
        page.screenshot(path)                           # the whole page as PNG
        page.requests                                   # {address: bytes over the wire}
        page.check()                                    # fails on an exception, or a violation of the page's policy
"""
import base64
import ctypes
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import pytest

from conftest import PATIENCE, ROOT

CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
AXE = next(iter(sorted((ROOT / "build" / "axe").glob("axe-*.min.js"))), None)
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "Space": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
CLICKS_MOST = 3
PR_SET_PDEATHSIG = 1  # of the thread that started it: the main one
prctl = ctypes.CDLL(None).prctl
SHOWN = "document.querySelector('#view > div') && document.querySelector('#view > div').dataset.shown"


class Browser:
    """One Chromium. Pages are tabs of it, each with a profile of its own."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="numaprobe-chromium.", dir="/tmp")
        to_read, self.out = os.pipe()
        self.inbox, to_write = os.pipe()
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (to_read, to_write)]

        def give():  # Chromium reads at 3 and writes at 4, and never outlives the tests: not those that a time limit ends either
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [CHROMIUM, "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--hide-scrollbars", "--force-prefers-reduced-motion", f"--user-data-dir={self.profile}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False,
            preexec_fn=give, start_new_session=True)
        for fd in (to_read, to_write, *high):
            os.close(fd)
        self.changed, self.replies, self.pages, self.number, self.gone = threading.Condition(), {}, {}, 0, False
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        self.reader.join(PATIENCE)
        os.close(self.out)
        os.close(self.inbox)
        shutil.rmtree(self.profile, ignore_errors=True)

    def _read(self):
        data = b""
        while piece := os.read(self.inbox, 1 << 20):
            *messages, data = (data + piece).split(b"\0")
            with self.changed:
                for message in map(json.loads, messages):
                    if "id" in message:
                        self.replies[message["id"]] = message
                    elif message.get("sessionId") in self.pages:
                        self.pages[message["sessionId"]]._event(message["method"], message["params"])
                self.changed.notify_all()
        with self.changed:
            self.gone = True
            self.changed.notify_all()

    def call(self, method, session=None, timeout=PATIENCE, **params):
        """The result of a method of the protocol."""
        with self.changed:
            self.number += 1
            number = self.number
            message = {"id": number, "method": method, "params": params, **({"sessionId": session} if session else {})}
            os.write(self.out, json.dumps(message).encode() + b"\0")
            if not self.changed.wait_for(lambda: number in self.replies or self.gone, timeout):
                raise TimeoutError(f"{method} within {timeout} s")
            assert not self.gone, "Chromium has ended"
            reply = self.replies.pop(number)
        assert "error" not in reply, f"{method}: {reply['error']}"
        return reply["result"]

    def open(self, daemon, address="#/", width=1280, height=900, dark=False, token=None, before=None):
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self.pages[session] = Page(self, session, context, f"http://127.0.0.1:{daemon.port}/")
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(domain + ".enable")
        page.resize(width, height)
        page.dark(dark)
        if before:
            page.call("Page.addScriptToEvaluateOnNewDocument", source=before)
        page.load(address)
        if token:
            page.give_token(token)
        return page

    def close_pages(self):
        """Pages that stay open request the daemon's state, and are drawn, for as long as the browser lives."""
        for page in list(self.pages.values()):
            self.call("Target.disposeBrowserContext", browserContextId=page.context)
            with self.changed:
                del self.pages[page.session]


class Page:
    def __init__(self, browser, session, context, base):
        self.browser, self.session, self.context, self.base = browser, session, context, base
        self.requests, self.errors, self._addresses = {}, [], {}

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def _event(self, method, params):
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Log.entryAdded" and params["entry"]["source"] == "security":
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self._addresses[params["requestId"]] = params["request"]["url"].removeprefix(self.base)
        elif method == "Network.loadingFinished" and params["requestId"] in self._addresses:
            self.requests[self._addresses[params["requestId"]]] = int(params["encodedDataLength"])

    def load(self, address="#/"):
        """The page from the beginning, as a link from elsewhere."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=self.base + address)
        self.wait(SHOWN)

    def go(self, address):
        # The frame listens to the same event, and before us: the view is another one by then.
        self.evaluate(f"""void (window.gone = false, addEventListener("hashchange", () => {{ window.gone = true; }}, {{once: true}}),
            location.hash = {json.dumps(address)})""")
        self.wait(f"window.gone && {SHOWN}")

    def evaluate(self, expression, timeout=PATIENCE):
        reply = self.browser.call("Runtime.evaluate", self.session, timeout, expression=expression, awaitPromise=True,
                                  returnByValue=True, userGesture=True)
        assert "exceptionDetails" not in reply, reply["exceptionDetails"].get("exception", reply)
        return reply["result"].get("value")

    def wait(self, expression, timeout=PATIENCE):
        """Until the expression is true. One that fails is not true yet; a page that is replaced begins again."""
        look = """new Promise((done) => { const look = () => { let value; try { value = (%s); } catch { }
            if (value) done(value instanceof Node ? true : value); else setTimeout(look, 20); }; look(); })""" % expression
        end = time.monotonic() + timeout
        while (left := end - time.monotonic()) > 0:
            try:
                reply = self.browser.call("Runtime.evaluate", self.session, left, expression=look, awaitPromise=True,
                                          returnByValue=True)
            except TimeoutError:
                break
            except AssertionError as error:
                if "context" not in str(error) and "navigated" not in str(error):
                    raise
                continue
            assert "exceptionDetails" not in reply, reply
            return reply["result"].get("value")
        seen = self.evaluate("document.body.innerText")
        pytest.fail(f"not within {timeout} s: {expression}\nerrors: {self.errors}\nthe page:\n{seen}")

    def click(self, selector):
        """What is drawn again meanwhile may move: a click that met something else is repeated."""
        for _ in range(CLICKS_MOST):
            self.wait(f"document.querySelector({json.dumps(selector)})")
            box = self.evaluate(f"""(() => {{ const e = document.querySelector({json.dumps(selector)});
                window.met = false; e.addEventListener("click", () => {{ window.met = true; }}, {{once: true, capture: true}});
                e.scrollIntoView({{block: "center"}}); const b = e.getBoundingClientRect();
                return [b.x + b.width / 2, b.y + b.height / 2]; }})()""")
            for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1],
                          **({} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}))
            try:
                if self.evaluate("window.met !== false"):  # another page has no such variable
                    return
            except AssertionError as error:  # it is being loaded
                if "context" not in str(error) and "navigated" not in str(error):
                    raise
                return

    def fill(self, selector, text):
        self.wait(f"document.querySelector({json.dumps(selector)})")
        self.evaluate(f"document.querySelector({json.dumps(selector)}).focus(), document.querySelector({json.dumps(selector)}).select()")
        self.call("Input.insertText", text=text)

    def choose(self, selector, value):
        """A choice of a select element."""
        self.evaluate(f"""(() => {{ const e = document.querySelector({json.dumps(selector)});
            e.value = {json.dumps(value)}; e.dispatchEvent(new Event("change", {{bubbles: true}})); }})()""")

    def key(self, name):
        shift, name = name.startswith("Shift+"), name.removeprefix("Shift+")
        text = {"Enter": "\r", "Space": " "}.get(name, name if len(name) == 1 else None)
        about = {"key": " " if name == "Space" else name, "code": name, "modifiers": 8 if shift else 0,
                 "windowsVirtualKeyCode": KEYS.get(name, ord(name[0].upper()))}
        self.call("Input.dispatchKeyEvent", type="keyDown", **about, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    def give_token(self, token):
        """As a reader does when the page requests it."""
        self.wait("!document.getElementById('token-form').hidden")
        self.fill("#token", token)
        before = int(self.evaluate(SHOWN) or 0)
        self.key("Enter")
        self.wait(f"Number({SHOWN}) > {before}")

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def dark(self, on):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if on else "light"}])

    def text(self):
        return self.evaluate("document.body.innerText")

    def focused(self):
        """The element with the focus, as a selector of its own."""
        return self.evaluate("(() => { const e = document.activeElement; return e.id ? '#' + e.id : e.localName + "
                             "(e.getAttribute('href') ? `[href='${e.getAttribute('href')}']` : e.name ? `[name='${e.name}']` : ''); })()")

    def overflow(self):
        return max(0, self.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))

    def unsigned(self):
        return self.evaluate("""[...document.querySelectorAll('*')].filter((e) => { const s = getComputedStyle(e);
            return e.scrollWidth > e.clientWidth && /auto|scroll/.test(s.overflowX) && !/local/.test(s.backgroundAttachment); })
            .map((e) => e.outerHTML.slice(0, 120))""")

    def rows_of_tabs(self):
        return self.evaluate("new Set([...document.querySelectorAll('nav a')].map((a) => a.getBoundingClientRect().top)).size")

    def axe(self):
        if not AXE:
            pytest.skip("tools/axe.sh could not get axe-core")
        if not self.evaluate("typeof axe === 'object'"):
            self.evaluate(AXE.read_text(encoding="utf-8") + "; 0")
        found = json.loads(self.evaluate("axe.run(document, {resultTypes: ['violations']}).then((r) => JSON.stringify(r.violations))"))
        return [f"{v['id']}: {node['html'][:120]} {node.get('failureSummary', '')}" for v in found for node in v["nodes"]]

    def screenshot(self, path):
        size = self.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": size[0], "height": min(size[1], 16000), "scale": 1}
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        pathlib.Path(path).write_bytes(base64.b64decode(shot["data"]))

    def check(self):
        assert not self.errors, self.errors
        wrong = [line for line in self.text().splitlines() if "[object " in line or line.strip() in ("null", "undefined", "false", "NaN")]
        assert not wrong, wrong
