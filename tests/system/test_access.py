# SPDX-License-Identifier: Apache-2.0
"""Who may do what: by account, by token, as anybody; and what is refused to stand open."""
import contextlib
import http.client
import json
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time

import pytest
import yaml

from conftest import FAKE_BENCH, PATIENCE, ROOT, Daemon, build_dir, fake_bench_env

CLIENT = build_dir() / "client" / "numaprobe"
READER = ["--anonymous=read"]
RANK = {"none": 0, "read": 1, "run": 2, "admin": 3}


def cli(*args, daemon=None, env=None, **kw):
    full = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **(env or {})}
    if daemon:
        full.setdefault("NUMAPROBE_URL", "unix:" + daemon.socket)
    return subprocess.run([str(CLIENT), *args], capture_output=True, text=True, env=full, timeout=PATIENCE, **kw)


@pytest.fixture(scope="module")
def guarded(numaprobed):
    """A daemon as it comes: anybody may read, no more. Others can reach its socket's folder."""
    home = tempfile.mkdtemp(prefix="np-access.", dir="/tmp")
    d = Daemon(numaprobed, home, fake_bench_env(), READER).start()
    yield d
    assert d.stop() == 0, "\n".join(d.log)
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="module")
def tokens(guarded):
    """{scope: token}, made as an administrator makes them."""
    made = {}
    for scope in ("read", "run", "admin"):
        done = cli("token", "create", "of-" + scope, "--scope=" + scope, daemon=guarded)
        assert done.returncode == 0, done.stderr
        made[scope] = done.stdout.strip()
        assert re.fullmatch(r"np_[0-9a-f]{64}", made[scope])
    return made


def bearer(token):
    return {"Authorization": "Bearer " + token}


def operations():
    contract = yaml.safe_load((ROOT / "api" / "openapi.yaml").read_text())
    for path, item in contract["paths"].items():
        for method in set(item) & {"get", "post", "put", "delete"}:
            security = item[method]["security"]
            yield method.upper(), path, security[0]["token"][0] if security else "none"


@pytest.mark.parametrize("method,path,scope", sorted(operations()))
def test_every_route_wants_its_scope(guarded, tokens, method, path, scope):
    """Nothing, then a token of each scope: 401 and 403 below the route's, something else from it on."""
    place = path.replace("{id}", "999999").replace("{name}", "nobody")
    body = "{}" if method in ("POST", "PUT") else None
    anonymous = guarded.request(method, place, body)
    assert (anonymous.status == 401) == (RANK[scope] > RANK["read"]), anonymous.body
    if anonymous.status == 401:
        assert anonymous.headers["WWW-Authenticate"].startswith("Bearer")
        assert anonymous.json["type"] == "/problems/unauthorized"
    for name, token in tokens.items():
        if path == "/v1/backup" and name == "admin":
            continue  # a whole database is not needed here
        answer = guarded.request(method, place, body, bearer(token))
        assert (answer.status == 403) == (RANK[name] < RANK[scope]), (name, answer.status, answer.body)
        assert answer.status != 401


@pytest.mark.parametrize("value", ["Bearer wrong", "Bearer ", "Bearer", "Basic cm9vdDo=", "np_", "Bearer np_" + "0" * 64,
                                   "Bearer np_" + "0" * 3000])
def test_a_wrong_token_opens_nothing(guarded, tokens, value):
    """Not even what anybody may do: a client that shows a token wants to know that it is none."""
    # libmicrohttpd 1.0 cuts blanks at the end, and a head that is not what we were shown is 400.
    refusals = (400, 401) if value.endswith(" ") else (401,)
    for path in ("/v1/runs", "/healthz"):
        assert guarded.request("GET", path, headers={"Authorization": value}).status in refusals


def test_the_body_of_a_stranger_is_not_read(guarded):
    """32 MiB of an import are refused when the headers are in."""
    status, head, _ = guarded.raw(b"POST /v1/imports HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\n"
                                  b"Content-Length: 33000000\r\n\r\n")
    assert status == 401 and b"Connection: close" in head


def test_tokens_are_kept_as_hashes(guarded, tokens):
    path = guarded.home / "state" / "tokens"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    kept = path.read_text()
    listed = guarded.request("GET", "/v1/tokens", headers=bearer(tokens["admin"]))
    assert {t["name"] for t in listed.json["tokens"]} >= {"of-read", "of-run", "of-admin"}
    import hashlib
    for token in tokens.values():
        assert hashlib.sha256(token.encode()).hexdigest() in kept
        for place in [kept, listed.body.decode(), "\n".join(guarded.log)]:
            assert token not in place
        for file in (guarded.home / "state").iterdir():
            assert token.encode() not in file.read_bytes(), file
    again = cli("token", "create", "of-run", daemon=guarded)
    assert again.returncode == 1 and "already" in again.stderr
    assert path.read_text() == kept


