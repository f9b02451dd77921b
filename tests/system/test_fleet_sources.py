# SPDX-License-Identifier: Apache-2.0
"""Where numaprobe-fleetd finds its nodes: files, Slurm, DNS and Prometheus's lists, each by itself; and what two addresses
of one name turn out to be."""
import contextlib
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading

import pytest

from client import run
from conftest import PATIENCE, build_dir, replace_text, until
from test_fleet_campaigns import begin, probed, show
from test_fleetd import FLEETD, collect  # noqa: F401

DNS = pathlib.Path(__file__).with_name("dns_server.py")


def again(c):
    c.process.send_signal(signal.SIGHUP)


def source(c, text):
    return next(s for s in c.status()["sources"] if s["source"].startswith(text))


def printed(*options, path=None):
    env = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"} if path else None
    done = subprocess.run([FLEETD, "--print-nodes", *options], capture_output=True, text=True, timeout=PATIENCE, env=env)
    return done.stdout.split(), done.stderr, done.returncode


def put_sinfo(folder, lines):
    folder.mkdir(exist_ok=True)
    (folder / "list").write_text("".join(f">{line}\n" for line in lines))
    (folder / "sinfo").write_text(f'#!/bin/sh\necho "$@" >>{folder}/calls\ncat {folder}/list\n')
    (folder / "sinfo").chmod(0o755)


class Served:
    """One document over HTTP."""

    def __init__(self):
        self.document, self.status, self.requests, self.meanwhile = "[]", 200, [], lambda: None
        served = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                served.requests.append((self.path, dict(self.headers)))
                served.meanwhile()
                self.send_response(served.status)
                self.end_headers()
                self.wfile.write(served.document.encode())

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/sd"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def served():
    one = Served()
    yield one
    one.server.shutdown()
    one.server.server_close()


def test_each_source_fails_by_itself_and_keeps_its_last_word(collect, served, tmp_path):  # noqa: F811
    rack = tmp_path / "rack"
    groups = tmp_path / "groups"
    groups.write_text("few: node[21-22]\n")
    c = collect(30, collector=(f"--source=file:{rack}", f"--source=http_sd:{served.url}", "--source=nodes:@few",
                               f"--groups-file={groups}"))
    rack.write_text("node[11-20] class=rack1 # ten\n")
    served.document = json.dumps([{"targets": [f"node{i}:{c.fleet.port}" for i in range(20, 31)],
                                   "labels": {"class": "sd", "__meta_x": "y"}}])
    c.name(c.fleet.names[:10])
    c.start()
    c.wait_up(30)
    until(lambda: [(s["source"].split(":")[0], s["nodes"], s["problem"]) for s in c.status()["sources"]] ==
          [("file", 10, ""), ("file", 10, ""), ("http_sd", 11, ""), ("nodes", 2, "")])
    assert c.node("node20")["sources"] == [f"file:{rack}", f"http_sd:{served.url}"], "a union remembers who named a node"
    assert c.node("node20")["class_hint"] == "rack1" and c.node("node21")["class_hint"] == "sd"
    served.document = '{"targets": []}'
    replace_text(rack, "node[11-19]\n")
    again(c)
    until(lambda: source(c, "http_sd")["problem"] and c.node("node11")["class_hint"] == "")
    assert "list of groups" in source(c, "http_sd")["problem"] and source(c, "http_sd")["nodes"] == 11
    assert c.node("node20")["sources"] == [f"http_sd:{served.url}"] and c.status()["nodes"] == 30
    problem = c.status()["sources_problem"]
    assert problem and c.refusal("/readyz")[0] == 503
    done = run("fleet", "status", f"--fleet={c.url}")
    assert f"collector: {problem}" in " ".join(done.stdout.split()), (problem, done.stdout)
    served.document, served.status = "[]", 500
    again(c)
    until(lambda: "500" in source(c, "http_sd")["problem"])
    served.status = 200
    again(c)
    until(lambda: "believed if it says so again" in source(c, "http_sd")["problem"])
    assert c.status()["nodes"] == 30, "half of a source does not disappear by one list"
    again(c)
    until(lambda: source(c, "http_sd")["nodes"] == 0 and not source(c, "http_sd")["problem"])
    assert c.status()["nodes"] == 21 and c.node("node20")["state"] == "gone" and c.node("node21")["state"] == "up"
    assert source(c, f"file:{rack}")["age_s"] >= 0 and c.get("/readyz")


