# SPDX-License-Identifier: Apache-2.0
"""Requests that two programs could read in two ways, and connections that want to stay for ever."""
import concurrent.futures
import contextlib
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from conftest import FAKE_BENCH, PATIENCE, ROOT, Daemon, UnixConnection, fake_bench_env, is_sanitized, read_answer, until

HOST = b"Host: localhost\r\n"
JSON = b"Content-Type: application/json\r\n"
GOOD = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"


def get(headers, target=b"/healthz", method=b"GET"):
    return method + b" " + target + b" HTTP/1.1\r\n" + headers + b"\r\n"


def post(headers, body=b"{}"):
    return get(HOST + JSON + headers, b"/v1/runs", b"POST") + body


AMBIGUOUS = {
    "two lengths": post(b"Content-Length: 2\r\nContent-Length: 3\r\n"),
    "the same length twice": post(b"Content-Length: 2\r\nContent-Length: 2\r\n"),
    "a list of lengths": post(b"Content-Length: 2, 2\r\n"),
    "a signed length": post(b"Content-Length: +2\r\n"),
    "length and chunks": post(b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n"),
    "chunks and length": post(b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", b"0\r\n\r\n"),
    "two codings": post(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n"),
    "gzip": post(b"Transfer-Encoding: gzip, chunked\r\n"),
    "identity": post(b"Transfer-Encoding: identity\r\n"),
    "two hosts": get(HOST + HOST),
    "two hosts that differ": get(HOST + b"Host: evil.test\r\n"),
    "no host": get(b""),
    "two origins": post(b"Origin: http://localhost\r\nOrigin: http://evil.test\r\nContent-Length: 2\r\n"),
    "two authorizations": get(HOST + b"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n"),
    "a folded header": get(HOST + b"X: a\r\n b\r\n"),
    "a header folded by a tab": get(HOST + b"X: a\r\n\tb\r\n"),
    "a folded host": get(b"Host: local\r\n host\r\n"),
    "a folded length": post(b"Content-Length: \r\n 2\r\n"),
    "a first line that is folded": get(b" X: y\r\n" + HOST),
    "NUL in a value": get(HOST + b"X: a\0b\r\n"),
    "NUL at the end of a value": get(HOST + b"X: a\0\r\n"),
    "NUL in a name": get(HOST + b"X\0Y: a\r\n"),
    "NUL in a length": post(b"Content-Length: 2\x000\r\n"),
    "NUL in the path": get(HOST, b"/healthz\0/../v1/runs"),
    "NUL in the path, escaped": get(HOST, b"/healthz%00"),
    "slash, escaped": get(HOST, b"/v1%2fruns"),
    "slash, escaped large": get(HOST, b"/v1%2Fruns"),
    "backslash, escaped": get(HOST, b"/v1%5cruns"),
    "blank before the colon": post(b"Content-Length : 2\r\n"),
    "a control character": get(HOST + b"X: a\x01b\r\n"),
    "CONNECT": get(HOST, b"localhost:80", b"CONNECT"),
    "TRACE": get(HOST, method=b"TRACE"),
    "an odd method": get(HOST, method=b"BREW"),
    "lower case": get(HOST, method=b"get"),
    "PRI": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "an absolute target": get(HOST, b"http://localhost/healthz"),
    "a star": get(HOST, b"*", b"OPTIONS"),
    # Each byte too many is paid for by one too few elsewhere: lengths alone show nothing.
    "NUL in a host, paid by a blank": get(b"Host:localhost\0.evil.test\r\nAccept:*/*\r\n"),
    "NUL in a host, paid by many blanks": get(b"Host:localhost\0.evil\r\n" + b"".join(b"X%d:y\r\n" % i for i in range(9))),
    "NUL in a length, paid by a blank": post(b"Content-Length:16\x000\r\n", b"{}"),
    "NUL in a coding, paid by a blank": post(b"Transfer-Encoding:chunked\0x\r\n", b"0\r\n\r\n"),
    "NUL in a coding, paid by LF": post(b"Transfer-Encoding:chunked\0x\nX: y\n", b"0\r\n\r\n"),
    "NUL that ends the last value": get(b"Accept:*/*\r\nHost:localhost\0\r\n"),
    "a folded header, paid by LF": get(b"Host:localhost\nX:a\n b\r\n"),
    "a folded last header": get(b"Host:localhost\r\nX:a\r\n b\r\n"),
    "a header folded twice": get(b"Host:localhost\nX:a\n b\n\tc\nY:z\n"),
    "LF after a header": get(b"Host: localhost\n"),
    "LF after one of two": get(b"Host: localhost\nX:  y\r\n"),
    "LF after the first line": b"GET /healthz HTTP/1.1\nHost: localhost\r\n\r\n",
    "LF for the empty line": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\n",
    "CR in a value": get(HOST + b"X: a\rb\r\n"),
    "CR before CRLF": get(HOST + b"X: a\r\r\n"),
    "two blanks before the target": b"GET  /healthz HTTP/1.1\r\n" + HOST + b"\r\n",
    "two blanks before the version": b"GET /healthz  HTTP/1.1\r\n" + HOST + b"\r\n",
    "a tab in the first line": b"GET /healthz\tHTTP/1.1\r\n" + HOST + b"\r\n",
    "a blank behind the version": b"GET /healthz HTTP/1.1 \r\n" + HOST + b"\r\n",
    "a vertical tab in a coding": post(b"Transfer-Encoding: \x0bchunked\r\n", b"0\r\n\r\n"),
    "a blank behind the coding": post(b"Transfer-Encoding: chunked \r\n", b"0\r\n\r\n"),
    "chunks in HTTP/1.0": b"POST /v1/runs HTTP/1.0\r\n" + HOST + JSON + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a header without a name": get(HOST + b": x\r\n"),
    "a header without a colon": get(HOST + b"X\r\n"),
}


@pytest.mark.parametrize("name", AMBIGUOUS)
@pytest.mark.parametrize("unix", [False, True], ids=["tcp", "unix"])
def test_ambiguous_is_refused_and_closed(daemon, name, unix):
    """What follows is not read: behind a proxy it would be somebody else's request."""
    with connection(daemon, unix) as s:
        s.sendall(AMBIGUOUS[name] + GOOD)
        data = b""
        with contextlib.suppress(ConnectionResetError):
            while more := s.recv(65536):
                data += more
    assert not data or data.split()[1] in (b"400", b"505"), data  # some the library closes without a word
    assert b"HTTP/1.1 2" not in data, data
    assert b'"status":"ok"' not in data


CHUNKED = {
    "as they should be": b"2\r\n{}\r\n0\r\n\r\n",
    "lines that end in LF": b"2\n{}\n0\n\n",
    "one line that ends in LF": b"2\n{}\r\n0\r\n\r\n",
    "an extension": b"2;a=b\r\n{}\r\n0\r\n\r\n",
    "an extension with LF": b"2;a\n{}\r\n0\r\n\r\n",
    "a trailer": b"2\r\n{}\r\n0\r\nHost: evil.test\r\n\r\n",
}


@pytest.mark.parametrize("name", CHUNKED)
def test_a_chunked_body_is_the_last_of_its_connection(daemon, name):
    """The library reads chunks in more ways than one; nothing that follows them is taken for a request."""
    with connection(daemon) as s:
        s.sendall(post(b"Transfer-Encoding: chunked\r\n", CHUNKED[name]) + GOOD)
        data = b""
        with contextlib.suppress(ConnectionResetError):
            while more := s.recv(65536):
                data += more
    assert data.count(b"HTTP/1.1 ") == 1 and b'"status":"ok"' not in data, data
    assert b"\r\nConnection: close\r\n" in data


def test_pipelined_in_pieces(daemon):
    """The head is checked where it lies; that holds however it came, and behind another request."""
    rich = get(b"Host:   localhost\r\nAccept:*/*\r\nX:\t y \r\nEmpty:\r\n" + MANY)
    for at in (1, 2, 3, 20, 40, len(rich) - 3, len(rich) - 1):
        with connection(daemon) as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            data = b""
            for part, answers in ((GOOD + rich + rich[:at], 2), (rich[at:] + GOOD, 4)):
                s.sendall(part)
                while data.count(b'"status":"ok"') < answers:
                    more = s.recv(65536)
                    assert more, (at, data)
                    data += more


MANY = b"".join(b"X-Header-%d: some value of a browser\r\n" % i for i in range(20))
COOKIE = b"name=" + b"v" * 95 + b"; "
PLAIN = {
    "nothing but a host": get(HOST),
    "no blank after the colon": get(b"Host:localhost\r\nAccept:*/*\r\n"),
    "an empty value": get(HOST + b"X: \r\n"),
    "HTTP/1.0": b"GET /healthz HTTP/1.0\r\n" + HOST + b"\r\n",
    "with a query": get(HOST + b"Accept: */*\r\n", b"/readyz?verbose"),
    "as browsers do": get(HOST + b"User-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\nAccept: text/html,*/*;q=0.8\r\n"
                          b"Accept-Language: en\r\nAccept-Encoding: gzip, deflate\r\nCookie: a=b; c=\"d\"\r\n"),
    "5 KiB of cookies": get(HOST + MANY + b"Cookie: " + COOKIE * 50 + b"z=\r\n"),
    "12 KiB of headers": get(HOST + MANY + b"X: " + b"x" * 11264 + b"\r\n"),
}
LARGE = {
    "cookies": get(HOST + MANY + b"Cookie: " + COOKIE * 100 + b"z=\r\n"),
    "headers": get(HOST + MANY + b"X: " + b"x" * 16384 + b"\r\n"),
    "target": get(HOST, b"/healthz?x=" + b"x" * 16384),
    "lines": get(HOST + b"".join(b"X%d: x\r\n" % i for i in range(64))),
}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_is_served(daemon, name):
    assert daemon.raw(PLAIN[name])[0] == 200


@pytest.mark.parametrize("name", LARGE)
def test_what_is_too_large_ends_its_connection_only(daemon, name):
    with connection(daemon, False) as s:
        data = b""
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            s.sendall(LARGE[name])
            while more := s.recv(65536):
                data += more
    assert not data or data.split()[1] in (b"400", b"414", b"431"), data
    assert daemon.raw(GOOD)[0] == 200


def test_one_connection_may_ask_often(daemon):
    with connection(daemon, False) as s:
        s.sendall(GOOD * 3)
        data = b""
        while data.count(b'"status":"ok"') < 3:
            more = s.recv(65536)
            assert more, data
            data += more


STRICT = {
    "deep": b'{"note":' + b"[" * 17 + b"]" * 17 + b"}",
    "twice": b'{"benchmark":"latency","benchmark":"matrix"}',
    "twice, spelled in two ways": b'{"benchmark":"latency","b\\u0065nchmark":"matrix"}',
    "no UTF-8": b'{"note":"\xc0\xaf"}',
    "half a surrogate": b'{"note":"\\ud800"}',
    "a surrogate as bytes": b'{"note":"\xed\xa0\x80"}',
    "NUL": b'{"note":"a\\u0000b"}',
    "something after it": b'{"benchmark":"latency"} {}',
    "a comment": b'{"benchmark":"latency"/**/}',
    "a trailing comma": b'{"benchmark":"latency",}',
    "NaN": b'{"benchmark":"latency","min_samples":NaN}',
    "too large a number": b'{"benchmark":"latency","min_samples":1e999}',
    "a leading zero": b'{"benchmark":"latency","min_samples":010}',
    "a byte order mark": b'\xef\xbb\xbf{"benchmark":"latency"}',
    "a raw newline in a text": b'{"note":"a\nb"}',
}


@pytest.mark.parametrize("name", STRICT)
def test_json_is_strict(daemon, name):
    answer = daemon.request("POST", "/v1/runs", STRICT[name], {"Content-Type": "application/json"})
    assert answer.status == 400, (answer.status, answer.body)


@pytest.mark.parametrize("number", ["9007199254740993", "1.5", "1e400", "-1", "18446744073709551617"])
def test_integers_are_exact(daemon, number):
    body = '{"benchmark":"latency","size":"1","dry_run":true,"min_samples":%s}' % number
    answer = daemon.request("POST", "/v1/runs", body, {"Content-Type": "application/json"})
    assert answer.status in (400, 422) and answer.status != 200, answer.body


def test_the_largest_body(daemon):
    spec = '{"benchmark":"latency","size":"1","dry_run":true'
    fits = spec + " " * (65536 - len(spec) - 1) + "}"
    assert daemon.post("/v1/runs", fits).status == 200
    assert daemon.post("/v1/runs", fits + " ").status == 413


# ---- connections ----

@pytest.fixture
def open_home():
    """A home that other accounts can look into."""
    home = tempfile.mkdtemp(prefix="np-open.", dir="/tmp")
    os.chmod(home, 0o755)
    yield home
    shutil.rmtree(home, ignore_errors=True)


def connection(daemon, unix=False, address="127.0.0.1"):
    if unix:
        s = socket.socket(socket.AF_UNIX)
        s.connect(daemon.socket)
    else:
        s = socket.socket()
        s.bind((address, 0))
        s.connect(("127.0.0.1", daemon.port))
    s.settimeout(PATIENCE)
    return s


def hanging_bench(tmp_path):
    """A run of it is measured until it is canceled."""
    bench = tmp_path / "fake_bench-hang"
    bench.symlink_to(FAKE_BENCH)
    for folder in (tmp_path, *list(tmp_path.parents)[:2]):
        folder.chmod(folder.stat().st_mode | 0o011)  # the account of the ranks comes through
    return bench


def descriptors(daemon):
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))


HEADERS_S = 10  # a client has so long for them
READER_S = 20  # and so long to take something of an answer
SLOW = []


def at_once(what):
    """What takes half a minute, because deadlines do: all of it goes on at once, on one daemon."""
    SLOW.append(what)
    return what


@pytest.fixture(scope="module")
def slow(daemon):
    with concurrent.futures.ThreadPoolExecutor(len(SLOW)) as pool:
        yield {what.__name__: pool.submit(what, daemon) for what in SLOW}


@contextlib.contextmanager
def dripping(sockets, data):
    """Sends a byte of `data` on every socket twice a second until each is cut; yields {socket: when}."""
    cut, stop = {}, threading.Event()

    def drip():
        at = 0
        while not stop.wait(0.5) and len(cut) < len(sockets):
            for s in sockets:
                if s in cut:
                    continue
                try:
                    s.send(data[at % len(data):at % len(data) + 1], socket.MSG_DONTWAIT)
                    gone = s.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK) == b""
                except BlockingIOError:
                    gone = False
                except OSError:
                    gone = True
                if gone:
                    cut[s] = time.monotonic()
            at += 1
    thread = threading.Thread(target=drip)
    thread.start()
    try:
        yield cut, thread
    finally:
        stop.set()
        thread.join()


