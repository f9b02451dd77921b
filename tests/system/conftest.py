# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the black-box tests: a real daemon on a free port, spoken to over real sockets.

NUMAPROBE_BUILD is the build directory. Nothing here sleeps: we wait for lines, sockets and events.
"""
import contextlib
import http.client
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAKE_BENCH = ROOT / "tests" / "fakes" / "fake_bench.py"
sys.path.insert(0, str(FAKE_BENCH.parent))
# What the tests' shell ignores, all programs here would ignore: below nohup, and in its background.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
SANITIZER = r"(Address|Leak|Thread|Memory)Sanitizer:|: runtime error: "
# Seconds. It ends what hangs and measures nothing: a sanitizer build beside twenty other programs takes a minute for what
# takes a second elsewhere.
PATIENCE = 120
FINAL = {"succeeded", "failed", "canceled", "interrupted"}


def build_dir():
    return pathlib.Path(os.environ.get("NUMAPROBE_BUILD", ROOT / "build" / "dev"))


def sanitizer():
    """What the build has of sanitizers: "thread", or nothing."""
    options = json.loads((build_dir() / "meson-info" / "intro-buildoptions.json").read_text(encoding="utf-8"))
    [value] = [o["value"] for o in options if o["name"] == "b_sanitize"]
    return "" if value == "none" else ",".join([value] if isinstance(value, str) else value)


def is_sanitized():
    """A sanitizer's runtime must be loaded first (before faketime), and keeps memory that was freed."""
    return bool(sanitizer())


def until(what, timeout=PATIENCE):
    """What what() gives once that is true. For what the kernel shows and tells nobody."""
    end = time.monotonic() + timeout
    while not (found := what()):
        assert time.monotonic() < end, "it did not happen in time"
        select.select([], [], [], 0.02)
    return found


def replace_text(path, text):
    """In one step: who reads the file meanwhile finds the text before or this one, and no part of either."""
    other = path.with_name(f"{path.name}.next")
    other.write_text(text)
    other.rename(path)


def without_fault(log):
    """Fails if a log holds what a sanitizer has found: a program whose children it is about ends as if nothing had been."""
    assert not re.search(SANITIZER, log), log


def supervisor_of(daemon):
    """The process that owns the daemon's run, or None."""
    for pid in pathlib.Path(f"/proc/{daemon.process.pid}/task/{daemon.process.pid}/children").read_text().split():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if "--supervise" in pathlib.Path(f"/proc/{pid}/cmdline").read_text():
                return int(pid)
    return None


@pytest.fixture(scope="session", autouse=True)
def open_to_ranks(tmp_path_factory):
    """Folders of tests lie where the account of the ranks can enter. Not in pytest's own place: each session that starts
    closes that again, and they run beside each other."""
    base = tempfile.mkdtemp(prefix="numaprobe-tests.", dir="/tmp")
    os.chmod(base, 0o711)
    tmp_path_factory._basetemp = pathlib.Path(base)  # what --basetemp sets
    yield
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(scope="session")
def numaprobed():
    program = build_dir() / "daemon" / "numaprobed"
    if not program.exists():
        pytest.fail(f"{program} is not built; set NUMAPROBE_BUILD")
    return program


def descendants(pid):
    """Of a process that ends meanwhile there are none."""
    found = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                for child in pathlib.Path(f"/proc/{pid}/task/{thread}/children").read_text().split():
                    found += [int(child), *descendants(int(child))]
    return found