def test_a_revoked_token_opens_nothing(guarded):
    token = cli("token", "create", "short", "--scope=run", daemon=guarded).stdout.strip()
    assert guarded.request("POST", "/v1/runs", {}, bearer(token)).status == 422
    assert "short" in cli("token", "list", daemon=guarded).stdout
    assert cli("token", "revoke", "short", daemon=guarded).returncode == 0
    assert guarded.request("POST", "/v1/runs", {}, bearer(token)).status == 401
    assert guarded.request("GET", "/v1/runs", headers=bearer(token)).status == 401
    assert "short" not in cli("token", "list", daemon=guarded).stdout
    assert cli("token", "revoke", "short", daemon=guarded).returncode == 5


@pytest.mark.parametrize("wish,member", [({"name": "a b", "scope": "read"}, "name"), ({"name": "x" * 64, "scope": "read"}, "name"),
                                         ({"name": "../x", "scope": "read"}, "name"), ({"name": "x"}, "scope"),
                                         ({"name": "x", "scope": "none"}, "scope"), ({"name": "x", "scope": "root"}, "scope"),
                                         ({"name": "x", "scope": "read", "hash": "0"}, "hash")])
def test_a_wrong_wish_is_named(guarded, tokens, wish, member):
    answer = guarded.request("POST", "/v1/tokens", wish, bearer(tokens["admin"]))
    assert answer.status == 422 and answer.json["member"] == member


def test_a_file_that_others_may_read_opens_nothing(make_daemon):
    daemon = make_daemon(fake_bench_env(), args=READER)
    token = cli("token", "create", "x", "--scope=admin", daemon=daemon).stdout.strip()
    path = daemon.home / "state" / "tokens"
    assert daemon.request("POST", "/v1/runs", {}, bearer(token)).status == 422
    path.chmod(0o640)
    assert daemon.request("POST", "/v1/runs", {}, bearer(token)).status == 401
    daemon.stop()
    assert any("chmod 0600" in line for line in daemon.log)
    path.chmod(0o600)
    daemon.log.clear()
    daemon.start()
    assert daemon.request("POST", "/v1/runs", {}, bearer(token)).status == 422, "tokens outlive a restart"


def refused(numaprobed, home, *args):
    """What the daemon says when it does not start. --check-config says the same."""
    words = [str(numaprobed), "--config=/dev/null", "--listen=127.0.0.1:0", f"--state-dir={home}/state", f"--run-dir={home}/run", *args]
    done, check = (subprocess.run([*words, *more], capture_output=True, text=True, timeout=PATIENCE,
                                  env={"PATH": os.environ["PATH"], "HOME": str(home)}) for more in ([], ["--check-config"]))
    assert done.returncode != 0
    assert check.returncode == 2, check.stderr
    plain = done.stderr.replace('\\"', '"')  # in the log a quote has a backslash
    assert check.stderr.strip().rpartition(": ")[2] in plain, (check.stderr, done.stderr)
    return plain


def test_a_token_of_two_lines_is_of_the_larger_scope(make_daemon):
    """read and run do not make admin, whatever the file says."""
    daemon = make_daemon(fake_bench_env(), args=["--anonymous=none"])
    token = cli("token", "create", "x", "--scope=read", daemon=daemon).stdout.strip()
    path = daemon.home / "state" / "tokens"
    line = path.read_text()
    path.write_text(line + line.replace("x read", "y run"))
    assert daemon.request("POST", "/v1/runs", {}, bearer(token)).status == 422
    assert daemon.request("GET", "/v1/tokens", None, bearer(token)).status == 403


def test_a_token_file_that_cannot_be_trusted(numaprobed, tmp_path):
    path = tmp_path / "tokens"
    option = f"--token-file={path}"
    path.write_text("")
    path.chmod(0o644)
    assert "chmod 0600" in refused(numaprobed, tmp_path, option)
    path.chmod(0o600)
    path.write_text("x root 00 2026-01-01T00:00:00Z\n")
    assert "tokens:1" in refused(numaprobed, tmp_path, option)
    line = "x read " + "0" * 64 + " 2026-01-01T00:00:00Z\n"
    path.write_text(line + line.replace("read", "run"))
    assert 'tokens:2: a second "x"' in refused(numaprobed, tmp_path, option)
    path.unlink()
    other = tmp_path / "other"
    other.write_text("")
    other.chmod(0o600)
    path.symlink_to(other)
    assert "is a link" in refused(numaprobed, tmp_path, option)
    path.unlink()
    path.mkdir()
    assert "token_file: " in refused(numaprobed, tmp_path, option) and "is not a file" in refused(numaprobed, tmp_path, option)


# ---- accounts

