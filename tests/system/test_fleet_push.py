# SPDX-License-Identifier: Apache-2.0
"""Nodes that the collector cannot contact send their runs with numaprobe push, each with a token that names it."""
import contextlib
import http.client
import json
import os
import re
import signal
import sqlite3
import subprocess
import urllib.error
import urllib.request

import pytest

from client import CLIENT, run
from conftest import PATIENCE, fake_bench_env, until
from test_access import cli
from test_fleetd import NO_NODE_IS_LATE, collect  # noqa: F401
from test_fleet_campaigns import begin, ended, probed, send, show
from postgresql import make_postgresql  # noqa: F401
from test_fleetd_store import fill, small_disk


@pytest.fixture
def pushed(collect):  # noqa: F811
    """pushed(nodes, *options) -> a collector that contacts the last node alone; the others are announced by token(…)."""
    def make(nodes=3, *options, collector=()):
        c = collect(nodes, *options, collector=("--source=announce", *collector))
        c.name(c.fleet.names[-1:])
        c.start()
        until(lambda: c.status()["store_ready"])
        return c
    return make


def token(c, name, nodes):
    """A token of scope push, as the administrator of the collector makes it; its file."""
    done = run("token", "create", name, "--scope=push", f"--nodes={nodes}", url=f"unix:{c.home}/run/numaprobe-fleetd.sock")
    assert done.returncode == 0, done.stderr
    file = c.home / f"{name}.token"
    file.write_text(done.stdout)
    file.chmod(0o600)
    return file


def named(c, *names):
    until(lambda: all(n in {x["node"] for x in c.get("/v1/fleet/nodes?limit=1000")["nodes"]} for n in names))


def local(c, name):
    """Where a virtual node's daemon listens: its own loopback address."""
    return f"http://127.1.0.{c.fleet.names.index(name) + 1}:{c.fleet.port}"


def push(c, name, file, *options):
    return run("push", f"--to={c.url}", f"--to-token-file={file}", *options, url=local(c, name))


def page(c, name, query="limit=100&after=0"):
    with urllib.request.urlopen(f"{local(c, name)}/v1/feed?form=summary&{query}", timeout=PATIENCE) as response:
        return response.read()


def post(c, name, file, body):
    """(status, document)."""
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {file.read_text().strip()}"} if file else {})}
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{c.url}/v1/fleet/feeds/{name}", body, headers), timeout=PATIENCE) as r:
            return r.status, json.load(r)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


def stored(c, name):
    return c.rows("SELECT count(*), count(DISTINCT r.feed || '.' || r.seq) FROM run r JOIN node n ON n.id = r.node "
                  f"WHERE n.name = '{name}'")


def test_a_node_pushes_all_of_its_runs_and_then_what_is_new(pushed):
    c = pushed(3, "--runs=130")
    first, second = c.fleet.names[:2]
    file = token(c, "rack", f"{first},{second}")
    named(c, first, second)
    assert c.node(first)["pushes"] and c.node(first)["state"] == "new" and c.node(first)["url"] == ""
    done = push(c, first, file)
    assert (done.returncode, done.stdout) == (0, f"{first}: 260 runs sent\n"), done.stderr
    assert stored(c, first) == [(260, 260)]
    said = c.node(first)
    assert said["state"] == "up" and said["outcome"] == "stored" and said["next"] == 260 and said["problem"] == ""
    assert json.loads(push(c, first, file, "-o", "json").stdout) == {"node": first, "stored": 0, "next": 260}
    with urllib.request.urlopen(f"{local(c, first)}/v1/runs", json.dumps({"benchmark": "latency"}).encode(), timeout=PATIENCE):
        pass
    until(lambda: json.loads(push(c, first, file, "-o", "json").stdout)["next"] == 261)
    assert stored(c, first) == [(261, 261)] and c.node(second)["state"] == "new"
    assert not c.node(c.fleet.names[2])["pushes"], "others are contacted as before"
    c.wait_up(2)


