# SPDX-License-Identifier: Apache-2.0
"""What the daemon tells about its node, itself and its interface; recorded machines; the sockets."""
import gzip
import json
import os
import pathlib
import re
import stat
import subprocess
import time

import pytest
import yaml

from conftest import PATIENCE, ROOT, build_dir, until

SYNTHETIC = "NUMANode:2 L3Cache:1 Core:2 PU:2"


def routes(program):
    out = subprocess.run([program, "--routes"], capture_output=True, text=True, check=True).stdout
    return [line.split() for line in out.splitlines()]


@pytest.fixture(scope="module")
def contract():
    return yaml.safe_load((ROOT / "api" / "openapi.yaml").read_text())


def operations(contract):
    for path, item in contract["paths"].items():
        for method, operation in item.items():
            if method in ("get", "post", "put", "delete"):
                yield method.upper(), path, operation


def test_contract_is_the_route_table(numaprobed, contract):
    table = {(method, path): query for method, path, query in routes(numaprobed)}
    pages = {("GET", path) for path in ("/", "/web/{name}")}  # no part of the interface
    assert {(m, p) for m, p, _ in operations(contract)} == set(table) - pages
    for method, path, operation in operations(contract):
        parameters = [resolve(contract, p) for p in operation.get("parameters", [])]
        names = {p["name"] for p in parameters if p["in"] == "query"}
        query = table[method, path]
        if query != "*":
            assert names == (set() if query == "-" else set(query.split(","))), path
        assert "default" in operation["responses"] and operation["operationId"]


def test_served_contract_is_the_file(daemon, contract):
    assert daemon.get("/openapi.json").json == json.loads(json.dumps(contract))


def resolve(contract, schema):
    while "$ref" in schema:
        node = contract
        for part in schema["$ref"].removeprefix("#/").split("/"):
            node = node[part]
        schema = node
    return schema


def refs(node):
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        for value in node.values():
            yield from refs(value)
    elif isinstance(node, list):
        for value in node:
            yield from refs(value)


def check_example(contract, schema, value, where):
    schema = resolve(contract, schema)
    for part in schema.get("allOf", []):
        check_example(contract, part, value, where)
    if "const" in schema:
        assert value == schema["const"], where
    if "enum" in schema:
        assert value in schema["enum"], where
    if isinstance(value, dict):
        assert set(schema.get("required", [])) <= set(value), where
        for name, sub in schema.get("properties", {}).items():
            if name in value:
                check_example(contract, sub, value[name], f"{where}.{name}")


def test_contract_holds_together(contract):
    for ref in set(refs(contract)):
        resolve(contract, {"$ref": ref})

    def walk(node, where):
        if isinstance(node, dict):
            if "schema" in node and "example" in node:
                check_example(contract, node["schema"], node["example"], where)
            for name, value in node.items():
                walk(value, f"{where}/{name}")

    walk(contract, "")


def test_contract_has_the_parameter_tables(daemon, contract):
    catalogue = daemon.get("/v1/benchmarks").json
    schema = contract["components"]["schemas"]["RunParameters"]["properties"]
    assert "GET /v1/benchmarks" in contract["components"]["schemas"]["BenchmarkName"]["description"]
    listed = catalogue["common"] + [p for b in catalogue["benchmarks"] for p in b["params"]]
    assert set(schema) == {p["name"] for p in listed} | {"benchmark"}
    defaults = {}
    for p in listed:
        defaults.setdefault(p["name"], set()).add(p["default"])
    for p in listed:
        name, s = p["name"], schema[p["name"]]
        one = defaults[name].pop() if len(defaults[name]) == 1 else None
        assert one is None or str(s["default"]).lower() == one.lower(), name
        if "min" in p:
            assert (s["minimum"], s["maximum"]) == (p["min"], p["max"]), name
        if "choices" in p:
            assert s["enum"] == p["choices"], name
        if "max_length" in p:
            assert s["maxLength"] == p["max_length"], name