ASK = """
import http.client, json, socket, sys
class C(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX); self.sock.connect(sys.argv[1])
for method, path in json.loads(sys.argv[2]):
    try:
        c = C("localhost")
        try:
            c.request(method, path, "{}" if method == "POST" else None, {"Content-Type": "application/json"})
        except BrokenPipeError:
            pass  # refused before the body: the answer is there to read
        print(c.getresponse().status)
    except PermissionError:
        print("refused")
"""
WISHES = [["GET", "/v1/runs"], ["POST", "/v1/runs"], ["DELETE", "/v1/runs/999999"]]


def as_somebody(daemon, group="nogroup", extra=()):
    if os.geteuid() != 0:
        pytest.skip("needs root to be somebody else")
    done = subprocess.run(["/usr/bin/python3", "-c", ASK, daemon.socket, json.dumps(WISHES)], user="nobody", group=group,
                          extra_groups=list(extra), capture_output=True, text=True, timeout=PATIENCE, cwd="/")
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_daemons_own_account_may_do_everything(guarded):
    for method, path in WISHES:
        status = guarded.request(method, path, "{}" if method == "POST" else None, unix=True).status
        assert status not in (401, 403)


def test_other_accounts_do_not_reach_the_socket(guarded):
    assert as_somebody(guarded) == ["refused"] * 3


@pytest.mark.parametrize("option,group,extra,statuses", [
    ("--run-group=games", "nogroup", [], ["200", "401", "401"]),
    ("--run-group=games", "games", [], ["200", "422", "401"]),
    ("--run-group=games", "nogroup", ["games"], ["200", "422", "401"]),
    ("--admin-group=games", "nogroup", ["games"], ["200", "422", "404"]),
    ("--run-group=nogroup", "nogroup", [], ["200", "401", "401"]),  # what nobody is mapped to is no group
])
def test_members_of_a_group(make_daemon, option, group, extra, statuses):
    home = tempfile.mkdtemp(prefix="np-group.", dir="/tmp")
    daemon = make_daemon(fake_bench_env(), args=[*READER, option], home=home)
    try:
        assert as_somebody(daemon, group, extra) == statuses
    finally:
        daemon.stop()
        shutil.rmtree(home, ignore_errors=True)


