# SPDX-License-Identifier: Apache-2.0
"""numaprobe from outside: against the real daemon with the fake bench, and against servers that lie."""
import csv
import http.server
import io
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

from client import CLIENT, run
from conftest import PATIENCE, ROOT, build_dir, fake_bench_env, until


@pytest.fixture(scope="module")
def url(daemon):
    return f"http://127.0.0.1:{daemon.port}"


# ---- usage

@pytest.mark.parametrize("args", [[], ["nonsense"], ["run", "speed"], ["run", "--sizes=1"], ["run", "--size=0"],
                                  ["run", "--min-samples=3"], ["runs", "extra"], ["show", "seven"], ["cancel"],
                                  ["-o", "xml", "runs"], ["completion", "tcsh"], ["-x"]])
def test_wrong_usage_exits_2_and_says_why(args):
    done = run(*args)
    assert done.returncode == 2
    assert done.stderr and not done.stdout


@pytest.mark.parametrize("args", [["runs", "--node="], ["export", "--all", "--node", ""], ["export", "--all", "--until="],
                                  ["history", "--variant="], ["plot", "last", "--file="], ["check", "--reference="],
                                  ["compare", "1", "2", "--matrix="], ["report", "--html="], ["topo", "--measured="],
                                  ["import", "x", "--label="], ["push", "--to-token-file="], ["run", "--cpus="],
                                  ["run", "loaded", "--mix="], ["availability", "--note="]])
def test_an_empty_option_does_not_mean_all(args):
    done = run(*args)
    option = next(a for a in args if a.startswith("--") and a != "--all").rstrip("=")
    plugin = args[0] == "check"
    assert done.returncode == (3 if plugin else 2) and f"{option} must not be empty" in (done.stdout if plugin else done.stderr)


@pytest.mark.parametrize("args, said", [
    (["run", "c2c", "--pairs=0-1", "--pairs=0-2"], "--pairs: is given twice, with 0-1 and 0-2: give it once"),
    (["run", "--quick", "--visits=2", "--visits", "3"], "--visits: is given twice, with 2 and 3: give it once"),
    (["-o", "json", "runs", "-ocsv"], "--output: is given twice, with json and csv: give it once"),
    (["runs", "--limit=5", "--limit=6"], "--limit: is given twice, with 5 and 6: give it once")])
def test_an_option_given_twice_is_refused(args, said):
    """Before the command or behind it. The same value again contradicts nothing."""
    done = run(*args)
    assert done.returncode == 2 and said in done.stderr and not done.stdout, done
    again = run("-o", "json", "completion", "bash", "-o", "json")
    assert again.returncode == 0, again


@pytest.mark.parametrize("args, said", [(["history", ""], "the metric is empty"), (["backup", ""], "the name of the file is empty"),
                                        (["import", ""], "the name of the file is empty")])
def test_an_empty_word_is_named(url, args, said):
    done = run(*args, url=url)
    assert done.returncode == 2 and said in done.stderr and not done.stdout, done


def options_of(text):
    return set(re.findall(r"^  --([a-z-]+)", text, re.M))


def manual(name):
    return pathlib.Path(build_dir(), "docs", name).read_text().replace("\\-", "-")


def test_help_names_every_command_and_option():
    text = run("help").stdout
    commands = re.findall(r"^  ([a-z]+) ", text.split("\nnumaprobe COMMAND")[0], re.M)
    assert {"run", "runs", "show", "topo", "node", "doctor", "cancel", "completion"} <= set(commands)
    page = manual("numaprobe.1")
    listed = options_of(text)
    commands += re.findall(r"^  (fleet [a-z]+) ", run("help", "fleet").stdout, re.M)
    assert {"fleet run", "fleet status", "fleet outliers", "fleet demo"} <= set(commands)
    for command in commands:
        done = run("help", *command.split())
        assert done.returncode == 0 and run(*command.split(), "--help").stdout == done.stdout
        assert re.search(rf"^\.SS {command}\b", page, re.M), f"{command} is not in the manual"
        examples = re.findall(r"^  (?:\S.*)?numaprobe.*$", done.stdout.split("\nexamples:\n")[1], re.M)
        assert len(examples) >= 2, f"{command} has no two examples"
        assert all(len(line) <= 80 for line in done.stdout.splitlines()), done.stdout
        listed |= options_of(done.stdout)
    for benchmark in ("latency", "matrix", "bandwidth", "pingpong", "c2c", "firsttouch", "loaded"):
        assert re.search(rf"^  {benchmark} +\S", run("run", "--help").stdout, re.M)
        listed |= options_of(run("run", benchmark, "--help").stdout)
    for option in listed:
        assert f"\n.BI --{option}" in page, f"--{option} is not in the manual"
    assert len(run("run", "--help").stdout.splitlines()) < 80
    for words, said in ((["fleet", "outlier"], "did you mean \"fleet outliers\"?"), (["help", "fleet", "x"], "help fleet"),
                        (["help", "run", "x"], "one word too many")):
        done = run(*words)
        assert done.returncode == 2 and said in done.stderr, done.stderr
    assert run("fleet").returncode == 2 and "usage: numaprobe fleet COMMAND" in run("fleet").stderr
    one = run("run", "pingpong", "--help").stdout
    assert "--pairs" in one and "--sweep" not in one
    assert one.split("\nexamples:\n")[1].split("\n\n")[0] == "  numaprobe run pingpong\n  numaprobe run pingpong --quick"
    assert run("--version").stdout.startswith("numaprobe ")


