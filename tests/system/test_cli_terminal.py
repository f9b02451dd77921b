# SPDX-License-Identifier: Apache-2.0
"""numaprobe on a terminal of 80 columns: Ctrl-C, widths, the pager."""
import contextlib
import datetime
import fcntl
import json
import os
import pathlib
import re
import signal
import socket
import stat
import struct
import subprocess
import termios
import time

import pytest
import unicodedata

from client import CLIENT, run, terminal  # noqa: F401: terminal is a fixture
from conftest import PATIENCE, ROOT, fake_bench_env, supervisor_of, until


def with_bench(name, make_daemon, folder):
    """A daemon whose bench is the fake under this name: the name says how it behaves."""
    fake = folder / name
    fake.write_bytes((ROOT / "tests/fakes/fake_bench.py").read_bytes())
    fake.chmod(0o755)
    for above in [folder, *list(folder.parents)[:3]]:
        if os.access(above, os.W_OK) and above != pathlib.Path("/tmp"):
            above.chmod(above.stat().st_mode | 0o011)
    return make_daemon(env={"NUMAPROBE_BENCH": str(fake)})


@pytest.fixture
def hanging(make_daemon, tmp_path, needs_fake_bench):
    """A daemon whose runs do not end by themselves."""
    return with_bench("fake_bench-hang", make_daemon, tmp_path)


def address(daemon):
    return {"NUMAPROBE_URL": f"http://127.0.0.1:{daemon.port}"}


def newest(daemon):
    return daemon.get("/v1/runs?limit=1").json["runs"][0]


def test_ctrl_c_cancels_the_run_and_leaves_nothing(hanging, terminal):  # noqa: F811
    t = terminal(env=address(hanging))
    t.type("run", "--size=1M")
    t.wait_for(r"^\[[#.]+\] .*(running|measure|populate)")
    t.key("C-c")
    shown = t.wait_for(r"interrupted: run \d+ is canceled")
    assert newest(hanging)["state"] == "canceled", shown
    pid = hanging.process.pid
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    assert until(lambda: children.read_text() == "" and not list(pathlib.Path(hanging.home, "run").glob("run-*")))


@pytest.mark.parametrize("words,state,signo", [([], "canceled", signal.SIGINT), (["--keep-on-interrupt"], "running", signal.SIGINT),
                                               ([], "canceled", signal.SIGTERM), ([], "canceled", signal.SIGHUP)])
def test_interrupt_says_what_happens_to_the_run(hanging, words, state, signo):
    p = subprocess.Popen([str(CLIENT), "run", "--size=1M", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True, env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **address(hanging)})
    for line in p.stderr:  # the plan comes first, then the state: then we know that it waits
        if line.strip() in ("running", "measure", "populate"):
            break
    p.send_signal(signo)
    _, err = p.communicate(timeout=PATIENCE)
    last = newest(hanging)
    assert p.returncode == 130 and last["state"] == state and f"run {last['id']} is " in err, err
    if words:
        assert f"numaprobe cancel {last['id']}" in err
        assert run("cancel", last["id"], url=address(hanging)["NUMAPROBE_URL"]).returncode == 0
        assert hanging.wait(last["id"])["state"] == "canceled"


def test_a_run_whose_daemon_is_gone_is_named(hanging):
    p = subprocess.Popen([str(CLIENT), "run", "--size=1M"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True, env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **address(hanging)})
    for line in p.stderr:
        if line.strip() in ("running", "measure", "populate"):
            break
    last = newest(hanging)["id"]
    hanging.stop(signal.SIGKILL)
    _, err = p.communicate(timeout=PATIENCE)
    assert p.returncode == 3 and "no daemon responds" in err and f"numaprobe show {last}\n" in err, err


def test_a_narrow_terminal_has_one_line_of_progress(hanging, terminal):  # noqa: F811
    t = terminal(env=address(hanging), columns=40)
    t.type("run", "--size=1M")
    shown = t.wait_for(r"^\[[#.]+\] ")
    t.key("C-c")
    bars = re.findall(r"^\[[#.]+\] .*", shown, re.M)
    assert len(bars) == 1 and len(bars[0]) < 40, shown
    t.wait_for(r"interrupted: run \d+ is canceled")


def read_to_end(terminal):
    """All that is shown until the other end is closed."""
    shown = b""
    with contextlib.suppress(OSError):
        while block := os.read(terminal, 4096):
            shown += block
    os.close(terminal)
    return shown