def test_a_start_and_a_check_refuse_the_same(numaprobed, tmp_path):
    assert "run_group" in refused(numaprobed, tmp_path, "--run-group=no-such-group")
    if os.geteuid() == 0:
        assert "job_user" in refused(numaprobed, tmp_path, "--job-user=no-such-user")
    assert "is not a socket" in refused(numaprobed, tmp_path, f"--socket={tmp_path}")
    (tmp_path / "file").write_text("")
    for option in ("state-dir", "run-dir"):
        for path in (tmp_path / "file", tmp_path / "file" / "below"):
            said = refused(numaprobed, tmp_path, f"--{option}={path}")
            assert f"{option.replace('-', '_')}: {path} is not a directory" in said, said
    assert "run_dir: must be an absolute path" in refused(numaprobed, tmp_path, "--run-dir=below")
    assert "state_dir: must be an absolute path" in refused(numaprobed, tmp_path, "--state-dir=below")
    said = refused(numaprobed, tmp_path, f"--socket={tmp_path}/no/such/socket")
    assert "socket: " in said and "No such file or directory" in said, said
    for twice in ("127.0.0.1:29997,127.0.0.1:29997", "[::1]:29997, [::1]:29997", "localhost:29997,127.0.0.1:29997",
                  "[::1]:29997,[0:0:0:0:0:0:0:1]:29997", "127.0.0.1:29997,[::ffff:127.0.0.1]:29997"):
        assert "is listed twice" in refused(numaprobed, tmp_path, f"--listen={twice}")
    for overlap in ("127.0.0.1:29997,0.0.0.0:29997", "[::]:29997,[::1]:29997"):
        said = refused(numaprobed, tmp_path, f"--listen={overlap}", "--insecure-plaintext")
        assert "cannot have one port" in said and "in use" not in said
    for address in ("[fe80::1%lo]:0", "[fe80::1]:0"):
        assert "an address of one network card" in refused(numaprobed, tmp_path, f"--listen={address}", "--insecure-plaintext")
    for address in (":", "a:b", "127.0.0.1:65536", "::1:0", "127.0.0.1:0;", "127.0.0.1:0,a:b", f"127.0.0.1:{'0' * 80}80"):
        assert "listen" in refused(numaprobed, tmp_path, f"--listen={address}")
    done = subprocess.run([str(numaprobed), "--config=/dev/null", f"--state-dir={tmp_path}/other", "--check-config",
                           "--listen= 127.0.0.1:0 , [::1]:0 ,"], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and not done.stderr and not (tmp_path / "other").exists(), done


def test_nobody_without_a_token(make_daemon):
    daemon = make_daemon(fake_bench_env(), args=["--anonymous=none"])
    for path in ("/healthz", "/", "/web/style.css"):  # where a token is asked for, and nothing of this node
        assert daemon.get(path).status == 200
    for path in ("/metrics", "/v1/node", "/v1/runs", "/openapi.json"):
        assert daemon.get(path).status == 401
    assert daemon.request("GET", "/v1/runs", unix=True).status == 200


def test_ranks_are_never_root(make_daemon):
    """A daemon that is root gives them another account."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    daemon = make_daemon(fake_bench_env())
    assert daemon.get("/v1/node").json["job_account"] in ("numaprobe", "nobody")
    run = daemon.run(size="1-4")
    assert run["state"] == "succeeded" and not any(c["kind"] == "account" for c in run["conditions"]), run


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_rather_no_ranks_than_ranks_of_root(make_daemon, tmp_path):
    """An account that cannot do it is no reason to fall back to root: it says so, and serves what needs no ranks."""
    tmp_path.chmod(0o700)
    daemon = make_daemon(fake_bench_env(), [f"--run-dir={tmp_path}/run"])
    answer = daemon.post("/v1/runs", {"benchmark": "latency", "size": "1-4"})
    assert answer.status == 503 and "do not run as root" in answer.json["detail"], answer.body
    assert "--job-user=root" in answer.json["detail"] and "run directory" in answer.json["detail"]
    assert daemon.get("/v1/node").json["job_account"].startswith("none (")
    checks = {c["name"]: c for c in daemon.get("/readyz?verbose").json["checks"]}
    assert not checks["programs"]["ok"] and "do not run as root" in checks["programs"]["text"]
    tmp_path.chmod(0o711)  # mended without a restart
    run = daemon.run(size="1-4")
    assert run["state"] == "succeeded"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_ranks_of_root_when_told(make_daemon, tmp_path):
    daemon = make_daemon(fake_bench_env(), ["--job-user=root"])
    assert any("event=runner.root" in line for line in daemon.log), daemon.log
    run = daemon.run(size="1-4")
    assert run["state"] == "succeeded" and any("ranks run as root" in c["text"] for c in run["conditions"]), run["conditions"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_bench_out_of_reach_is_copied(make_daemon, tmp_path):
    """A clone below /root, where no other account comes."""
    bench = tmp_path / "closed" / "numa_bench"
    bench.parent.mkdir(mode=0o700)
    shutil.copy(FAKE_BENCH, bench)
    daemon = make_daemon({**fake_bench_env(), "NUMAPROBE_BENCH": str(bench)})
    assert daemon.run(size="1-4")["state"] == "succeeded"
    assert any("event=runner.bench_copied" in line and str(bench) in line for line in daemon.log), daemon.log
    assert (daemon.home / "run" / "numa_bench").exists()
    assert daemon.stop() == 0 and not (daemon.home / "run" / "numa_bench").exists()


def test_the_log_says_who(make_daemon):
    daemon, began = make_daemon(fake_bench_env(), args=READER), time.monotonic()
    token = cli("token", "create", "night-job", "--scope=run", daemon=daemon).stdout.strip()
    daemon.wait_for_line(rf"event=request .*from=uid:{os.geteuid()} token=- method=POST path=/v1/tokens status=201")
    daemon.request("POST", "/v1/runs", {}, bearer(token))
    own = rf"uid:{os.geteuid()}@127\.0\.0\.1"
    daemon.wait_for_line(rf"event=request .*from={own} token=night-job method=POST path=/v1/runs status=422")
    daemon.post("/v1/runs", {})
    daemon.wait_for_line(rf"event=refused .*from={own} token=- method=POST path=/v1/runs status=401 left_out=0")
    daemon.get("/v1/runs")  # a look is nothing for the log
    for _ in range(200):
        daemon.request("GET", "/v1/runs", headers=bearer("guess"))
    daemon.stop()
    refused = [line for line in daemon.log if "event=refused" in line]
    assert 20 <= len(refused) < 30 + 2 * (time.monotonic() - began), "a guesser does not fill the log: 20 at once and two a second"
    assert not any("guess" in line or token in line or "method=GET" in line and "status=200" in line for line in daemon.log)


SPEC = {"benchmark": "latency", "size": "1", "cpus": "0"}
FLOOD = """
import http.client, sys
sent, statuses = int(sys.argv[2]), set()
for method, path, headers, body in eval(sys.argv[3]):
    for _ in range(sent):
        c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=120)
        try:
            c.request(method, path, body, headers)
        except (BrokenPipeError, ConnectionResetError):
            pass
        statuses.add(c.getresponse().status)
        c.close()
