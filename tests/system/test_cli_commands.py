# SPDX-License-Identifier: Apache-2.0
"""What each command of numaprobe says and leaves alone."""
import csv
import grp
import io
import json
import os
import pathlib
import subprocess

import pytest

from client import CLIENT, run
from test_dashboard_charts import distance, nodes, store
from conftest import PATIENCE, Bench, fake_bench_env


@pytest.fixture(scope="module")
def url(daemon):
    return f"http://127.0.0.1:{daemon.port}"


def test_label_reads_and_remove_removes(url, daemon, needs_fake_bench):
    run_id = daemon.run(size="1", cpus="0")["id"]

    def stored():
        return daemon.get(f"/v1/runs/{run_id}").json["label"]
    none = run("label", "last", url=url)
    assert (none.returncode, none.stdout) == (0, "") and f"run {run_id} has no label" in none.stderr
    assert run("label", "last", "before BIOS update", url=url).returncode == 0
    shown = run("label", "last", url=url)
    assert (shown.returncode, shown.stdout, stored()) == (0, "before BIOS update\n", "before BIOS update")
    for words in ([""], ["other", "--remove"]):
        refused = run("label", "last", *words, url=url)
        assert refused.returncode == 2 and "--remove" in refused.stderr and stored() == "before BIOS update"
    assert "removed" in run("label", "last", "--remove", url=url).stdout and stored() is None
    for form in "json", "ndjson":
        for words, label in ((["a"], "a"), ([], "a"), (["--remove"], None), ([], None)):
            done = run("label", "last", *words, "-o", form, url=url)
            assert done.returncode == 0 and json.loads(done.stdout)["label"] == label, done


@pytest.mark.parametrize("form", ["json", "ndjson"])
def test_what_changes_something_prints_the_answer_as_json(make_daemon, tmp_path, form):
    bench = Bench(tmp_path)
    bench.behave("hang")
    daemon = make_daemon(bench.env)
    url = f"http://127.0.0.1:{daemon.port}"

    def printed(*words):
        done = run(*words, "-o", form, url=url)
        assert done.returncode == 0, done
        return [json.loads(line) for line in done.stdout.splitlines()]
    one, *others = (daemon.post("/v1/runs", {"benchmark": "latency", "size": "1", "cpus": "0"}).json["id"] for _ in range(3))
    canceled, = printed("cancel", str(one), "--wait=60")
    assert (canceled["id"], canceled["spec"]["benchmark"]) == (one, "latency")
    canceled = printed("cancel", "--all", "--wait=60")
    if form == "json":
        assert len(canceled) == 1 and list(canceled[0]) == ["runs"]
        canceled = canceled[0]["runs"]
    assert sorted(r["id"] for r in canceled) == others
    assert printed("cancel", "--all") == ([{"runs": []}] if form == "json" else [])
    assert printed("delete", str(one)) == [] and daemon.get(f"/v1/runs/{one}").status == 404
    copy = tmp_path / "copy.db"
    assert printed("backup", str(copy)) == [{"file": str(copy), "bytes": copy.stat().st_size}]
    token, = printed("token", "create", "a")
    assert (token["name"], token["token"][:3]) == ("a", "np_")
    assert printed("token", "revoke", "a") == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another account")
def test_a_closed_socket_is_permission_denied(make_daemon, tmp_path):
    daemon = make_daemon(fake_bench_env())
    socket = pathlib.Path(daemon.socket)
    for folder in socket.parents:
        if folder.owner() == "root" and folder != pathlib.Path("/tmp") and len(folder.parts) > 2:
            folder.chmod(folder.stat().st_mode | 0o011)
    group = next(g for g in grp.getgrall() if g.gr_gid)
    os.chown(socket, 0, group.gr_gid)
    socket.chmod(0o660)
    other = dict(user=65534, group=65534, extra_groups=[], url=f"unix:{socket}")
    denied = run("topo", **other)
    assert denied.returncode == 4 and "permission denied" in denied.stderr, denied
    assert f"usermod -aG {group.gr_name} $USER" in denied.stderr and "no daemon" not in denied.stderr
    os.chown(socket, 0, 0)
    denied = run("topo", **other)
    assert denied.returncode == 4 and "run_group" in denied.stderr and "usermod" not in denied.stderr
    socket.chmod(0o666)
    assert run("topo", **other).returncode == 0
    gone = run("topo", url=f"unix:{tmp_path}/no/such.sock")
    assert gone.returncode == 3 and "no daemon responds" in gone.stderr, CLIENT