def test_ready_says_what_is_wrong(make_daemon):
    daemon = make_daemon(env={"NUMAPROBE_BENCH": "/nonexistent/numa_bench"})
    answer = daemon.get("/readyz")
    assert answer.status == 503 and answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json["member"] == "programs" and answer.headers["Retry-After"]
    verbose = daemon.get("/readyz?verbose")
    assert verbose.status == 503 and verbose.json["ready"] is False and verbose.headers["Retry-After"]
    assert {c["name"]: c["ok"] for c in verbose.json["checks"]}["storage"] is True


def test_node(daemon):
    node = daemon.get("/v1/node").json
    assert node["node"] and node["cpu_model"]
    assert re.fullmatch(r"[0-9a-f]{64}", node["fingerprint"]["hardware"]["hash"])


def test_cpus_that_are_taken_away_and_given_back(make_daemon):
    """By whom ever: the next answer knows it, without a restart."""
    daemon = make_daemon(args=["--admission=ignore"])
    pid, every = daemon.process.pid, sorted(os.sched_getaffinity(0))
    if len(every) < 2:
        pytest.skip("one CPU cannot be taken away")
    spec = {"benchmark": "latency", "size": "1M", "cpus": str(every[0]), "dry_run": True}

    def allowed():
        return [c["cpu"] for c in daemon.get("/v1/topology").json["cpus"] if c["allowed"]]

    assert allowed() == every and daemon.post("/v1/runs", spec).status == 200
    for task in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(task), every[1:])
    assert allowed() == every[1:]
    refused = daemon.post("/v1/runs", spec)
    assert refused.status == 422 and refused.json["member"] == "cpus", refused.json
    assert f"CPU {every[0]} is outside the cpuset of the daemon" in refused.json["detail"]
    os.sched_setaffinity(pid, every)
    assert allowed() == every and daemon.post("/v1/runs", spec).status == 200
    assert daemon.get("/v1/node").json["fingerprint"]["config"]["facts"]["cpus_allowed"]


def test_synthetic_topology(make_daemon):
    daemon = make_daemon(env={"HWLOC_SYNTHETIC": SYNTHETIC})
    topology = daemon.get("/v1/topology").json
    assert len(topology["nodes"]) == 2 and topology["this_system"] is False
    assert daemon.get("/v1/topology.xml").body.lstrip().startswith(b"<?xml")
    refused = daemon.post("/v1/runs", {"benchmark": "latency", "size": "1"})
    assert refused.status == 409 and [b["kind"] for b in refused.json["blockers"]] == ["topology_not_live"]


def test_another_machine_gives_no_untrue_hints(make_daemon):
    """Its CPUs were not taken out of our cpuset, and neither waiting nor a setting helps."""
    daemon = make_daemon(env={"HWLOC_SYNTHETIC": "pack:4 [numa(memory=4294967296)] core:8 pu:2",
                              "NUMAPROBED_ADMISSION": "refuse"})
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "NUMAPROBE_URL": f"unix:{daemon.socket}"}
    for command in (["run", "--size=1", "--quick"], ["doctor"]):
        done = subprocess.run([build_dir() / "client" / "numaprobe", *command], capture_output=True, text=True,
                              env=environment, timeout=PATIENCE)
        said = done.stdout + done.stderr
        assert "not of this machine" in said, said
        assert "cpuset" not in said and "wait-for-node" not in said and "admission = warn" not in said, said


@pytest.mark.parametrize("name, value", [
    ("HWLOC_SYNTHETIC", "pack:2 [numa(memory=256GB)] numa:4(memory=64GB) core:2"), ("HWLOC_SYNTHETIC", "garbage"),
    ("HWLOC_XMLFILE", "/nonexistent/machine.xml"), ("HWLOC_XMLFILE", "/etc/passwd"),
    ("HWLOC_FSROOT", "/nonexistent"), ("HWLOC_FSROOT", "/etc")])