print(*sorted(statuses))
"""
JSON_TYPE = {"Content-Type": "application/json"}
FAILURES = [
    ("POST", "/x", {}, None), ("POST", "/healthz", {}, None), ("BREW", "/x", {}, None), ("GET", "/v1/runs?x=y", {}, None),
    ("DELETE", "/", {"X": "a\x01b"}, None), ("PUT", "/healthz", {"Host": "evil.test"}, None),
    ("POST", "/v1/runs", {"Origin": "http://evil.test"}, None), ("POST", "/v1/runs", JSON_TYPE, "{}"),
    ("POST", "/v1/runs", JSON_TYPE, " " * 70000), ("POST", "/v1/runs", {"Content-Type": "text/plain"}, "{}"),
    ("POST", "/v1/runs?dry_run=true", JSON_TYPE, json.dumps(SPEC)), ("DELETE", "/v1/runs/999", {}, None),
]


def flood(daemon, sent, headers, uid=None):
    who = ["setpriv", f"--reuid={uid}", "--regid=65534", "--clear-groups"] if uid else []
    calls = [(method, path, {**given, **headers}, body) for method, path, given, body in FAILURES]
    done = subprocess.run([*who, "/usr/bin/python3", "-c", FLOOD, str(daemon.port), str(sent), repr(calls)], text=True,
                          capture_output=True, timeout=PATIENCE, cwd="/")
    assert done.returncode == 0, done.stderr
    return set(map(int, done.stdout.split()))


def lines_of(daemon):
    daemon.stop()
    return [line for line in daemon.log if "event=request " in line or "event=refused " in line]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be somebody else")
def test_strangers_neither_fill_the_log_nor_hide_a_change(make_daemon):
    """Whatever is refused to them; and the change of an administrator in the middle of it is there."""
    daemon, began = make_daemon(fake_bench_env(), args=READER), time.monotonic()
    made = []
    for uid in range(3000, 3008):
        assert flood(daemon, 25, {}, uid) == {400, 401, 403, 404, 405, 421}
        name = f"of-{uid}"
        assert cli("token", "create", name, daemon=daemon).returncode == 0
        daemon.wait_for_line("path=/v1/tokens status=201")  # so the log is read: on a busy machine a pipe would not hold it
        made.append(name)
    daemon.request("DELETE", "/v1/runs/999", unix=True)
    lines = lines_of(daemon)
    theirs = [line for line in lines if re.search(r"from=uid:300\d@", line)]
    assert 100 <= len(theirs) < 110 + 2 * (time.monotonic() - began), "of 2,000 and more; 100 at once and two a second"
    assert len([line for line in lines if "path=/v1/tokens status=201" in line]) == len(made)
    assert any(re.search(r"from=uid:0 .*method=DELETE path=/v1/runs/999 status=404", line) for line in lines)
    assert sum(int(n) for line in lines for n in re.findall(r"left_out=(\d+)", line)) > 1000, "it is said how many"
    assert not any(ord(c) < 0x20 or ord(c) > 0x7e for line in lines for c in line)


def test_failures_of_a_client_that_may_change_things_are_bounded_too(make_daemon):
    """A run token: its failures and its dry runs, which change nothing."""
    daemon, began = make_daemon(fake_bench_env(), args=READER), time.monotonic()
    token = cli("token", "create", "night-job", "--scope=run", daemon=daemon).stdout.strip()
    assert flood(daemon, 40, bearer(token)) == {200, 400, 403, 404, 405, 413, 415, 421, 422}
    run = daemon.request("POST", "/v1/runs", SPEC, bearer(token)).json["id"]
    lines = [line for line in lines_of(daemon) if "token=night-job" in line]
    assert 20 <= len(lines) < 30 + 2 * (time.monotonic() - began), "of 480; 20 at once and two a second"
    assert any("path=/v1/runs status=202" in line for line in lines), run


@pytest.fixture
def small_disk(tmp_path):
    """A home on a file system that has less than a ready daemon wants to spare."""
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=60m,mode=755", "numaprobe-test", str(tmp_path)], capture_output=True)
    if done.returncode:
        pytest.skip("cannot mount a small file system here")
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def test_nothing_is_taken_in_where_the_disk_is_short(make_daemon, small_disk):
    """Imports, labels and baselines would take what the results of runs need: 507 where /readyz says 503."""
    daemon, began = make_daemon(fake_bench_env(), home=small_disk), time.monotonic()
    csv = b"size (MB),0\n1,12.3\n64,99.5\n"
    run = daemon.run(size="1")["id"]
    tried = {
        "import": daemon.request("POST", "/v1/imports", csv, {"Content-Type": "text/csv"}),
        "label": daemon.request("PUT", f"/v1/runs/{run}/label", {"label": "kept"}),
        "baseline": daemon.request("PUT", "/v1/baselines/default", {"run": run}),
    }
    assert {name: answer.status for name, answer in tried.items()} == dict.fromkeys(tried, 507)
    assert all("below 64" in answer.json["detail"] for answer in tried.values())
    assert daemon.request("POST", "/v1/imports?dry_run=true", csv, {"Content-Type": "text/csv"}).status == 200
    assert daemon.request("PUT", f"/v1/runs/{run}/label", {"label": ""}).status == 200, "it takes nothing"
    assert {daemon.get("/readyz").status for _ in range(300)} == {503}
    daemon.stop()
    assert len([line for line in daemon.log if "event=request.failed" in line]) < 30 + 2 * (time.monotonic() - began), \
        "a failure is for the asking"


# ---- what is whose

def test_a_key_belongs_to_its_client(make_daemon):
    """The same key of another account or token is another run; nobody takes over a predictable one."""
    daemon = make_daemon(fake_bench_env(), args=READER)
    tokens = [cli("token", "create", name, "--scope=run", daemon=daemon).stdout.strip() for name in ("a", "b")]
    key = {"Idempotency-Key": "nightly-2026-11-22"}

    def ask(headers, unix=False):
        answer = daemon.request("POST", "/v1/runs", SPEC, {**headers, **key}, unix=unix)
        assert answer.status in (200, 202), answer.body
        return answer.json["id"]
    runs = [ask({}, unix=True), ask(bearer(tokens[0])), ask(bearer(tokens[1]), unix=True)]
    assert len(set(runs)) == 3
    assert [ask({}, unix=True), ask(bearer(tokens[0]), unix=True), ask(bearer(tokens[1]))] == runs
    other = daemon.request("POST", "/v1/runs", {**SPEC, "size": "2"}, {**key, **bearer(tokens[0])})
    assert other.status == 409


BUSY = "import time\nwhile True: pass\n"


# Who looks, and what it reads about a process of another account.
NAMED, HIDDEN = r"process \d+ \(.*, user \d+\)", r"a process of (another|the daemon's) account computes on CPU"
LOOKS = {"unix": (NAMED, lambda daemon, token: daemon.request("GET", "/v1/availability", unix=True)),
         "tcp": (HIDDEN, lambda daemon, token: daemon.get("/v1/availability")),
         "token": (HIDDEN, lambda daemon, token: daemon.request("GET", "/v1/availability", headers=token)),
         "dry run": (HIDDEN, lambda daemon, token: daemon.request("POST", "/v1/runs?dry_run=true", SPEC, token))}


def before_all_else():
    """A nice value counts within a session only, where the kernel groups tasks by session (sched(7))."""
    os.setpriority(os.PRIO_PROCESS, 0, -10)
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w", encoding="ascii") as group:
        group.write("-10")


@pytest.fixture
def busy_process():
    """Before all else on its CPU, because only a process that has at least a quarter of one is called busy."""
    other = subprocess.Popen(["taskset", "--cpu-list", str(min(os.sched_getaffinity(0))), "setpriv", "--reuid=1234", "--regid=65534",
                              "--clear-groups", "/usr/bin/python3", "-c", BUSY],
                             start_new_session=True, preexec_fn=before_all_else)
    yield other
    other.kill()
    other.wait()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be somebody else")
@pytest.mark.parametrize("who", LOOKS)
def test_names_of_processes_are_not_for_everybody(make_daemon, busy_process, who):
    """Only who may measure, and asks on the unix socket, sees whose process computes."""
    wanted, look = LOOKS[who]
    for _ in range(20):  # the first look of a daemon has the processes; the next one may have the CPUs' shares, without names
        daemon = make_daemon({**fake_bench_env(), "NUMAPROBED_ADMISSION": "warn"}, args=READER)
        token = bearer(cli("token", "create", "x", "--scope=admin", daemon=daemon).stdout.strip())
        seen = look(daemon, token).body.decode()
        assert wanted == NAMED or not re.search(NAMED, seen), seen
        if re.search(wanted, seen):
            break
        daemon.stop()
    else:
        pytest.fail("no look met a busy process: " + seen)
    if who != "unix":
        return
    run = daemon.request("POST", "/v1/runs", SPEC, unix=True).json["id"]
    next(e for e in daemon.events(run) if e[2]["state"] == "running")  # it has looked: now the ranks may have the CPU
    busy_process.kill()
    daemon.wait(run)
    for path in (f"/v1/runs/{run}", f"/v1/runs/{run}/export", "/v1/feed", f"/v1/runs/{run}/report.md"):
        for unix in (False, True):
            assert not re.search(NAMED, daemon.request("GET", path, unix=unix).body.decode()), path


# ---- beyond loopback

def outside():
    """An address of this machine that is not loopback, or None."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))
            return s.getsockname()[0]
        except OSError:
            return None


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "192.0.2.7:7780"])
def test_beyond_loopback_is_refused(numaprobed, tmp_path, address):
    said = refused(numaprobed, tmp_path, "--listen=" + address)
    assert "--insecure-plaintext" in said and "not a loopback" in said
    assert "--insecure-plaintext" in refused(numaprobed, tmp_path, "--listen=" + address, "--insecure-anonymous")