@pytest.mark.parametrize("words,said", [
    (["rusn"], 'did you mean "runs"?'), (["run", "latncy"], 'did you mean "latency"?'), (["run", "--sizes=1"], 'did you mean "--size"?'),
    (["history", "latency.larges.median_ns"], 'did you mean "latency.largest.median_ns"?'),
    (["history", "nonsense"], "see numaprobe history"), (["baseline", "show", "nightly"], "see numaprobe baseline list")])
def test_errors_suggest_and_speak_of_commands(url, daemon, words, said, needs_fake_bench):
    daemon.run(size="1", cpus="0")
    done = run(*words, url=url)
    assert done.returncode in (2, 5) and said in done.stderr and "/v1/" not in done.stderr, done


@pytest.mark.parametrize("words, said", [
    (["runs", "--state=over"], '--state: must be queued, running, succeeded, failed, canceled or interrupted; got "over"'),
    (["runs", "--state=failed,succeeded"],
     '--state: must be queued, running, succeeded, failed, canceled or interrupted; got "failed,succeeded"'),
    (["runs", "--benchmark=latncy"], '--benchmark: "latncy" is not a benchmark (see numaprobe help run)'),
    (["plot", "history", "latncy"], 'metric: "latncy" is not a metric (see numaprobe history)'),
    (["label", "last", "-o", "csv"], "a label is text or JSON (-o json), not csv"),
    (["label", "last", "a", "-o", "csv"], "a label is text or JSON (-o json), not csv"),
    (["cancel", "--all", "-o", "csv"], "a canceled run is text or JSON (-o json), not csv"),
    (["backup", "a.db", "-o", "csv"], "what backup prints is text or JSON (-o json), not csv"),
    (["token", "create", "a", "-o", "csv"], "a token is text or JSON (-o json), not csv"),
    (["push", "--to=http://127.0.0.1:1", "-o", "csv"], "what push prints is text or JSON (-o json), not csv"),
    (["log", "last", "-o", "json"], "a log is text, without the formats of -o"),
    (["log", "last", "-o", "csv"], "a log is text, without the formats of -o"),
    (["run", "--dry-run", "-o", "csv"], "with --dry-run the output is text or JSON (-o json), not csv"),
    (["run", "--detach", "-o", "csv"], "with --detach the output is text or JSON (-o json), not csv"),
    (["report", "last", "-o", "csv"], "a report is text or JSON (-o json); numaprobe matrix -o csv has the numbers")])
def test_an_error_has_what_was_given(url, daemon, words, said, needs_fake_bench):
    daemon.run(size="1", cpus="0")
    done = run(*words, url=url)
    assert (done.returncode, done.stderr) == (2, f"numaprobe: {said}\n"), done


@pytest.mark.parametrize("words", [["runs"], ["node"], ["topo"], ["show", "1"], ["check"]], ids=lambda w: w[0])
def test_what_another_daemon_does_not_have_is_not_told_in_requests(url, words):
    """As at a collector, or behind a path of a proxy."""
    done = run(*words, url=f"{url}/elsewhere")
    said = done.stdout if words == ["check"] else done.stderr
    assert done.returncode == (3 if words == ["check"] else 5) and "GET" not in said, done
    assert "there is no such path (is this the address of the right daemon, of this version?)" in said, done


@pytest.mark.parametrize("address", ["ftp://node1", "http://127.0.0.1:99999", "http://"])
def test_an_address_that_cannot_be_is_no_daemon_that_does_not_respond(address):
    done = run("runs", url=address)
    assert (done.returncode, done.stderr) == (2, f"numaprobe: {address}: must be http://HOST:PORT, https://HOST:PORT or unix:/PATH\n"), done


def test_an_error_of_a_file_of_settings_names_it_once(url, tmp_path):
    file = tmp_path / "numaprobe" / "config"
    file.parent.mkdir()
    for text, said in (("outptu = json", f'{file}:1: there is no setting "outptu"; did you mean "output"?'),
                       ("output = xml", f'{file}:1: output: must be one of table, json, ndjson, csv, nfd, slurm; got "xml"')):
        file.write_text(text)
        done = run("runs", url=url, env={"XDG_CONFIG_HOME": str(tmp_path)})
        assert (done.returncode, done.stderr) == (2, f"numaprobe: {said}\n"), done