def test_drippers_are_cut_and_harm_nobody(make_daemon):
    """300 clients that send a byte now and then, more than the daemon serves: good requests over the unix
    socket go on, and all drippers are gone after the deadline of headers."""
    daemon = make_daemon(fake_bench_env())
    before = descriptors(daemon)
    sockets = [connection(daemon) for _ in range(300)]
    with dripping(sockets, b"GET /healthz HTTP/1.1\r\nX: " + b"a" * 1000) as (cut, thread):
        served = 0  # while some of them were held
        while thread.is_alive():
            assert daemon.request("GET", "/healthz", unix=True).status == 200
            served += len(cut) < 300
            thread.join(0.02)
    assert len(cut) == 300
    assert served, "nobody waits for the end of the others"
    for s in sockets:
        s.close()
    assert daemon.get("/healthz").status == 200
    until(lambda: descriptors(daemon) <= before + 2)


@at_once
def silence(daemon):
    began = time.monotonic()
    with connection(daemon) as s:
        assert s.recv(1) == b""
    assert time.monotonic() - began > 9


@at_once
def kept(daemon):
    with connection(daemon) as s:
        began = time.monotonic()
        s.sendall(GOOD)
        assert read_answer(s)[0] == 200
        with dripping([s], b"GET /healthz HTTP/1.1\r\nX: " + b"a" * 1000) as (cut, thread):
            thread.join(PATIENCE)
        assert cut[s] - began > 28