@pytest.mark.parametrize("options,reading", [([], 401), (["--insecure-anonymous"], 200),
                                             (["--insecure-anonymous", "--anonymous=admin"], 200)])
def test_told_once_it_wants_tokens_told_twice_it_lets_read(make_daemon, options, reading):
    daemon = make_daemon(fake_bench_env(), args=["--anonymous=read", *options, "--insecure-plaintext",
                                                 "--listen=127.0.0.1:0,0.0.0.0:0"])
    port = int(re.search(r"0\.0\.0\.0:(\d+)", daemon.log[-1] if "0.0.0.0" in daemon.log[-1] else "\n".join(daemon.log))[1])
    inside = daemon.port
    daemon.port = port  # by loopback, but at the address that everybody reaches
    assert daemon.get("/v1/runs").status == reading
    assert daemon.post("/v1/runs", {}).status == 401
    token = cli("token", "create", "far", "--scope=run", daemon=daemon).stdout.strip()
    assert daemon.request("POST", "/v1/runs", {}, bearer(token)).status == 422
    daemon.port = inside
    assert daemon.get("/v1/runs").status == 200


def test_host_names(make_daemon):
    daemon = make_daemon(fake_bench_env(), args=["--host-names=node1, probe.example ,,[fd00::1],"])
    for host, status in {"node1": 200, "PROBE.example:443": 200, "[fd00::1]:7780": 200, "probe.example.evil.test": 421, "example": 421,
                         "evil.test": 421, "localhost": 200}.items():
        assert daemon.request("GET", "/healthz", headers={"Host": host}).status == status, host


