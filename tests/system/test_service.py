# SPDX-License-Identifier: Apache-2.0
"""The daemon as a service: we play systemd. A datagram socket hears what it says, sockets are handed
over, the configuration is read again. Everything waits for a message, an answer or a log line."""
import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from conftest import FAKE_BENCH, PATIENCE, ROOT, Daemon, UnixConnection, descendants, fake_bench_env, until
from test_fleetd import FLEETD

# Hands sockets over as systemd does: numbers from 3 on, and the number of the process that they are for.
HAND_OVER = """
import os, sys
fds = [int(n) for n in sys.argv[1].split(",")]
high = [os.dup2(fd, 100 + i, inheritable=False) for i, fd in enumerate(fds)]
for fd in fds:
    os.close(fd)
for i, fd in enumerate(high):
    os.dup2(fd, 3 + i, inheritable=True)
os.environ.update(LISTEN_FDS=str(len(fds)), LISTEN_PID=sys.argv[2] if sys.argv[2] != "0" else str(os.getpid()))
os.execv(sys.argv[3], sys.argv[3:])
"""


class Systemd:
    """The socket that a service reports to."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.name = "@" + address[1:] if address[0] == "\0" else address
        self.heard = []

    def wait_for(self, line, timeout=PATIENCE):
        """Waits for a message that has this line; returns its lines. What came before is in `heard`."""
        end = time.monotonic() + timeout
        while True:
            self.socket.settimeout(max(end - time.monotonic(), 0.001))
            try:
                said = self.socket.recv(4096).decode()
            except TimeoutError:
                pytest.fail(f"{line!r} was not said; heard {self.heard}")
            self.heard.append(said)
            if re.search(f"^{line}", said, re.M):
                return said.splitlines()

    def rest(self):
        """What else was said, once nobody is left to say more."""
        self.socket.setblocking(False)
        try:
            while True:
                self.heard.append(self.socket.recv(4096).decode())
        except BlockingIOError:
            return self.heard


@pytest.fixture
def systemd(tmp_path):
    s = Systemd(str(tmp_path / "notify"))
    yield s
    s.socket.close()


@pytest.fixture
def service(numaprobed, tmp_path, systemd):
    """service(env, args, sockets) starts a daemon that was told of `systemd`."""
    started = []

    def start(env=None, args=(), sockets=(), pid=0, wait=True):
        d = Daemon(numaprobed, tmp_path, {"NOTIFY_SOCKET": systemd.name, **fake_bench_env(), **(env or {})}, args)
        started.append(d)
        if not sockets:
            return d.start() if wait else d
        d.home.chmod(0o755)
        d.process = subprocess.Popen(
            [sys.executable, "-c", HAND_OVER, ",".join(str(s.fileno()) for s in sockets), str(pid), str(numaprobed),
             f"--state-dir={d.home}/state", f"--run-dir={d.home}/run", *args],
            env=d.env, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, pass_fds=[s.fileno() for s in sockets])
        if wait:
            os.set_blocking(d.process.stderr.fileno(), False)
            line = d.wait_for_line("event=ready")
            d.socket = re.search(r"socket=(\S*)", line).group(1)
            port = re.search(r"listen=127\.0\.0\.1:(\d+)", line)
            d.port = int(port.group(1)) if port else None
        return d

    yield start
    for d in started:
        d.stop()


def tcp_socket(address="127.0.0.1"):
    s = socket.create_server((address, 0), backlog=16)
    return s


def unix_socket(path):
    s = socket.socket(socket.AF_UNIX)
    s.bind(str(path))
    s.listen(16)
    return s


# --- telling

def test_ready_is_said_when_it_serves(service, systemd):
    d = service(wait=False)
    d.home.chmod(0o755)
    d.process = subprocess.Popen([str(d.program), "--listen=", f"--socket={d.home}/s", f"--state-dir={d.home}/state",
                                  f"--run-dir={d.home}/run"], env=d.env, stderr=subprocess.PIPE)
    systemd.wait_for("READY=1")
    connection = UnixConnection(d.home / "s")
    connection.request("GET", "/healthz")
    assert connection.getresponse().status == 200
    assert "STATUS=Ready" in "\n".join(systemd.heard)
    d.process.send_signal(signal.SIGTERM)
    assert "STATUS=Stopping" in systemd.wait_for("STOPPING=1")
    d.process.communicate(timeout=PATIENCE)
    assert not [m for m in systemd.rest() if "WATCHDOG" in m], "nobody asked for signs of life"


def test_abstract_socket(service, tmp_path):
    abstract = Systemd(f"\0numaprobe-test-{os.getpid()}")
    service(env={"NOTIFY_SOCKET": abstract.name})
    abstract.wait_for("READY=1")
    abstract.socket.close()


def test_status_follows_the_runs(service, systemd):
    d = service()
    run = d.run(size="256K")
    systemd.wait_for(f"STATUS=Run {run['id']} is running")
    systemd.wait_for("STATUS=Ready")


def test_without_systemd_nothing_is_said(make_daemon):
    d = make_daemon(fake_bench_env())
    assert d.stop() == 0
    assert not [line for line in d.log if "event=notify" in line]


@pytest.mark.parametrize("name, value", [
    ("NOTIFY_SOCKET", "relative/path"), ("NOTIFY_SOCKET", "/" + "x" * 200), ("WATCHDOG_USEC", "soon"),
    ("WATCHDOG_USEC", "99999999999999"), ("LISTEN_FDS", "-1"), ("LISTEN_FDS", "9"), ("LISTEN_PID", "me")])
def test_wrong_variables_are_named(service, name, value):
    d = service(env={name: value}, wait=False)
    with pytest.raises(pytest.fail.Exception):
        d.start()
    assert d.process.wait(PATIENCE) == 2
    assert any(f"member={name}" in line and "event=failed" in line for line in d.log), d.log


# --- watchdog

def test_watchdog_beats_at_half_the_time(service, systemd):
    d = service(env={"WATCHDOG_USEC": "400000"})
    systemd.wait_for("READY=1")
    systemd.wait_for("WATCHDOG=1")
    begun = time.monotonic()  # before what is due is read: the ten come later
    systemd.rest()
    for _ in range(10):
        systemd.wait_for("WATCHDOG=1")
    assert time.monotonic() - begun > 1, "ten beats of 200 ms, some of which may be due"
    d.process.send_signal(signal.SIGSTOP)
    until(lambda: re.search(r"\) T ", pathlib.Path(f"/proc/{d.process.pid}/stat").read_text()))
    systemd.rest()
    systemd.socket.settimeout(0.5)
    with pytest.raises(TimeoutError):
        systemd.socket.recv(4096)  # a daemon that hangs says nothing
    d.process.send_signal(signal.SIGCONT)
    systemd.wait_for("WATCHDOG=1")


@pytest.mark.parametrize("env", [{"WATCHDOG_USEC": "200000", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "0"}, {}])
def test_no_watchdog_of_others(service, systemd, env):
    d = service(env=env)
    systemd.wait_for("READY=1")
    systemd.socket.settimeout(0.5)
    with pytest.raises(TimeoutError):
        systemd.socket.recv(4096)
    assert d.stop() == 0


# --- sockets handed over

def test_both_kinds_of_sockets(service, tmp_path):
    tcp, unix = tcp_socket(), unix_socket(tmp_path / "handed")
    early = socket.create_connection(tcp.getsockname())
    early.settimeout(PATIENCE)
    early.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    for _ in range(2):  # the second finds the sockets as the first left them
        d = service(sockets=[tcp, unix])
        assert d.port == tcp.getsockname()[1] and d.socket == str(tmp_path / "handed")
        assert d.get("/v1/node").status == 200
        assert d.request("GET", "/v1/node", unix=True).status == 200
        assert not (tmp_path / "run" / "numaprobed.sock").exists()
        if early:
            assert early.recv(4096).startswith(b"HTTP/1.1 200")
            early = early.close()
        assert d.stop() == 0, d.log
        assert (tmp_path / "handed").exists(), "the path is systemd's"
    tcp.close()
    unix.close()


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_the_other_kind_is_the_configurations(service, tmp_path, kind):
    s = tcp_socket() if kind == "tcp" else unix_socket(tmp_path / "handed")
    d = service(sockets=[s], args=["--listen=127.0.0.1:0"])
    assert (d.port == s.getsockname()[1]) == (kind == "tcp")
    assert (d.socket == str(tmp_path / "handed")) == (kind == "unix")
    assert d.get("/healthz").status == d.request("GET", "/healthz", unix=True).status == 200
    s.close()


def test_what_sockets_replace_may_be_anything(service, tmp_path):
    tcp, unix = tcp_socket(), unix_socket(tmp_path / "handed")
    d = service(sockets=[tcp, unix], args=["--listen=0.0.0.0:1", "--socket=/nonexistent/below/s"])
    assert d.port == tcp.getsockname()[1] and d.request("GET", "/healthz", unix=True).status == 200
    assert d.stop() == 0, d.log
    tcp.close()
    unix.close()
    with tcp_socket() as s:
        d = service(sockets=[s], args=["--socket=/nonexistent/below/s"], wait=False)
        _, said = d.process.communicate(timeout=PATIENCE)
        assert d.process.returncode == 2 and b"socket: there can be no socket in /nonexistent/below" in said, said


def test_sockets_meant_for_another(service):
    with tcp_socket() as s:
        d = service(sockets=[s], pid=1, args=["--listen=127.0.0.1:0"])
        assert d.port != s.getsockname()[1]


def not_listening():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    return s


@pytest.mark.parametrize("make, words", [
    (not_listening, "not a listening stream socket"),
    (lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), "not a listening stream socket"),
    (lambda: open("/dev/null"), "not a listening stream socket"),
    (lambda: tcp_socket("0.0.0.0"), "0.0.0.0 is not a loopback address")])
def test_sockets_that_cannot_be_served(service, make, words):
    with make() as s:
        d = service(sockets=[s], wait=False)
        _, said = d.process.communicate(timeout=PATIENCE)
        assert d.process.returncode == 2 and words in said.decode(), said


def test_children_get_none_of_it(service, systemd, tmp_path):
    """Ranks must hold no socket of ours open, and report to nobody in our name."""
    hang = tmp_path / "fake_bench-hang"
    hang.symlink_to(FAKE_BENCH)
    unix = unix_socket(tmp_path / "handed")
    mine = os.readlink(f"/proc/self/fd/{unix.fileno()}")
    d = service(sockets=[unix], args=["--listen=127.0.0.1:0", "--anonymous=run"],
                env={"NUMAPROBE_BENCH": str(hang), "WATCHDOG_USEC": "60000000"})
    assert mine in open_files(d.process.pid)
    assert d.post("/v1/runs", {"benchmark": "latency", "size": "256K"}).status == 202
    assert next(e for e, _, _ in d.events(1) if e == "progress")  # the ranks are there
    children = descendants(d.process.pid)
    assert len(children) >= 3  # supervisor, mpirun, a rank
    looked_at = 0
    for pid in children:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has finished meanwhile
            assert mine not in open_files(pid)
            with open(f"/proc/{pid}/environ", "rb") as f:
                assert not re.search(rb"NOTIFY_|WATCHDOG_|LISTEN_", f.read())
            looked_at += 1
    assert looked_at >= 3
    d.post("/v1/runs/1/cancel")
    unix.close()


def open_files(pid):
    found = set()
    for n in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            found.add(os.readlink(f"/proc/{pid}/fd/{n}"))
    return found


# --- the configuration, read again

@pytest.fixture
def configured(service, tmp_path):
    """A daemon with a configuration file; reload(text) writes it and returns what was logged then."""
    file = tmp_path / "numaprobed.conf"

    def start(text, args=(), **more):
        file.write_text(text)
        d = service(args=[f"--config={file}", *args], **more)

        def reload(text, until):
            file.write_text(text)
            d.log.clear()
            d.process.send_signal(signal.SIGHUP)
            d.wait_for_line(until)
            return "\n".join(d.log)

        d.reload = reload
        return d

    return start


READ_AGAIN = 'event=reload text="the configuration was read again"'


def test_reload_of_what_is_live(configured, systemd):
    d = configured("keep_runs = 7\nlog_level = info\n")
    assert d.get("/v1/storage").json["retention"]["keep_runs"] == 7
    d.reload("keep-runs = 9\nkeep_days = 30\nkeep_bytes = 1G\nlog_level = debug\n", READ_AGAIN)
    limits = d.get("/v1/storage").json["retention"]
    assert (limits["keep_runs"], limits["keep_days"], limits["keep_bytes"]) == (9, 30, 1 << 30)
    d.wait_for_line("event=request .*path=/v1/storage")  # only logged at this level
    (at,) = [line for line in systemd.wait_for("RELOADING=1") if line.startswith("MONOTONIC_USEC=")]
    assert abs(int(at.split("=")[1]) - time.monotonic_ns() // 1000) < 60e6
    systemd.wait_for("READY=1")
    assert "STATUS=Ready" in systemd.heard[-2]


def test_a_reload_is_not_dated_before_its_request(configured, systemd):
    """With Type=notify-reload systemd ignores one that is, and most come in the millisecond of their request."""
    d = configured("keep_runs = 7\n")
    for _ in range(20):
        asked = time.monotonic_ns() // 1000
        d.process.send_signal(signal.SIGHUP)
        (at,) = [line for line in systemd.wait_for("RELOADING=1") if line.startswith("MONOTONIC_USEC=")]
        assert asked <= int(at.split("=")[1]) <= time.monotonic_ns() // 1000
        systemd.wait_for("READY=1")


def test_a_reload_during_the_start_waits_for_its_end(numaprobed, tmp_path_factory):
    """The upgrade of a large database takes a while, and the signal would end the daemon in it."""
    d = Daemon(numaprobed, tmp_path_factory.mktemp("numaprobed"), fake_bench_env())

    def reload():
        until((d.home / "state").exists)
        d.process.send_signal(signal.SIGHUP)
    reloading = threading.Thread(target=reload, daemon=True)
    reloading.start()
    try:
        d.start()
        d.wait_for_line(READ_AGAIN)
    finally:
        reloading.join(PATIENCE)
        assert d.stop() == 0


def test_reload_says_what_needs_a_restart(configured, systemd):
    d = configured("log_level = warn\n", args=["--log-level=info"])
    said = d.reload("socket = none\nlisten = 127.0.0.1:1\njob_user = nobody\nkeep_runs = 3\n", READ_AGAIN)
    assert re.search(r'level=warn|warn event=reload setting=socket in_use="\S+" wanted="" text="needs a restart"', said)
    assert 'setting=job_user in_use="" wanted="nobody"' in said
    assert "setting=listen" not in said  # an option wins over the file, before and after
    assert 'setting=keep_runs was="0" is="3"' in said and "setting=keep_runs in_use" not in said
    assert d.request("GET", "/healthz", unix=True).status == 200
    systemd.wait_for("RELOADING=1")
    systemd.wait_for("STATUS=Ready; settings changed that need a restart: 2")


def test_options_win_again_after_a_reload(configured):
    d = configured("keep_runs = 7\n", args=["--keep-runs=5"], env={"NUMAPROBED_KEEP_DAYS": "11"})
    d.reload("keep_runs = 8\nkeep_days = 12\nkeep_bytes = 1G\n", READ_AGAIN)
    limits = d.get("/v1/storage").json["retention"]
    assert (limits["keep_runs"], limits["keep_days"], limits["keep_bytes"]) == (5, 11, 1 << 30)


@pytest.mark.parametrize("text, words", [
    ("keep_runs = 3\nkeep_days = many\n", r'numaprobed.conf:2: keep_days: must be a whole number, got \"many\"'),
    ("keep_runs = 3\nnonsense\n", r"numaprobed.conf:2: must be"),
    ("keep_runs = 3\ncolour = red\n", r"numaprobed.conf:2: there is no setting \"colour\""),
    ("keep_runs = 3\nkeep_bytes = 1M\n", "keep_bytes must be 0 or at least 16M"),
    ("keep_runs = 3\n# " + "x" * 4300 + "\n", "numaprobed.conf:2: the line is longer than 4200 bytes"),
])
def test_a_wrong_file_changes_nothing(configured, systemd, text, words):
    d = configured("keep_runs = 7\n")
    said = d.reload(text, "error event=reload")
    assert words in said  # where a quote has a backslash
    words = words.replace('\\"', '"')
    assert d.get("/v1/storage").json["retention"]["keep_runs"] == 7
    systemd.wait_for("RELOADING=1")
    systemd.wait_for("STATUS=The new configuration is refused, the old one kept: .*" + re.escape(words))
    systemd.wait_for("READY=1")


UNREADABLE = [
    (b"keep_runs = 3\nlog_level = \0info\n", "numaprobed.conf:2: the line has a control character"),
    (b"k\0e\0e\0p\0", "numaprobed.conf:1: the line has a control character"),
    (b"keep_runs = 3\rkeep_days = 4\n", "numaprobed.conf:1: the line has a control character"),
    (b"keep_runs = 3\n# na\xefve\n", "numaprobed.conf:2: the line is not UTF-8"),
    (b"keep_runs = 3\n#" + b"x" * 4200, "numaprobed.conf:2: the line is longer"),
    ("directory", "numaprobed.conf: it is not a file"),
    ("pipe", "numaprobed.conf: it is not a file"),
    ("/proc/self/mem", "numaprobed.conf:1: cannot be read: Input/output error"),
]


def put_unreadable(file, what):
    file.unlink(missing_ok=True)
    if what == "directory":
        file.mkdir()
    elif what == "pipe":
        os.mkfifo(file)
    elif isinstance(what, str):
        file.symlink_to(what)
    else:
        file.write_bytes(what)


@pytest.mark.parametrize("what, words", UNREADABLE)
def test_an_unreadable_file_is_no_empty_one(configured, tmp_path, what, words):
    """A reload keeps what there was, and a start is refused."""
    d = configured("keep_runs = 7\n")
    file = tmp_path / "numaprobed.conf"
    put_unreadable(file, what)
    d.process.send_signal(signal.SIGHUP)
    assert words in d.wait_for_line("error event=reload")
    assert d.get("/v1/storage").json["retention"]["keep_runs"] == 7
    for more in ([], ["--check-config"], ["--print-config"]):
        done = subprocess.run([str(d.program), f"--config={file}", f"--state-dir={tmp_path}/other", *more],
                              capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 2 and words in done.stderr and not done.stdout, (more, done)


@pytest.mark.parametrize("line, said", [
    ("keep_bytes = 1", "keep_bytes must be 0 or at least 16M"), ("listen = 127.0.0.1", "listen: must be ADDRESS:PORT"),
    ("tls-client-scope = CN=a:read", "tls_client_scope needs tls_client_ca"), ("job_user = no-such-user", "job_user: there is no account"),
    ("keepdays = 8", 'there is no setting "keepdays"; did you mean "keep_days"?'),
    ("keep-runs = 8", "keep-runs: stands in line 1 already; keep one of them"), ("token_file = /tmp", "token_file: /tmp is not a file"),
    ("socket = /nonexistent/a/b", "socket: there can be no socket in /nonexistent/a: No such file or directory"),
    ("socket = below", "socket: must be an absolute path"), ("socket = ./s", "socket: must be an absolute path"),
    ("socket = /dev/null/s", "socket: there can be no socket in /dev/null: Not a directory"),
    ("state_dir = below", "state_dir: must be an absolute path"), ("run_dir = below", "run_dir: must be an absolute path"),
    ("host_names = proxy:443", "host_names: must be host names"), ("admin_group = no-such-group", "admin_group: there is no group")])
def test_what_a_check_finds_wrong_is_named_with_its_line(numaprobed, tmp_path, line, said):
    conf = tmp_path / "conf"
    conf.write_text(f"keep_runs = 7\n{line}\nlog_level = info\n")
    done = subprocess.run([str(numaprobed), f"--config={conf}", "--check-config"], capture_output=True, text=True, timeout=PATIENCE,
                          env={**os.environ, "HOME": str(tmp_path)})
    assert done.returncode == 2 and f"{conf}:2: {said}" in done.stderr, done


@pytest.mark.parametrize("option", ["--run-group=no-such-group", "--run_group=no-such-group"])
def test_no_line_is_named_for_an_option(numaprobed, tmp_path, option):
    (tmp_path / "conf").write_text("run_group = root\n")
    done = subprocess.run([str(numaprobed), f"--config={tmp_path}/conf", option, "--check-config"], capture_output=True, text=True,
                          timeout=PATIENCE, env={**os.environ, "HOME": str(tmp_path)})
    assert done.returncode == 2 and done.stderr.startswith("numaprobed: run_group: there is no group"), done


@pytest.mark.parametrize("program", ["numaprobed", "numaprobe-fleetd"])
@pytest.mark.parametrize("line, said", [
    ("run_group = no-such-group", "run_group: there is no group"), ("token_file = /tmp", "token_file: /tmp is not a file"),
    ("socket = /dev/null", "socket: /dev/null exists and is not a socket"), ("listen = 0.0.0.0:0", "listen: 0.0.0.0 is not a loopback"),
    ("tls_key = /x", "tls_key: tls_certificate and tls_key belong together"), ("listen = https://127.0.0.1:0", "listen: https://127.0.0.1:0 needs")])
def test_a_wrong_setting_is_refused_before_there_is_a_database(numaprobed, tmp_path, program, line, said):
    """A database of an earlier version would be upgraded for a start that fails."""
    conf, state = tmp_path / "conf", tmp_path / "state"
    conf.write_text(f"log_level = info\n{line}\n")
    done = subprocess.run([str({"numaprobed": numaprobed, "numaprobe-fleetd": FLEETD}[program]), f"--config={conf}",
                           f"--state-dir={state}", f"--run-dir={tmp_path}/run"], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2 and f"{conf}:2: {said}" in done.stderr, done
    assert not state.exists() and not (tmp_path / "run").exists()


@pytest.mark.parametrize("unit", ["numaprobed", "numaprobe-fleetd"])
def test_a_socket_may_be_in_a_directory_that_the_unit_makes(numaprobed, tmp_path, unit):
    """Before its first start, of root and of another account; a wrong path stays one."""
    program = {"numaprobed": numaprobed, "numaprobe-fleetd": FLEETD}[unit]
    text = (ROOT / f"systemd/{unit}.service.in").read_text()
    made = [f"/{place}/{re.search(rf'^{kind}Directory=(.*)$', text, re.M)[1]}"
            for kind, place in (("Runtime", "run"), ("Runtime", "var/run"), ("State", "var/lib"))]
    for folder, good in [(path, True) for path in made] + [("/run/numaprob", False), (f"{made[0]}/below", False)]:
        for run_dir in ([], [f"--run-dir={tmp_path}/other"]):
            done = subprocess.run([str(program), "--config=/dev/null", f"--socket={folder}/api.sock", "--check-config", *run_dir],
                                  capture_output=True, text=True, timeout=PATIENCE, env={**os.environ, "HOME": str(tmp_path)})
            assert done.returncode == (0 if good else 2) and (good or "RuntimeDirectory=" in done.stderr), (folder, done)


def test_a_file_that_is_gone_changes_nothing(configured, tmp_path):
    d = configured("keep_runs = 7\n")
    (tmp_path / "numaprobed.conf").unlink()
    d.process.send_signal(signal.SIGHUP)
    assert "cannot read" in d.wait_for_line("error event=reload")
    assert d.get("/v1/storage").json["retention"]["keep_runs"] == 7


# --- where a container's filter refuses calls

POLICIES = "mbind,set_mempolicy,get_mempolicy"


@pytest.fixture
def filtered(make_daemon, numaprobed, tmp_path):
    """filtered(calls) starts a daemon whose real measuring processes are refused these calls."""
    def start(calls):
        wrapper = tmp_path / "numaprobed"
        wrapper.write_text(f"#!/bin/sh\nexec {sys.executable} {ROOT}/tests/fakes/without_calls.py {calls} "
                           f'{numaprobed} "$@"\n')
        wrapper.chmod(0o755)
        d = Daemon(wrapper, tmp_path)
        return d.start()
    yield start


SMALL = {"benchmark": "latency", "size": "256K", "cell_ms": 20, "min_samples": 7}


@pytest.mark.parametrize("launcher", ["auto", "mpi", "processes"])
@pytest.mark.parametrize("calls, methods", [
    ("move_pages", {"get_mempolicy"}), ("mbind,move_pages", {"get_mempolicy"}),
    (POLICIES + ",move_pages", {"numa_maps"}), (POLICIES, {"move_pages"})])
def test_placement_falls_back_and_says_so(filtered, calls, methods, launcher):
    d = filtered(calls)
    try:
        run = d.run(**{**SMALL, "launcher": launcher})
        assert run["state"] == "succeeded", (run, d.get(f"/v1/runs/{run['id']}/log").body)
        for rank in d.get(f"/v1/runs/{run['id']}/matrix").json["ranks"]:
            assert rank["mem_method"] in methods and rank["pages_checked"] > 0, rank
            assert rank["cpu"] == rank["cpu_wanted"], "CPUs are bound all the same"
        denied = "set_mempolicy" in calls
        notes = "\n".join(run["plan"]["notes"])
        assert ("memory policies are denied here" in notes) == denied, notes
    finally:
        d.stop()


def test_a_log_that_nobody_reads_stops_nothing(make_daemon):
    """The pipe is full after 64 KiB; requests go on, and what was left out is counted when somebody reads again."""
    daemon = make_daemon(fake_bench_env(), args=["--log-level=debug"])
    for _ in range(2000):
        assert daemon.get("/healthz").status == 200
    os.read(daemon.process.stderr.fileno(), 65536)
    daemon.get("/healthz")
    assert re.search(r"lines=\d{3,}", daemon.wait_for_line("event=log.lost"))