def test_runs_that_have_no_size_in_common(url, daemon, needs_fake_bench):
    one, other = (daemon.run(size=size, cpus="0")["id"] for size in ("1", "2"))
    done = run("compare", one, other, url=url)
    assert (done.returncode, done.stderr) == (1, "numaprobe: the two runs have no size in common\n"), done
    done = run("plot", one, "--distribution", "--col=7M", url=url)
    assert done.returncode == 5 and "the last is 1M. " in done.stderr, done


def test_no_run_is_said(url):
    done = run("runs", "--node=nid9", url=url)
    assert (done.returncode, done.stdout) == (0, "No run matches. numaprobe runs lists all.\n"), done
    assert run("runs", "--node=nid9", "-o", "csv", url=url).stdout.count("\n") == 1


def test_all_other_matrices_are_compared(make_daemon):
    daemon = make_daemon()
    one = daemon.run(benchmark="hierarchy", size="32M", quick=True, cell_ms=5)
    assert one["state"] == "succeeded", one
    shown = run("compare", one["id"], one["id"], "--all", url=f"http://127.0.0.1:{daemon.port}").stdout
    rows = [line.split() for line in shown[shown.index("The other matrices"):].split("\n\n")[0].splitlines()[2:]]
    assert len(rows) > 3 and all(row[-1] in ("same", "slower", "faster", "inconclusive") for row in rows), shown


def test_programs_get_the_digits_that_people_do_not_see(url, daemon, needs_fake_bench):
    one, other = (daemon.run(size="1,2", cpus="0")["id"] for _ in range(2))
    exact = json.loads(run("compare", one, other, "-o", "json", url=url).stdout)["matrices"][0]["base_value"]
    row = next(csv.DictReader(run("compare", one, other, "-o", "csv", url=url).stdout.splitlines()))
    assert float(row["base_value"]) == pytest.approx(exact, rel=1e-5), (row, exact)
    assert list(row)[-1] == "unit" and row["unit"] == "ns", row  # a table has it in its heading


def test_a_metric_of_another_node_is_no_unknown_one(url, daemon, needs_fake_bench):
    daemon.run(size="1", cpus="0")
    done = run("history", "latency.largest.median_ns", "--node=nid9", url=url)
    assert done.returncode == 5 and "no run on node nid9 has this metric" in done.stderr and "unknown" not in done.stderr, done
    listed = run("history", "--node=nid9", url=url)
    assert listed.returncode == 0 and "of this node" in listed.stdout and "is stored" not in listed.stdout, listed


@pytest.mark.parametrize("words, option, owner", [
    (["last", "--since=2d"], "since", "plot history"), (["topo", "--matrix=idle"], "matrix", "plot RUN and plot compare"),
    (["history", "x", "--measured=1"], "measured", "plot topo"), (["compare", "1", "2", "--distribution"], "distribution", "plot RUN"),
    (["last", "--allow-different"], "allow-different", "plot compare"), (["topo", "--text"], "text", "plot RUN, ")])
def test_an_option_of_another_picture_is_refused(url, words, option, owner):
    done = run("plot", *words, url=url)
    assert done.returncode == 2 and f"--{option} belongs to numaprobe {owner}" in done.stderr, done


@pytest.mark.parametrize("words, said", [
    (["baseline", "show", "x" * 64], "the name of a baseline must be 1 to 63"), (["baseline", "set", "", "1"], 'got ""'),
    (["baseline", "list", "x"], "usage: numaprobe baseline list\n"), (["token", "revoke", ""], "must be 1 to 63")])
def test_a_name_that_cannot_be_is_no_path(url, words, said):
    done = run(*words, url=url)
    assert done.returncode == 2 and said in done.stderr and "path" not in done.stderr, done


def test_check_names_runs_as_other_commands_do(url, daemon, needs_fake_bench):
    first, last = (daemon.run(size="1", cpus="0")["id"] for _ in range(2))
    assert run("baseline", "set", "named", first, url=url).returncode == 0
    node = daemon.get("/v1/node").json["node"]
    for word in ("last", f"last@{node}", str(last)):
        assert f"run {last} of latency" in run("check", "named", f"--run={word}", url=url).stdout, word
    assert run("check", "named", "--run=first", url=url).stdout == (
        'NUMAPROBE UNKNOWN - --run: "first" is not a run: use its number, last, or last@NODE\n')
    assert run("baseline", "delete", "named", url=url).returncode == 0