def test_the_host_name_of_the_machine(make_daemon):
    """Beyond loopback it is what a user enters first. On loopback a page of another site could have any name."""
    daemon = make_daemon(fake_bench_env(), args=["--insecure-anonymous", "--insecure-plaintext", "--listen=127.0.0.1:0,0.0.0.0:0"])
    inside, outside = daemon.port, int(re.search(r"0\.0\.0\.0:(\d+)", "\n".join(daemon.log))[1])
    name = socket.gethostname()
    said_own = "the machine's host name"
    for host, status in {name: 200, name.upper(): 200, f"{name.split('.')[0]}:{outside}": 200, f"{name}.evil.test": 421,
                         f"evil.{name}": 421, name[1:]: 421, "": 400}.items():
        daemon.port = outside
        said = daemon.request("GET", "/healthz", headers={"Host": host})
        assert said.status == status and (status != 421 or said_own in said.json["detail"]), (host, said.status)
        daemon.port = inside
        said = daemon.request("GET", "/healthz", headers={"Host": host})
        assert said.status == max(status, 400 if not host else 421) and said_own not in said.json["detail"], (host, said.status)


def test_every_address_of_a_daemon_that_listens_on_all(make_daemon):
    daemon = make_daemon(fake_bench_env(), args=["--insecure-anonymous", "--insecure-plaintext", "--listen=127.0.0.1:0,0.0.0.0:0,[::]:0"])
    ports = dict(re.findall(r"(0\.0\.0\.0|\[::\]):(\d+)", "\n".join(daemon.log)))
    for listening, contacted, host, status in (("0.0.0.0", "127.0.0.2", "127.0.0.2", 200), ("0.0.0.0", "127.0.0.2", "127.0.0.3", 421),
                                               ("0.0.0.0", "127.0.0.2", "0.0.0.0", 200), ("[::]", "::1", "[::]", 200)):
        connection = http.client.HTTPConnection(contacted, int(ports[listening]), timeout=PATIENCE)
        connection.request("GET", "/healthz", headers={"Host": f"{host}:{ports[listening]}"})
        assert connection.getresponse().status == status, (listening, contacted, host)
        connection.close()


def ports_of(daemon):
    return [int(port) for port in re.findall(r":(\d+)(?:,|$)", re.search(r"listen=(\S*)", "\n".join(daemon.log))[1])]


def status_at(address, port, host):
    connection = http.client.HTTPConnection(address, port, timeout=PATIENCE)
    with contextlib.closing(connection):
        connection.request("GET", "/healthz", headers={"Host": host})
        return connection.getresponse().status


