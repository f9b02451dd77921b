# SPDX-License-Identifier: Apache-2.0
"""Results from elsewhere become runs, and runs go out whole: formats, guesses, refusals, round trips."""
import contextlib
import csv
import hashlib
import io
import http.client
import json
import os
import pathlib
import re
import select
import signal
import socket
import sqlite3
import subprocess
import threading

import jsonschema
import pytest

import large
from conftest import FAKE_BENCH, PATIENCE, ROOT, build_dir, fake_bench_env, read_answer, until

CLIENT = build_dir() / "client" / "numaprobe"
RESULTS = ROOT / "tests" / "data" / "results"
OWN = {"id", "seq", "created", "source"}  # of a run: which daemon has it
TABLE = """|  MPI  |        CPU     |              MEMORY    |  LATENCY (ns)   |
| Ranks | Cores   | NUMA |     Address    | NUMA  | 1MB    | 2MB    |
|-------|---------|------|----------------|-------|--------|--------|
|  000  | 1       |   0  | 0x7f6156000000 |   0   | 17.51  | 95.33  |
|  001  | 9       |   0  | 0x7fa087200000 |   1   | 14.04  | 74.10  |
"""
CSV = "size (MB),0,1\n1,11.5,12.5\n2,13.0,14.0\n"
MAPPING = "rank,cpu_id,cpu_numa,memory_numa\n0,1,0,0\n1,9,1,1\n"


def post(daemon, text, query="", kind="text/plain"):
    return daemon.request("POST", "/v1/imports" + query, text, {"Content-Type": kind})


def count(daemon):
    return len(daemon.get("/v1/runs?limit=200").json["runs"])


def export(daemon, run):
    answer = daemon.get(f"/v1/runs/{run}/export")
    assert answer.status == 200, answer.body
    return answer.json


def without_own(whole):
    return {**whole, "run": {k: v for k, v in whole["run"].items() if k not in OWN}}


def numaprobe(daemon, *args, **kw):
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent",
           "NUMAPROBE_URL": f"http://127.0.0.1:{daemon.port}"}
    return subprocess.run([str(CLIENT), *map(str, args)], capture_output=True, text=True, env=env,
                          timeout=PATIENCE, **kw)


