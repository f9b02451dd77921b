# SPDX-License-Identifier: Apache-2.0
"""The collector's export: every value once, the same bytes from both engines, read by DuckDB; and the queries for Grafana on
PostgreSQL."""
import csv
import io
import json
import re
import subprocess
import urllib.error
import urllib.request

import pytest

from conftest import PATIENCE, ROOT, until
from postgresql import make_postgresql  # noqa: F401
from test_fleetd import Collector, collect, measure  # noqa: F401

COLUMNS = ["node", "measured", "benchmark", "variant", "metric", "unit", "value", "lo", "hi", "class", "config", "seq"]
DUCKDB = ROOT / "build" / "duckdb" / "bin" / "python"
NODES, RUNS = 12, 4


def page(c, path):
    """(text, the header Link), as a patient client gets it: a collector whose process that reads is busy says later."""
    try:
        with urllib.request.urlopen(c.url + path, timeout=PATIENCE) as response:
            return response.read().decode(), response.headers.get("Link") or ""
    except urllib.error.HTTPError as e:
        if e.code not in (429, 503):
            raise
        return None


def pages(c, path):
    """All pages, by the header Link."""
    found = []
    while path:
        text, link = until(lambda path=path: page(c, path))
        found.append(text)
        link = re.fullmatch(r'<(/[^>]+)>; rel="next"', link)
        path = link and link[1]
    return found


@pytest.fixture
def filled(collect):  # noqa: F811
    c = collect(NODES, f"--runs={RUNS}").start()
    c.wait_up(NODES)
    return c


def test_every_value_comes_once(filled):
    whole = "".join(pages(filled, "/v1/fleet/export.ndjson?limit=50000"))
    rows = [json.loads(line) for line in whole.splitlines()]
    assert all(list(r) == COLUMNS for r in rows)
    assert len({(r["node"], r["seq"], r["metric"]) for r in rows}) == len(rows)
    ((values,),) = filled.rows("SELECT sum(length(v) / 4) FROM run")
    assert len(rows) == values == NODES * RUNS * 30
    assert {r["node"] for r in rows} == set(filled.fleet.names)
    history = filled.get(f"/v1/fleet/history?metric=latency.local.dram.median_ns&node={filled.fleet.names[0]}")
    ours = sorted((r["measured"], r["value"]) for r in rows
                  if (r["node"], r["metric"]) == (filled.fleet.names[0], "latency.local.dram.median_ns"))
    assert ours == [(p["measured"], pytest.approx(p["value"], abs=1e-3)) for p in history["points"]]
    assert all(r["lo"] < r["value"] < r["hi"] and len(r["class"]) == len(r["config"]) == 64 for r in rows if r["lo"])


@pytest.mark.parametrize("limit", [1, 100, 700])
def test_pages_have_what_one_page_has(filled, limit):
    whole = "".join(pages(filled, "/v1/fleet/export.ndjson?limit=50000"))
    parts = pages(filled, f"/v1/fleet/export.ndjson?limit={limit}")
    assert len(parts) >= 2 and sorted("".join(parts).splitlines()) == sorted(whole.splitlines())
    assert all(len(p.splitlines()) <= max(2 * limit, 30) for p in parts)