@at_once
def slow_body_and_reader(daemon):
    body, reader = connection(daemon), connection(daemon)
    began, ended = time.monotonic(), None
    body.sendall(post(b"Content-Length: 1000\r\n", b""))
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    asks = get(HOST, b"/openapi.json") * 200  # 200 answers of 60 kB do not fit into any buffer
    reader.settimeout(0.2)
    with dripping([body], b" ") as (cut, thread):
        sent = 0
        while ended is None and time.monotonic() - began < PATIENCE:
            try:
                if sent < len(asks):
                    sent += reader.send(asks[sent:], socket.MSG_DONTWAIT)
            except BlockingIOError:
                pass
            except OSError:
                ended = time.monotonic() - began
            try:
                if reader.recv(1) == b"":
                    ended = time.monotonic() - began
            except TimeoutError:
                pass
            except OSError:
                ended = time.monotonic() - began
            select.select([], [], [], 0.5)
            if surely(lambda: read_all_cut(daemon, reader)):
                ended = time.monotonic() - began
        thread.join(PATIENCE)
    assert cut[body] - began > 28
    assert ended > 15


def test_silence_is_cut_too(slow):
    slow["silence"].result()


def test_a_kept_connection_has_a_deadline(slow):
    """Between two requests 30 s, dripping or not."""
    slow["kept"].result()