def test_another_machine_that_cannot_be_read(numaprobed, tmp_path, name, value):
    """No start, rather than this machine under another's name."""
    done = subprocess.run([str(numaprobed), "--listen=127.0.0.1:0", f"--state-dir={tmp_path}/state",
                           f"--run-dir={tmp_path}/run"], env={"PATH": os.environ["PATH"], name: value},
                          capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode and name in done.stderr, done


@pytest.mark.parametrize("name,nodes", [("64amd64-4s2n4ca2co", 8), ("20em64t-hybrid-1p6c2t+2ca4co1t", 1),
                                        ("fakememinitiators-1np2c+1npp+gi", 11)])
def test_recorded_topologies(make_daemon, tmp_path, name, nodes):
    archive = ROOT / "tests/data/topologies" / f"{name}.tar.bz2"
    subprocess.run(["tar", "-xjf", archive, "-C", tmp_path, "--no-same-owner"], check=True)
    (root,) = tmp_path.iterdir()
    topology = make_daemon(env={"HWLOC_FSROOT": str(root), "HWLOC_COMPONENTS": "linux,stop"}).get("/v1/topology").json
    assert len(topology["nodes"]) == nodes and topology["this_system"] is False


def test_unix_socket(daemon):
    mode = os.stat(daemon.socket).st_mode
    assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o660
    answer = daemon.request("GET", "/healthz", headers={"Host": "anything"}, unix=True)
    assert answer.status == 200


def test_stale_socket_is_replaced(make_daemon):
    import signal
    first = make_daemon()
    first.stop(signal.SIGKILL)
    assert os.path.exists(first.socket)
    second = make_daemon(home=first.home)
    assert second.request("GET", "/healthz", unix=True).status == 200
    second.stop()
    assert not os.path.exists(second.socket)


WEB = [ROOT / "api" / "web", ROOT / "web"]
WEB_TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}


def web_files():
    """{path of a request: file}"""
    files = [p for folder in WEB for p in folder.rglob("*") if p.suffix in WEB_TYPES]
    return {"/" if p.name == "index.html" else f"/web/{p.name}": p for p in files}


def test_page_is_our_own(daemon):
    page = daemon.get("/")
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert not re.search(rb"https?://", page.body)
    for path, file in web_files().items():
        if "vendor" not in file.parts:
            assert not re.search(rb"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b", daemon.get(path).body), path


def test_every_file_of_the_page(daemon):
    """Plain and compressed: the same file, a tag each, and nothing is sent again to a client that has it."""
    sent, tags = 0, set()
    for path, file in web_files().items():
        plain, packed = daemon.get(path), daemon.get(path, Accept_Encoding="gzip, deflate, br")
        assert plain.status == packed.status == 200 and plain.body == file.read_bytes(), path
        assert "Content-Encoding" not in plain.headers and gzip.decompress(packed.body) == plain.body, path
        assert packed.headers["Content-Encoding"] == "gzip" and len(packed.body) < len(plain.body)
        for answer, wanted in ((plain, "identity"), (packed, "gzip")):
            assert answer.headers["Content-Type"] == WEB_TYPES[file.suffix] and answer.headers["Vary"] == "Accept-Encoding"
            assert answer.headers["X-Content-Type-Options"] == "nosniff" and answer.headers["Cache-Control"] == "no-cache"
            head = daemon.request("HEAD", path, headers={"Accept-Encoding": wanted})
            assert head.body == b"" and int(head.headers["Content-Length"]) == len(answer.body)
            again = daemon.get(path, Accept_Encoding=wanted, If_None_Match=answer.headers["ETag"])
            assert again.status == 304 and again.body == b"" and again.headers["ETag"] == answer.headers["ETag"]
            tags.add(answer.headers["ETag"])
        # What the other coding's client has is no copy of this one.
        assert daemon.get(path, Accept_Encoding="gzip", If_None_Match=plain.headers["ETag"]).status == 200
        sent += len(packed.body)
    assert len(tags) == 2 * len(web_files()) and sent <= 120 << 10
    print(f"the page: {len(web_files())} files, {sent / 1024:.1f} KiB compressed")


@pytest.mark.parametrize("accepted,packed", [
    ("gzip", True), ("GZIP;q=1.0", True), ("br, gzip;q=0.5", True), ("*", True), ("gzip;q=0.001", True), ("deflate, *;q=0.1", True),
    ("identity", False), ("gzip;q=0", False), ("gzip;q=0.000, *", False), ("*;q=0", False), ("gzip;q=0.4, identity;q=0.5", False),
    ("", False), ("br", False), ("gzipped", False), ("x-gzip", False), ("gzip;q=nonsense", False), (None, False)])