def test_a_stretch_of_time(filled):
    rows = [json.loads(line) for line in "".join(pages(filled, "/v1/fleet/export.ndjson")).splitlines()]
    times = sorted({r["measured"] for r in rows})
    since, until = times[len(times) // 4], times[3 * len(times) // 4]
    got = "".join(pages(filled, f"/v1/fleet/export.ndjson?since={since}&until={until}&limit=200"))
    assert sorted(json.loads(line)["seq"] for line in got.splitlines()) == sorted(
        r["seq"] for r in rows if since <= r["measured"] < until)


def test_csv_has_the_same(filled):
    lines = pages(filled, "/v1/fleet/export.csv?limit=400")
    assert len(lines) > 2 and all(p.startswith(",".join(COLUMNS) + "\r\n") for p in lines)
    table = [row for p in lines for row in csv.DictReader(io.StringIO(p))]
    rows = [json.loads(line) for line in "".join(pages(filled, "/v1/fleet/export.ndjson?limit=400")).splitlines()]
    assert [r["metric"] for r in table] == [r["metric"] for r in rows]
    for ours, theirs in zip(table, rows, strict=True):
        for column in COLUMNS:
            want = theirs[column]
            got = float(ours[column]) if isinstance(want, (int, float)) else ours[column] or None
            assert got == (pytest.approx(want, rel=1e-5) if isinstance(want, float) else want or None), (column, ours, theirs)


@pytest.mark.parametrize("query, member", [("cursor=x", "cursor"), ("cursor=0.1", "cursor"), ("cursor=1", "cursor"), ("cursor=1.-5", "cursor"), ("cursor=1.5", "cursor"), ("cursor=1.5.-1", "cursor"),
                                           ("limit=0", "limit"), ("limit=50001", "limit"), ("since=yesterday", "since")])
def test_what_it_cannot_do_is_said(filled, query, member):
    code, problem = filled.problem(f"/v1/fleet/export.csv?{query}")
    assert code in (400, 422) and member in json.dumps(problem)


@pytest.mark.parametrize("path", ["/v1/fleet/export.ndjson?limit=500", "/v1/fleet/export.csv?limit=500",
                                  "/v1/fleet/export.ndjson?limit=50000"])
def test_both_engines_give_the_same_bytes(collect, make_postgresql, tmp_path, path):  # noqa: F811
    # The nodes of both stores are numbered alike: they are collected one after the other.
    first = collect(NODES, f"--runs={RUNS}", collector=["--at-once=1"]).start()
    first.wait_up(NODES)
    home = tmp_path / "second"
    home.mkdir()
    second = Collector(home, first.fleet, f"--store={make_postgresql().uri}", "--at-once=1").start()
    try:
        second.wait_up(NODES)
        ours, theirs = pages(first, path), pages(second, path)
        order = [r[0] for r in first.rows("SELECT name FROM node ORDER BY id")]
        assert "".join(ours) and len(order) == NODES
        if [p.split("\n")[0] for p in ours] != [p.split("\n")[0] for p in theirs]:  # numbered otherwise
            ours, theirs = (["".join(sorted("".join(p).splitlines(keepends=True)))] for p in (ours, theirs))
        assert ours == theirs
    finally:
        second.stop()


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_an_export_ends_when_its_months_are_deleted(request, collect, engine):  # noqa: F811
    server = request.getfixturevalue("make_postgresql")() if engine == "postgresql" else None
    options = [f"--store={server.uri}"] if server else []
    c = collect(NODES, "--runs=10", "--interval-s=10d", "--run-ms=0", collector=options).start()
    c.wait_up(NODES)
    first = {}
    for path in ("ndjson?limit=500", "csv?limit=500", "ndjson?limit=500&since=2999-01-01T00:00:00Z"):
        _, first[path] = until(lambda path=path: page(c, f"/v1/fleet/export.{path}"))
    assert not first.pop("ndjson?limit=500&since=2999-01-01T00:00:00Z")
    c.stop()
    c.options.append("--keep-days=40")
    c.start()
    c.wait_up(NODES)

    def deleted():
        measure(c.fleet, NODES)
        return all(refused(c, re.fullmatch(r'<(/[^>]+)>; rel="next"', link)[1]) for link in first.values())
    until(deleted)

    def begun_again():
        """On PostgreSQL each month is deleted by itself: the next one may go meanwhile."""
        try:
            return "".join(pages(c, "/v1/fleet/export.ndjson?limit=500")).splitlines()
        except urllib.error.HTTPError as e:
            assert e.code == 409, e
            return None
    rows = until(begun_again)
    assert len(rows) > 500, "begun again it has what is kept"


def refused(c, path):
    """Whether a page of an export is refused because runs were deleted."""
    try:
        with urllib.request.urlopen(c.url + path, timeout=PATIENCE):
            return False
    except urllib.error.HTTPError as e:
        detail = json.load(e)["detail"]
        assert e.code in (409, 429, 503), (e.code, detail)
        return e.code == 409 and "were deleted during this export: begin it again" in detail


@pytest.mark.skipif(not DUCKDB.exists(), reason="DuckDB is not there (tools/duckdb.sh)")
@pytest.mark.parametrize("name, read", [("ndjson", "read_json_auto"), ("csv", "read_csv_auto")])
def test_duckdb_reads_it(filled, tmp_path, name, read):
    parts = pages(filled, f"/v1/fleet/export.{name}?limit=600")
    for i, part in enumerate(parts):
        (tmp_path / f"{i:03}.{name}").write_text(part, newline="")
    code = f"""if True:
        import duckdb, json, sys
        duckdb.sql("SET enable_progress_bar = false")  # it is printed after two seconds, among what we read
        runs = duckdb.sql("SELECT * FROM {read}('{tmp_path}/*.{name}')")
        print(json.dumps([runs.columns, [str(t) for t in runs.types],
                          duckdb.sql("SELECT count(measured::TIMESTAMPTZ), count(DISTINCT node), median(value) FILTER (metric = 'latency.local.dram.median_ns')"
                                     " FROM runs").fetchall()]))"""
    done = subprocess.run([DUCKDB, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    columns, types, ((rows, nodes, median),) = json.loads(done.stdout)
    assert columns == COLUMNS and (rows, nodes) == (NODES * RUNS * 30, NODES)
    kinds = dict(zip(columns, types, strict=True))
    assert kinds["value"] == kinds["lo"] == "DOUBLE" and kinds["seq"] == "BIGINT", kinds
    assert 50 < median < 300, "ns"


def test_queries_for_grafana_work(collect, make_postgresql, tmp_path):  # noqa: F811
    server = make_postgresql()
    c = collect(NODES, f"--runs={RUNS}", collector=[f"--store={server.uri}"]).start()
    c.wait_up(NODES)
    text = (ROOT / "docs" / "monitoring" / "grafana-postgresql.sql").read_text()
    text = re.sub(r"\$__timeFilter\(((?:[^()]|\([^()]*\))*)\)", r"(\1 BETWEEN '2000-01-01' AND '2100-01-01')", text)
    text = text.replace("$__timeFrom()", "'2000-01-01'").replace("'node01'", f"'{c.fleet.names[0]}'")
    queries = re.findall(r"^SELECT .*?;$", text, re.S | re.M)
    assert len(queries) == text.count("\n\n-- ") == 6 and "$__" not in "".join(queries)
    sizes = []
    for query in queries:
        done = subprocess.run(["psql", "-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", server.uri, "-c", query], capture_output=True,
                              text=True, timeout=PATIENCE)
        assert done.returncode == 0, (query, done.stderr)
        sizes.append(len(done.stdout.splitlines()))
    median, node, slowest, newest, changes, stored = sizes
    assert median >= 1 and node == RUNS and slowest == newest == NODES and stored >= 1, sizes