def test_check_prints_a_row_of_csv(url, daemon, needs_fake_bench):
    last = daemon.run(size="1", cpus="0")["id"]
    assert run("baseline", "set", "rows", last, url=url).returncode == 0
    done = run("check", "rows", "-o", "csv", url=url)
    row, = csv.DictReader(io.StringIO(done.stdout))
    document = json.loads(run("check", "rows", "-o", "json", url=url).stdout)
    assert done.returncode == document["code"] == int(row["code"]) and row["state"] == document["state"]
    assert row["run"] == str(last) and row["baseline"] == "rows" and row["reference"] == ""
    assert float(row["percent"]) == document["overall"]["percent"]
    assert float(row["worst_percent"]) == document["worst"]["percent"]
    assert row["measured"] == document["measured"] and "against baseline rows" in row["text"]
    assert run("baseline", "delete", "rows", url=url).returncode == 0


@pytest.mark.parametrize("words", [["check", "nosuch"], ["check", "--run=first"], ["--url=http://127.0.0.1:1", "check"]])
def test_check_without_a_verdict_is_a_row_of_csv_too(url, words):
    done = run(*words, "-o", "csv", url=url)
    row, = csv.DictReader(io.StringIO(done.stdout))
    document = json.loads(run(*words, "-o", "json", url=url).stdout)
    assert done.returncode == document["code"] == int(row["code"]) == 3
    text = row["text"].removeprefix("'")  # what a spreadsheet would take for a formula has one
    assert (row["state"], text) == ("UNKNOWN", document["text"]) and None not in row and not row["run"], row


def test_a_run_without_cells_has_the_head_of_csv(make_daemon, needs_fake_bench, tmp_path):
    bench = Bench(tmp_path)
    bench.behave("bad-end")
    other = make_daemon(bench.env)
    failed = other.run(size="1", cpus="0")
    assert failed["state"] == "failed" and failed["cells"] == 0
    at = f"http://127.0.0.1:{other.port}"
    heads = [run(command, failed["id"], "-o", "csv", url=at).stdout for command in ("show", "matrix")]
    heads.append(other.get(f"/v1/runs/{failed['id']}/matrix.csv").body.decode())
    assert len(set(heads)) == 1
    head, = csv.reader(io.StringIO(heads[0]))
    assert head[:4] == ["matrix", "row", "column", "n"] and head[-1] == "unit"


def test_a_usual_format_that_a_command_has_not_is_text(url, daemon, needs_fake_bench):
    last = daemon.run(size="1", cpus="0")["id"]
    for usual, words, said in (("json", ("log", "last"), ""), ("csv", ("label", "last", "kept"), f'run {last} has the label "kept"')):
        done = run(*words, url=url, env={"NUMAPROBE_OUTPUT": usual})
        assert done.returncode == 0 and said in done.stdout, done


def test_a_run_that_printed_nothing_says_so(url, daemon, needs_fake_bench):
    quiet = daemon.request("POST", "/v1/imports?node=nid1", "size (MB),0,1\n1,10,11\n", {"Content-Type": "text/csv"}).json["id"]
    done = run("log", quiet, url=url)
    assert done.returncode == 0 and not done.stdout and f"the processes of run {quiet} printed nothing" in done.stderr, done


@pytest.mark.parametrize("words, env", [(["--bogus", "check"], {}), (["-o", "xml", "check"], {}), (["check", "--bogus"], {}),
                                        (["check"], {"NUMAPROBE_OUTPUT": "xml"})])
def test_a_plugin_that_is_called_wrong_is_unknown(words, env):
    """2 would be CRITICAL, and 1 a warning."""
    done = run(*words, env=env)
    assert done.returncode == 3 and done.stdout.startswith("NUMAPROBE UNKNOWN - ") and not done.stderr, done


@pytest.mark.parametrize("words", [["history", "check"], ["help", "check"], ["-o", "csv", "runs", "--label", "check"]])
def test_a_word_that_is_called_like_a_plugin_is_none(words):
    done = run(*words, env={"NUMAPROBE_OUTPUT": "xml"})
    assert done.returncode == 2 and not done.stdout and "NUMAPROBE_OUTPUT" in done.stderr, done