def check_schema(whole):
    schema = json.loads((ROOT / "schema" / "json" / "run-1.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(whole)


# ---- what comes in ----


def test_table(daemon):
    answer = post(daemon, "hostname: nid1\n" + TABLE, "?date=2025-03-14&label=spring&mode=serial")
    assert answer.status == 201, answer.body
    run = answer.json
    assert answer.headers["Location"] == f"/v1/runs/{run['id']}"
    assert (run["node"], run["label"], run["source"]) == ("nid1", "spring", "imported")
    assert run["measured"] == "2025-03-14T00:00:00.000Z" and run["started"] is None
    assert (run["ranks"], run["cells"], run["method"]) == (2, 4, "classic-v1")
    assert run["spec"]["mode"] == "serial" and run["spec"]["size"] == "1M-2M"
    assert "the page kind is not known" in [c["text"] for c in run["conditions"]]
    assert not run["topology_hash"] and not run["hardware_hash"]
    matrices = daemon.get(f"/v1/runs/{run['id']}/matrix").json
    assert [m["name"] for m in matrices["matrices"]] == ["serial"]
    assert matrices["matrices"][0]["cells"][1][1]["median"] == 74.1
    assert [r["mem_node"] for r in matrices["ranks"]] == [0, 1]


def test_csv_with_mapping(daemon):
    answer = daemon.post("/v1/imports", {"text": CSV, "mapping": MAPPING, "node": "csv1", "pages": "4k"})
    assert answer.status == 201, answer.body
    whole = export(daemon, answer.json["id"])
    assert [(r["cpu"], r["mem_node"], r["pages_got"]) for r in whole["ranks"]] == [(1, 0, "4k"), (9, 1, "4k")]
    assert whole["run"]["spec"]["pages"] == "4k" and whole["run"]["spec"]["cpus"] == "1,9"


def test_csv_without_mapping(daemon):
    run = post(daemon, CSV, "?node=csv2", "text/csv").json
    assert run["ranks"] == 2 and run["spec"]["cpus"] == ""
    assert daemon.get(f"/v1/runs/{run['id']}/report").status == 200


def test_matrix_json_as_it_is_given_out(daemon):
    first = post(daemon, TABLE, "?node=m1").json["id"]
    matrices = daemon.get(f"/v1/runs/{first}/matrix.json")
    answer = post(daemon, matrices.body, "?node=m2&date=2025-01-01", "application/json")
    assert answer.status == 201, answer.body
    assert answer.json["spec"]["mode"] == "concurrent" and answer.json["method"] == "classic-v1"
    both = daemon.get(f"/v1/compare?base={first}&target={answer.json['id']}").json
    assert both["comparison"]["groups"] and both["verdict"] != "slower"


def test_known_runs_are_stored_once(daemon):
    first = post(daemon, TABLE, "?node=once&date=2025-03-14")
    before = count(daemon)
    again = post(daemon, "another line around it\n" + TABLE, "?node=once&date=2025-03-14&label=x")
    assert (first.status, again.status) == (201, 200)
    assert again.json["id"] == first.json["id"] and again.json["label"] is None
    assert count(daemon) == before
    assert post(daemon, TABLE, "?node=once&date=2025-03-15").status == 201, "another day, another run"
    undated = post(daemon, TABLE, "?node=undated").json["id"]
    assert post(daemon, TABLE, "?node=undated").json["id"] == undated
    back = daemon.post("/v1/imports", export(daemon, undated))
    assert (back.status, back.json["id"]) == (200, undated), "its own export too"


def test_dry_run_stores_nothing(daemon):
    before = count(daemon)
    answer = post(daemon, TABLE, "?node=dry&dry_run=true")
    assert answer.status == 200 and answer.json["dry_run"] is True
    one = answer.json["runs"][0]
    assert one["existing_run"] is None and one["run"]["cells"] == 4 and one["run"]["node"] == "dry"
    assert one["matrices"][0]["cols"]["values"] == [1 << 20, 1 << 21]
    assert count(daemon) == before
    made = post(daemon, TABLE, "?node=dry").json["id"]
    assert post(daemon, TABLE, "?node=dry&dry_run=true").json["runs"][0]["existing_run"] == made


@pytest.mark.parametrize("text,query,member,says", [
    (TABLE.replace("95.33", "-1"), "", "line 4", "above 0"),
    (TABLE.replace("| 95.33  |", "|"), "", "line 4", "columns"),
    (CSV.replace("14.0", "x"), "", "line 3", "rank 1"),
    ("hello\n", "", "line 1", "neither"),
    ("", "", "line 1", "neither"),
    (TABLE, "?node=a%20b", "node", "1 to 63 letters"),
    (TABLE, "?label=%07", "label", "printable"),
    (TABLE, "?label=" + 64 * "x", "label", "63 bytes"),
    (TABLE, "?date=yesterday", "date", "must be a time"),
    (TABLE, "?date=2999-01-01", "date", "future"),
    (TABLE, "?mode=both", "mode", "concurrent or serial"),
    (TABLE, "?pages=2m", "pages", "one of thp, 4k, huge, 2M, 1G"),
    (TABLE.encode() + b"\0\n", "", "line 6", "NUL"),
], ids=["value", "columns", "csv", "no table", "empty", "node", "label", "long label", "date", "future", "mode",
        "pages", "nul"])
def test_refused_with_where_and_why(daemon, text, query, member, says):
    before = count(daemon)
    answer = post(daemon, text, query)
    assert answer.status == 422, answer.body
    assert answer.json["member"] == member and says in answer.json["detail"], answer.json
    assert count(daemon) == before


@pytest.mark.parametrize("mapping", ["", "\n", "\ufeff", "rank,cpu_id,cpu_numa,memory_numa\n"])
def test_a_mapping_without_ranks_is_refused(daemon, mapping):
    """An empty file counted as none: the run was stored without the placement that was meant."""
    before = count(daemon)
    answer = daemon.post("/v1/imports", {"text": CSV, "mapping": mapping, "node": "none"})
    assert answer.status == 422 and answer.json["member"] == "mapping", answer.json
    assert "no line for rank 0" in answer.json["detail"] and count(daemon) == before


def test_a_dry_run_of_a_document_is_asked_for_in_the_query(daemon):
    """As a member of the document it was ignored, like those of other versions, and the run was stored."""
    run = daemon.get(f"/v1/runs/{post(daemon, TABLE, '?node=dry').json['id']}/export").json
    assert daemon.request("DELETE", f"/v1/runs/{run['run']['id']}", unix=True).status == 204
    before = count(daemon)
    for body in {**run, "dry_run": True}, {"runs": [run], "dry_run": True}:
        answer = daemon.post("/v1/imports", body)
        assert answer.status == 422 and answer.json["member"] == "dry_run", answer.body
        assert "?dry_run=true" in answer.json["detail"] and count(daemon) == before
    assert daemon.post("/v1/imports?dry_run=true", run).status == 200 and count(daemon) == before


def test_envelope_is_strict(daemon):
    assert daemon.post("/v1/imports", {"text": TABLE, "nod": "x"}).json["member"] == "nod"
    assert daemon.post("/v1/imports", {"text": 3}).json["member"] == "text"
    assert daemon.post("/v1/imports", {"text": TABLE, "mapping": MAPPING}).json["member"] == "mapping"
    assert daemon.post("/v1/imports?mod=serial", {"text": TABLE}).status == 400
    assert post(daemon, TABLE, kind="image/png").status == 415


def test_all_or_none(daemon):
    first = post(daemon, TABLE, "?node=whole&date=2025-02-01").json["id"]
    good = export(daemon, first)
    other = json.loads(json.dumps(good))
    other["run"]["node"] = "whole2"
    bad = json.loads(json.dumps(good))
    bad["matrices"][0]["cells"][0][0]["median"] = 0
    before = count(daemon)
    answer = daemon.post("/v1/imports", {"runs": [other, bad]})
    assert answer.status == 422 and answer.json["member"] == "runs[1]", answer.json
    assert "above 0" in answer.json["detail"]
    lines = "\n".join(json.dumps(w) for w in (other, bad))
    answer = post(daemon, lines, kind="application/x-ndjson")
    assert answer.status == 422 and answer.json["member"] == "line 2", answer.json
    assert count(daemon) == before
    answer = daemon.post("/v1/imports", {"runs": [other, good]})
    assert answer.status == 201 and (answer.json["stored"], answer.json["existing"]) == (1, 1)
    assert [r["node"] for r in answer.json["runs"]] == ["whole2", "whole"]


def test_changed_facts_are_refused(daemon):
    whole = export(daemon, daemon.run(size="1", cpus="0")["id"])
    whole["run"]["node"] = "forged"
    whole["fingerprint"]["hardware"]["facts"]["cpu_model"] = "Another"
    answer = daemon.post("/v1/imports", whole)
    assert answer.status == 422 and "hash" in answer.json["detail"], answer.json


def test_topology_that_brings_hwloc_down(make_daemon):
    """Its XML may be anybody's: a process of its own reads it, now and after each start."""
    daemon = make_daemon(fake_bench_env())
    whole = export(daemon, daemon.run(size="1", cpus="0")["id"])
    xml = (ROOT / "tests/fuzz/corpus/topology/refused-brings-hwloc-down.xml").read_text()
    whole["topology"] = {"hash": hashlib.sha256(xml.encode()).hexdigest(), "xml": xml}
    whole["run"]["node"] = "elsewhere"
    whole["run"]["topology"] = whole["topology"]["hash"]
    answer = daemon.post("/v1/imports", whole)
    assert answer.status == 201, answer.body
    report = daemon.get(f"/v1/runs/{answer.json['id']}/report")
    assert report.status == 200, report.body
    assert daemon.process.poll() is None
    assert daemon.stop() == 0
    daemon.log = []
    assert daemon.start().get("/healthz").status == 200


def test_large_bodies_are_for_imports_only(daemon):
    rows = "".join("%d,%s\n" % (1 << i, ",".join("%d.25" % (10 + r % 90) for r in range(1024))) for i in range(20))
    text = "size (MB)," + ",".join(map(str, range(1024))) + "\n" + rows
    assert len(text) > 100_000
    answer = post(daemon, text, "?node=large", "text/csv")
    assert answer.status == 201 and answer.json["cells"] == 20480
    assert daemon.request("POST", "/v1/runs", text, {"Content-Type": "application/json"}).status == 413
    assert daemon.raw(b"POST /v1/imports HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\n"
                      b"Content-Length: 40000000\r\n\r\n")[0] == 413


# ---- what goes out ----


def test_export_is_what_the_schema_says(daemon):
    run = daemon.run(size="1,2", cpus="0")
    whole = export(daemon, run["id"])
    check_schema(whole)
    check_schema(export(daemon, post(daemon, CSV, "?node=schema").json["id"]))
    assert whole["format"] == "numaprobe-run" and whole["topology"]["xml"].startswith("<?xml")
    assert whole["run"]["topology_hash"] == whole["topology"]["hash"]
    cells = [cell for m in whole["matrices"] for row in m["cells"] for cell in row]
    assert all(cell.pop("distribution").endswith(" 2 4 -1 5") for cell in cells)
    bare = daemon.get(f"/v1/runs/{run['id']}/export?distributions=false").json
    assert [cell for m in bare["matrices"] for row in m["cells"] for cell in row] == cells
    lean = daemon.get(f"/v1/runs/{run['id']}/export?topology=false&log=false").json
    assert lean["topology"] == {"hash": whole["topology"]["hash"], "xml": None} and lean["log"] is None


def test_export_of_a_run_that_goes_on(make_daemon, tmp_path):
    bench = tmp_path / "fake_bench-hang"
    bench.write_bytes(FAKE_BENCH.read_bytes())
    bench.chmod(0o755)
    for folder in (tmp_path, *list(tmp_path.parents)[:2]):
        folder.chmod(0o755)
    daemon = make_daemon({**fake_bench_env(), "NUMAPROBE_BENCH": str(bench)})
    run = daemon.post("/v1/runs", {"benchmark": "latency", "size": "1", "cpus": "0"}).json["id"]
    answer = daemon.get(f"/v1/runs/{run}/export")
    assert answer.status == 409 and answer.json["member"] == "state"
    for _, _, state in daemon.events(run):  # it goes on for ever
        if state["state"] == "running":
            break
    assert post(daemon, TABLE, "?node=meanwhile").status == 201
    large = post(daemon, TABLE + "\n" * (1 << 20), "?node=meanwhile")
    assert large.status == 503 and "disturb" in large.json["detail"] and large.headers["Retry-After"]
    daemon.post(f"/v1/runs/{run}/cancel")
    assert daemon.wait(run)["state"] == "canceled"
    assert export(daemon, run)["run"]["state"] == "canceled"
    assert daemon.get("/v1/runs/99999/export").status == 404


def test_round_trip(daemon, make_daemon):
    base, target = (daemon.run(size="1,2,4", cpus="0", min_samples=n)["id"] for n in (7, 8))
    table = post(daemon, TABLE, "?node=trip").json["id"]
    there = [export(daemon, run) for run in (base, target, table)]
    other = make_daemon()
    answer = other.post("/v1/imports", {"runs": there})
    assert answer.status == 201 and answer.json["stored"] == 3, answer.body
    ids = [run["id"] for run in answer.json["runs"]]
    assert all(run["source"] == "imported" for run in answer.json["runs"])
    here = [export(other, run) for run in ids]
    assert [without_own(w) for w in here] == [without_own(w) for w in there]
    before, after = (
        d.get(f"/v1/compare?base={a}&target={b}").json for d, a, b in ((daemon, base, target), (other, *ids[:2])))
    assert before["comparison"] == after["comparison"] and before["fact_changes"] == after["fact_changes"]
    assert other.post("/v1/imports", {"runs": there}).json["existing"] == 3
    back = daemon.post("/v1/imports", {"runs": here})
    assert back.status == 200, "a run that was measured here is known here"
    assert [run["id"] for run in back.json["runs"]] == [base, target, table]
    assert other.get(f"/v1/runs/{ids[0]}/report").status == 200


def test_a_run_without_an_end_has_no_seconds(daemon, make_daemon):
    """The time of the import is stored as its end. What is between is not the run's, nor are 55 years of a clock that was set."""
    whole = export(daemon, daemon.run(size="1,2", cpus="0")["id"])
    other = make_daemon()
    for n, times in enumerate([{"started": "2026-01-01T00:00:00Z", "finished": None},
                               {"started": "1971-01-01T00:00:00Z", "finished": "2026-01-01T00:00:00Z"}]):
        run = other.post("/v1/imports", {**whole, "run": {**whole["run"], **times, "measured": f"2026-01-01T00:00:0{n}Z"}}).json
        assert run["seconds"] is None and run["finished"], run
    assert [run.get("duration_s") for run in other.get("/v1/feed").json["runs"]] == [None] * 2


# ---- the command line ----


@pytest.fixture
def files(tmp_path):
    (tmp_path / "a-serial.txt").write_text(TABLE)
    (tmp_path / "b.csv").write_text(CSV)
    (tmp_path / "map.csv").write_text(MAPPING)
    (tmp_path / "bad.txt").write_text("nothing\n")
    return tmp_path


def test_cli_imports_files_one_by_one(make_daemon, files):
    daemon = make_daemon()
    done = numaprobe(daemon, "import", files / "a-serial.txt", files / "bad.txt", files / "no", files / "b.csv",
                     "--node=n1", "-o", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [(r["run"], r["mode"], r["stored"]) for r in rows] == [("1", "serial", "1"), ("2", "concurrent", "1")]
    assert done.returncode != 0 and "2 of 4 files" in done.stderr
    assert "bad.txt: line 1: " in done.stderr and "no: cannot be opened" in done.stderr
    assert int(rows[0]["notes"]) >= 1
    assert numaprobe(daemon, "import", files / "a-serial.txt", "--node=n1").returncode == 0
    assert count(daemon) == 2


def test_show_knows_no_quality_of_values_without_samples(make_daemon, files):
    daemon = make_daemon()
    assert numaprobe(daemon, "import", files / "a-serial.txt", "--node=n1").returncode == 0
    lines = [line for line in numaprobe(daemon, "show", "1").stdout.splitlines() if line.startswith("quality ")]
    assert len(lines) == 1 and " not known: no samples are counted" in lines[0], lines


def test_cli_mapping_date_standard_input(make_daemon, files):
    daemon = make_daemon()
    os.utime(files / "b.csv", (1741946400, 1741946400))
    done = numaprobe(daemon, "import", files / "b.csv", f"--mapping={files}/map.csv", "--date=file", "--label=L")
    assert done.returncode == 0, done.stderr
    run = daemon.get("/v1/runs/1").json
    assert (run["measured"], run["label"], run["spec"]["cpus"]) == ("2025-03-14T10:00:00.000Z", "L", "1,9")
    done = numaprobe(daemon, "import", "-", "--dry-run", input=TABLE)
    assert done.returncode == 0 and count(daemon) == 1
    assert numaprobe(daemon, "import", files).returncode != 0
    assert numaprobe(daemon, "import").returncode == 2
    assert numaprobe(daemon, "import", files / "b.csv", "--date=soon").returncode == 2


def test_cli_names_what_is_wrong_as_the_file_does(make_daemon, files, exported):
    daemon = make_daemon()
    of_file, no_option = files / "run.json", changed(exported, ["run", "spec", "size"], "none")
    of_file.write_text(json.dumps(no_option))
    assert f"{of_file}: size: spec: " in numaprobe(daemon, "import", of_file).stderr
    of_file.write_text(json.dumps(changed(exported, ["ranks"], 7)))
    assert f"{of_file}: ranks: must be an array" in numaprobe(daemon, "import", of_file).stderr
    of_file.write_text(json.dumps(exported))
    assert f"{of_file}: --node: cannot be given" in numaprobe(daemon, "import", of_file, "--node=n1").stderr
    assert f"{of_file}: --pages: must be one of" in numaprobe(daemon, "import", of_file, "--pages=7").stderr
    assert count(daemon) == 0


def test_cli_reads_no_more_of_a_line_than_it_sends(make_daemon):
    daemon = make_daemon()
    done = numaprobe(daemon, "import", "/dev/zero")
    assert done.returncode != 0 and "/dev/zero: is larger than 32 MiB" in done.stderr, done.stderr


def test_cli_export_import(make_daemon, files):
    a, b = make_daemon(fake_bench_env()), make_daemon()
    a.run(size="1,2", cpus="0")
    a.run(size="1,2", cpus="0")
    assert numaprobe(a, "import", files / "a-serial.txt", files / "b.csv", "--node=n1").returncode == 0
    out = files / "all.ndjson"
    assert numaprobe(a, "export", "--all", "--file", out).returncode == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [w["run"]["id"] for w in lines] == [1, 2, 3, 4], "oldest first"
    assert [bool(w["topology"] and w["topology"]["xml"]) for w in lines] == [True, False, False, False]
    assert not out.with_suffix(".ndjson.part").exists()
    done = numaprobe(b, "import", out)
    assert done.returncode == 0, done.stderr
    for run in range(1, 5):
        assert without_own(export(b, run)) == without_own(export(a, run))
    listed = json.loads(numaprobe(a, "export", "--all", "-o", "json").stdout)
    assert [w["run"]["id"] for w in listed["runs"]] == [1, 2, 3, 4]
    assert [json.loads(x)["run"]["id"] for x in numaprobe(a, "export", "--node=n1").stdout.splitlines()] == [3, 4]
    check_schema(json.loads(numaprobe(a, "export", "3").stdout))
    for option, said in (("--since=2999-01-01", "no finished run is there in this time"),
                         ("--node=nope", "no finished run is of node nope")):
        done = numaprobe(a, "export", "--all", option)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", f"numaprobe: {said}\n")


def test_a_date_before_1970_is_refused_with_the_range(daemon):
    answer = post(daemon, TABLE, "?node=early&date=1900-01-01")
    assert answer.status == 422 and answer.json["member"] == "date" and "from 1970 on" in answer.json["detail"]


def test_cli_export_csv(make_daemon, files):
    daemon = make_daemon()
    numaprobe(daemon, "import", files / "a-serial.txt", "--node=n1", "--date=2025-03-14")
    rows = list(csv.DictReader(io.StringIO(numaprobe(daemon, "export", "--all", "-o", "csv").stdout)))
    assert len(rows) == 4
    assert rows[3] == {**rows[3], "run": "1", "node": "n1", "measured": "2025-03-14T00:00:00.000Z",
                       "benchmark": "latency", "matrix": "serial", "unit": "ns", "row_axis": "rank", "row": "1",
                       "col_axis": "working_set", "col": "2097152", "median": "74.100", "mean": ""}


def test_cli_export_says_what_it_needs(daemon):
    assert numaprobe(daemon, "export").returncode == 2
    assert numaprobe(daemon, "export", "1", "--all").returncode == 2
    assert numaprobe(daemon, "export", "99999").returncode == 5
    assert numaprobe(daemon, "export", "x").returncode == 2


def test_many_lines_go_in_parts(make_daemon, files):
    daemon = make_daemon()
    numaprobe(daemon, "import", files / "b.csv", "--node=n1", "--date=2025-01-01")
    whole = export(daemon, 1)
    text = files / "many.ndjson"
    with text.open("w") as f:
        for k in range(1200):
            whole["run"]["node"] = "n%d" % (k + 2)
            f.write(json.dumps(whole) + "\n")
    done = numaprobe(daemon, "import", text, "-o", "csv")
    assert done.returncode == 0, done.stderr
    assert [int(r["stored"]) for r in csv.DictReader(io.StringIO(done.stdout))] == [500, 500, 200]
    out = numaprobe(daemon, "export", "--all").stdout
    assert len(out.splitlines()) == 1201


# ---- two imports and a probe at once ----


def test_imports_at_once(daemon):
    answers = []

    def one(k):
        answers.append(post(daemon, TABLE, f"?node=at-once-{k % 4}&date=2025-01-01").status)
    threads = [threading.Thread(target=one, args=(k,)) for k in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(answers) == 12 * [200] + 4 * [201]


# ---- the published results ----


@pytest.mark.parametrize("mode", ["concurrent", "serial"])
def test_published_tables(make_daemon, mode):
    path = RESULTS / f"lumig-8ranks-{mode}.txt"
    daemon = make_daemon()
    done = numaprobe(daemon, "import", path, "--node=nid005021", "--date=2025-03-14")
    assert done.returncode == 0, done.stderr
    run = daemon.get("/v1/runs/1").json
    assert (run["ranks"], run["cells"], run["spec"]["mode"]) == (8, 120, mode)
    assert run["spec"]["size"] == "1M-16G" and run["spec"]["cpus"] == "1,9,17,25,33,41,49,57"
    matrix = daemon.get("/v1/runs/1/matrix").json["matrices"][0]
    assert matrix["cols"]["values"] == [1 << k for k in range(20, 35)]
    report = daemon.get("/v1/runs/1/report").json["report"]
    assert report
    assert "run         1: succeeded" in numaprobe(daemon, "show", "1").stdout


@pytest.mark.parametrize("name,ranks", [("example1_lumig_7ranks_1_domain", 7), ("example2_lumig_14ranks_2_domains", 14)])
def test_published_csv(make_daemon, name, ranks):
    path = RESULTS / f"{name}_{ranks}ranks.csv"
    daemon = make_daemon()
    done = numaprobe(daemon, "import", path, f"--mapping={RESULTS}/{name}_mapping.csv", "--node=nid005021")
    assert done.returncode == 0, done.stderr
    whole = export(daemon, 1)
    assert whole["run"]["ranks"] == ranks and whole["run"]["cells"] == 12 * ranks
    assert {r["mem_node"] for r in whole["ranks"]} == set(range(1 + ranks // 14))


def changed(whole, path, value):
    """A copy of an export with one member replaced."""
    whole = json.loads(json.dumps(whole))
    *way, last = path
    at = whole
    for step in way:
        at = at[step]
    at[last] = value
    return whole


@pytest.fixture(scope="module")
def exported(daemon):
    return export(daemon, daemon.run(size="1-2")["id"])


@pytest.mark.parametrize("path,value,member,says", [
    (["run"], 7, "run", "must be an object"),
    (["run", "state"], "running", "state", "must be succeeded"),
    (["run", "node"], 7, "node", "must be a text"),
    (["run", "node"], "x" * 300, "node", "must be a text"),
    (["run", "label"], "two\nlines", "label", ""),
    (["run", "created"], "yesterday", "created", "must be a time such as"),
    (["run", "plan"], [], "plan", "must be an object or null"),
    (["run", "conditions"], "none", "conditions", "must be an array"),
    (["run", "conditions"], ["a", 7], "kind", "must be a text"),
    (["run", "spec", "size"], "none", "size", "spec: "),
    (["run", "spec", "benchmark"], "warp", "benchmark", "is not a benchmark"),
    (["run", "spec", "benchmark"], "warp", "benchmark", "; if a newer numaprobe wrote this: update this one"),
    (["run", "spec", "mode"], "staggered", "mode", "; if a newer numaprobe wrote this: update this one"),
    (["run", "error"], {"type": "timeout", "text": "x" * 2000}, "text", "must be a text"),
    (["run", "error"], "it was too slow", "error", "must be an object or null"),
    (["fingerprint", "hardware", "hash"], "0" * 64, "hardware", "fingerprint: its hash is not that of its facts"),
    (["fingerprint", "config"], 7, "facts", "fingerprint: config: "),
    (["topology"], {"hash": "0" * 64, "xml": "<topology/>"}, "topology", "its hash is not that of its XML"),
    (["topology"], {"hash": 7}, "hash", "topology: must be a text"),
    (["topology"], "none", "topology", "must be an object or null"),
    (["topology", "xml"], 7, "topology", "xml must be a text or null"),
    (["log"], 7, "log", "must be a text or null"),
    (["matrices"], {}, "matrices", "must be an array"),
    (["matrices"], [], "matrices", "at least one"),
    (["ranks"], 7, "ranks", "must be an array"),
    (["ranks", 0], 7, "rank", "ranks[0]: "),
    (["matrices", 0, "cells", 0, 0, "median"], 0, "matrices", "must be above 0"),
    (["matrices", 0, "cells", 0, 0, "lo"], 1e9, "matrices", "lo in row 0, column 0 must be at most hi, "),
    (["matrices", 0, "cells", 0, 0, "hi"], 0, "matrices", "lo in row 0, column 0 must be at most hi, 0; got "),
    (["matrices", 0, "cells", 0, 0, "p10"], 1e9, "matrices", "p10 in row 0, column 0 must be at most median, "),
    (["matrices", 0, "cells", 0, 0, "p90"], 1e9, "matrices", "p90 in row 0, column 0 must be at most p99, "),
    (["matrices", 0, "cells", 0, 0, "median"], 1e9, "matrices", "median in row 0, column 0 must be at most p90, "),
    (["matrices", 0, "cells", 0, 0, "converged"], 2, "matrices", "converged in row 0, column 0 must be 0, 1 or null; got 2"),
    (["matrices", 0, "cells", 0, 0, "confirmed"], 0.5, "matrices", "confirmed in row 0, column 0 must be 0, 1 or null"),
    (["matrices", 0, "cells", 0, 0, "disturbed"], 2.5, "matrices", "disturbed in row 0, column 0 must be a whole number; got 2.5"),
    (["matrices", 0, "cells", 0, 0, "overlap"], 2, "overlap", "must be a number from 0 to 1.0001, or null"),
])
def test_changed_export_is_refused(daemon, exported, path, value, member, says):
    before = count(daemon)
    answer = daemon.post("/v1/imports", changed(exported, path, value))
    assert answer.status == 422, answer.body
    assert answer.json["member"] == member and says in answer.json["detail"], answer.json
    assert count(daemon) == before


@pytest.mark.parametrize("which", ["matrices", "ranks"])
def test_an_export_with_something_twice_is_refused(daemon, exported, which):
    twice = changed(exported, [which], exported[which] + exported[which][:1])
    answer = daemon.post("/v1/imports", twice)
    assert answer.status == 422 and answer.json["member"] == which and "is there twice" in answer.json["detail"], answer.json


# ---- large ones, in pieces ----


def stored(daemon, *queries):
    """What the database has, by the first column of each query's first row."""
    with contextlib.closing(sqlite3.connect(f"file:{daemon.home}/state/numaprobe.db?mode=ro", uri=True)) as db:
        return tuple(db.execute(query).fetchone()[0] for query in queries)


def counters(daemon):
    """What the database says is left over of runs that are none."""
    return stored(daemon, "SELECT count(*) FROM counter WHERE name LIKE 'leftover:%'",
                  "SELECT count(*) FROM (SELECT 1 FROM cell WHERE run_id NOT IN (SELECT id FROM run) LIMIT 1)")


def is_in_the_middle(daemon):
    """Some of the cells of a large run are stored, and not nearly all."""
    return counters(daemon) == (1, 1) and stored(daemon, "SELECT count(*) FROM cell WHERE run_id NOT IN (SELECT id FROM run)")[0] < 20480


def send_large(daemon, document, node):
    """Sends it whole, and does not wait for the answer."""
    s = socket.create_connection(("127.0.0.1", daemon.port), PATIENCE)
    s.sendall(f"POST /v1/imports?node={node} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
              f"Content-Length: {len(document)}\r\n\r\n".encode() + document.encode())
    return s


def stopped_in_the_middle(daemon, document):
    """Sends it, and stops the daemon (SIGSTOP) when a part of it is stored. On a busy machine that may be too late: then again."""
    for turn in range(20):
        s = send_large(daemon, document, f"slow{turn}")
        until(lambda: counters(daemon) == (1, 1) or select.select([s], [], [], 0)[0])
        daemon.process.send_signal(signal.SIGSTOP)
        until(lambda: re.search(r"\) T ", pathlib.Path(f"/proc/{daemon.process.pid}/stat").read_text()))
        if is_in_the_middle(daemon):  # one that has its last cells to store would be stored before the daemon sees what is done to it
            return s, f"slow{turn}"
        daemon.process.send_signal(signal.SIGCONT)
        with s:
            assert daemon.request("DELETE", f"/v1/runs/{json.loads(read_answer(s)[2])['id']}").status == 204
        until(lambda: counters(daemon) == (0, 0))
    pytest.fail("it was always stored already")


def test_a_large_run_is_stored_in_pieces(make_daemon):
    """Others are served while it is stored; it is there when it is acknowledged, with all of its cells."""
    daemon = make_daemon(fake_bench_env())
    document = large.document(ranks=512, sizes=40)
    s, node = stopped_in_the_middle(daemon, document)
    assert stored(daemon, "SELECT count(*) FROM run") == (0,)
    daemon.process.send_signal(signal.SIGCONT)
    with s:
        assert daemon.get("/healthz").status == 200
        assert daemon.post("/v1/imports", {"text": CSV, "node": "between"}).status == 201
        status, _, body = read_answer(s)
    assert status == 201, body
    run = json.loads(body)
    assert run["cells"] == 512 * 40 * 2 and counters(daemon) == (0, 0)
    assert daemon.get(f"/v1/runs/{run['id']}/matrix.json").json["matrices"] == json.loads(document)["matrices"]
    assert post(daemon, document, f"?node={node}", "application/json").status in (200, 201)
    dry = post(daemon, document, "?node=another&dry_run=true", "application/json")
    assert dry.status == 200 and dry.json["dry_run"] is True


@pytest.mark.parametrize("how", ["daemon", "client", "stop"])
def test_a_large_run_that_is_not_stored_to_its_end(make_daemon, how):
    """Nothing of it is visible, and what was stored goes."""
    daemon = make_daemon(fake_bench_env())
    s, _ = stopped_in_the_middle(daemon, large.document(ranks=1024, sizes=40))
    if how == "client":
        s.close()
        daemon.process.send_signal(signal.SIGCONT)
    else:
        daemon.process.send_signal(signal.SIGKILL if how == "daemon" else signal.SIGTERM)
        daemon.process.send_signal(signal.SIGCONT)
        daemon.stop()
        assert counters(daemon) == (1, 1)
        daemon = make_daemon(fake_bench_env(), home=daemon.home)
        s.close()
    assert count(daemon) == 0 and daemon.get("/v1/feed").json["runs"] == []
    until(lambda: counters(daemon) == (0, 0), timeout=PATIENCE)
    assert daemon.post("/v1/imports", {"text": CSV, "node": "after"}).status == 201


def test_who_waits_behind_a_large_run_is_answered_when_its_client_goes(make_daemon):
    """What another client requests needs the worker, which is free again then. No other request comes to wake it."""
    daemon = make_daemon(fake_bench_env())
    run = large.store(daemon, ranks=512, sizes=40)
    for _ in range(20):
        s, _ = stopped_in_the_middle(daemon, large.document(ranks=1024, sizes=40))
        waiting = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=PATIENCE)
        waiting.request("GET", f"/v1/runs/{run}/matrix.json")
        daemon.process.send_signal(signal.SIGCONT)
        assert daemon.get("/healthz").status == 200, "it came later, so the other one waits"
        unfinished = not select.select([s], [], [], 0)[0]
        s.close()
        with contextlib.closing(waiting), waiting.getresponse() as response:
            assert response.status == 200 and len(response.read()) > 1 << 20
        if unfinished:
            return
    pytest.fail("it was always stored already")


def test_a_large_run_is_deleted_in_pieces(make_daemon):
    daemon = make_daemon(fake_bench_env())
    run = large.store(daemon, ranks=256, sizes=24)
    assert daemon.request("DELETE", f"/v1/runs/{run}").status == 204
    assert daemon.get(f"/v1/runs/{run}").status == 404 and count(daemon) == 0
    until(lambda: counters(daemon) == (0, 0), timeout=PATIENCE)


OBEYED = "\x07\x1b[2J\x7f\u009b2J\u2028\u202e\u2066x"
CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def test_nothing_of_an_imported_run_is_obeyed(daemon, exported):
    """A stored run keeps what its note, its conditions and its log say; no terminal obeys it."""
    whole = changed(exported, ["run", "spec", "note"], OBEYED)
    whole["run"]["conditions"] = [{"kind": "import", "severity": "warning", "rank": None, "text": OBEYED}]
    whole["log"] = OBEYED
    whole["run"]["node"] = "obeyed"
    answer = daemon.post("/v1/imports", whole)
    assert answer.status == 201, answer.body
    run = answer.json["id"]
    again = export(daemon, run)
    assert again["run"]["spec"]["note"] == again["log"] == again["run"]["conditions"][0]["text"] == OBEYED
    for command in (["runs"], ["show", run, "--all"], ["report", run], ["compare", run, run], ["log", run], ["matrix", run],
                    ["history", "--node=obeyed"], ["check", run], ["plot", run], ["export", run]):
        for form in ("table", "json", "ndjson", "csv", "svg"):
            done = numaprobe(daemon, *command, "-o", form)
            assert not CONTROLS.search(done.stdout + done.stderr), (command, form, done)
    for form in ("", "/report", "/matrix", "/plot", "/export"):
        for accept in ("application/json", "text/plain", "text/csv", "image/svg+xml"):
            answer = daemon.request("GET", f"/v1/runs/{run}{form}", None, {"Accept": accept})
            assert not CONTROLS.search(answer.body if isinstance(answer.body, str) else answer.body.decode()), (form, accept)