@pytest.mark.parametrize("kind", [None, "", "dumb"])
def test_a_terminal_that_obeys_nothing_gets_no_sequences(daemon, needs_fake_bench, kind):
    ours, theirs = os.openpty()
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **address(daemon), **({} if kind is None else {"TERM": kind})}
    with subprocess.Popen([str(CLIENT), "run", "--size=1M"], stdin=theirs, stdout=theirs, stderr=theirs, env=env) as p:
        os.close(theirs)
        shown = read_to_end(ours)
    assert p.returncode == 0 and b"RANK" in shown.upper() and b"\x1b" not in shown, shown


def resize(fd, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))


def test_a_table_fits_a_window_that_was_resized_while_the_command_waited(daemon, needs_fake_bench):
    run_id = daemon.post("/v1/runs", {"benchmark": "latency", "size": "1"}).json["id"]
    daemon.wait(run_id)
    daemon.request("PUT", f"/v1/runs/{run_id}/label", {"label": "x" * 60})
    ours, theirs = os.openpty()
    resize(theirs, 200)
    with socket.create_server(("127.0.0.1", 0)) as server:
        env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "NUMAPROBE_URL": f"http://127.0.0.1:{server.getsockname()[1]}"}
        with subprocess.Popen([str(CLIENT), "runs"], stdin=theirs, stdout=theirs, stderr=theirs, env=env) as p:
            request, _ = server.accept()
            with request, socket.create_connection(("127.0.0.1", daemon.port)) as real:
                real.sendall(request.recv(65536).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
                answer = b"".join(iter(lambda: real.recv(65536), b""))
                resize(theirs, 90)
                request.sendall(answer)
            os.close(theirs)
            shown = read_to_end(ours)
    lines = shown.decode().splitlines()
    assert p.returncode == 0 and "xxx" in lines[1] and max(map(len, lines)) <= 90, shown


def test_detach_leaves_the_run_to_the_daemon(hanging):
    url = address(hanging)["NUMAPROBE_URL"]
    done = run("run", "--size=1M", "--detach", url=url)
    run_id = newest(hanging)["id"]
    assert done.returncode == 0 and re.search(rf"\brun {run_id}\b", done.stdout), done
    assert run("cancel", "last", url=url).returncode == 0
    assert hanging.wait(run_id)["state"] == "canceled"


# ---- cancel

@pytest.fixture
def deaf(make_daemon, tmp_path, needs_fake_bench):
    """A daemon whose ranks do not end on SIGTERM, and whose runs wait for each other."""
    return with_bench("fake_bench-hang-hard", make_daemon, tmp_path)


def cancel_of_a_stuck_run(daemon):
    """Three runs, and what a command said that waited 1 s for their end. They cannot end until the daemon kills what is stuck, 5 s
    after the request; None if the command took so long itself."""
    url = address(daemon)["NUMAPROBE_URL"]
    runs = [daemon.post("/v1/runs", {"benchmark": "latency", "size": "1", "cpus": "0"}).json["id"] for _ in range(3)]
    until(lambda: daemon.get(f"/v1/runs/{runs[0]}").json["progress"])  # the ranks have begun
    supervisor = until(lambda: supervisor_of(daemon))
    os.kill(supervisor, signal.SIGSTOP)
    began = time.monotonic()
    late = run("cancel", "--all", "--wait=1", url=url)
    in_time = time.monotonic() < began + 5
    with contextlib.suppress(ProcessLookupError):
        os.kill(supervisor, signal.SIGCONT)
    for one in runs:
        assert f"run {one} is being stopped" in late.stdout, late
    done = run("cancel", "--all", "--wait=100", url=url)
    assert done.returncode == 0, done
    assert [daemon.get(f"/v1/runs/{one}").json["state"] for one in runs] == ["canceled"] * 3
    return late if in_time else None


def test_cancel_all_frees_the_node(deaf):
    late = until(lambda: cancel_of_a_stuck_run(deaf))
    assert late.returncode == 6 and "1 run has not ended within 1 s" in late.stderr, late
    pid = deaf.process.pid
    until(lambda: pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text() == "")
    free = run("cancel", "--all", "--wait=2", url=address(deaf)["NUMAPROBE_URL"])
    assert (free.returncode, free.stdout) == (0, "no run is waiting or running\n"), free


def test_cancel_waits_for_one_run(deaf):
    url = address(deaf)["NUMAPROBE_URL"]
    one = deaf.post("/v1/runs", {"benchmark": "latency", "size": "1", "cpus": "0"}).json["id"]
    assert run("cancel", str(one), "--wait=100", url=url).returncode == 0
    assert deaf.get(f"/v1/runs/{one}").json["state"] == "canceled"
    for words in ([], [str(one), "--all"]):
        assert run("cancel", *words, url=url).returncode == 2, words
    assert run("cancel", str(one), url=url).returncode == 1  # it has finished already


def test_a_run_that_was_canceled_before_it_started_has_no_ranks(deaf):
    url = address(deaf)["NUMAPROBE_URL"]
    first, second = (deaf.post("/v1/runs", {"benchmark": "latency", "size": "1", "cpus": "0"}).json["id"] for _ in range(2))
    until(lambda: deaf.get(f"/v1/runs/{first}").json["progress"])  # so the second one waits
    waiting = run("show", str(second), url=url).stdout
    assert "no rank yet (0)" in waiting, waiting
    assert run("cancel", str(second), "--wait=100", url=url).returncode == 0
    shown = run("show", str(second), url=url).stdout
    assert "canceled before it started" in shown and "no rank started (0)" in shown and "0 ranks" not in shown, shown
    assert run("cancel", "--all", "--wait=100", url=url).returncode == 0


# ---- 80 columns

@pytest.fixture(scope="module")
def stored(daemon):
    """Runs with many sizes, a label and a note."""
    sizes = ",".join(f"{1 << k}K" for k in range(4, 18))
    assert daemon.run(size=sizes, cpus="0", mode="both", note="a note of some length, to be cut where it must")["state"] == "succeeded"
    run_id = daemon.run(size="1M", cpus="0")["id"]
    daemon.request("PUT", f"/v1/runs/{run_id}/label", {"label": "before the BIOS update of November"})
    return daemon


@pytest.mark.parametrize("columns", [40, 80, 132])
@pytest.mark.parametrize("words", [["runs"], ["show", "1"], ["show", "1", "--notes"], ["compare", "1", "1", "--all"], ["report", "1"], ["topo"], ["history"]])
def test_tables_fit_the_terminal(stored, terminal, words, columns):  # noqa: F811
    shown, status = terminal(columns=columns, rows=200, env={**address(stored), "PAGER": ""}).ran(*words)
    assert status == 0 and len(shown.splitlines()) >= 3
    assert all(len(line.rstrip()) <= columns for line in shown.splitlines()), shown


@pytest.mark.parametrize("end", ["", "号"])
def test_names_that_begin_alike_are_cut_where_they_differ(make_daemon, terminal, end):  # noqa: F811
    """Nodes of a fleet, and labels that differ in their last character."""
    d = make_daemon()
    run_id = d.run(size="1M", cpus="0")["id"]
    export = json.loads(d.get(f"/v1/runs/{run_id}/export").body)
    names = [(f"compute-node-of-the-second-row-{i:03}", f"漢字 before the update of November {i}{end}") for i in range(1, 4)]
    for node, label in (*names, ("another-node-of-the-second-row-001", "update of November")):
        export["run"].update(node=node, label=label)
        assert d.post("/v1/imports", export).status == 201
    ours, status = terminal(columns=80, rows=200, env={**address(d), "PAGER": "", "LC_ALL": "C.UTF-8"}).ran("runs")
    lines = [line.rstrip() for line in ours.splitlines()]
    assert status == 0 and max(map(columns_of, lines)) <= 80, ours
    rows = [re.fullmatch(r" *\d+ +succeeded .* 1  (\S.*?) {2,}\S+  (.*)", line).groups() for line in lines[1:5]]
    assert [(f"0{i}" in node, f"{i}{end}" in label) for i, (node, label) in zip((3, 2, 1), rows[1:])] == [(True, True)] * 3, ours
    assert rows[0][0].startswith("anot") and rows[0][1].startswith("upd"), ours


def columns_of(line):
    """Columns of a terminal, by Python's tables."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


@pytest.mark.parametrize("label", ["漢字" * 10, "🐧漢" * 9, "e\u0301" * 21])
@pytest.mark.parametrize("words", [["runs"], ["show", "2"]])
def test_wide_labels_fit_the_terminal(stored, terminal, label, words):  # noqa: F811
    assert stored.request("PUT", "/v1/runs/2/label", {"label": label}).status == 200
    ours, status = terminal(columns=80, rows=200, env={**address(stored), "PAGER": "", "LC_ALL": "C.UTF-8"}).ran(*words)
    widths = [columns_of(line.rstrip()) for line in ours.splitlines()]
    assert status == 0 and max(widths) <= 80 and label[:2] in ours, ours


def test_a_report_is_wrapped_between_words(stored, terminal):  # noqa: F811
    asked, url = ["report", "1"], address(stored)["NUMAPROBE_URL"]
    shown, status = terminal(columns=40, rows=200, env={**address(stored), "PAGER": ""}).ran(*asked)
    lines = [line.rstrip() for line in shown.splitlines()]
    piped = run(*asked, url=url).stdout
    assert status == 0 and all(len(line) <= 40 for line in lines) and max(map(len, piped.splitlines())) > 40
    assert piped.split() == shown.split()
    first = next(i for i, line in enumerate(lines) if line.startswith("- ") and not lines[i + 1].startswith("- "))
    assert lines[first + 1].startswith("  "), "text stands below the text of its item"


def test_findings_and_captions_are_wrapped_between_words(stored, terminal):  # noqa: F811
    t = terminal(columns=50, rows=200, env={**address(stored), "PAGER": ""})
    shown, _ = t.ran("doctor")  # a machine with a serious finding: 1
    lines = shown[:shown.index("\n\n")].splitlines()
    assert all(re.match(r"[-!] \w+: |  \S|    fix: ", line) for line in lines), shown
    assert shown[shown.index("\nstored: ") :].split()[-5:] == ["no", "run", "is", "ever", "deleted"], shown


@pytest.mark.parametrize("words", [["run", "latency", "--dry-run"], ["run", "latency", "--detach"]])
def test_the_notes_of_a_plan_are_wrapped_between_words(stored, terminal, words):  # noqa: F811
    """Also on stderr, where they stand before a run."""
    words = [*words, "--cpus=0", "--size=1M", "--method=classic", "--quick"]  # a note of 59 columns on any machine
    piped = run(*words, url=address(stored)["NUMAPROBE_URL"])
    notes = [line for line in (piped.stdout + piped.stderr).splitlines() if re.match("note: ", line, re.I)]
    assert any(len(line) > 40 for line in notes), piped
    shown, _ = terminal(columns=40, rows=200, env={**address(stored), "PAGER": ""}).ran(*words)
    found = re.findall(r"^note: .*\n(?:  .*\n)*", shown, re.M | re.I)
    assert [note.split() for note in found] == [note.split() for note in notes], shown
    assert all(len(line.rstrip()) <= 40 for note in found for line in note.splitlines()), shown


def test_the_caption_of_a_plot_is_wrapped(stored, terminal):  # noqa: F811
    shown, status = terminal(columns=60, rows=200, env={**address(stored), "PAGER": ""}).ran("plot", "1")
    words = run("plot", "1", "--text", url=address(stored)["NUMAPROBE_URL"]).stdout
    caption = re.compile(r"^ +x: .*", re.S | re.M)
    assert status == 0 and caption.search(shown).group().split() == caption.search(words).group().split(), shown
    assert max(len(line.rstrip()) for line in caption.search(shown).group().splitlines()) <= 60


def test_a_list_of_metrics_has_whole_names(stored, terminal):  # noqa: F811
    series = json.loads(run("history", "-o", "json", url=address(stored)["NUMAPROBE_URL"]).stdout)["series"]
    shown, status = terminal(columns=80, rows=400, env={**address(stored), "PAGER": ""}).ran("history")
    assert status == 0 and series, shown
    assert all(re.search(rf"^{re.escape(s['metric'])} ", shown, re.M) for s in series), shown


def test_facts_have_a_line_each(stored, terminal):  # noqa: F811
    facts = run("node", "-o", "csv", url=address(stored)["NUMAPROBE_URL"]).stdout.splitlines()[1:]
    if max(map(len, facts)) <= 80:
        pytest.skip("no fact of this machine is longer than the terminal")
    shown, status = terminal(columns=80, rows=400, env={**address(stored), "PAGER": ""}).ran("node")
    assert status == 0
    assert all(re.search(rf"^{kind} +{fact} ", shown, re.M) for kind, fact, *_ in (f.split(",") for f in facts)), shown


def test_show_has_one_line_of_quality(stored):
    url = address(stored)["NUMAPROBE_URL"]
    short, whole = run("show", 1, url=url).stdout, run("show", 1, "--notes", url=url).stdout
    lines = re.findall(r"^quality +(good|fair|poor): \d+ % of samples disturbed.*$", short, re.M)
    assert len(lines) == 1 and "numaprobe show 1 --notes" in short
    assert "conditions" not in short and "\nconditions  " in whole and "samples were disturbed and left out" in whole
    assert re.search(r"^when +\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ, took", short, re.M)


def test_times_as_people_write_them(stored):
    url = address(stored)["NUMAPROBE_URL"]
    newest = stored.get("/v1/runs?limit=1").json["runs"][0]["created"]

    def is_of_today():
        return newest[:10] == datetime.datetime.now(datetime.timezone.utc).strftime("%F")
    for since, found in (("2d", True), ("yesterday", True), ("today", None), ("300m", True), ("2020-01-01", True), ("0m", False)):
        before = is_of_today()  # midnight passes before a test, or within it
        listed = run("runs", f"--since={since}", "-o", "csv", url=url)
        wanted = {before, is_of_today()} if found is None else {found}
        assert listed.returncode == 0 and (len(listed.stdout.splitlines()) > 1) in wanted, (since, listed)
    assert run("runs", url=url).stdout.count("Z  ") >= 2
    assert re.search(r" \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  2$", run("baseline", "set", "times", 2, url=url).stdout, re.M)
    assert run("baseline", "delete", "times", url=url).returncode == 0
    for command in (["runs"], ["history", "latency.dram.median_ns"], ["export"]):
        wrong = run(*command, "--since=last week", url=url)
        assert wrong.returncode == 2 and "--since" in wrong.stderr and "yesterday" in wrong.stderr, wrong


def test_long_output_goes_to_the_pager(stored, terminal, tmp_path):  # noqa: F811
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho \"paged: $1\"\nhead -n 3\n")
    pager.chmod(0o755)
    t = terminal(rows=20, env={**address(stored), "PAGER": f"{pager} word"})
    shown, status = t.ran("node")
    assert status == 0 and "paged: word" in shown
    shown, status = t.ran("runs")
    assert status == 0 and "paged" not in shown and "ID" in shown, "it fits"
    assert "paged" not in t.ran("node", "-o", "csv")[0], "for programs"
    t.tmux("send-keys", "export PAGER=/no/such/pager", "Enter")
    shown, status = t.ran("node")
    assert status == 0 and "KEY" in shown, "a pager that cannot be started"
    t.tmux("send-keys", f"export PAGER='{pager} word' TERM=dumb", "Enter")
    shown, status = t.ran("node")
    assert status == 0 and "KEY" in shown and "paged" not in shown, "less would wait for RETURN there"


def test_completion_adds_no_blank_after_an_equals_sign(terminal):  # noqa: F811
    t = terminal()
    t.tmux("send-keys", f"source <({CLIENT} completion bash); complete -F _numaprobe n; echo re''ady", "Enter")
    t.wait_for(r"^ready\n\$ *$")  # a shell that is not at its prompt takes Tab for a character
    t.tmux("send-keys", "-l", "n run --siz\t4M")
    t.wait_for(r"^\$ n run --size=4M$")
    t.tmux("send-keys", "C-u")
    t.tmux("send-keys", "-l", "n run matr\t--quick")
    t.wait_for(r"^\$ n run matrix --quick$")


def test_both_spellings_of_colour(stored):
    url = address(stored)["NUMAPROBE_URL"]
    for option in ("--colour", "--color"):
        coloured, plain = (run("plot", 1, "--text", f"{option}={when}", url=url) for when in ("always", "never"))
        assert coloured.returncode == plain.returncode == 0 and "\x1b[" in coloured.stdout and "\x1b" not in plain.stdout, option
        wrong = run("runs", f"{option}=sometimes", url=url)
        assert wrong.returncode == 2 and "auto, always, never" in wrong.stderr, wrong


# ---- files

@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("words", [["export", "1", "--file=kept"], ["backup", "kept"]], ids=lambda w: w[0])
def test_a_command_that_is_ended_leaves_no_part_of_a_file(tmp_path, words, signo):
    """The server takes the request and does not respond."""
    folder = tmp_path / "files"
    folder.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        p = subprocess.Popen([str(CLIENT), *words], cwd=folder, stderr=subprocess.PIPE,
                             env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "NUMAPROBE_URL": url})
        connection, _ = server.accept()
        with connection:
            until(lambda: list(folder.iterdir()))
            p.send_signal(signo)
            p.communicate(timeout=PATIENCE)
    assert p.returncode == -signo and list(folder.iterdir()) == []


def test_what_is_no_file_is_not_replaced(stored, tmp_path):
    """A root that exports to /dev/stdout keeps its devices; a link keeps its place."""
    url, pipe, link, far = address(stored)["NUMAPROBE_URL"], tmp_path / "pipe", tmp_path / "link", tmp_path / "far"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
    assert run("export", "1", f"--file={pipe}", url=url).returncode == 0
    assert json.loads(reader.communicate(timeout=PATIENCE)[0])["matrices"]
    refused = run("backup", pipe, "--force", url=url)
    assert refused.returncode == 2 and "is not a regular file" in refused.stderr, refused
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    far.write_text("before")
    link.symlink_to(far)
    assert run("export", "1", f"--file={link}", url=url).returncode == 0
    assert link.is_symlink() and json.loads(far.read_text())["matrices"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["far", "link", "pipe"]
