# SPDX-License-Identifier: Apache-2.0
"""Connections that wait: suspended ones are where HTTP libraries have their bugs."""
import http.client
import json
import os
import re
import resource
import select
import socket
import subprocess
import time

import pytest

from conftest import FAKE_BENCH, PATIENCE, build_dir, fake_bench_env, read_answer, until
from test_access import cli

pytestmark = pytest.mark.usefixtures("needs_fake_bench")
SPEC = {"benchmark": "latency", "size": "1", "cpus": "0"}
GOOD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def waiting_for(run, rest=b"?wait=60"):
    return b"GET /v1/runs/%d%s HTTP/1.1\r\nHost: localhost\r\n\r\n" % (run, rest)


@pytest.fixture
def held(make_daemon, tmp_path):
    """make(connections=…): a daemon and a queued run behind one that goes on until it is canceled."""
    bench = tmp_path / "fake_bench-hang"
    bench.symlink_to(FAKE_BENCH)
    for folder in (tmp_path, *list(tmp_path.parents)[:2]):
        folder.chmod(folder.stat().st_mode | 0o011)  # the account of the ranks comes through

    def make(*args):
        daemon = make_daemon({**fake_bench_env(), "NUMAPROBE_BENCH": str(bench)}, args=args)
        daemon.first = daemon.post("/v1/runs", SPEC).json["id"]
        return daemon, daemon.post("/v1/runs", SPEC).json["id"]
    return make


def ask(daemon, data):
    s = socket.create_connection(("127.0.0.1", daemon.port), timeout=PATIENCE)
    s.sendall(data)
    return s


def cancel(daemon, run):
    assert daemon.post(f"/v1/runs/{run}/cancel").status in (200, 202)  # one that is queued ends at once


def all_are_read(daemon):
    """What this client sent before is answered or waits for its run. The first question comes behind the connections, the
    second behind those that wait for their turn in the loop."""
    for _ in range(2):
        assert daemon.get("/v1/runs?limit=1").status == 200


def descriptors(daemon):
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))


def read_until(connection, text):
    data = b""
    while text not in data:
        more = connection.recv(65536)
        assert more, data
        data += more
    return data


def test_all_are_told(held):
    """600 of one run at once, on connections that are used further, while others are served."""
    daemon, run = held("--connections=2048")
    crowd = [ask(daemon, waiting_for(run)) for _ in range(600)]
    assert daemon.get("/healthz").status == 200
    cancel(daemon, run)
    other = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=PATIENCE)
    for s in crowd:
        status, _, body = read_answer(s)
        assert status == 200 and b'"state":"canceled"' in body
        other.request("GET", "/healthz")
        assert other.getresponse().read()
        s.sendall(GOOD)
    assert all(read_answer(s)[0] == 200 for s in crowd)


def test_what_comes_behind_a_wait_is_answered(held):
    """A request that is sent while its connection waits, in the same packet or later."""
    daemon, run = held()
    together = ask(daemon, waiting_for(run) + GOOD)
    later = ask(daemon, waiting_for(run))
    all_are_read(daemon)
    later.sendall(GOOD[:20])
    daemon.get("/healthz")
    later.sendall(GOOD[20:])
    cancel(daemon, run)
    for s in (together, later):
        data = read_until(s, b'"status":"ok"')
        assert data.index(b'"canceled"') < data.index(b'"status":"ok"')


@pytest.mark.parametrize("path", [b"?wait=60", b"/events"], ids=["wait", "events"])
@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
def test_who_goes_leaves_nothing(held, path, reset):
    """Places of those who have gone are free at once, not when their time is over."""
    daemon, run = held("--connections=64")
    before = descriptors(daemon)
    for _ in range(3):  # 32 may wait
        crowd = [ask(daemon, waiting_for(run, path)) for _ in range(32)]
        all_are_read(daemon)
        assert daemon.get(f"/v1/runs/{run}?wait=1").status == 503
        for s in crowd:
            if reset:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            s.close()
        # The daemon's own come and go: the worker's, those of a look at the programs.
        until(lambda: descriptors(daemon) <= before + 8)
    assert daemon.get(f"/v1/runs/{run}?wait=1").json["state"] == "queued"
    cancel(daemon, run)


