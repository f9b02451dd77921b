# SPDX-License-Identifier: Apache-2.0
"""Where numaprobe-fleetd finds its nodes: files, Slurm, DNS and Prometheus's lists, each by itself; and what two addresses
of one name turn out to be."""
import http.server
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading

import pytest

from conftest import PATIENCE, until
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
        self.document, self.status, self.requests = "[]", 200, []
        served = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                served.requests.append((self.path, dict(self.headers)))
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
    rack.write_text("node[11-19]\n")
    again(c)
    until(lambda: source(c, "http_sd")["problem"] and c.node("node11")["class_hint"] == "")
    assert "list of groups" in source(c, "http_sd")["problem"] and source(c, "http_sd")["nodes"] == 11
    assert c.node("node20")["sources"] == [f"http_sd:{served.url}"] and c.status()["nodes"] == 30
    assert c.status()["sources_problem"] and c.problem("/readyz")[0] == 503
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
    ('[{"targets": ["n1"], "labels": {"class": "a\\tb"}}]', "printable"), ('[{"targets": ["' + "n" * 300 + '"]}]', "HOST:PORT")])
def test_a_wrong_document_is_refused_as_a_whole(tmp_path, document, said):
    (tmp_path / "sd").write_text(document)
    names, error, status = printed(f"--source=file_sd:{tmp_path}/sd")
    assert not names and status == 2 and said in error, (error, status)


def test_a_document_that_is_too_large_or_endless_is_refused(tmp_path, served):
    served.document = "[" + " " * (5 << 20) + "]"
    assert "larger than the limit" in printed(f"--source=http_sd:{served.url}")[1]
    assert "more than" in printed("--source=file_sd:/dev/zero")[1]


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


@pytest.mark.skipif(not shutil.which("unshare") or subprocess.run(["unshare", "-rmn", "true"], capture_output=True).returncode,
                    reason="there is no namespace for a server of DNS")
@pytest.mark.parametrize("name, want, said", [
    ("_numaprobe._tcp.example", ["n1", "n2", "n3.other"], ""), ("_none._tcp.example", [], "no SRV record"),
    ("_broken._tcp.example", [], "DNS"), ("_empty._tcp.example", [], "not there"), ("_fails._tcp.example", [], "DNS")])
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
    nodes = {n["node"]: n for n in c.get("/v1/fleet/nodes")["nodes"]}
    assert [nodes[f"node{i}"]["clock_wrong"] for i in (1, 3, 4, 5)] == [True, False, True, False], nodes
    assert [nodes[f"node{i}"]["too_old"] for i in (1, 2, 5)] == [False, True, False], nodes
    assert all(n["poison"] is None for n in nodes.values())


@pytest.mark.parametrize("options, said", [
    (["--source=nfs:/x"], "is no source"), (["--source=file:"], "is no source"), (["--source=srv:"], "is no source"),
    ([f"--source=file:/{i}" for i in range(17)], "more than 16"), (["--source=file:/nowhere", "--print-nodes"], "/nowhere"),
    (["--print-nodes"], "no source of nodes is set")])
def test_wrong_sources_are_named(options, said):
    done = subprocess.run([FLEETD, *options], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode in (1, 2) and said in done.stderr, (done.returncode, done.stderr)


def test_sources_stand_on_lines_of_the_file(tmp_path):
    (tmp_path / "a").write_text("n1 url=https://n1:9 class=x\nn2\n")
    (tmp_path / "b").write_text("n2 color=red\n")
    (tmp_path / "conf").write_text(f"source = file:{tmp_path}/a\nnodes = n7\nsource = nodes:n[8-9]\nnodes = n6\n")
    assert printed(f"--config={tmp_path}/conf")[0] == ["n1", "n2", "n6", "n7", "n8", "n9"]
    shown = subprocess.run([FLEETD, f"--config={tmp_path}/conf", "--print-config"], capture_output=True, text=True, timeout=PATIENCE)
    assert f"\nsource = file:{tmp_path}/a\nsource = nodes:n[8-9]\n" in shown.stdout
    assert printed(f"--source=file:{tmp_path}/b")[1].strip().endswith('"color=red" is unknown; behind a node set only url= and '
                                                                    'class= are known')