def test_ages_of_nodes_that_push_are_apart(pushed):
    """They have an interval of their own, so that of the others is no measure of them."""
    c = pushed(2, "--faults=node2 refuses", collector=("--push-every=7200",))
    named(c, "node2")
    file = token(c, "one", "node1")
    named(c, "node1")
    assert push(c, "node1", file).returncode == 0
    with urllib.request.urlopen(c.url + "/metrics", timeout=PATIENCE) as response:
        text = response.read().decode()
    assert text.count("\nnumaprobe_fleet_push_staleness_seconds{quantile=") == 4 and "numaprobe_fleet_staleness_seconds{" not in text
    assert "\nnumaprobe_fleet_push_interval_seconds 7200\n" in text


def test_a_node_is_no_collector(make_daemon):
    node = make_daemon()
    url = f"http://127.0.0.1:{node.port}"
    done = run("push", f"--to={url}", url=url)
    assert done.returncode == 5 and done.stderr.count(f"{url} is the daemon of a node (numaprobed), not a collector") == 1


def wanted(c, name, file):
    request = urllib.request.Request(f"{c.url}/v1/fleet/feeds/{name}", headers={"Authorization": f"Bearer {file.read_text().strip()}"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:
        return json.load(response)["facts_wanted"]


def facts(c, name, hash):
    with urllib.request.urlopen(f"{local(c, name)}/v1/facts/{hash}", timeout=PATIENCE) as response:
        return json.load(response)


@pytest.mark.usefixtures("needs_fake_bench")
def test_a_real_node_pushes_its_facts_and_later_its_labels(pushed, make_daemon):
    c, node = pushed(1), make_daemon(fake_bench_env())
    runs = [node.run(size="1", cpus="0")["id"] for _ in range(2)]
    name = node.get("/v1/node").json["node"]
    file = token(c, "mine", name)
    named(c, name)

    def send():
        done = run("push", f"--to={c.url}", f"--to-token-file={file}", "-o", "json", url=f"http://127.0.0.1:{node.port}")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["next"]
    until(lambda: send() == 2)  # metrics of the runs are made
    run_of = node.get("/v1/runs?form=summary&limit=1").json["runs"][0]
    for hash in (run_of["class"], run_of["config"]):
        assert c.get(f"/v1/facts/{hash}") == node.get(f"/v1/facts/{hash}").json
        status, problem = post(c, f"{name}/facts?hash={hash}", file, node.get(f"/v1/facts/{hash}").body)
        assert status == 409 and problem["member"] == "hash", "what is here is not taken again"
    assert wanted(c, name, file) == []
    assert node.request("PUT", f"/v1/runs/{runs[1]}/label", {"label": "later"}).status == 200
    assert send() == 3 and c.rows("SELECT run, label FROM run WHERE label <> ''") == [(runs[1], "later")]
    assert node.request("PUT", f"/v1/runs/{runs[1]}/label", {"label": ""}).status == 200
    assert send() == 4 and c.rows("SELECT run, label FROM run WHERE label <> ''") == []
    assert stored(c, name) == [(2, 2)]


def test_facts_that_are_not_what_is_wanted_are_refused(pushed):
    c = pushed(2)
    [name] = c.fleet.names[:1]
    file = token(c, "mine", name)
    named(c, name)
    body = json.loads(page(c, name))
    invented = [f"{digit:064x}" for digit in (1, 2)]
    for run in body["runs"]:
        run["class"], run["config"] = invented
    status, said = post(c, name, file, json.dumps(body).encode())
    assert status == 200 and set(said["facts_wanted"]) == set(invented), "they stay wanted: no node has them"
    real = facts(c, name, json.loads(page(c, name))["runs"][0]["class"])
    refused = ((invented[0], real, 422), (invented[0], {**real, "hash": invented[0]}, 422), (invented[0], {}, 422),
               (real["hash"], real, 409), ("x", real, 409), ("", real, 409))
    for hash, document, status in refused:
        said = post(c, f"{name}/facts?hash={hash}", file, json.dumps(document).encode())
        assert said[0] == status, (hash, said)
    assert post(c, f"{name}/facts", file, b"{}")[1]["member"] == "hash"
    assert post(c, f"{name}/facts?hash={invented[0]}", file, b"[" * 1000)[0] in (400, 422)
    assert post(c, f"{name}/facts?hash={invented[0]}", file, b" " * 70000 + b"{}")[0] == 413
    assert post(c, f"{name}/facts?hash={invented[0]}", None, b"{}")[0] == 401
    assert c.rows(f"SELECT count(*) FROM document WHERE hash IN ('{invented[0]}', '{invented[1]}')") == [(0,)]
    assert set(wanted(c, name, file)) == set(invented) and push(c, name, file).returncode == 0


def test_a_token_opens_its_nodes_and_nothing_else(pushed):
    c = pushed()
    first, second, polled = c.fleet.names
    mine, other = token(c, "mine", first), token(c, "other", second)
    named(c, first, second)
    body = page(c, first)
    assert post(c, second, mine, page(c, second))[0] == 403, "another node's name"
    refused = push(c, second, mine)
    assert refused.returncode == 4 and f"not for the node {second}" in refused.stderr, refused
    status, problem = post(c, first, None, body)
    assert status == 401 and "a token of a node" in problem["detail"] and "account" not in problem["detail"], problem
    wrong = c.home / "wrong"
    wrong.write_text("np_" + 64 * "0")
    wrong.chmod(0o600)
    assert post(c, first, wrong, body)[0] == 401
    assert push(c, first, wrong).returncode == 4
    assert post(c, second, other, body)[1]["outcome"] == "alien"
    assert c.node(second)["outcome"] == "alien" and stored(c, second) == [(0, 0)], "a page of another node"
    for path in ("/v1/fleet/nodes", "/v1/fleet/status", "/v1/tokens"):
        request = urllib.request.Request(c.url + path, headers={"Authorization": f"Bearer {mine.read_text().strip()}"})
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request, timeout=PATIENCE)
        assert caught.value.code == 403, path
    admin = f"unix:{c.home}/run/numaprobe-fleetd.sock"
    assert run("push", f"--to={admin}", url=local(c, first)).returncode == 4, "no other scope includes push"
    assert token(c, "late", polled) and until(lambda: c.node(polled)["pushes"]), "a node that pushes is not contacted"
    assert run("token", "revoke", "mine", url=admin).returncode == 0
    assert post(c, first, mine, body)[0] == 401 and stored(c, first) == [(0, 0)]


@pytest.mark.parametrize("scope, nodes, said", [("push", None, "nodes"), ("push", "a b", "nodes"), ("push", "n[3", "nodes"),
                                                ("push", "@all", "nodes"), ("read", "n1", "nodes"), ("none", None, "scope")])
def test_a_wrong_token_is_not_made(pushed, scope, nodes, said):
    c = pushed()
    body = {"name": "x", "scope": scope, **({"nodes": nodes} if nodes else {})}
    done = subprocess.run(["curl", "-s", "--unix-socket", f"{c.home}/run/numaprobe-fleetd.sock", "http://localhost/v1/tokens",
                           "-H", "Content-Type: application/json", "-d", json.dumps(body)], capture_output=True, timeout=PATIENCE)
    problem = json.loads(done.stdout)
    assert problem["status"] == 422 and problem["member"] == said, problem


def test_a_page_that_comes_again_is_stored_once(pushed):
    c = pushed(3, "--runs=20")
    name = c.fleet.names[0]
    file = token(c, "mine", name)
    named(c, name)
    body = page(c, name, "limit=10&after=0")
    status, said = post(c, name, file, body)
    assert status == 200 and (said["outcome"], said["stored"], said["next"], said["more"]) == ("stored", 10, 10, True)
    status, said = post(c, name, file, body)
    assert status == 200 and (said["outcome"], said["stored"], said["next"]) == ("behind", 0, 10)
    later = page(c, name, "limit=10&after=20")
    assert post(c, name, file, later)[1]["outcome"] == "behind", "no gap"
    assert stored(c, name) == [(10, 10)]
    assert push(c, name, file).returncode == 0 and stored(c, name) == [(40, 40)]


def test_the_newest_run_is_dated_as_it_is_stored(pushed):
    """A run of a clock that is ahead has the time of its arrival, and a page that is not stored dates nothing."""
    c = pushed(3)
    first, second = c.fleet.names[:2]
    file = token(c, "both", f"{first},{second}")
    named(c, first, second)
    body = json.loads(page(c, first))
    body["runs"][0]["measured"] = "9999-12-31T23:59:59.999Z"
    assert post(c, second, file, json.dumps(body).encode())[1]["outcome"] == "alien"
    assert post(c, first, file, json.dumps(body).encode())[1]["outcome"] == "stored"
    assert c.node(second)["newest"] is None
    newest = c.node(first)["newest"]
    assert newest < "9999", newest
    assert c.rows(f"SELECT max(measured_ms) / 1000 = unixepoch('{newest[:19]}') FROM run") == [(1,)], newest


def test_a_hostile_page_ends_no_more_than_the_process_that_reads_it(pushed):
    c = pushed()
    name, other = c.fleet.names[:2]
    file, theirs = token(c, "mine", name), token(c, "other", other)
    named(c, name, other)
    process = c.process.pid
    for body in (b"", b"{", b"[1]", b"[" * 100000, b'{"runs":' * 1000, page(c, name).replace(b'"seq"', b'"sec"')):
        status, problem = post(c, name, file, body)
        assert status in (400, 413, 422), (body[:20], problem)
    connection = http.client.HTTPConnection(c.url.removeprefix("http://"), timeout=PATIENCE)
    connection.putrequest("POST", f"/v1/fleet/feeds/{name}")
    for header, value in (("Authorization", f"Bearer {file.read_text().strip()}"), ("Content-Type", "application/json"),
                          ("Content-Length", (4 << 20) + 1)):
        connection.putheader(header, value)
    connection.endheaders()
    assert connection.getresponse().status == 413
    sent = subprocess.Popen([CLIENT, "push", f"--to={c.url}", f"--to-token-file={file}"], stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, env={**os.environ, "NUMAPROBE_URL": local(c, name)})
    c.kill_child("--ingest")
    sent.communicate(timeout=PATIENCE)
    until(lambda: c.status()["store_ready"])
    assert push(c, other, theirs).returncode == 0 and push(c, name, file).returncode == 0
    assert c.process.pid == process and c.process.poll() is None
    assert stored(c, name) == stored(c, other) == [(12, 12)]


def test_a_collector_that_is_killed_continues(pushed):
    c = pushed(2, "--runs=60")
    name = c.fleet.names[0]
    file = token(c, "mine", name)
    named(c, name)
    assert post(c, name, file, page(c, name, "limit=50&after=0"))[1]["next"] == 50
    c.process.kill()
    c.process.wait()
    refused = push(c, name, file)
    assert refused.returncode == 3 and refused.stderr, refused
    c.start()
    named(c, name)
    until(lambda: c.status()["store_ready"])
    assert push(c, name, file).returncode == 0 and stored(c, name) == [(120, 120)]
    assert c.node(name)["state"] == "up"


def test_a_node_that_does_not_push_is_late_and_then_down(pushed):
    c = pushed(2, collector=("--push-every=1", NO_NODE_IS_LATE))  # that which is contacted always responds
    name = c.fleet.names[0]
    file = token(c, "mine", name)
    named(c, name)
    seen = until(lambda: (n := c.node(name))["state"] == "down" and n)
    assert seen["failures"] >= 3 and "has not pushed for" in seen["problem"]
    requests = c.status()["failed"]
    assert requests == 0, "it was never contacted"
    assert push(c, name, file).returncode == 0 and stored(c, name) == [(12, 12)]


def test_a_push_before_the_tokens_are_read_is_one_for_later(pushed):
    """Right behind a start, and right behind a new token: who sends is not told that no source names the node."""
    c = pushed(3)
    first, second = c.fleet.names[:2]
    file = token(c, "one", first)
    said = []

    def stored_at_last(name, file):
        status, answer = post(c, name, file, page(c, name))
        said.append((status, answer.get("detail", "")))
        return status == 200
    until(lambda: stored_at_last(first, file))
    c.stop()
    c.start()
    until(lambda: stored_at_last(first, file))
    file = token(c, "two", second)
    until(lambda: stored_at_last(second, file))
    assert {status for status, _ in said} <= {200, 503}, said


def test_a_push_while_the_list_of_tokens_is_in_doubt_is_one_for_later(pushed):
    c = pushed(2)
    name = c.fleet.names[0]
    token(c, "many", "m[1-100]")
    named(c, "m100")
    assert run("token", "revoke", "many", url=f"unix:{c.home}/run/numaprobe-fleetd.sock").returncode == 0
    until(lambda: any("100" in s["problem"] for s in c.status()["sources"]))
    file = token(c, "one", name)
    status, problem = post(c, name, file, page(c, name))
    assert status == 503 and f"{name} is not listed yet: " in problem["detail"] and "100" in problem["detail"], problem

    def stored_at_last():
        c.process.send_signal(signal.SIGHUP)  # it is read again, and agrees with itself
        return push(c, name, file).returncode == 0
    until(stored_at_last)


def test_the_token_for_the_daemon_does_not_go_to_the_collector(pushed):
    c = pushed(2)
    name = c.fleet.names[0]
    file = token(c, "mine", name)
    named(c, name)
    done = cli("push", f"--to={c.url}", f"--to-token-file={file}", env={"NUMAPROBE_URL": local(c, name), "NUMAPROBE_TOKEN": "np_daemon"})
    assert done.returncode == 0 and stored(c, name) == [(12, 12)], done
    done = cli("push", f"--to={c.url}", env={"NUMAPROBE_URL": local(c, name), "NUMAPROBE_TOKEN": file.read_text().strip()})
    assert done.returncode == 4 and "--to-token-file" in done.stderr and "--token-file" not in done.stderr, done


def test_what_is_missing_is_named(pushed):
    c = pushed(2)
    done = run("push", url=local(c, c.fleet.names[0]))
    assert done.returncode == 2 and "--to=" in done.stderr
    file = token(c, "mine", "elsewhere")
    named(c, "elsewhere")
    assert run("push", f"--to={c.url}", f"--to-token-file={file}", "--node=-x", url=local(c, c.fleet.names[0])).returncode == 2
    c.stop()
    c.options.remove("--source=announce")
    c.start()
    done = push(c, c.fleet.names[0], file, "--node=elsewhere")
    assert done.returncode == 5 and "source = announce" in done.stderr, done


def test_tokens_that_name_more_nodes_than_a_collector_has(collect):  # noqa: F811
    """No command makes them. A file that has them is named, and revoking one is enough."""
    c = collect(1, collector=["--source=announce"])
    c.options = [o for o in c.options if not o.startswith("--hostfile")]
    file = c.home / "state/tokens"
    file.parent.mkdir(mode=0o700, exist_ok=True)
    file.write_text("".join(f"{n} push {'0' * 64} 2026-11-21T04:05:06Z {n}[1-40000]\n" for n in "ab"))
    file.chmod(0o600)
    c.start()
    said = "name 80000 nodes together, more than 65536; revoke some (numaprobe token revoke NAME)"
    until(lambda: said in c.status()["sources_problem"])
    until(lambda: c.status()["store_ready"])
    status, ready = c.refusal("/readyz")
    assert status == 503 and "no node is contacted until the tokens can be read" in ready["detail"] and said in ready["detail"], ready
    assert said in c.log.read_text()
    own = f"unix:{c.home}/run/numaprobe-fleetd.sock"
    done = run("token", "create", "c", "--scope=push", "--nodes=c1", url=own)
    assert done.returncode and "the tokens that there are name more than 65536 nodes together" in done.stderr, done
    assert run("token", "revoke", "b", url=own).returncode == 0
    until(lambda: c.status()["sources_problem"] == "" and c.status()["nodes"] == 40000)
    done = run("token", "create", "c", "--scope=push", "--nodes=c[1-30000]", url=own)
    assert done.returncode and "has 30000 nodes, and the other tokens name 40000" in done.stderr, done
    token(c, "c", "c[1-2]")
    until(lambda: c.status()["nodes"] == 40002)


def test_a_push_finds_out_that_a_full_disk_has_room_again(collect, tmp_path):  # noqa: F811
    with small_disk(tmp_path / "small", 16) as folder:
        c = collect(1, "--runs=1000", "--run-ms=0", collector=["--source=announce", f"--state-dir={folder}/state"])
        c.options = [o for o in c.options if not o.startswith("--hostfile")]  # no node is contacted: nothing else shows it
        c.start()
        until(lambda: c.status()["store_ready"])
        name = c.fleet.names[0]
        file = token(c, "one", name)
        named(c, name)
        ballast = fill(folder)
        os.truncate(ballast, ballast.stat().st_size - (256 << 10))

        def full():
            done = push(c, name, file)
            assert done.returncode == 1, done
            return "the disk is full" in done.stderr and ("not stored, send it again" in done.stderr or "collector's store" in done.stderr)
        until(full)
        until(full)
        assert c.status()["store_state"] == "unwritable"
        ballast.unlink()
        until(lambda: push(c, name, file).returncode == 0)
        assert c.status()["store_state"] == "ready"
        with contextlib.closing(sqlite3.connect(f"file:{folder}/state/fleet.db?mode=ro", uri=True)) as db:
            assert db.execute("SELECT count(*), count(DISTINCT feed || '.' || seq) FROM run").fetchall() == [(2000, 2000)]
        c.stop()


def test_facts_that_cannot_be_stored_now_are_sent_again(pushed, make_postgresql):  # noqa: F811
    """The store refuses to write when a node sends its facts: they are not at fault, and the response says that it is for now."""
    server = make_postgresql()
    c = pushed(2, collector=[f"--store={server.uri}", "--every=86400"])
    c.name([])
    file = token(c, "one", "node1")
    named(c, "node1")
    assert post(c, "node1", file, page(c, "node1"))[0] == 200
    c.wait_judged(slower=0)
    [hash, *_] = wanted(c, "node1", file)
    body = json.dumps(facts(c, "node1", hash)).encode()
    server.rows("ALTER SYSTEM SET default_transaction_read_only = on")
    server.rows("SELECT pg_reload_conf()")
    until(lambda: server.rows("SHOW default_transaction_read_only") == [("on",)])
    status, said = post(c, f"node1/facts?hash={hash}", file, body)
    assert status == 503 and "only reads" in said["detail"], (status, said)
    server.rows("ALTER SYSTEM RESET default_transaction_read_only")
    server.rows("SELECT pg_reload_conf()")
    until(lambda: post(c, f"node1/facts?hash={hash}", file, body)[0] in (200, 409))
    assert server.rows(f"SELECT count(*) FROM document WHERE hash = '{hash}'") == [("1",)]


def test_many_nodes_that_never_push_are_counted_in_the_log(pushed):
    many = 2000
    c = pushed(2, collector=["--push-every=1"])
    token(c, "many", f"m[1-{many}]")

    def told():
        """(nodes that the log names as down, and those that it counts)"""
        log = c.log.read_text()
        return (len(re.findall(r"event=node name=m\d+ was=\w+ is=down why=\"it has not pushed for 3 s\"", log)),
                sum(int(n) for n in re.findall(r"event=nodes is=down count=(\d+) first=m\d+ last=m\d+", log)))
    until(lambda: sum(told()) == many)
    assert told()[0] >= 20, "a few by name"
    assert told()[1] > many / 2, told()


def test_campaigns_contact_no_node_that_pushes(pushed):
    c = pushed(4, "--run-ms=60000")
    first, second, third, last = c.fleet.names
    c.name([second, third, last])
    c.process.send_signal(signal.SIGHUP)
    token(c, "mine", first)
    named(c, *c.fleet.names)
    until(lambda: c.node(first)["pushes"])
    status, refused = send(c, "/v1/fleet/campaigns", {"name": "one", "spec": {"benchmark": "latency"}, "nodes": f"{first},{last}"})
    assert (status, refused["member"]) == (422, "nodes") and f"leave out {first}: it pushes its runs" in refused["detail"], refused
    number = begin(c, at_once=1, order="name", stop_after={"failed_percent": 100})
    assert show(c, number)["campaign"]["node_set"] == f"node[{second[4:]}-{last[4:]}]", "the others"
    until(lambda: c.fleet.is_followed(2, 13))
    token(c, "later", third)
    until(lambda: c.node(third)["pushes"])
    for node in (2, 4):
        until(lambda: c.fleet.is_followed(node, 13))
        urllib.request.urlopen(urllib.request.Request(f"{local(c, c.fleet.names[node - 1])}/v1/runs/13/cancel", method="POST"),
                               timeout=PATIENCE).close()
    states = {n["node"]: (n["state"], n["why"]) for n in ended(c, number)["node_states"]}
    assert states[third] == ("skipped", "it pushes its runs, and the collector does not contact it"), states
    assert states[second] == states[last] and states[last][0] == "failed", states
    assert probed(c, first) == probed(c, third) == []