@pytest.mark.parametrize("document, said", [
    ("", "not JSON"), ("[", "not JSON"), ("[1]", "a group must be"), ('[{"targets": "n1"}]', "a group must be"),
    ('[{"targets": [1]}]', "HOST:PORT"), ('[{"targets": ["n1/x"]}]', "HOST:PORT"), ('[{"targets": ["-oProxy:1"]}]', "-oProxy"),
    ('[{"targets": ["n1"], "labels": {"class": 1}}]', "class"), ('[{"targets": ["a", "b"], "labels": {"node": "n"}}]', "2 targets"),
    ('[{"targets": ["[::1]:80"]}]', "label it"), ('[{"targets": ["n1"], "labels": {"__scheme__": "ftp"}}]', "__scheme__"),
    ('[{"targets": ["n1"], "labels": {"class": "a\\tb"}}]', "printable"), ('[{"targets": ["n1:65536"]}]', "a port from 1 to 65535"),
    ('[{"targets": ["n1:"]}]', "a port from 1 to 65535"), ('[{"targets": ["' + "n" * 300 + '"]}]', "HOST:PORT")])
def test_a_wrong_document_is_refused_as_a_whole(tmp_path, document, said):
    (tmp_path / "sd").write_text(document)
    names, error, status = printed(f"--source=file_sd:{tmp_path}/sd")
    assert not names and status == 2 and said in error, (error, status)


NO_NAMES = ["n\x1b[2Jx", "n\x7fx", "n\rx", "n" * 64, "n\u00fc\u0085", "n\u202e1"]


def plain(text):
    """No text of a source gets to a terminal as it came."""
    return all(c == "\n" or (c >= " " and c != "\x7f") for c in text)


@pytest.mark.parametrize("kind", ["file", "nodes", "slurm", "file_sd", "http_sd", "label", "class", "partition", "state"])
@pytest.mark.parametrize("text", NO_NAMES, ids=["escape", "delete", "return", "long", "control", "override"])
def test_what_no_node_can_be_called_is_refused_in_plain_text(tmp_path, served, kind, text):
    if kind in ("class", "partition", "state") and len(text) == 64:
        text *= 2
    if kind in ("file", "nodes"):
        text = text.replace("\r", "\x0e")  # that is a blank
    put_sinfo(tmp_path / "bin", ["n1 idle main", f"{text} idle main" if kind == "slurm" else f"n2 {text} main" if kind == "state" else
                                 f"n2 idle {text}"])
    (tmp_path / "list").write_text(f"n1\n{text}\n", newline="")
    served.document = json.dumps([{"targets": ["n1:80"]}, {"targets": [f"{text}:80"]}])
    (tmp_path / "sd").write_text(json.dumps([{"targets": ["n1:80"]}, {"targets": ["n2:80"], "labels": {
        "node" if kind == "label" else "class": text}}]) if kind in ("label", "class") else served.document)
    where, entry = {"file": (f"file:{tmp_path}/list", "line 2"), "nodes": (f"nodes:^{tmp_path}/list", "line 2"),
                    "slurm": ("slurm", '"n'), "partition": ("slurm", '"n2": partition'), "state": ("slurm", '"n2": state'),
                    "http_sd": (f"http_sd:{served.url}", "group 2"), "class": (f"file_sd:{tmp_path}/sd", 'group 2: "n2": class'),
                    }.get(kind, (f"file_sd:{tmp_path}/sd", "group 2"))
    names, error, status = printed(f"--source={where}", path=tmp_path / "bin")
    assert not names and status == 2 and f"{where}: " in error.replace("slurm:*", "slurm") and entry in error and plain(error), error


def test_a_source_that_is_read_without_https_needs_no_hosts_file(served):
    served.document = json.dumps([{"targets": ["n1:80"]}])
    assert printed(f"--source=http_sd:{served.url}", "--hosts-file=/nonexistent") == (["n1"], "", 0)
    _, error, status = printed(f"--source=http_sd:{served.url.replace('http:', 'https:')}", "--hosts-file=/nonexistent")
    assert status == 2 and "hosts_file" in error, error