def test_a_token_that_is_revoked_ends_what_it_opened(held):
    """A stream of events ends before the next event, and a wait with 401. A change is told what it has done."""
    daemon, run = held()
    by_socket = {"daemon": daemon}
    token = cli("token", "create", "gone", "--scope=run", **by_socket).stdout.strip()
    kept = cli("token", "create", "kept", "--scope=read", **by_socket).stdout.strip()

    def shown(text):
        return b"\r\nAuthorization: Bearer " + text.encode() + b"\r\n\r\n"

    def with_token(text, path):
        return ask(daemon, waiting_for(run, path)[:-4] + shown(text))
    crowd = [with_token(token, b"/events"), with_token(token, b"?wait=60")]
    stays = [with_token(kept, b"/events"), with_token(kept, b"?wait=60")]
    body = json.dumps(SPEC).encode()
    change = ask(daemon, b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nPrefer: wait=60\r\n"
                         b"Content-Length: %d" % len(body) + shown(token) + body)
    until(lambda: len(daemon.get("/v1/runs").json["runs"]) == 3)
    for s in (crowd[0], stays[0]):
        read_until(s, b'"queued"')
    all_are_read(daemon)
    assert cli("token", "revoke", "gone", **by_socket).returncode == 0
    cancel(daemon, run)
    assert b"canceled" not in read_until(crowd[0], b"0\r\n\r\n")
    assert read_answer(crowd[1])[0] == 401
    assert read_until(stays[0], b"canceled") and b'"state":"canceled"' in read_answer(stays[1])[2]
    cancel(daemon, run + 1)
    status, _, body = read_answer(change)
    assert status == 200 and b'"state":"canceled"' in body, (status, body)


def test_a_token_that_is_revoked_while_a_body_comes_changes_nothing(held):
    daemon, _ = held()
    token = cli("token", "create", "gone", "--scope=run", daemon=daemon).stdout.strip()
    body = json.dumps(SPEC).encode()
    s = ask(daemon, b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer "
                    + token.encode() + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body[:5])
    all_are_read(daemon)
    assert cli("token", "revoke", "gone", daemon=daemon).returncode == 0
    s.sendall(body[5:])
    assert read_answer(s)[0] == 401
    assert len(daemon.get("/v1/runs").json["runs"]) == 2


# Long polls of another account: prints "sent" for each, reads a line when the daemon has read them, prints how many wait and
# how many were refused, and stays.
WAIT = """
import select, socket, sys
port, run, n = sys.argv[1:]
held = []
for _ in range(int(n)):
    held.append(socket.create_connection(("127.0.0.1", int(port))))
    held[-1].sendall(b"GET /v1/runs/%s?wait=60 HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n" % run.encode())
    print("sent", flush=True)
    sys.stdin.readline()
refused = select.select(held, [], [], 0)[0]
for s in refused:
    status = s.recv(12)[9:]
    assert status == b"503", status
print(len(held) - len(refused), len(refused), flush=True)
sys.stdin.read()
"""