def test_a_slow_body_and_a_slow_reader_are_cut(slow):
    """30 s for a body; 20 s for an answer that nobody reads, though a byte is taken now and then."""
    slow["slow_body_and_reader"].result()


def read_all_cut(daemon, s):
    """Has the daemon let go of this connection? Its end is no longer among the kernel's."""
    port = s.getsockname()[1]
    with open("/proc/net/tcp", encoding="ascii") as f:
        rows = [line.split() for line in f.readlines()[1:]]
    mine = f":{daemon.port:04X}"
    theirs = f":{port:04X}"
    return not any(r[1].endswith(mine) and r[2].endswith(theirs) and r[3] == "01" for r in rows)


def surely(what):
    """A list that others change while it is read may miss an entry, but not again and again."""
    return all(what() for _ in range(5))


# Keeps connections from many loopback addresses on a port, sends a byte on each now and then, and opens a new one for each that is cut.
PRESS = """
import itertools, select, socket, sys, time
port, connections, addresses = map(int, sys.argv[1:4])
text, sources, held, cuts, at = b"GET /healthz HTTP/1.1\\r\\nX: " + b"a" * 4000, itertools.cycle(range(addresses)), {}, 0, {}
poll = select.epoll()
def connect():
    n, s = next(sources), socket.socket()
    s.bind(("127.%d.%d.%d" % (1 + n // 62500, n // 250 % 250, 1 + n % 250), 0))
    s.setblocking(False)
    s.connect_ex(("127.0.0.1", port))
    held[s.fileno()], at[s.fileno()] = s, 0
    poll.register(s, select.EPOLLIN | select.EPOLLRDHUP)
for _ in range(connections):
    connect()
print("all", flush=True)
dripped = time.monotonic()
while not select.select([sys.stdin], [], [], 0)[0]:
    for fd, _ in poll.poll(0.05):
        poll.unregister(fd)
        held.pop(fd).close()
        cuts += 1
        connect()
    if time.monotonic() - dripped > 0.2:
        dripped = time.monotonic()
        for fd, s in held.items():
            try:
                s.send(text[at[fd]:at[fd] + 1])
                at[fd] += 1
            except OSError:
                pass
print(cuts, flush=True)
"""
ASK = """
import http.client, sys, time
end, times = time.monotonic() + float(sys.argv[2]), []
while time.monotonic() < end or len(times) < 20:
    began = time.monotonic()
    c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=100)
    c.request("GET", "/healthz")
    assert c.getresponse().status == 200
    c.close()
    times.append(time.monotonic() - began)
times.sort()
print(len(times), times[len(times) // 2] * 1e3, times[-1] * 1e3)
"""