def test_accepted_encodings(daemon, accepted, packed):
    headers = {} if accepted is None else {"Accept-Encoding": accepted}
    answer = daemon.request("GET", "/openapi.json", headers=headers)
    assert (answer.headers.get("Content-Encoding") == "gzip") == packed and answer.headers["Vary"] == "Accept-Encoding"
    assert json.loads(gzip.decompress(answer.body) if packed else answer.body)["openapi"].startswith("3.1")


@pytest.mark.parametrize("path", ["/web/nothing.js", "/web/index.html", "/web/openapi.json", "/web/openapi.yaml", "/web/",
                                  "/web/vendor/uPlot/uPlot.esm.js", "/web/..%2fopenapi.json", "/web/../openapi.yaml", "/app.js"])
def test_only_files_of_the_page(daemon, path):
    answer = daemon.request("GET", path, headers={"Accept-Encoding": "gzip"})
    assert answer.status in (400, 404) and answer.json["status"] == answer.status and "Content-Encoding" not in answer.headers


@pytest.mark.parametrize("args,words", [
    (["--listen=0.0.0.0:0"], "loopback"), (["--listen=nonsense"], "ADDRESS:PORT"),
    (["--colour=red"], "--colour"), (["--log-level=loud"], "log-level"), (["word"], "word"),
    (["--config=/nonexistent"], "/nonexistent")])
def test_wrong_options_are_named(numaprobed, tmp_path, args, words):
    done = subprocess.run([numaprobed, f"--state-dir={tmp_path}/s", f"--run-dir={tmp_path}/r", *args],
                          capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode != 0 and words in done.stderr


def test_config_file_names_the_line(numaprobed, tmp_path):
    config = tmp_path / "c.conf"
    config.write_text("# comment\nlog_level = debug\ncolour = red\n")
    done = subprocess.run([numaprobed, f"--config={config}"], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2 and f"{config}:3" in done.stderr


def test_idle_daemon_sleeps(make_daemon):
    daemon = make_daemon()
    assert daemon.get("/healthz").status == 200

    def switches():
        text = pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text()
        return int(re.search(r"\nvoluntary_ctxt_switches:\s*(\d+)", text).group(1))

    def written():
        text = pathlib.Path(f"/proc/{daemon.process.pid}/io").read_text()
        return int(re.search(r"wchar: (\d+)", text).group(1))

    def slept():
        before = switches(), written()
        time.sleep(3)  # the one test about time itself
        return (switches(), written()) == before

    until(slept)  # what the start and the closed connection left to do may take a while


def test_memory_modules_come_by_a_credential(make_daemon, tmp_path):
    """systemd reads the tables of the firmware as root, for a service that is not."""
    table = bytearray(0x54)
    table[0], table[1], table[0x12], table[0x1b] = 17, len(table), 0x22, 2
    table[0x0c:0x0e], table[0x15:0x17] = (16384).to_bytes(2, "little"), (4800).to_bytes(2, "little")
    table[0x20:0x22] = (4400).to_bytes(2, "little")
    (tmp_path / "dmi").write_bytes((bytes(table) + b"DIMM_A1\0\0") * 4)
    if pathlib.Path("/sys/firmware/dmi/tables/DMI").exists():
        pytest.skip("this machine has tables of its own")
    facts = make_daemon(env={"CREDENTIALS_DIRECTORY": str(tmp_path)}).get("/v1/node").json["fingerprint"]
    assert facts["hardware"]["facts"]["dimms"] == "4x16G DDR5-4800 2R; slots 0-3 of 4"
    assert facts["config"]["facts"]["dimm_speed"] == "4400 MT/s"
    assert "dimms" not in make_daemon().get("/v1/node").json["fingerprint"]["hardware"]["facts"]


@pytest.mark.parametrize("query, said", [("queue_s=5m", 'must be a whole number in s, got "5m"'), ("timeout_s=60s", "must be a whole number in s"),
                                         ("benchmark=latency&budget_s=1h", "in s")])
def test_numbers_of_a_query_have_no_unit(daemon, query, said):
    answer = daemon.get("/v1/availability?" + query)
    assert answer.status == 422 and answer.json["member"] == query.split("&")[-1].split("=")[0] and said in answer.json["detail"], answer.json
    assert daemon.get("/v1/availability?queue_s=300").status == 200