def test_no_log_page_or_store_has_the_bytes_of_a_hostile_list(collect, served, tmp_path):  # noqa: F811
    c = collect(2, collector=(f"--source=http_sd:{served.url}", f"--source=file:{tmp_path}/rack", "--source=announce"))
    served.document = json.dumps([{"targets": ["n\x1b]0;x\x07\nevent=ready:80"]}])
    (tmp_path / "rack").write_bytes(b"node9\x1b[31m\n")
    c.start()
    c.wait_up(2)
    until(lambda: source(c, "http_sd")["problem"] and source(c, f"file:{tmp_path}/rack")["problem"])
    for name in ("n%1b%5b2J", "n%0aevent=ready", 64 * "n"):
        assert c.problem(f"/v1/fleet/feeds/{name}")[0] in (401, 403, 404)
        assert c.problem(f"/v1/fleet/nodes/{name}")[0] == 404, name
    texts = [c.log.read_text(), json.dumps(c.status(), ensure_ascii=False), json.dumps(c.problem("/v1/fleet/nodes/n%1b"), ensure_ascii=False)]
    assert all("\\u00" not in json.dumps(t) and plain(t) for t in texts), texts
    assert not [line for line in c.log.read_text().splitlines() if line.startswith("event=ready")]
    assert c.status()["nodes"] == 2 and c.rows("SELECT count(*) FROM node") == [(2,)]


def test_while_a_source_is_read_for_the_first_time_no_node_is_unknown(collect, served):  # noqa: F811
    go_on = threading.Event()
    served.meanwhile = lambda: go_on.wait(PATIENCE)
    served.document = '[{"targets": ["node2"]}]'
    c = collect(1, collector=(f"--source=http_sd:{served.url}",)).start()
    until(lambda: served.requests)
    assert c.node("node1")["node"] == "node1", "it is known already, and the process that read its list has ended"
    reading = c.child("--naming")
    os.kill(reading, signal.SIGSTOP)  # a list that does not come is given up after 5 s, and a process after a minute
    try:
        c.wait_up(1)
        for path in ("nodes/node2", "nodes/node8", "nodes?where=node[2-3]"):
            status, problem = c.refusal(f"/v1/fleet/{path}")
            assert (status, problem["member"]) == (503, "sources") and "first time" in problem["detail"], problem
        assert c.refusal("/readyz")[0] == 503
        assert c.get("/v1/fleet/findings?node=node2")["findings"] == []
    finally:
        go_on.set()
        with contextlib.suppress(ProcessLookupError):
            os.kill(reading, signal.SIGCONT)
    again(c)  # if it was too late for that request
    until(lambda: c.status()["nodes"] == 2)
    assert c.node("node2")["node"] == "node2"
    for path in ("nodes/node8", "findings?node=node8"):
        assert c.problem(f"/v1/fleet/{path}")[0] == 404, path


def test_a_document_that_is_too_large_or_endless_is_refused(tmp_path, served):
    served.document = "[" + " " * (5 << 20) + "]"
    assert "larger than the limit" in printed(f"--source=http_sd:{served.url}")[1]
    with open(tmp_path / "large", "wb") as file:
        file.truncate((8 << 20) + 1)
    assert "more than" in printed(f"--source=file_sd:{tmp_path}/large")[1]