@pytest.mark.parametrize("folder, name", [("daemon", "numaprobed"), ("fleet", "numaprobe-fleetd")])
def test_the_daemons_manuals_have_what_their_help_has(folder, name):
    done = subprocess.run([build_dir() / folder / name, "--help"], capture_output=True, text=True)
    page = manual(f"{name}.8")
    assert done.returncode == 0 and len(options_of(done.stdout)) > 30
    for option in options_of(done.stdout):
        assert f"\n.BI --{option}" in page, f"--{option} is not in the manual"
    for status in re.findall(r"^  (\d+) ", done.stdout[done.stdout.index("exit status"):], re.M):
        assert re.search(rf"^\.B {status}\b", page, re.M), f"exit status {status} is not in the manual"
    # --print-config of the defaults, and the manual of the file, have the same settings.
    settings = re.findall(r"^#([a-z_]+) =", (build_dir() / "docs" / f"{name}.conf").read_text(), re.M)
    assert len(settings) > 30
    assert settings == re.findall(r'^\.BI "([a-z_]+) = "', manual(f"{name}.conf.5"), re.M)


@pytest.mark.parametrize("folder, name, more", [("daemon", "numaprobed", "--keep-days"), ("fleet", "numaprobe-fleetd", "--every")])
def test_of_a_daemons_option_given_twice_the_last_applies(folder, name, more):
    """Unit files and wrappers append overrides."""
    done = subprocess.run([build_dir() / folder / name, "--config=/dev/null", f"{more}=60", f"{more}=70", "--print-config"],
                          capture_output=True, text=True, timeout=PATIENCE)
    setting = more[2:].replace("-", "_")
    assert done.returncode == 0 and f"\n{setting} = 70\n" in done.stdout and f"{setting} = 60" not in done.stdout, done
    assert "If an option is given more than once, the last value applies" in manual(f"{name}.8").replace("\n", " ")


@pytest.mark.parametrize("setting, value", [
    ("nodes", ",".join(f"n{i}" for i in range(800))), ("host_names", ",".join(f"host{i:03}.example" for i in range(31))),
    ("source", "announce nodes:" + ",".join(f"n{i}" for i in range(400)))])