def test_a_plugin_whose_output_is_lost_is_unknown(url):
    done = subprocess.run(["bash", "-c", '"$0" check > /dev/full', str(CLIENT)], capture_output=True, text=True, timeout=PATIENCE,
                          env={"PATH": os.environ["PATH"], "NUMAPROBE_URL": url})
    assert done.returncode == 3 and "could not be written" in done.stderr, done


def test_help_is_plain_text():
    for words in (["help"], ["help", "run"], ["help", "fleet", "run"], ["check", "--help"]):
        assert run(*words).stdout.isascii(), words


def test_check_without_a_baseline_names_the_command(url):
    done = run("check", url=url)
    assert done.returncode == 3 and "numaprobe baseline set default 17 18 19" in done.stdout and "/v1/" not in done.stdout, done


def test_errors_name_the_option(url):
    done = run("run", "--run-timeout=-1", url=url)
    assert done.returncode == 2 and done.stderr.startswith("numaprobe: --run-timeout: "), done
    done = run("run", "--cpus=60000", url=url)
    assert done.returncode == 2 and done.stderr.startswith("numaprobe: --cpus: "), done


def test_the_verdict_of_compare_has_the_numbers_of_its_table(make_daemon):
    """0.5495 % is 0.55 in the document: the text must not round that otherwise than who reads it."""
    other = make_daemon()
    ids = [other.request("POST", f"/v1/imports?node=n{i}&mode=serial", f"size (MB),0,1\n1,10.0,20.0\n64,{value},91.25\n",
                         {"Content-Type": "text/csv"}).json["id"] for i, value in enumerate((90.5, 92.5))]
    at = f"http://127.0.0.1:{other.port}"
    document = json.loads(run("compare", *ids, "-o", "json", url=at).stdout)
    row = next(csv.DictReader(io.StringIO(run("compare", *ids, "-o", "csv", url=at).stdout)))
    assert row["what"] == "all" and document["comparison"]["rest"]["percent"] == 0.55
    assert f"all {row['percent']} % [{row['lo_percent']}, {row['hi_percent']}]" in document["text"], (document["text"], row)


def test_runs_that_cannot_be_compared_are_named(url, daemon, needs_fake_bench):
    concurrent, serial = (daemon.run(size="1", cpus="0", mode=mode)["id"] for mode in ("concurrent", "serial"))
    matrix = store(daemon, nodes(2, distance), node="other")
    done = run("compare", concurrent, matrix, url=url)
    assert done.returncode == 1 and done.stderr.startswith(
        f"numaprobe: run {concurrent} is of latency, run {matrix} of matrix: they have no matrix in common"), done
    both = daemon.run(size="1", cpus="0", mode="both")["id"]
    done = run("compare", concurrent, both, "--matrix=serial", url=url)
    assert (f"the two runs have no matrix serial in common: run {concurrent} has concurrent; "
            f"run {both} has concurrent, serial") in done.stderr, done
    done = run("report", concurrent, matrix, url=url)
    assert done.returncode == 1 and done.stderr.startswith("numaprobe: the runs of a pair must be of one node"), done
    done = run("history", "hierarchy.memory_ns", url=url)
    assert done.returncode == 5 and 'no run of the node has the metric "hierarchy.memory_ns"' in done.stderr, done
    done = run("compare", concurrent, serial, url=url)
    assert done.stderr.startswith(f"numaprobe: run {concurrent} is concurrent"), done
    assert f"numaprobe report {concurrent} {serial}" in done.stderr and "/v1/" not in done.stderr, done
    one_size = run("report", concurrent, url=url).stdout
    assert "No step" not in one_size and "# Run" in one_size


def test_import_prints_a_line_for_each_file(url, tmp_path):
    files = []
    for i in range(3):
        files.append(tmp_path / f"table{i}.csv")
        files[-1].write_text(f"size (MB),0,1\n1,1{i},11\n2,2{i},21\n")
    done = run("import", *files, "--node=nid1", url=url)
    assert done.returncode == 0 and not done.stderr and len(done.stdout.splitlines()) == 4, done
    assert "NOTES" in done.stdout.splitlines()[0]