@pytest.mark.parametrize("both", ["0.0.0.0:{0},[::]:{0}", "[::]:{0},127.0.0.1:{0}"])
def test_both_families_at_one_port(make_daemon, both):
    """[::] had taken the port of IPv4 too: it was in use by another program."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    daemon = make_daemon(fake_bench_env(), args=["--insecure-plaintext", "--listen=127.0.0.1:0," + both.format(port)])
    assert ports_of(daemon)[1:] == [port, port]
    assert status_at("127.0.0.1", port, "localhost") == status_at("::1", port, "localhost") == 200


def test_an_address_in_other_words_is_the_same(make_daemon):
    """Programs send 2001:db8::1 for 2001:db8:0:0::1."""
    daemon = make_daemon(fake_bench_env(), args=["--insecure-plaintext", "--host-names=[2001:DB8:0:0::1]",
                                                 "--listen=127.0.0.1:0,[::0]:0,[0:0:0:0:0:0:0:1]:0,[::ffff:127.0.0.1]:0"])
    _, every, six, mapped = ports_of(daemon)
    assert "[::]:" in "".join(daemon.log)
    for address, port, host, status in (("::1", every, "[0:0::1]", 200), ("127.0.0.2", every, "127.0.0.2", 200),
                                        ("::1", six, "[2001:db8::1]", 200), ("::1", six, "[2001:db8::2]", 421),
                                        ("::1", six, "[::1::]", 421), ("127.0.0.1", mapped, "127.0.0.1", 200)):
        assert status_at(address, port, f"{host}:{port}") == status, (port, host)


@pytest.mark.parametrize("name", ["https://node1", "node1:7443", "a,b/c", "a b", "[::1", "[::1]:80", "*"])
def test_a_name_that_no_host_can_be_is_refused(numaprobed, tmp_path, name):
    assert "--host-names: must be host names with commas" in refused(numaprobed, tmp_path, f"--host-names={name}")


# ---- what every answer says to browsers

@pytest.mark.parametrize("path", ["/", "/web/style.css", "/web/nothing", "/v1/runs", "/healthz", "/metrics", "/nothing", "/v1/tokens"])
def test_answers_are_closed_to_other_sites(guarded, path):
    headers = guarded.get(path).headers
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert not [h for h in headers if h.lower().startswith("access-control-") or h.lower() == "set-cookie"]


def test_no_preflight_is_answered(guarded):
    answer = guarded.request("OPTIONS", "/v1/runs", headers={
        "Origin": "http://evil.test", "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type"})
    assert answer.status in (403, 405)
    assert not [h for h in answer.headers if h.lower().startswith("access-control-")]


# ---- the command line keeps its token

def test_the_client_sends_a_token(guarded, tokens, tmp_path):
    url = f"http://127.0.0.1:{guarded.port}"
    done = cli("token", "list", env={"NUMAPROBE_URL": url})
    assert done.returncode == 4 and "--token-file" in done.stderr and "--url=unix:" in done.stderr
    assert cli("token", "list", env={"NUMAPROBE_URL": url, "NUMAPROBE_TOKEN": tokens["run"]}).returncode == 4
    assert cli("token", "list", env={"NUMAPROBE_URL": url, "NUMAPROBE_TOKEN": tokens["admin"]}).returncode == 0
    file = tmp_path / "token"
    file.write_text(tokens["admin"] + "\n")
    file.chmod(0o600)
    assert cli("token", "list", f"--token-file={file}", env={"NUMAPROBE_URL": url}).returncode == 0
    file.chmod(0o640)
    done = cli("token", "list", f"--token-file={file}", env={"NUMAPROBE_URL": url})
    assert done.returncode == 2 and "chmod 0600" in done.stderr
    assert cli("token", "list", "--token=x").returncode == 2, "everybody could read it there"


def test_a_token_does_not_go_to_whoever_has_the_port(tmp_path):
    """Without the socket the usual port is tried; but while the daemon is down any account may listen there."""
    if os.path.exists("/run/numaprobe/numaprobed.sock"):
        pytest.skip("a daemon is installed here")
    file = tmp_path / "token"
    file.write_text("np_x\n")
    file.chmod(0o600)
    for given, options in (({"NUMAPROBE_TOKEN": "np_x"}, []), ({}, [f"--token-file={file}"]),
                           ({"NUMAPROBE_TOKEN_FILE": str(file)}, [])):
        done = cli("runs", *options, env=given)
        assert done.returncode == 2 and "--url=http://127.0.0.1:7780" in done.stderr, done.stderr
    assert cli("runs").returncode in (0, 3), "without a token it is tried"
    said = cli("runs", "--url=http://127.0.0.1:1", env={"NUMAPROBE_TOKEN": "np_x"})
    assert said.returncode == 3, "named, it is sent"


@pytest.mark.parametrize("url,sent", [("http://192.0.2.1:1", False), ("http://localhost.evil.test:1", False),
                                      ("http://127.0.0.1.evil.test:1", False), ("http://127.0.0.1@evil.test", False),
                                      ("192.0.2.1:1", False), ("evil.test", False), ("http://localhost:x@evil.test:1", False),
                                      ("http://127.0.0.1:1", True), ("http://[::1]:1", True), ("https://127.0.0.1:1", True),
                                      ("127.0.0.1:1", True), ("localhost:1", True), ("http://127.0.0.1:1/x", True)])
def test_a_token_does_not_travel_in_clear(url, sent):
    done = cli("runs", env={"NUMAPROBE_URL": url, "NUMAPROBE_TOKEN": "np_x"})
    assert ("in clear" not in done.stderr) == sent, done.stderr
    assert done.returncode == (3 if sent else 2)