def test_a_printed_configuration_has_all_of_a_long_setting(tmp_path, setting, value):
    def printed(*options):
        done = subprocess.run([build_dir() / "fleet" / "numaprobe-fleetd", *options, "--print-config"], capture_output=True,
                              text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        return done.stdout
    text = printed("--config=/dev/null", f"--{setting.replace('_', '-')}={value}")
    assert " ".join(re.findall(rf"^{setting} = (.*)$", text, re.M)) == value
    (tmp_path / "conf").write_text(text)
    assert printed(f"--config={tmp_path}/conf") == text


def test_of_a_benchs_option_given_twice_the_last_applies():
    done = subprocess.run([build_dir() / "bench" / "numa_bench", "--np=1", "--quick", "--size=1G", "--size=32K", "--csv"],
                          capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and "32768" in done.stdout and "1073741824" not in done.stdout, done


def test_unreachable_exits_3_and_says_what_was_tried():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{s.getsockname()[1]}"
        done = run("topo", url=address)
    assert done.returncode == 3 and address in done.stderr and "systemctl start numaprobed" in done.stderr


def test_settings_come_in_their_order(tmp_path):
    (tmp_path / "numaprobe").mkdir()
    file = tmp_path / "numaprobe" / "config"
    env = {"XDG_CONFIG_HOME": str(tmp_path)}
    file.write_text("# mine\nurl = http://127.0.0.1:1\n")
    assert "127.0.0.1:1." in run("topo", env=env).stderr
    assert "127.0.0.1:2." in run("topo", env=env, url="http://127.0.0.1:2").stderr
    assert "127.0.0.1:3." in run("topo", "--url=http://127.0.0.1:3", env=env, url="http://127.0.0.1:2").stderr
    file.write_bytes(b"url = http://127.0.0.1:1\n\0http_timeout = 1\n")
    done = run("topo", env=env)
    assert done.returncode == 2 and "config:2:" in done.stderr and "control character" in done.stderr
    file.unlink()
    file.mkdir()
    done = run("topo", env=env)
    assert done.returncode == 2 and "config: it is not a file" in done.stderr, done
    file.rmdir()
    file.write_text("url = x\ncolor = 1\n")
    done = run("topo", env=env)
    assert done.returncode == 2 and "config:2:" in done.stderr and "color" in done.stderr


def test_an_empty_variable_of_the_configuration_is_as_none(tmp_path):
    folder = tmp_path / ".config" / "numaprobe"
    folder.mkdir(parents=True)
    (folder / "config").write_text("url = http://127.0.0.1:1\n")
    assert "127.0.0.1:1." in run("topo", env={"XDG_CONFIG_HOME": "", "HOME": str(tmp_path)}).stderr


@pytest.mark.parametrize("kind", ["directory", "device", "link to a device"])
def test_a_token_file_that_is_no_file_is_called_so(tmp_path, kind):
    """It was called readable by others, with a chmod to type."""
    path = {"directory": tmp_path, "device": "/dev/null"}.get(kind, tmp_path / "link")
    if kind == "link to a device":
        path.symlink_to("/dev/null")
    done = run("topo", f"--token-file={path}", url="http://127.0.0.1:1")
    assert done.returncode == 2 and f"{path} is not a file" in done.stderr, done


# ---- with a daemon

def test_topology_and_node_in_every_form(url, daemon):
    topology = daemon.get("/v1/topology").json
    assert json.loads(run("topo", "-o", "json", url=url).stdout) == topology
    rows = list(csv.DictReader(io.StringIO(run("topo", "-o", "csv", url=url).stdout)))
    assert [int(r["node"]) for r in rows] == [n["node"] for n in topology["nodes"]]
    assert int(rows[0]["memory_bytes"]) == topology["nodes"][0]["memory_bytes"]
    assert "NODE" in run("topo", url=url).stdout
    facts = [json.loads(line) for line in run("node", "-o", "ndjson", url=url).stdout.splitlines()]
    assert {f["key"] for f in facts} == {"hardware", "config"}
    assert any(f["fact"] == "kernel" and f["value"] for f in facts)


def test_run_prints_plan_and_table(url, daemon, needs_fake_bench):
    done = run("run", "--size=1M,2M", "--note=hello, \"you\"", url=url)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^\|  000  \|", done.stdout, re.M) and "LATENCY (ns)" in done.stdout
    assert "CPU" in done.stderr and "\r" not in done.stderr, "no bar where nobody watches"
    last = daemon.get("/v1/runs?limit=1").json["runs"][0]
    rows = list(csv.DictReader(io.StringIO(run("runs", "-o", "csv", "--limit=1", url=url).stdout)))
    assert rows[0]["note"] == 'hello, "you"' and int(rows[0]["id"]) == last["id"]
    assert json.loads(run("show", "last", "-o", "json", url=url).stdout) == daemon.get(f"/v1/runs/{last['id']}").json
    wide = list(csv.DictReader(io.StringIO(run("show", str(last["id"]), "-o", "csv", url=url).stdout)))
    assert {r["working_set_bytes"] for r in wide} == {str(1 << 20), str(2 << 20)}


def test_quick_in_every_form(url):
    for form, wanted in [("--quick", True), ("--quick=true", True), ("--quick=false", False)]:
        done = run("run", "--dry-run", "--size=4M", form, url=url)
        assert done.returncode == 0, done.stderr
        assert ("--visits=6" in done.stdout + done.stderr) == wanted, form


def test_dry_run_changes_nothing(url, daemon):
    before = len(daemon.get("/v1/runs").json["runs"])
    done = run("run", "--dry-run", "--size=4M", url=url)
    assert done.returncode == 0 and "mpirun" in done.stdout and "--size=4M" in done.stdout
    assert len(daemon.get("/v1/runs").json["runs"]) == before


def test_errors_of_the_daemon_have_their_exit_status(url):
    done = run("show", "999999", url=url)
    assert done.returncode == 5 and "999999" in done.stderr
    done = run("run", "--cpus=60000", url=url)
    assert done.returncode == 2 and "cpus" in done.stderr
    done = run("run", "--size=1T", url=url)
    assert done.returncode == 6 and done.stderr.count("MiB need") == 1, done.stderr


def test_list_follows_pages(url, daemon, needs_fake_bench):
    ids = [int(run("run", "--detach", "--size=1M", "-o", "json", url=url).stdout.split('"id":')[1].split(",")[0])
           for _ in range(3)]
    for run_id in ids:
        daemon.wait(run_id)
    listed = json.loads(run("runs", "-o", "json", "--limit=100", url=url).stdout)["runs"]
    assert [r["id"] for r in listed][:3] == ids[::-1]
    assert run("runs", "--state=canceled", "-o", "ndjson", url=url).stdout == ""
    assert run("delete", str(ids[0]), url=url).returncode == 0
    assert run("delete", str(ids[0]), url=url).returncode == 5


def written_to_terminal(url, stream, *args, **env):
    """What a command writes to a terminal as its "stdout" or "stderr"."""
    try:
        master, slave = pty.openpty()
    except OSError as e:
        pytest.skip(f"no terminal to be had here: {e}")
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, stream: slave}
    p = subprocess.Popen([str(CLIENT), *args], env={"PATH": os.environ["PATH"], "TERM": "xterm", "NUMAPROBE_URL": url, **env}, **streams)
    os.close(slave)
    text = b""
    while select.select([master], [], [], PATIENCE)[0]:
        try:
            data = os.read(master, 4096)
        except OSError:
            break
        text += data
    os.close(master)
    _, said = p.communicate()
    assert p.returncode == 0, said or text
    return text.decode()


def on_terminal(url, *args, **env):
    return written_to_terminal(url, "stdout", *args, **env)


def test_bar_on_a_terminal(url, needs_fake_bench):
    text = written_to_terminal(url, "stderr", "run", "--size=1M,2M")
    assert re.search(r"\r\[[#.]+\] .*%.*\x1b\[K", text), text


def test_plot(url, daemon, tmp_path, needs_fake_bench):
    run_id = daemon.run(size="1-16", cpus="0", mode="both")["id"]
    svg = daemon.get(f"/v1/runs/{run_id}/matrix.svg").body.decode()
    assert run("plot", str(run_id), url=url).stdout == svg
    to = tmp_path / "a b.svg"
    done = run("plot", "last", "--matrix=serial", "--file", str(to), url=url)
    assert done.returncode == 0 and done.stdout == "" and ": serial" in to.read_text()
    text = run("plot", str(run_id), "--text", url=url).stdout
    assert text.isascii() and "*" in text and "16M" in text and "<svg" not in text
    for args, status in ((["--matrix=other"], 5), (["--matrix=a/b"], 2), (["--text", "--file=x"], 2),
                         (["-o", "json"], 2), ([f"--file={tmp_path}/no/such"], 1), (["--text", "--matrix=other"], 5)):
        done = run("plot", str(run_id), *args, url=url)
        assert done.returncode == status and done.stderr and not done.stdout, args


def test_plot_of_a_distribution(url, daemon, tmp_path, needs_fake_bench):
    run_id = str(daemon.run(size="1-16", cpus="0")["id"])
    path = f"/v1/runs/{run_id}/distribution"
    cell = ["plot", run_id, "--distribution", "--row=0", "--col=4M"]
    assert run(*cell, url=url).stdout == daemon.get(path + ".svg?row=0&col=4M").body.decode()
    assert run(*cell, "-o", "csv", url=url).stdout == daemon.get(path + ".csv?row=0&col=4M").body.decode()
    assert json.loads(run(*cell, "-o", "json", url=url).stdout) == daemon.get(path + "?row=0&col=4M").json
    text = run(*cell, "--text", url=url).stdout
    assert text.isascii() and text.startswith("Concurrent latency, rank 0, working set 4M\n")
    bars = [line.split("|", 1)[-1].split("+", 1)[-1] for line in text.splitlines()[2:16]]
    width = len(bars[0]) // 4  # of a bin
    assert bars[0] == " " * 3 * width + "#" * width and bars[-1] == "#" * 2 * width + " " * width + "#" * width
    assert "p50" in text and "11 samples of 1 cell" in text
    shown = on_terminal(url, *cell, LANG="en_US.UTF-8")
    assert "█" in shown and "└" in shown
    for args, status in ((["--row=0"], 2), (["--distribution", "-o", "ndjson"], 2), (["--distribution", "--row=9"], 5)):
        done = run("plot", run_id, *args, url=url)
        assert done.returncode == status and done.stderr and not done.stdout, args


def test_plot_on_a_terminal(url, daemon, needs_fake_bench):
    run_id = str(daemon.run(size="1-16", cpus="0")["id"])
    colour = on_terminal(url, "plot", run_id, LANG="en_US.UTF-8")
    assert "\x1b[34m" in colour and re.search("[\u2801-\u28ff]", colour) and "<svg" not in colour
    assert "\x1b" not in on_terminal(url, "plot", run_id, LANG="en_US.UTF-8", NO_COLOR="1")
    assert on_terminal(url, "plot", run_id, LANG="C", NO_COLOR="1").isascii()
    assert on_terminal(url, "plot", run_id, "--file=-", LANG="C").startswith("<svg")
    shown = on_terminal(url, "show", run_id, LANG="en_US.UTF-8")
    assert re.search(r"rank 0 +[▁▂▃▄▅▆▇█]{5}  10\.00 to 50\.00 ns", shown)
    assert on_terminal(url, "show", run_id, LANG="C").isascii()


def test_a_closed_pipe_is_quiet(url):
    p = subprocess.Popen([str(CLIENT), "node"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         env={"PATH": os.environ["PATH"], "NUMAPROBE_URL": url})
    p.stdout.close()
    assert p.stderr.read() == b"" and p.wait() == 0


def test_doctor_with_and_without_a_daemon(url):
    done = run("doctor", "-o", "json", url=url)
    findings = json.loads(done.stdout)
    assert done.returncode == (1 if any(f["weight"] == "serious" for f in findings) else 0)
    done = run("doctor", url="http://127.0.0.1:1")
    assert done.returncode == 1 and "fix: systemctl" in done.stdout


@pytest.mark.parametrize("line,expected", [
    ("ru", {"run", "runs"}), ("run --si", {"--size="}), ("show --fo", {"--follow"}), ("run mat", {"matrix"}),
    ("run --mode=se", {"serial"}), ("run --mode=", {"concurrent", "serial", "both"}), ("-o x runs -o j", {"json"}),
    ("completion ", {"bash", "zsh", "fish"}), ("baseline s", {"set", "show"}), ("help compa", {"compare"}),
    ("show l", {"last"}), ("runs --benchmark=ma", {"matrix"}), ("baseline show ", set()), ("baseline list ", set()),
    ("token ", {"create", "list", "revoke"}), ("token revoke ", set()), ("plot ", {"last", "topo", "history", "compare"}),
    ("plot history ", set()), ("plot compare ", {"last"}), ("fleet campaign ", {"start", "list", "show", "script", "cancel"}),
    ("fleet campaign start mat", {"matrix"}), ("fleet campaign show ", set()), ("fleet campaign start --na", {"--name="}),
    ("fleet campaign list --na", set()), ("fleet findings ", {"acknowledge", "fix", "reopen"}), ("fleet findings fix ", set()),
    ("help fleet cam", {"campaign"}), ("run --mode se", {"serial"}), ("run --quick matr", {"matrix"}), ("-o js", {"json"}),
    ("-o json fleet cam", {"campaign"}), ("--url http://x:1 doc", {"doctor"}), ("--outp", {"--output="}), ("plot topo --measured=l", {"last"}),
    ("push --to-token-file=", set()), ("--url run doc", {"doctor"}), ("--url=run doc", {"doctor"}), ("--token-file help baseline s", {"set", "show"}),
    ("baseline --url show s", {"set", "show"}), ("fleet --url=campaign cov", {"coverage"})])
def test_bash_completes(line, expected):
    script = run("completion", "bash").stdout
    words = re.findall(r"=|[^ =]+", line) + ([""] if line.endswith(" ") else [])
    ask = f'COMP_WORDS=(numaprobe {" ".join(w or repr("") for w in words)}); COMP_CWORD={len(words)}; _numaprobe; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", script + ask], capture_output=True, text=True)
    assert set(done.stdout.split()) == expected, done


def test_fish_completion_has_what_the_tables_have(tmp_path):
    script = run("completion", "fish").stdout.splitlines()
    of_run = [line for line in script if "'__numaprobe_at run'" in line]
    assert any(" -l mode -r -f -a 'concurrent serial both' -d '" in line for line in of_run), of_run
    assert sum(" -l size -r -d '" in line for line in of_run) == 1, "an option of several benchmarks stands once"
    assert any(line.endswith("-a ' latency matrix bandwidth'") or " latency matrix " in line for line in of_run), of_run
    assert any("-l output -r -f -a '" in line and "seen" not in line for line in script), "options of every command"
    assert any("'__numaprobe_at show'" in line and "last $(numaprobe runs" in line for line in script), "run numbers are the daemon's"
    first = [line for line in script if line.startswith("complete -c numaprobe -n '__numaprobe_at fleet campaign; and not ")]
    assert len(first) == 1 and first[0].endswith(" -f -a ' start list show script cancel'"), first
    assert "complete -c numaprobe -n '__numaprobe_at baseline list' -f -a ''" in script, "no verb behind a verb"
    assert all(line.replace("\\'", "").count("'") % 2 == 0 for line in script), "quotes are closed"
    if shutil.which("fish"):
        ask = "numaprobe completion fish | source; complete -C 'numaprobe run --mode='"
        env = {"PATH": f"{CLIENT.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}  # fish makes folders there
        done = subprocess.run(["fish", "-c", ask], capture_output=True, text=True, env=env, timeout=PATIENCE)
        assert {"--mode=concurrent", "--mode=serial", "--mode=both"} <= {line.split("\t")[0] for line in done.stdout.splitlines()}, done
        ask = "numaprobe completion fish | source; for l in 'numaprobe -o js' 'numaprobe --url http://x:1 doc'; complete -C $l; end"
        done = subprocess.run(["fish", "-c", ask], capture_output=True, text=True, env=env, timeout=PATIENCE)
        assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["json", "doctor"], done


# Types each line and Tab in another zsh, and prints what stands there then. "|" is the cursor.
ZSH = r"""
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "PS1=; path=(${(q)1} \$path); setopt nobeep; autoload -Uz compinit; compinit -u -D"
zpty -w z 'source <(numaprobe completion zsh)'
zpty -w z 'shown () { print -r -- "<<""<$LBUFFER|>>""> "; BUFFER=; zle accept-line }; zle -N shown; bindkey "^X" shown; bindkey "^I" complete-word'
zpty -w z 'print -r REA""DY'
zpty -r -m z out "*READY*"
for line in "${@:2}"; do
    zpty -w -n z "$line"$'\t\x18'
    zpty -r -m z out "*>>> *"
    out=${out##*<<<}
    print -r -- "${out%%|>>>*}|"
done
"""


@pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh on this machine")
def test_zsh_completes(tmp_path):
    (tmp_path / "of-here.json").touch()
    typed = {"numaprobe doc": "numaprobe doctor ", "numaprobe run --mod": "numaprobe run --mode=", "numaprobe run --mode=seri": "numaprobe run --mode=serial ",
             "numaprobe run --mode seri": "numaprobe run --mode serial ", "numaprobe fleet cam": "numaprobe fleet campaign ",
             "numaprobe fleet campaign sta": "numaprobe fleet campaign start ", "numaprobe -o nd": "numaprobe -o ndjson ",
             "numaprobe -o json fleet cov": "numaprobe -o json fleet coverage ", "numaprobe --url=run doc": "numaprobe --url=run doctor ", "numaprobe import of-": "numaprobe import of-here.json ",
             "numaprobe check --reference=of-": "numaprobe check --reference=of-here.json ",
             "numaprobe push --to-cacert=of-": "numaprobe push --to-cacert=of-here.json "}
    done = subprocess.run(["zsh", "-f", "-c", ZSH, "zsh", CLIENT.parent, *typed], capture_output=True, text=True, cwd=tmp_path,
                          env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERM": "dumb"}, timeout=PATIENCE)
    assert done.stdout.splitlines() == [line + "|" for line in typed.values()], done


def test_completion_asks_the_daemon(url, daemon, needs_fake_bench):
    run_id = daemon.run(size="1", cpus="0")["id"]
    daemon.request("PUT", "/v1/baselines/nightly", {"run": run_id})
    script = run("completion", "bash").stdout
    for words, expected in (("show", str(run_id)), ("check", "nightly"), ("history", "latency.largest.median_ns")):
        ask = f"COMP_WORDS=(numaprobe {words} ''); COMP_CWORD=2; _numaprobe; echo \"${{COMPREPLY[@]}}\""
        done = subprocess.run(["bash", "-c", script + ask], capture_output=True, text=True,
                              env={"PATH": f"{CLIENT.parent}:{os.environ['PATH']}", "NUMAPROBE_URL": url})
        assert expected in done.stdout.split(), (words, done)


def test_unix_socket(daemon):
    done = run("topo", url=f"unix:{daemon.socket}")
    assert done.returncode == 0, done.stderr


# ---- servers that lie

RUN = {"id": 1, "state": "succeeded", "node": "n\x1b[2J\u009b31m", "cells": 0, "spec": {"size": "1M\n\x07"}, "conditions": [{"kind": "load", "severity": "info", "rank": None, "text": "\x1b]0;x\x07"}]}
LIES = {
    "escape sequences": ("application/json", json.dumps(RUN)),
    "not json": ("text/html", "<html>"),
    "truncated": ("application/json", json.dumps(RUN)[:-5]),
    "another type": ("application/json", "[1,2,3]"),
    "a number": ("application/json", "7"),
    "nothing": ("application/json", ""),
    "deep": ("application/json", "[" * 5000),
    "wrong members": ("application/json", json.dumps({"id": "x", "state": 7, "spec": [], "conditions": {"a": 1}})),
    "not utf-8": ("application/json", b'{"id":1,"state":"\xff\xfe"}'),
    "twice": ("application/json", '{"id":1,"id":2}'),
}


@pytest.fixture
def liar():
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            server = self.server
            server.received = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, body = server.paths.get(self.path, (server.status, server.body))
            body = body() if callable(body) else body
            body = body if isinstance(body, bytes) else body.encode()
            server.all_received.append((self.path, server.received))
            self.send_response(status)
            for name, value in server.headers_to_send.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(body)
                while server.endless:
                    self.wfile.write(b" " * (1 << 20))
            except OSError:
                pass

        do_POST = do_DELETE = do_GET

        def log_message(self, *a):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.paths, server.all_received = {}, []  # paths with an answer of their own
    server.status, server.body, server.headers_to_send, server.endless = 200, b"", {}, False
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield server
    server.shutdown()


@pytest.mark.parametrize("runs", [[5], [5, 6], [0], [-1], []])
def test_pages_of_runs_that_do_not_end(liar, runs):
    """The same page again and again, or others than runs that get older."""
    liar.body = json.dumps({"runs": [{"id": n, "state": "succeeded"} for n in runs], "next": "b5"})
    done = run("export", "--all", url=liar.url)
    assert done.returncode == 3 and "pages of runs do not end" in done.stderr and not done.stdout, done


def test_a_canceled_run_that_is_deleted_at_its_end_is_not_waited_for(liar):
    """For the prolog of a batch job: the node is free."""
    gone = json.dumps({"type": "/problems/not-found", "status": 404, "detail": "there is no run 7"})
    liar.paths = {"/v1/runs/7/cancel": (202, json.dumps({"id": 7, "state": "running"})), "/v1/runs/7": (404, gone)}
    done = run("cancel", "7", "--wait=60", url=liar.url)
    assert (done.returncode, done.stdout, done.stderr) == (0, "run 7 is being stopped\n", ""), done
    assert [path for path, _ in liar.all_received] == ["/v1/runs/7/cancel", "/v1/runs/7"]


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("args", [["show", "1"], ["runs"], ["topo"], ["node"], ["matrix", "1"], ["plot", "1", "--text"], ["doctor"], ["log", "1"]])
def test_no_lie_crashes_or_reaches_the_terminal(liar, lie, args):
    kind, liar.body = LIES[lie]
    liar.headers_to_send = {"Content-Type": kind}
    done = subprocess.run([str(CLIENT), *args], capture_output=True, timeout=PATIENCE,
                          env={"PATH": os.environ["PATH"], "NUMAPROBE_URL": liar.url})
    assert 0 <= done.returncode <= 8, done
    for stream in (done.stdout, done.stderr):
        text = stream.decode("utf-8")
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f]", text), text


@pytest.mark.parametrize("args, first, said", [
    (["history", "x.y"], (404, {"type": "/problems/not-found", "status": 404, "member": "metric", "detail": "no run has x.y"}), "x.y"),
    (["check", "-o", "nfd"], (200, {"state": "OK", "code": 0, "text": "same", "age_s": 1}), "not all labels are known"),
    (["doctor"], (200, {"node": "n"}), "")], ids=lambda a: a[0] if isinstance(a, list) else None)
@pytest.mark.parametrize("lie", LIES)
def test_no_lie_after_a_good_response_crashes(liar, lie, args, first, said):
    """What is asked besides may be left out, and need not be there."""
    run(*args, url=liar.url)
    liar.paths = {liar.all_received[0][0]: (first[0], json.dumps(first[1]))}
    kind, liar.body = LIES[lie]
    liar.headers_to_send = {"Content-Type": kind}
    done = run(*args, url=liar.url)
    assert 0 <= done.returncode <= 8 and said in done.stderr, done


@pytest.mark.parametrize("options, sent", [
    ([], {}), (["--quick"], {"quick": True}), (["--quick", "--visits=8"], {"quick": True, "visits": 8}), (["--precision=1"], {"precision": 1})])
def test_a_daemon_of_another_version_gets_only_what_was_set(liar, options, sent):
    """It need not know the rest, and may have other defaults."""
    refuse_visits(liar, "of which we know nothing")
    liar.paths = {"/v1/benchmarks": known_parameters("size", "precision"), "/healthz": (200, '{"status":"ok"}')}
    done = run("run", "latency", *options, url=liar.url)
    (path, body), *others = liar.all_received
    assert path == "/v1/runs?dry_run=true" and json.loads(body) == {"benchmark": "latency", **sent}
    assert [other for other, _ in others] == ["/v1/benchmarks", "/healthz"]
    assert done.returncode == 2 and "--visits: of which we know nothing" in done.stderr and "another version" in done.stderr, done


def refuse_visits(liar, text):
    liar.status, liar.headers_to_send = 422, {"Content-Type": "application/json"}
    liar.body = json.dumps({"type": "/problems/invalid", "status": 422, "member": "visits", "detail": text})


def known_parameters(*names, benchmark="latency", **more):
    params = [{"name": name, **more} for name in names]
    return 200, json.dumps({"benchmarks": [{"name": benchmark, "params": params}], "common": []})


OTHER = (200, '{"status":"ok","version":"0.0.9"}')
OURS = run("version").stdout.split()[1]
SAME = (200, json.dumps({"status": "ok", "version": OURS}))
NONE = (404, '{"type":"/problems/not-found","status":404}')


@pytest.mark.parametrize("benchmarks, alive, hint", [
    (known_parameters("size"), OTHER, f"numaprobed is version 0.0.9, this numaprobe {OURS}: leave out"),
    (known_parameters("size"), SAME, "numaprobed is of another version than this numaprobe: leave out"),
    (known_parameters("size"), NONE, "numaprobed is of another version than this numaprobe: leave out"),
    (known_parameters("visits", benchmark="bandwidth"), SAME, "numaprobed is of another version"),
    (known_parameters("visits", choices=["7"]), SAME, "numaprobed is of another version"),
    (known_parameters("visits", choices=["9"]), SAME, None),
    (known_parameters("visits"), OTHER, None),  # it knows the parameter, and has another reason
    (NONE, OTHER, "numaprobed is version 0.0.9"),
    ((200, "<html>"), (200, "ok"), None), ((200, ""), OTHER, "numaprobed is version 0.0.9"),  # of a proxy
    (NONE, SAME, None), (NONE, NONE, None)])
def test_a_daemon_of_another_version_is_known_by_what_it_has(liar, benchmarks, alive, hint):
    refuse_visits(liar, "(GET /v1/benchmarks lists them)")
    liar.paths = {"/v1/benchmarks": benchmarks, "/healthz": alive}
    done = run("run", "latency", "--visits=9", url=liar.url)
    assert done.returncode == 2 and "--visits: " in done.stderr, done
    assert hint in done.stderr if hint else "numaprobed is" not in done.stderr, done.stderr


@pytest.mark.parametrize("benchmarks, alive, hint", [
    (known_parameters("size"), OTHER, f"; numaprobed is version 0.0.9, this numaprobe {OURS}: leave out"),
    (known_parameters("size"), NONE, "; numaprobed is of another version than this numaprobe: leave out"),
    (NONE, OTHER, "; numaprobed is version 0.0.9"), (known_parameters("visits"), OTHER, None), (NONE, NONE, None),
    ((200, "<html>"), OTHER, "; numaprobed is version 0.0.9"), ((200, "<html>"), (200, "ok"), None)])
@pytest.mark.parametrize("options", [[], ["--dry-run"]])
def test_a_node_of_another_version_is_known_too(liar, tmp_path, options, benchmarks, alive, hint):
    """As by numaprobe run. The nodes have one reason, and are one line."""
    refuse_visits(liar, "(GET /v1/benchmarks lists them)")
    liar.paths = {"/v1/benchmarks": benchmarks, "/healthz": alive}
    (tmp_path / "hosts").write_text("127.0.0.1 n1 n2 n3\n")
    done = run("fleet", "run", "latency", "--visits=9", "-w", "n[1-3]", f"--fleet-url=http://%h:{liar.server_address[1]}", f"--hosts-file={tmp_path}/hosts", *options)
    assert done.returncode == 1 and re.search(r"^n\[1-3\] +invalid: --visits: ", done.stderr, re.MULTILINE), done
    assert hint in done.stderr if hint else "numaprobed is" not in done.stderr, done.stderr


@pytest.mark.parametrize("path", ["/v1/benchmarks", "/healthz"])
def test_ctrl_c_during_the_look_up_of_the_version_leaves_the_reason(liar, tmp_path, path):
    asked, ended = threading.Event(), threading.Event()

    def never():
        asked.set()
        ended.wait(PATIENCE)
        return "{}"

    refuse_visits(liar, "we have no such thing")
    liar.paths = {"/v1/benchmarks": known_parameters("size"), path: (200, never)}
    (tmp_path / "hosts").write_text("127.0.0.1 n1\n")
    client = subprocess.Popen([str(CLIENT), "fleet", "run", "latency", "--visits=9", "-w", "n1", f"--fleet-url=http://%h:{liar.server_address[1]}",
                               f"--hosts-file={tmp_path}/hosts"], stderr=subprocess.PIPE, text=True, env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"})
    assert asked.wait(PATIENCE)
    client.send_signal(signal.SIGINT)
    try:
        said = client.communicate(timeout=PATIENCE)[1]
    finally:
        ended.set()
    assert client.returncode == 130 and re.search(r"^n1 .*--visits: we have no such thing", said, re.MULTILINE), said


def test_redirects_are_not_followed(liar):
    liar.status, liar.headers_to_send = 302, {"Location": "file:///etc/passwd"}
    done = run("topo", url=liar.url)
    assert done.returncode != 0 and "root:" not in done.stdout


def test_a_run_without_a_number_is_not_waited_for(liar):
    liar.body = b"{}"
    done = run("run", "--size=1M", url=liar.url)
    assert done.returncode == 3 and "the response has no run" in done.stderr, done


def test_an_endless_answer_is_cut(liar):
    liar.endless = True
    done = run("topo", url=liar.url)
    assert done.returncode == 3 and "larger than" in done.stderr


# ---- what an output can do wrong

def caches(level, kib, sharing, cpus):
    return [{"level": level, "bytes": kib << 10, "cpus_sharing": sharing, "first_cpu": c} for c in cpus]


# Two small cores to a cache, four large ones with their own, as in a phone; two sizes of L3.
HYBRID = {"cpu_model": "big.LITTLE", "line_bytes": 64, "this_system": True,
          "nodes": [{"node": 0, "kind": "dram", "memory_bytes": 1 << 30, "cpus": [0, 1, 2, 3, 4, 5],
                     "memory_side_cache_bytes": 256 << 20},
                    {"node": 1, "kind": "gpumemory", "memory_bytes": 1 << 30, "cpus": [], "only_if_named": True}],
          "cpus": [{"cpu": c, "core": c, "package": 0, "node": 0, "llc": 11 if c < 4 else 12, "kind": int(c > 1)} for c in range(6)],
          "kinds": [{"kind": 0, "capacity": 512, "max_mhz": None, "type": None},
                    {"kind": 1, "capacity": 1024, "max_mhz": 3900, "type": "Core\x1b[2J"}],
          "caches": caches(1, 32, 1, range(2)) + caches(1, 64, 1, range(2, 6)) + caches(2, 512, 2, [0])
          + caches(2, 2048, 1, range(2, 6)) + caches(3, 8192, 4, [0]) + caches(3, 16384, 2, [4])}


@pytest.fixture(scope="module")
def many_cpus():
    """A node with every second CPU of 256, as two-socket machines number them; its name tries the terminal."""
    topology = {"cpu_model": "x\x7f\u009b31m\u202eabc", "nodes": [
        {"node": 0, "kind": "dram", "memory_bytes": 1 << 30, "cpus": list(range(0, 256, 2)), "distances": [10]}]}
    served = {"/hybrid/v1/topology": json.dumps(HYBRID), "/v1/topology": json.dumps(topology, ensure_ascii=False),
              "/v1/node": "{" + ",".join(f'"m{i}":1' for i in range(200_000)) + "}"}
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            if not self.path.endswith("/events"):
                self.wfile.write(served.get(self.path, '{"id":7,"state":"running"}').encode())

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked = asked
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()


def address(server):
    return f"http://127.0.0.1:{server.server_port}"


def test_long_lists_of_cpus_are_whole(many_cpus):
    rows = list(csv.DictReader(io.StringIO(run("topo", "-o", "csv", url=address(many_cpus)).stdout)))
    assert rows[0]["cpus"] == ",".join(str(cpu) for cpu in range(0, 256, 2))


def test_topology_of_unequal_cores(many_cpus):
    text = run("topo", url=address(many_cpus) + "/hybrid").stdout
    assert ("package 0\n"
            "   `- node 0, 1G dram\n"
            "      |- L3 8M\n"
            "      |  |- cores of kind 0: 2 cores, CPUs 0-1; L2 1 x 512K, L1 2 x 32K\n"
            "      |  `- Core?[2J: 2 cores, CPUs 2-3; L2 2 x 2M, L1 2 x 64K\n"
            "      `- L3 16M\n"
            "         `- Core?[2J: 2 cores, CPUs 4-5; L2 2 x 2M, L1 2 x 64K\n"
            "node 1, 1G gpumemory, no CPUs\n") in text, text
    assert "cores of kind 0: CPUs 0-1, capacity 512 of 1024\n" in text, text
    assert "cores of kind 1: CPUs 2-5, Core" in text and "capacity 1024 of 1024, up to 3900 MHz\n" in text
    assert "\x1b" not in text
    assert "node 0 is behind a memory-side cache of 256M\n" in text
    assert "node 1 is measured only when --targets or --numa names it\n" in text


def test_topology_of_a_recorded_hybrid_machine(make_daemon, tmp_path):
    """One large core of two threads, two kinds of smaller ones: each kind has its line, with its own caches."""
    archive = ROOT / "tests/data/topologies/20em64t-hybrid-1p6c2t+2ca4co1t.tar.bz2"
    subprocess.run(["tar", "-xjf", archive, "-C", tmp_path, "--no-same-owner"], check=True)
    (root,) = tmp_path.iterdir()
    recorded = make_daemon(env={"HWLOC_FSROOT": str(root), "HWLOC_COMPONENTS": "linux,stop"})
    url = f"http://127.0.0.1:{recorded.port}"
    text = run("topo", url=url).stdout
    cores = re.findall(r"(\S[^:\n]*): (\d+) cores, CPUs ([\d,-]+); (L2 .*)$", text, re.M)
    assert sum(int(n) for _, n, _, _ in cores) == 14 and len({kind for kind, *_ in cores}) == len(cores) >= 2, text
    assert len({inner for *_, inner in cores}) == len(cores), text


def test_hidden_characters_are_escaped_in_every_form(many_cpus):
    for form in ["table", "json", "ndjson", "csv"]:
        text = run("topo", "-o", form, url=address(many_cpus)).stdout
        assert text and not set(text) & {"\x7f", "\u009b", "\u202e"}
    assert json.loads(run("topo", "-o", "json", url=address(many_cpus)).stdout)["cpu_model"] == "x\x7f\u009b31m\u202eabc"


@pytest.mark.parametrize("where", [">/dev/full", ">&-"])
def test_output_that_cannot_be_written_is_a_failure(many_cpus, where):
    done = subprocess.run(["bash", "-c", f'"$0" topo {where}', str(CLIENT)], capture_output=True, text=True, timeout=PATIENCE,
                          env={"PATH": os.environ["PATH"], "NUMAPROBE_URL": address(many_cpus)})
    assert done.returncode == 1 and "written" in done.stderr


PROGRAMS = ["client/numaprobe", "daemon/numaprobed", "fleet/numaprobe-fleetd"]


@pytest.mark.parametrize("program, words", [
    *((program, [word]) for program in PROGRAMS for word in ("--help", "--version")),
    *((program, ["--print-config", "--config=/dev/null"]) for program in PROGRAMS[1:])])
def test_help_that_cannot_be_written_is_a_failure(program, words):
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([build_dir() / program, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
    assert done.returncode == 1 and done.stderr == f"{program.split('/')[1]}: the output could not be written\n", done


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_help_of_a_program_has_80_columns(program):
    done = subprocess.run([build_dir() / program, "--help"], capture_output=True, text=True, timeout=PATIENCE)
    assert [line for line in done.stdout.splitlines() if len(line) > 80] == []


def test_an_object_of_very_many_members_is_refused(many_cpus):
    done = run("node", "-o", "json", url=address(many_cpus))  # within run()'s minute: was many, by their square
    assert done.returncode == 3 and "more than 4096 members" in done.stderr


def test_a_server_that_does_not_wait_is_asked_once_a_second(many_cpus):
    begun = time.monotonic()
    client = subprocess.Popen([str(CLIENT), "show", "7", "--follow"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, env={"NUMAPROBE_URL": address(many_cpus)})
    until(lambda: len([path for path in many_cpus.asked if "wait=" in path]) >= 3)
    assert client.poll() is None and time.monotonic() - begun > 1, "the third comes two seconds after the first"
    client.send_signal(signal.SIGINT)
    assert client.wait(timeout=PATIENCE) != 0


def test_last_is_of_this_node(make_daemon, needs_fake_bench, tmp_path):
    """Imports are newer, but not what this node measured last."""
    daemon = make_daemon(fake_bench_env())
    url = f"http://127.0.0.1:{daemon.port}"
    name = daemon.get("/v1/node").json["node"]
    table = tmp_path / "table.csv"
    table.write_text("size (MB),0,1\n1,10,11\n2,20,21\n")
    other = daemon.request("POST", "/v1/imports?node=nid1", table.read_text(), {"Content-Type": "text/csv"}).json["id"]
    nothing = run("show", "last", url=url)
    assert nothing.returncode == 5 and "has not measured a run yet" in nothing.stderr and "last@NODE" in nothing.stderr
    own = daemon.run(size="1,2", cpus="0")["id"]
    again = daemon.request("POST", f"/v1/imports?node={name}&date=2025-03-14", table.read_text(), {"Content-Type": "text/csv"}).json["id"]
    assert other < own < again

    def number(*words):
        return json.loads(run("show", *words, "-o", "json", url=url).stdout)["id"]
    assert number() == number("last") == own
    assert number("last@nid1") == other and number(f"last@{name}") == again
    assert daemon.get("/v1/runs/latest").json["id"] == own
    unknown = run("show", "last@nobody", url=url)
    assert unknown.returncode == 5 and "nobody" in unknown.stderr
    assert run("show", "last@", url=url).returncode == 2
    listed = run("runs", url=url).stdout
    assert f"{name}, imported" in listed and "nid1, imported" in listed and "2025-03-14T00:00Z" in listed
    rows = {int(r["id"]): r for r in csv.DictReader(io.StringIO(run("runs", "-o", "csv", url=url).stdout))}
    assert rows[again]["source"] == "imported" and rows[again]["node"] == name
    assert rows[again]["measured"] == "2025-03-14T00:00:00Z" and rows[own]["source"] == "measured"
    assert "2025-03-14T00:00:00Z (imported)" in run("show", str(again), url=url).stdout
    daemon.request("DELETE", f"/v1/runs/{own}")
    assert daemon.get("/v1/runs/latest").status == 404