STATUS = """
import http.client, sys
c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=100)
c.request("GET", sys.argv[2])
print(c.getresponse().status)
"""


def as_account(uid, script, *args):
    return subprocess.Popen(["setpriv", f"--reuid={uid}", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c", script,
                             *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/")


@contextlib.contextmanager
def pressed(daemon, accounts, connections, addresses):
    """Each of the accounts keeps so many connections that do not get beyond their headers."""
    crowd = [as_account(uid, PRESS, daemon.port, connections, addresses) for uid in accounts]
    try:
        for one in crowd:
            assert one.stdout.readline() == "all\n"
        yield crowd
    finally:
        for one in crowd:
            one.stdin.close()
        cuts = [int(one.stdout.readline()) for one in crowd]
        assert all(one.wait(PATIENCE) == 0 for one in crowd)
        print("cut:", cuts)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be somebody else")
@pytest.mark.parametrize("accounts,connections,addresses", [
    ([1234], 1000, 1), ([1234], 1000, 8), ([1234], 1000, 8000), ([1234], 200, 1),
    (range(2000, 2008), 125, 1000),  # as one account with subordinate ids can look
    ([0], 1000, 8000),  # root is not limited, and is not in the way either
], ids=["one-address", "8-addresses", "8000-addresses", "200-open-again", "8-accounts", "root"])
def test_half_open_connections_keep_nobody_out(make_daemon, accounts, connections, addresses):
    """Clients that never send a whole head, and come again when cut: every request of another account is served."""
    daemon = make_daemon(fake_bench_env())
    with pressed(daemon, accounts, connections, addresses):
        good = as_account(1300, ASK, daemon.port, 2)
        said = good.communicate(timeout=PATIENCE)[0].split()
        assert good.returncode == 0, said
    print(said)
    assert float(said[1]) < HEADERS_S * 1e3, "nobody waits for the end of the others"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be somebody else")
def test_half_open_connections_of_unknown_accounts(numaprobed, tmp_path):
    """Where the kernel does not name accounts, all of loopback is one client: who sends the head at once is served."""
    wrapper = tmp_path / "numaprobed"
    wrapper.write_text(f"#!/bin/sh\nexec {sys.executable} {ROOT}/tests/fakes/without_calls.py netlink {numaprobed} \"$@\"\n")
    wrapper.chmod(0o755)
    daemon = Daemon(wrapper, tmp_path, fake_bench_env()).start()
    try:
        with pressed(daemon, [1234], 1000, 8000):
            good = as_account(1300, ASK, daemon.port, 2)
            said = good.communicate(timeout=PATIENCE)[0].split()
            assert good.returncode == 0, said
        print(said)
        daemon.post("/v1/nothing")
        daemon.wait_for_line(r"event=request .*from=127\.0\.0\.1 token=- method=POST path=/v1/nothing status=404")
    finally:
        assert daemon.stop() == 0, "\n".join(daemon.log)


def test_one_address_cannot_have_all(make_daemon):
    """More connections than there are places: the next one is served at once."""
    daemon = make_daemon(fake_bench_env())
    crowd = [connection(daemon) for _ in range(300)]
    with connection(daemon, address="127.0.0.2") as s:
        s.sendall(GOOD)
        assert read_answer(s)[0] == 200
    for s in crowd:
        s.close()


def test_who_ends_in_the_middle_of_a_body_leaves_no_place(make_daemon):
    """All places, of the same account. The library does not learn of an end that comes with other bytes: the daemon is
    stopped until both are there."""
    daemon = make_daemon(fake_bench_env())
    with contextlib.ExitStack() as crowd:
        for _ in range(256):
            s = crowd.enter_context(connection(daemon))
            s.sendall(post(b"Content-Length: 60000\r\nExpect: 100-continue\r\n", b""))
            assert s.recv(100).startswith(b"HTTP/1.1 100 "), "it has a place, and waits for the body"
            crowd.callback(s.sendall, b"{")
        daemon.process.send_signal(signal.SIGSTOP)
    with connection(daemon) as s:
        daemon.process.send_signal(signal.SIGCONT)
        s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert read_answer(s)[0] == 200


def accepted(connected):
    """Has the daemon this connection? The kernel has a socket without a number until then."""
    ends = [f"{struct.unpack('<I', socket.inet_aton(host))[0]:08X}:{port:04X}" for host, port in (connected.getpeername(), connected.getsockname())]
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    return [row[9] for row in rows if row[1:3] == ends] not in ([], ["0"])


@pytest.fixture
def used_up(make_daemon, tmp_path):
    """A daemon that measures a run, and all connections of a client that may only read without its token. Each sends a body.
    end() stops the daemon and ends them with some more bytes."""
    daemon = make_daemon({**fake_bench_env(), "NUMAPROBE_BENCH": str(hanging_bench(tmp_path))}, args=["--anonymous=read", "--connections=16"])
    token = daemon.request("POST", "/v1/tokens", {"name": "x", "scope": "run"}, unix=True).json["token"].encode()
    run = daemon.request("POST", "/v1/runs", {"benchmark": "latency", "size": "1", "cpus": "0"}, unix=True).json["id"]
    until(lambda: daemon.request("GET", f"/v1/runs/{run}", unix=True).json["state"] == "running")
    with contextlib.ExitStack() as crowd:
        def end():
            daemon.process.send_signal(signal.SIGSTOP)
            crowd.close()

        for _ in range(16):
            s = crowd.enter_context(connection(daemon))
            s.sendall(post(b"Authorization: Bearer " + token + b"\r\nContent-Length: 60000\r\nExpect: 100-continue\r\n", b""))
            assert s.recv(100).startswith(b"HTTP/1.1 100 "), "it has a place, and waits for the body"
            crowd.callback(s.sendall, b"{")
        yield daemon, end
    assert daemon.request("POST", f"/v1/runs/{run}/cancel", unix=True).status == 202


@pytest.mark.parametrize("comes", ["before", "after"])
def test_while_a_run_is_measured_too(used_up, comes):
    """The client's next connection comes before or after the others end. It does not wait until they are late, for 30 s."""
    daemon, end = used_up
    if comes == "after":
        end()
    with connection(daemon) as s:
        s.sendall(GOOD)
        if comes == "before":
            until(lambda: accepted(s))
            end()
        began = time.monotonic()
        daemon.process.send_signal(signal.SIGCONT)
        assert read_answer(s)[0] == 200
        assert time.monotonic() - began < 20


def test_one_account_cannot_have_the_socket(make_daemon, open_home):
    """64 of the unix socket's 256 connections for one account that is neither root nor the daemon's."""
    if os.geteuid() != 0:
        pytest.skip("needs root to be somebody else")
    daemon = make_daemon(fake_bench_env(), home=open_home)
    os.chmod(daemon.socket, 0o666)
    script = ("import socket,sys\n"
              "held=[]\n"
              "for i in range(250):\n"
              "    s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); held.append(s)\n"
              "print('all', flush=True); sys.stdin.read()\n")
    crowd = subprocess.Popen([sys.executable, "-c", script, daemon.socket], user="nobody", group="nogroup",
                             extra_groups=[], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert crowd.stdout.readline() == "all\n"
        c = UnixConnection(daemon.socket)
        c.request("GET", "/healthz")
        assert c.getresponse().status == 200
    finally:
        crowd.stdin.close()
        crowd.wait(PATIENCE)


def test_a_crowd_waits_for_a_busy_daemon(make_daemon):
    """While the daemon is held, more come than it serves at once: who does not block is not turned away either."""
    daemon = make_daemon(fake_bench_env())
    os.kill(daemon.process.pid, signal.SIGSTOP)
    crowd = []
    try:
        for _ in range(600):
            s = socket.socket(socket.AF_UNIX)
            s.setblocking(False)
            crowd.append(s)
            s.connect(daemon.socket)  # EAGAIN here is a client turned away
    finally:
        os.kill(daemon.process.pid, signal.SIGCONT)
        for s in crowd:
            s.close()
    assert daemon.get("/healthz").status == 200


def private_kib(daemon):
    with open(f"/proc/{daemon.process.pid}/smaps_rollup", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Private_Dirty:"))


@pytest.mark.skipif(is_sanitized(), reason="a sanitizer keeps memory that was freed")
def test_memory_of_a_crowd_goes_back(make_daemon):
    """600 silent connections are late while the daemon is held, so all of them are cut at once."""
    daemon = make_daemon(fake_bench_env(), args=["--connections=2000"])  # few of them: of most of them none would have more than 1 s
    for _ in range(20):
        daemon.get("/healthz")
    files, memory = descriptors(daemon), private_kib(daemon)
    crowd = [connection(daemon) for _ in range(600)]
    assert daemon.get("/healthz").status == 200  # behind all of them
    taken = private_kib(daemon) - memory  # some 3 MiB
    assert taken > 1024
    late = time.monotonic() + HEADERS_S + 0.2
    os.kill(daemon.process.pid, signal.SIGSTOP)
    until(lambda: time.monotonic() > late)
    os.kill(daemon.process.pid, signal.SIGCONT)
    until(lambda: descriptors(daemon) <= files + 1)
    # A twentieth stays usually. What the daemon does by itself meanwhile may keep some more.
    until(lambda: private_kib(daemon) <= memory + taken / 2)
    for s in crowd:
        s.close()


def test_long_poll_is_not_cut(make_daemon, tmp_path):
    """Who waits for a run is not late, however long it takes."""
    daemon = make_daemon({**fake_bench_env(), "NUMAPROBE_BENCH": str(hanging_bench(tmp_path))})
    run = daemon.post("/v1/runs", {"benchmark": "latency", "size": "1", "cpus": "0"}).json["id"]
    until(lambda: daemon.get(f"/v1/runs/{run}").json["state"] == "running")
    began = time.monotonic()
    answer = daemon.get(f"/v1/runs/{run}?wait=13")
    assert answer.status == 200 and answer.json["state"] == "running", answer.body
    assert time.monotonic() - began > 12
    assert daemon.post(f"/v1/runs/{run}/cancel").status == 202


def test_large_answers_that_nobody_reads(make_daemon):
    """A client that does not read holds 48 MiB at most, and is refused before another answer is made; the same answer is
    held once, however many are sent it; what is small is served."""
    daemon = make_daemon(fake_bench_env())
    daemon.request("POST", "/v1/imports", b"size (MB),0\n1,12.3\n64,99.5\n", {"Content-Type": "text/csv"})
    whole = daemon.get("/v1/runs/1/export").json
    whole["run"]["node"], whole["log"] = "elsewhere", "x" * (7 << 20)
    run = daemon.post("/v1/imports", whole).json["id"]
    held = []

    def ask(number):
        nonlocal begun
        begun = begun or time.monotonic()
        s = socket.socket(socket.AF_UNIX)
        s.connect(str(daemon.socket))
        s.settimeout(PATIENCE)
        s.sendall(f"GET /v1/runs/{run}/log HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain;v={number}\r\n\r\n".encode())
        held.append(s)
        return s.recv(15)[9:12]  # no more: the rest stays with the daemon

    def seen():
        """None: the first of them were cut before the last request, because a busy machine takes longer than they have."""
        nonlocal begun
        begun = None
        try:
            first, same = [ask(number) for number in range(12)], [ask(6) for _ in range(20)]
            refused = daemon.request("GET", f"/v1/runs/{run}/log", unix=True)
            if time.monotonic() - begun > READER_S:
                return None
            assert daemon.get("/healthz").status == 200
            if os.geteuid() == 0:
                other = as_account(1300, STATUS, daemon.port, f"/v1/runs/{run}/log")
                assert other.communicate(timeout=PATIENCE)[0] == "200\n", "another client has its own"
            return first, same, refused
        finally:
            for s in held:
                s.close()
            held.clear()
    begun = None
    first, same, refused = until(seen)
    assert first == [b"200"] * 7 + [b"429"] * 5, first
    assert same == [b"200"] * 20
    assert refused.status == 429 and "not been read" in refused.json["detail"]
    assert int(refused.headers["Retry-After"]) == 5
    until(lambda: daemon.request("GET", f"/v1/runs/{run}/log?", unix=True).status == 200)  # once they are gone