@pytest.mark.parametrize("name", [".x", "...", "-x", "a\x01b", "a/b", "\u00e9", "a" * 64])
def test_names_of_nodes_have_one_rule_and_one_text(tmp_path, name):
    rule = "a node name has 1 to 63 letters, digits, '.', '-' and '_', and does not begin with '-' or '.'"
    (tmp_path / "list").write_text(f"{name}\n")
    (tmp_path / "sd").write_text(json.dumps([{"targets": ["node1:7780"], "labels": {"node": name}}]))
    (tmp_path / "sinfo").write_text(f"#!/bin/sh\nprintf '>%s idle main none\\n' '{name}'\n")
    (tmp_path / "sinfo").chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for source in "file:list", "file_sd:sd", "slurm:", f"nodes:{name}":
        done = subprocess.run([FLEETD, "--config=/dev/null", f"--state-dir={tmp_path}/s", f"--run-dir={tmp_path}/r", f"--source={source}",
                               "--listen=127.0.0.1:0", "--print-nodes"], capture_output=True, text=True, timeout=PATIENCE, env=env, cwd=tmp_path)
        assert done.returncode and (rule in done.stderr or "control character" in done.stderr), (source, done)
    done = subprocess.run([build_dir() / "client" / "numaprobe", "fleet", "status", f"--nodes={name}"], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2 and (rule in done.stderr or "control character" in done.stderr), done


def test_an_address_of_localhost_is_whole_or_refused(tmp_path):
    """The name takes more bytes than the %h that it stands for."""
    def url(length):
        return "http://%h" + "".join(f".{'a' * 49}" for _ in range(6))[:length - len("http://%h:70")] + ":70"
    for length, refused in ((248, False), (249, True), (255, True)):
        (tmp_path / "list").write_text(f"localhost url={url(length)}\n")
        names, error, status = printed(f"--source=file:{tmp_path}/list")
        assert (status, "url has more than 255 bytes" in error) == ((2, True) if refused else (0, False)), (length, names, error, status)


def test_a_source_is_a_regular_file(tmp_path):
    """What may have no end is refused at once, by a check, a start and a reading."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as here:
        here.bind(f"{tmp_path}/socket")
        for path, kind in (("fifo", "FIFO"), ("link", "FIFO"), ("folder", "directory"), ("socket", "socket"), ("/dev/zero", "device")):
            path = tmp_path / path
            fault = f"{path} is a {kind}; it must be a regular file"
            for option, said in ((f"--source=file:{path}", f"--source: file: {fault}"), (f"--source=file_sd:{path}", f"--source: file_sd: {fault}"),
                                 (f"--hostfile={path}", f"--hostfile: {fault}"), (f"--nodes=^{path}", f"--nodes: {fault}"),
                                 (f"--groups-file={path}", f"groups_file: {fault}"), (f"--hosts-file={path}", f"hosts_file: {fault}")):
                for action in ["--check-config"], ["--print-nodes"], []:
                    if action == ["--print-nodes"] and "hosts" in option:
                        continue  # no file of addresses is read for it
                    done = subprocess.run([FLEETD, "--config=/dev/null", option, "--listen=127.0.0.1:0", f"--state-dir={tmp_path}/s",
                                           f"--run-dir={tmp_path}/r", *action], capture_output=True, text=True, timeout=PATIENCE)
                    assert done.returncode == 2 and said in done.stderr, (option, action, done)


def test_a_file_that_becomes_a_fifo_is_refused_when_it_is_read(collect):  # noqa: F811
    c = collect(1).start()
    c.wait_up(1)
    os.mkfifo(c.home / "fifo")
    (c.home / "fifo").rename(c.list)
    again(c)
    problem = until(lambda: c.status()["sources"][0]["problem"])
    assert problem.endswith(f"{c.list} is a FIFO; it must be a regular file"), problem
    assert c.status()["nodes"] == 1


def test_a_token_does_not_go_in_clear_to_an_address_of_a_source(collect, served, tmp_path):  # noqa: F811
    token = tmp_path / "token"
    token.write_text("np_secret\n")
    token.chmod(0o600)
    (tmp_path / "rack").write_text(f"node1 url={served.url.removesuffix('/sd')}\n")
    c = collect(1, collector=("--url=https://%h:1", f"--node-token-file={token}", f"--source=file:{tmp_path}/rack"))
    c.options.remove(f"--url=http://%h:{c.fleet.port}")
    c.start()
    _, headers = until(lambda: [r for r in served.requests if r[0].startswith("/v1/feed?")])[0]
    assert "Authorization" not in headers and "np_secret" not in str(headers), headers


def test_the_query_of_a_source_is_shown_to_nobody(collect, served):  # noqa: F811
    c = collect(2)
    (c.home / "conf").write_text(f"source = http_sd:{served.url}?key=s3cret\n")
    c.options.append(f"--config={c.home}/conf")
    commands = []

    def look():
        until(lambda: c.process)  # it may request the list before its start has returned here
        for child in c.children():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                commands.append(pathlib.Path(f"/proc/{child}/cmdline").read_text())
    served.meanwhile = look
    served.document = '[{"targets": ["node9"], "labels": {"node": "no name"}}]'
    c.start()
    c.wait_up(2)
    found = until(lambda: (s := source(c, "http_sd"))["problem"] and s)
    served.meanwhile = lambda: None
    assert found["source"] == f"http_sd:{served.url}?..." and served.requests[0][0].endswith("?key=s3cret"), found
    assert "--naming" in "".join(commands) and "s3cret" not in "".join(commands) + c.log.read_text() + json.dumps(c.status())
    assert "s3cret" not in printed(f"--source=http_sd:{served.url}?key=s3cret")[1]


def test_slurm_names_states_and_partitions(collect, tmp_path):  # noqa: F811
    folder = tmp_path / "bin"
    put_sinfo(folder, ["node1 idle main*", "node1 idle big", "node2 mix big", "node3 idle~ big", "node4 down* main*"])
    assert printed("--from-slurm", path=folder)[0] == ["node1", "node2", "node3", "node4"]
    assert (folder / "calls").read_text().splitlines() == ["-h -N -o >%N %t %P %E"], "one call"
    printed("--source=slurm:big,main", path=folder)
    assert (folder / "calls").read_text().splitlines()[-1].endswith("--partition=big,main")
    put_sinfo(folder, ["node1"])
    assert "no node and state" in printed("--source=slurm", path=folder)[1]
    put_sinfo(folder, ["node1 idle main* none", "node1 idle big none", "node2 mix big", "node3 idle~ big  #a  b \nnode9 idle big",
                       "node4 down* main* L\u00fcfter\x1b[31m\t" + 200 * "x"])
    os.environ["PATH"], before = f"{folder}:{os.environ['PATH']}", os.environ["PATH"]
    try:
        c = collect(4, collector=("--source=slurm:*",))
        c.list.write_text("")
        c.start()
    finally:
        os.environ["PATH"] = before
    c.wait_up(3)
    assert c.node("node1")["partitions"] == ["main", "big"] or c.node("node1")["partitions"] == ["big", "main"]
    assert [c.node(f"node{i}")["slurm_state"] for i in (1, 2, 3, 4)] == ["idle", "mix", "idle~", "down*"]
    assert [c.node(f"node{i}")["slurm_reason"] for i in (1, 2, 3)] == ["", "", " #a  b "]
    cut = c.node("node4")["slurm_reason"]
    assert cut.startswith("L??fter?[31m?xxx") and len(cut) == 127, "a reason is printable, and has a limit"
    assert c.node("node3")["state"] == "new", "a node that is powered off is not contacted"
    number = begin(c, nodes="node[1,3]")
    asleep = until(lambda: (d := show(c, number)) and d["campaign"]["done"] == 1 and d["campaign"]["state"] == "waiting" and d)
    states = {n["node"]: (n["state"], n["why"]) for n in asleep["node_states"]}
    assert states["node3"] == ("pending", "Slurm has powered it off"), states
    assert probed(c, "node3") == [], "not by a campaign either"


def test_no_whole_run_is_requested_of_a_node_that_is_powered_off(collect, tmp_path, monkeypatch):  # noqa: F811
    folder, each = tmp_path / "bin", 8
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    put_sinfo(folder, ["node1 idle main none", "node2 idle main none"])
    c = collect(2, f"--runs={each // 2}", "--run-ms=0", collector=("--source=slurm:*", "--archive=all"))
    c.list.write_text("")
    c.start()

    def wholes(state, name):
        return c.rows(f"SELECT count(*) FROM archive JOIN node ON node.id = archive.node WHERE {state} AND name = '{name}'")[0][0]
    c.wait_up(2)
    until(lambda: wholes("state = 1", "node1") == wholes("state = 1", "node2") == each)
    c.stop()
    with contextlib.closing(sqlite3.connect(c.home / "state/fleet.db")) as db, db:
        db.execute("UPDATE archive SET state = 0, tries = 0, due_ms = 0, bytes = 0, body = NULL")
    put_sinfo(folder, ["node1 idle main none", "node2 idle~ main none"])
    c.start()
    until(lambda: wholes("state = 1", "node1") == each)
    until(lambda: wholes("(state = 1 OR tries > 0)", "node2") == each)
    assert wholes("state = 0", "node2") == each, "they are requested when it is on again"


@pytest.mark.skipif(not shutil.which("unshare") or subprocess.run(["unshare", "-rmn", "true"], capture_output=True).returncode,
                    reason="there is no namespace for a server of DNS")
@pytest.mark.parametrize("name, want, said", [
    ("_numaprobe._tcp.example", ["n1", "n2", "n3.other"], ""), ("_none._tcp.example", [], "no SRV record"),
    ("_broken._tcp.example", [], "DNS"), ("_empty._tcp.example", [], "not there"), ("_fails._tcp.example", [], "DNS"),
    ("_evil._tcp.example", [], "srv:_evil._tcp.example: \"n\\027["), ("_long._tcp.example", [], "1 to 63 letters"),
    ("_port._tcp.example", [], '"n1": url must have a port')])
def test_dns_names_nodes(tmp_path, name, want, said):
    (tmp_path / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:30 attempts:1\n")
    (tmp_path / "run").write_text(f"""ip link set lo up && mount --bind {tmp_path}/resolv.conf /etc/resolv.conf || exit 77
mkfifo {tmp_path}/ready
{sys.executable} {DNS} {tmp_path}/ready & read _ <{tmp_path}/ready
{FLEETD} --print-nodes --source=srv:{name}; echo status=$?
kill $!
""")
    done = subprocess.run(["unshare", "-rmn", "sh", f"{tmp_path}/run"], capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode == 77:
        pytest.skip(done.stderr)
    names = [line for line in done.stdout.split() if "=" not in line]
    assert names == want and said in done.stderr, (done.stdout, done.stderr)
    assert ("status=0" in done.stdout) == bool(want)


def test_two_machines_of_one_name_are_told_from_one_that_was_set_up_again(collect, tmp_path):  # noqa: F811
    rack = tmp_path / "rack"
    c = collect(3, "--faults=node1 name", collector=(f"--source=file:{rack}",))
    rack.write_text("".join(f"node2 url=http://127.1.0.{i}:{c.fleet.port}\n" for i in (1, 2)))
    c.name(["node2", "node3"])
    c.start()
    until(lambda: c.status()["nodes"] == 2 and source(c, f"file:{rack}")["nodes"])
    node = until(lambda: (n := c.node("node2"))["duplicate"] and n)
    assert {node["url"], node["other_url"]} == {f"http://127.1.0.1:{c.fleet.port}", f"http://127.1.0.2:{c.fleet.port}"}, node
    assert not c.node("node3")["duplicate"] and c.node("node3")["other_url"] == ""


def test_faults_of_nodes_are_facts(collect):  # noqa: F811
    c = collect(6, "--faults=node1 clock=300; node2 older; node3 clock=30; node4 clock=90").start()
    until(lambda: c.status()["states"]["up"] == 5 and c.node("node2")["problem"])
    # Of 90 s a response that takes long on a busy machine leaves less than a minute: until the next one.
    nodes = until(lambda: (n := {n["node"]: n for n in c.get("/v1/fleet/nodes")["nodes"]})["node4"]["clock_wrong"] and n)
    assert [nodes[f"node{i}"]["clock_wrong"] for i in (1, 3, 4, 5)] == [True, False, True, False], nodes
    assert [nodes[f"node{i}"]["too_old"] for i in (1, 2, 5)] == [False, True, False], nodes
    assert all(n["poison"] is None for n in nodes.values())


def test_a_clock_of_the_collector_that_is_wrong_is_one_fault(collect):  # noqa: F811
    c = collect(9, "--faults=node[1-6] clock=7200; node[7-8] clock=3600").start()
    said = until(lambda: c.status()["clock_problem"])
    assert re.search(r"clock is 1(19|20) min behind that of most nodes", said), said
    until(lambda: (f := c.get("/v1/fleet/findings?what=clock")["findings"]) and len(f) == 3 and f)
    found = {f["node"]: f["text"] for f in c.get("/v1/fleet/findings?what=clock")["findings"]}
    assert set(found) == {"node7", "node8", "node9"} and all("behind" in text for text in found.values()), found
    offset = re.search(r"^numaprobe_fleet_clock_offset_seconds (\S+)", c.get_bytes("/metrics").decode(), re.M)[1]
    assert float(offset) / 3600 == pytest.approx(-2, abs=0.1)
    done = run("fleet", "status", f"--fleet={c.url}")
    assert re.search(r"^node\[7-9\] +the clock differs", done.stderr, re.M), done.stderr
    assert re.search(r"^collector: the collector's clock is 1\d\d min behind that of most nodes$", done.stdout, re.M), done.stdout
    document = json.loads(run("fleet", "status", f"--fleet={c.url}", "-o", "json").stdout)
    assert [re.sub(r"\d+ min", "", text) for text in document["collector_problems"]] == [re.sub(r"\d+ min", "", said)], document


@pytest.mark.parametrize("options, said", [
    (["--source=nfs:/x"], "is no source"), (["--source=file:"], '"file:" is no source: a value is missing, as in file:/'),
    ([f"--source=file:/{i}" for i in range(17)], "more than 16"), (["--source=file:/nowhere", "--print-nodes"], "/nowhere"),
    (["--print-nodes"], "no source of nodes is set")])
def test_wrong_sources_are_named(options, said):
    done = subprocess.run([FLEETD, *options], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode in (1, 2) and said in done.stderr, (done.returncode, done.stderr)


WRONG = [("nodes", "n[1-", "a number is missing"), ("nodes", "n1,-x", "nodes: "), ("nodes", "@", "group"), ("nodes", "^", "^ needs the path"),
         ("nodes", "^/etc/a,n1", "nothing else"), ("hostfile", "-", "no standard input"), ("from_slurm", "a b", "separated by commas"),
         ("from_slurm", "p" * 101, "at most 100 bytes"), ("group_command", "nodeset -e", "must have %s"),
         ("group_command", 'nodeset -e "@%s"', "must have no quotes"),
         ("source", "nodes:n[3-1]", "source: nodes: "), ("source", "file:-", "file: a collector has no standard input"),
         ("source", "file_sd:-", "file_sd: a collector"), ("source", "announce x", '"x" is no source'),
         ("source", "announce:x", "announce takes no value: write announce"), ("source", "announce:", "announce takes no value"),
         ("source", "nodes:n1 announce:/etc/tokens", "announce takes no value"), ("source", "announced", '"announced" is no source'),
         ("source", "announce,slurm:", "is no source"), ("source", "nodes", '"nodes" is no source: a value is missing, as in nodes:n[1-100]'),
         ("source", "file: /etc/nodes", '"file:" is no source: a value is missing, as in file:/'),
         ("source", "srv:", "a value is missing, as in srv:_numaprobe"), ("source", "http_sd:", "a value is missing, as in http_sd:http"),
         ("source", "file_sd:", "a value is missing, as in file_sd:/"), ("source", "collector:", "a value is missing, as in collector:http"),
         ("source", "nodes:n1\tnodes:n2", "must have no control character, such as a tab"), ("source", "file:/etc/a\tb", "must have no control character, such as a tab"),
         ("source", "slurm:,", "slurm: the name of a partition is missing"), ("source", "slurm:a,,b", "slurm: the name of a partition is missing"),
         ("from_slurm", "a,", "the name of a partition is missing"), ("source", "nodes:,", "source: nodes: "),
         ("source", "https://u:s3cret@h/sd", '"https:" is no source'), ("source", "http_sd:consul/sd", "http_sd: the URL must begin with http"),
         ("source", "http_sd:http://", "must have a host"), ("source", "http_sd:http://h:65536/", "a port from 1 to 65535"),
         ("source", "http_sd:http://h:/", "a port from 1 to 65535"), ("source", "http_sd:http://h\u00fc/", "beyond ASCII"),
         ("source", "collector:http://h:0", "collector: the address of a collector must have a port"),
         ("source", "collector:http://[::1", "must have a host"), ("source", "srv:a..b", "srv: needs a name of DNS"),
         ("source", "slurm:" + "p" * 101, "slurm: names of partitions"), ("url", "http://%h:99999", "a port from 1 to 65535"),
         ("url", "http://%h:x", "a port from 1 to 65535"), ("url", "http://%h.%h:1", "%h only once"), ("url", "http://%h:1/?a", "no ?"),
         ("url", "http://%h:1 x", "no blanks"), ("url", "ftp://%h", "url: must begin with http:// or https://, as in http://%h:7780"),
         ("store", "mysql://h/x", "store: must be a path"), ("host_names", "a b", "without scheme and port"),
         ("host_names", "proxy:443", "without scheme and port"),
         ("host_names", "https://proxy", "without scheme and port")]


@pytest.mark.parametrize("name, value, said", WRONG)
def test_a_wrong_setting_is_refused_with_its_line(tmp_path, name, value, said):
    """By a check and by a start, and not by the first reading of a source."""
    conf = tmp_path / "conf"
    conf.write_text(f"# of a fleet\n{'' if name == 'nodes' else 'nodes = n1'}\n{name} = {value}\nevery = 60\n")
    words = [FLEETD, f"--config={conf}", f"--state-dir={tmp_path}/s", f"--run-dir={tmp_path}/r", "--listen=127.0.0.1:0"]
    for more in (["--check-config"], []):
        done = subprocess.run([*words, *more], capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 2 and f"{conf}:3: {name}: " in done.stderr and said in done.stderr, done
        assert "s3cret" not in done.stderr and not (tmp_path / "s").exists(), done


@pytest.mark.parametrize("lines, said", [
    ("every = 60\nkeep_days = 1\nevery = 30\n", "{conf}:4: every: stands in line 2 already; keep one of them"),
    ("token_file = /tmp\n", "{conf}:2: token_file: /tmp is not a file"), ("token_file = {home}/tokens\n", "{conf}:2: token_file: {home}/tokens:2: "),
    ("socket = /nonexistent/a/b\n", "{conf}:2: socket: there can be no socket in /nonexistent/a: No such file or directory"),
    ("socket = s\n", "{conf}:2: socket: must be an absolute path"), ("store = s\n", "{conf}:2: store: must be an absolute path"),
    ("state_dir = s\n", "{conf}:2: state_dir: must be an absolute path"), ("run_dir = r\n", "{conf}:2: run_dir: must be an absolute path")])
def test_a_check_and_a_start_refuse_the_same(tmp_path, lines, said):
    conf, tokens = tmp_path / "conf", tmp_path / "tokens"
    tokens.write_text("# of pushing nodes\nn1 push\n")
    tokens.chmod(0o600)
    conf.write_text("nodes = n1\n" + lines.format(home=tmp_path))
    env = {**os.environ, "STATE_DIRECTORY": f"{tmp_path}/s", "RUNTIME_DIRECTORY": f"{tmp_path}/r"}
    check, start = (subprocess.run([FLEETD, f"--config={conf}", "--listen=127.0.0.1:0", *more], capture_output=True, text=True,
                                   timeout=PATIENCE, env=env) for more in (["--check-config"], []))
    said = said.format(conf=conf, home=tmp_path)
    assert check.returncode == 2 and said in check.stderr, check
    assert start.returncode and said.removeprefix(f"{conf}:2: ").partition(": ")[0] in start.stderr, start


def test_nodes_and_sources_may_stand_in_several_lines(tmp_path):
    conf = tmp_path / "conf"
    conf.write_text("nodes = n1\nnodes = n2\nsource = nodes:n3\nsource = nodes:n4\n")
    assert printed(f"--config={conf}")[0] == ["n1", "n2", "n3", "n4"]


def test_of_several_sources_the_line_of_the_wrong_one_is_named(tmp_path):
    conf = tmp_path / "conf"
    conf.write_text("source = nodes:n1\nsource = srv:.\nsource = nodes:n2\n")
    assert f"{conf}:2: source: srv: " in printed(f"--config={conf}")[1]


def test_a_setting_that_another_one_makes_wrong_is_named_where_it_was_set(tmp_path):
    conf = tmp_path / "conf"
    conf.write_text("nodes = n1\nnode-token-file = /etc/token\n")
    words = [FLEETD, f"--config={conf}", f"--state-dir={tmp_path}/s", "--check-config"]
    said = "node_token_file needs an url of https://"
    for env, option, want in (({}, [], f"{conf}:2: {said}"), ({"NUMAPROBE_FLEETD_NODE_TOKEN_FILE": "/x"}, [], f"NODE_TOKEN_FILE: {said}"),
                              ({"NUMAPROBE_FLEETD_NODE_TOKEN_FILE": "/x"}, ["--node-token-file=/y"], f"fleetd: {said}")):
        done = subprocess.run([*words, *option], capture_output=True, text=True, timeout=PATIENCE, env={**os.environ, **env})
        assert done.returncode == 2 and want in done.stderr, done


def test_what_can_be_right_later_is_no_wrong_setting(tmp_path):
    words = [FLEETD, f"--state-dir={tmp_path}", "--check-config", "--nodes=n[1-3],@rack1", "--hostfile=/nowhere", "--from-slurm=a,b",
             "--source=file_sd:/nowhere", "--source=http_sd:http://[2001:db8::1]:80/sd?q=1", "--source=srv:_numaprobe._tcp.example.",
             "--source=collector:https://up.example:7790", "--source=slurm", "--source=nodes:^/nowhere", "--source=announce",
             "--url=https://%h.mgmt.example:7443/np/"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done


def test_sources_stand_on_lines_of_the_file(tmp_path):
    (tmp_path / "a").write_text("n1 url=https://n1:9 class=x\nn2\n")
    (tmp_path / "b").write_text("n2 color=red\n")
    (tmp_path / "conf").write_text(f"source = file:{tmp_path}/a\nnodes = n7\nsource = nodes:n[8-9]\nnodes = n6\n")
    assert printed(f"--config={tmp_path}/conf")[0] == ["n1", "n2", "n6", "n7", "n8", "n9"]
    shown = subprocess.run([FLEETD, f"--config={tmp_path}/conf", "--print-config"], capture_output=True, text=True, timeout=PATIENCE)
    assert f"\nsource = file:{tmp_path}/a\nsource = nodes:n[8-9]\n" in shown.stdout
    assert printed(f"--source=file:{tmp_path}/b")[1].strip().endswith('line 1: color= is unknown; behind a node set only url= and '
                                                                    'class= are known')