def waiting_as(uid, daemon, run, n):
    one = subprocess.Popen(["setpriv", f"--reuid={uid}", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c", WAIT,
                            str(daemon.port), str(run), str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/")
    for _ in range(n):
        assert one.stdout.readline() == "sent\n"
        all_are_read(daemon)
        one.stdin.write("read\n")
        one.stdin.flush()
    return one


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be somebody else")
def test_places_to_wait_are_shared(held):
    """Half of a listener's connections may wait, and half of those for one account; the other listener has its own."""
    daemon, run = held("--connections=32")  # 16 may wait; an account has 8 connections at the most
    crowd = [waiting_as(uid, daemon, run, 6) for uid in (1234, 1235, 1236)]
    try:
        counts = [list(map(int, one.stdout.readline().split())) for one in crowd]
        assert [sum(column) for column in zip(*counts)] == [16, 2], counts
        assert daemon.get(f"/v1/runs/{run}?wait=1").status == 503, "all places of TCP are taken"
        assert daemon.request("GET", f"/v1/runs/{run}?wait=1", unix=True).json["state"] == "queued"
        assert daemon.get(f"/v1/runs/{run}").status == 200, "looking needs none"
    finally:
        for one in crowd:
            one.stdin.close()
            one.wait(PATIENCE)
    until(lambda: daemon.get(f"/v1/runs/{run}?wait=1").status == 200)
    greedy = waiting_as(1237, daemon, run, 8)
    try:
        assert greedy.stdout.readline().split() == ["8", "0"], "a quarter of the connections is half of the places"
        assert daemon.get(f"/v1/runs/{run}?wait=1").json["state"] == "queued"
    finally:
        greedy.stdin.close()
        greedy.wait(PATIENCE)
    cancel(daemon, run)


def test_the_command_line_polls_where_it_cannot_wait(held):
    """All places are taken: a run that was accepted is followed all the same, to its end."""
    daemon, run = held("--connections=32")
    crowd = [ask(daemon, waiting_for(run, b"/events")) for _ in range(16)]  # they stay: a wait ends after a minute
    all_are_read(daemon)
    assert daemon.get(f"/v1/runs/{run}?wait=1").status == 503
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "NUMAPROBE_URL": f"http://127.0.0.1:{daemon.port}"}
    client = str(build_dir() / "client" / "numaprobe")
    followers = [subprocess.Popen([client, "show", str(run), "--follow"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env),
                 subprocess.Popen([client, "run", "--size=1", "--cpus=0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)]
    until(lambda: len(daemon.get("/v1/runs?state=queued").json["runs"]) == 2)
    # One was refused before; each of these is refused its stream and its long poll.
    until(lambda: int(re.search(rb'\{[a-z]+="503"\} (\d+)', daemon.get("/metrics").body)[1]) >= 5)
    assert all(one.poll() is None for one in followers)
    for one in daemon.get("/v1/runs?state=queued").json["runs"]:
        cancel(daemon, one["id"])
    for one, code in zip(followers, (0, 1)):
        out, err = one.communicate(timeout=PATIENCE)
        assert one.returncode == code and "canceled" in out + err, (out, err)
    for s in crowd:
        s.close()


def test_time_is_over_for_some(held):
    """Short waits end while long ones go on, and none before its time."""
    daemon, run = held()
    begun = time.monotonic()
    crowd = {s: ask(daemon, waiting_for(run, b"?wait=%d" % s)) for s in (4, 2, 60, 6)}
    for seconds in (2, 4, 6):
        assert b'"queued"' in read_answer(crowd.pop(seconds))[2] and time.monotonic() - begun > seconds - 0.1
    assert not select.select([crowd[60]], [], [], 0)[0]
    cancel(daemon, run)
    assert b'"canceled"' in read_answer(crowd[60])[2]


def test_stop_while_many_wait(held):
    """All are answered, and the daemon ends well."""
    daemon, run = held("--connections=1024")
    crowd = [ask(daemon, waiting_for(run)) for _ in range(300)]
    crowd += [ask(daemon, waiting_for(run, b"/events")) for _ in range(100)]
    all_are_read(daemon)
    assert daemon.stop() == 0, "\n".join(daemon.log)
    answers = [read_answer(s) for s in crowd]
    assert {status for status, _, _ in answers} == {200}, next(a for a in answers if a[0] != 200)


def test_descriptors_are_enough_or_it_says_so(numaprobed, tmp_path):
    few = subprocess.run([str(numaprobed), "--listen=127.0.0.1:0", "--connections=2000", f"--state-dir={tmp_path}/s",
                          f"--run-dir={tmp_path}/r"], capture_output=True, text=True, timeout=PATIENCE, check=False,
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (600, 600)))
    assert few.returncode != 0
    assert "connections = 2000 on 2 sockets need 4512 file descriptors and the limit is 600" in few.stderr