def cpu_seconds(pid):
    """CPU time that a process has used."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(str(self.path))


class Daemon:
    """A numaprobed of our own; everything it writes is below `home`."""

    def __init__(self, program, home, env=None, args=()):
        self.program, self.home, self.args = program, pathlib.Path(home), list(args)
        # Tests run beside each other: what others do is in nobody's way but where that is the test.
        self.env = {"PATH": os.environ["PATH"], "HOME": str(home), "NUMAPROBED_ADMISSION": "ignore",
                    "NUMAPROBED_HOST_LOCK": "none", **(env or {})}
        self.process = self.port = None
        self.log, self.rest, self.looked_at = [], b"", 0  # lines, a part of one, and how many of them were looked at

    def start(self):
        self.home.chmod(0o755)
        self.process = subprocess.Popen(
            [str(self.program), "--listen=127.0.0.1:0", f"--state-dir={self.home}/state",
             f"--run-dir={self.home}/run", "--anonymous=admin", *self.args],
            env=self.env, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        os.set_blocking(self.process.stderr.fileno(), False)
        self.looked_at = len(self.log)
        line = self.wait_for_line(r"event=ready")
        self.port = int(re.search(r"listen=127\.0\.0\.1:(\d+)", line).group(1))
        self.socket = re.search(r"socket=(\S*)", line).group(1)
        return self

    def wait_for_line(self, pattern, timeout=PATIENCE):
        """The next log line like this, after the one that was waited for before; fails with the whole log."""
        end, at = time.monotonic() + timeout, self.looked_at
        while True:
            for at in range(at, len(self.log)):
                if re.search(pattern, self.log[at]):
                    self.looked_at = at + 1
                    return self.log[at]
            at = len(self.log)
            ready, _, _ = select.select([self.process.stderr], [], [], max(0, end - time.monotonic()))
            data = os.read(self.process.stderr.fileno(), 65536) if ready else b""
            if not data:
                break
            *lines, self.rest = (self.rest + data).split(b"\n")
            self.log += [line.decode(errors="replace") for line in lines]
        pytest.fail("no line %r in the daemon's log:\n%s" % (pattern, "\n".join(self.log)))

    def stop(self, signo=signal.SIGTERM):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signo)
            os.set_blocking(self.process.stderr.fileno(), True)
            _, err = self.process.communicate(timeout=PATIENCE)
            self.log += (self.rest + err).decode(errors="replace").splitlines()
            self.rest = b""
            without_fault("\n".join(self.log))  # of its supervisor too
        return self.process.returncode

    def request(self, method, path, body=None, headers=None, unix=False):
        connection = UnixConnection(self.socket) if unix else http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=PATIENCE)
        headers = dict(headers or {})
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        try:
            try:
                connection.request(method, path, body, headers)
            except BrokenPipeError:
                pass  # refused before the body: the answer is there to read
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def get(self, path, **headers):
        return self.request("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})

    def post(self, path, body=None, **headers):
        return self.request("POST", path, body,
                            {k.replace("_", "-"): v for k, v in headers.items()})

    def raw(self, data, unix=False):
        """Sends bytes as they are, returns (status, head, body) of the first answer."""
        s = socket.socket(socket.AF_UNIX) if unix else socket.socket()
        with s:
            s.settimeout(PATIENCE)
            s.connect(self.socket if unix else ("127.0.0.1", self.port))
            try:
                s.sendall(data)
            except (BrokenPipeError, ConnectionResetError):
                pass  # refused before we were done: the answer is there to read
            return read_answer(s)

    def run(self, **spec):
        """Asks for a run and waits until it is over, on the daemon's own long poll."""
        answer = self.post("/v1/runs", {"benchmark": "latency", **spec})
        assert answer.status == 202, answer.body
        return self.wait(answer.json["id"])

    def wait(self, run_id):
        while True:
            run = self.get(f"/v1/runs/{run_id}?wait=60").json
            if run["state"] in FINAL:
                return run

    def events(self, run_id, **headers):
        """Yields (event, id, run) until the stream ends."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("GET", f"/v1/runs/{run_id}/events",
                           headers={k.replace("_", "-"): v for k, v in headers.items()})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        assert answer.getheader("X-Accel-Buffering") == "no", "a proxy holds no event back"
        fields = {}
        for line in answer:
            line = line.decode().rstrip("\n")
            if not line and "data" in fields:
                yield fields["event"], int(fields["id"]), json.loads(fields["data"])
                fields = {}
            elif line and not line.startswith(":"):
                name, _, value = line.partition(": ")
                fields[name] = value
        connection.close()


def read_answer(s):
    data = b""
    try:
        while b"\r\n\r\n" not in data:
            more = s.recv(65536)
            if not more:
                return None, data, b""
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        while length and len(body) < int(length.group(1)):
            more = s.recv(65536)
            if not more:
                break
            body += more
    except ConnectionResetError:
        return None, data, b""
    return int(head.split()[1]), head, body


def fake_bench_env():
    return {"NUMAPROBE_BENCH": str(FAKE_BENCH), "NUMAPROBE_PYTHON": sys.executable}


class Bench:
    """A fake bench whose behaviour changes from run to run."""

    def __init__(self, folder):
        folder.chmod(0o755)
        self.path = folder / "fake_bench"
        shutil.copy(FAKE_BENCH, self.path)
        self.path.chmod(0o755)
        # Hundreds of runs of which the numbers count, not how they were started.
        self.env = {"NUMAPROBE_BENCH": str(self.path), "NUMAPROBE_PYTHON": sys.executable,
                    "NUMAPROBE_MPIRUN": str(FAKE_BENCH.with_name("fake_mpirun.py"))}

    def behave(self, text):
        file = self.path.with_suffix(".behaviour")
        file.write_text(text)
        file.chmod(0o644)


@pytest.fixture
def make_daemon(numaprobed, tmp_path_factory):
    """make_daemon(env={...}, args=[...]) starts one; all are stopped at the end."""
    started = []

    def make(env=None, args=(), home=None, program=numaprobed):
        home = home or tmp_path_factory.mktemp("numaprobed")
        daemon = Daemon(program, home, env, args)
        started.append(daemon)
        return daemon.start()

    yield make
    for daemon in started:
        daemon.stop()


@pytest.fixture(scope="module")
def daemon(numaprobed, tmp_path_factory):
    """One daemon for a whole file, with the fake bench, seeing this machine."""
    d = Daemon(numaprobed, tmp_path_factory.mktemp("numaprobed"), fake_bench_env()).start()
    yield d
    assert d.stop() == 0, "\n".join(d.log)


@pytest.fixture
def needs_fake_bench():
    if not FAKE_BENCH.exists():
        pytest.skip("tests/fakes/fake_bench.py is not there")


@pytest.fixture(scope="module")
def chromium():
    """One for a whole file."""
    import dashboard
    if not dashboard.CHROMIUM:
        pytest.skip("there is no chromium to try it with")
    started = dashboard.Browser()
    yield started
    started.close()


@pytest.fixture
def browser(chromium):
    """See dashboard.py. What a test opened is closed after it: fifty tabs that request and draw slow the machine down."""
    yield chromium
    chromium.close_pages()
