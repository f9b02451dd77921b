# SPDX-License-Identifier: Apache-2.0
"""The scripts of docs/slurm with a real Slurm, and a numaprobe that prints what the test says."""
import contextlib
import os
import pathlib
import re
import select
import shutil
import subprocess
import tempfile
import time

import pytest

import slurm

BUILD = pathlib.Path(os.environ["NUMAPROBE_BUILD"])
SCRIPTS = pathlib.Path(__file__).parents[2] / "docs" / "slurm"
NODES = ("n1", "n2", "n3", "n4")
FAKE = """#!/bin/sh
echo "$SLURMD_NODENAME $*" >>{folder}/calls
case $1 in
check) cat {folder}/line; exit "$(cat {folder}/status)" ;;
cancel) [ ! -e {folder}/stuck ] || sleep 60; exit 1 ;;
run) echo begin >>{folder}/order; for _ in 1 2 3 4 5 6 7 8; do sleep 0.05; done; echo end >>{folder}/order
     [ "$4" != refused ] || {{ echo "busy: load" >&2; exit 6; }} ;;
export) echo "{{\\"node\\":\\"$SLURMD_NODENAME\\"}}" >"${{3#--file=}}" ;;
esac
"""
HEALTH = """#!/bin/sh
export NUMAPROBE_PATH={folder}:/usr/bin:/bin NUMAPROBE_SETTINGS={folder}/settings SLURM_CONF=/run/slurm/slurm.conf
{script}
status=$?
[ ! -e {folder}/gate ] || echo "$status" >{folder}/gate
exit 0
"""


def executable(path, text):
    path.write_text(text)
    path.chmod(0o755)


@contextlib.contextmanager
def site(nodes, more=""):
    """A cluster, and a folder with the programs of its nodes."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        executable(folder / "numaprobe", FAKE.format(folder=folder))
        executable(folder / "health", HEALTH.format(folder=folder, script=SCRIPTS / "numaprobe-health"))
        executable(folder / "prolog", f"#!/bin/sh\nNUMAPROBE_PATH={folder}:/usr/bin:/bin exec {SCRIPTS / 'numaprobe-prolog'}\n")
        (folder / "line").write_text("NUMAPROBE OK - as before | difference=0.1%\n")
        (folder / "status").write_text("0")
        (folder / "settings").write_text("NUMAPROBE_DRAIN=yes\nNUMAPROBE_CHECK='--crit=15 --warn=5'\n")
        try:
            with slurm.cluster(nodes, more.format(folder=folder)) as c:
                c.folder = folder
                yield c
        except slurm.Missing as e:
            pytest.skip(str(e))


@pytest.fixture(scope="module", name="many")
def four_nodes():
    with site(NODES) as c:
        yield c


@pytest.fixture(scope="module", name="one")
def one_node():
    with site((slurm.HOST,), "HealthCheckProgram={folder}/health\nHealthCheckInterval=1\nHealthCheckNodeState=ANY\n"
              "Prolog={folder}/prolog\nPrologFlags=Alloc") as c:
        yield c


def state(cluster):
    return cluster.run("sinfo", "-h", "-o", "%T").stdout.strip()


def until_idle(cluster):
    """Slurm lists a node as idle a moment after its job."""
    end = time.monotonic() + 60
    while (seen := state(cluster)) != "idle":
        assert time.monotonic() < end, seen
        select.select([], [], [], 0.1)


def checked(cluster):
    """Waits until a check that begins from now on has ended. Its exit status."""
    os.mkfifo(cluster.folder / "gate")
    with open(cluster.folder / "gate", encoding="ascii") as f:  # of the check that is running now, perhaps
        f.read()
    with open(cluster.folder / "gate", encoding="ascii") as f:
        said = f.read()
    (cluster.folder / "gate").unlink()
    return said.split()[0]


def test_a_healthy_node(one):
    assert checked(one) == "0"
    assert state(one) == "idle"
    assert "check --crit=15 --warn=5" in (one.folder / "calls").read_text()


@pytest.mark.parametrize("line, status", [("NUMAPROBE WARNING - 4.1% slower\n", 1), ("NUMAPROBE UNKNOWN - no baseline\n", 3), ("", 127),
                                          ("garbage NUMAPROBE CRITICAL - x\n", 2)])
def test_it_fails_open(one, line, status):
    (one.folder / "line").write_text(line)
    (one.folder / "status").write_text(str(status))
    assert checked(one) == "0" and state(one) == "idle"


def test_a_slow_node_is_drained_once(one):
    (one.folder / "status").write_text("2")
    (one.folder / "line").write_text("NUMAPROBE CRITICAL - 12.3% slower; see \"x\" | difference=12.3%\n")
    assert checked(one) == "0"
    assert state(one) == "drained"
    assert one.run("sinfo", "-R", "-h", "-o", "%E").stdout.startswith("numaprobe: 12.3% slower; see ")
    one.run("scontrol", "update", f"nodename={slurm.HOST}", "state=drain", "reason=a person's")
    assert checked(one) == "0"
    assert one.run("sinfo", "-R", "-h", "-o", "%E").stdout.strip() == "a person's"


def test_it_only_reports_by_default(one):
    settings = one.folder / "settings"
    settings.write_text("")
    assert checked(one) == "0"
    one.run("scontrol", "update", f"nodename={slurm.HOST}", "state=resume")
    assert checked(one) == "0" and state(one) == "idle"
    assert not one.run("sinfo", "-R", "-h", "-o", "%E").stdout.strip()
    (one.folder / "line").write_text("NUMAPROBE OK - as before\n")


def test_the_prolog_cancels_and_never_fails(one):
    """The program of this test fails, and the job starts."""
    (one.folder / "calls").write_text("")
    assert one.run("srun", "echo", "started").stdout == "started\n"
    assert "cancel --all --wait=2" in (one.folder / "calls").read_text()
    until_idle(one)


def test_a_prolog_that_hangs_does_not_keep_the_job(one):
    (one.folder / "stuck").touch()
    assert one.run("srun", "echo", "started").stdout == "started\n"
    (one.folder / "stuck").unlink()
    until_idle(one)


def array(cluster, *words):
    return cluster.run(str(SCRIPTS / "numaprobe-array"), *words, env={"PATH": f"{cluster.folder}:{os.environ['PATH']}"})


def finished(cluster):
    """A job that needs all nodes begins when the array has ended; Slurm lists them as idle a moment after it."""
    cluster.run("srun", f"-N{len(NODES)}", "--exclusive", "true")
    end = time.monotonic() + 60
    while cluster.run("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").stdout.split() != list(NODES):
        assert time.monotonic() < end, "the nodes did not become idle in time"
        select.select([], [], [], 0.1)


def test_each_idle_node_is_measured_once(many):
    results = many.folder / "it's 100%j"
    done = array(many, "-n", "2", "-t", "1", str(results), "--", "latency", "--label=it's a \"label\"", "$x")
    assert done.returncode == 0 and "4 nodes, at most 2 at once" in done.stdout, done.stdout + done.stderr
    finished(many)
    assert sorted(p.name for p in results.iterdir()) == [f"{n}.json" for n in NODES]
    for n in NODES:
        assert (results / f"{n}.json").read_text() == f'{{"node":"{n}"}}\n'
    calls = (many.folder / "calls").read_text().splitlines()
    assert sorted(c for c in calls if " run " in c) == [f"{n} run latency --label=it's a \"label\" $x" for n in NODES]
    running = [0]
    for word in (many.folder / "order").read_text().split():
        running.append(running[-1] + (1 if word == "begin" else -1))
    assert max(running) <= 2 and running[-1] == 0, running


def test_a_refused_run_leaves_its_reason(many):
    results = many.folder / "results2"
    assert array(many, "-w", "n[2-3]", str(results), "--", "a", "b", "refused").returncode == 0
    finished(many)
    assert sorted(p.name for p in results.iterdir()) == ["n2.log", "n3.log"]
    assert (results / "n2.log").read_text() == "busy: load\n"


def test_what_it_would_submit(many):
    done = array(many, "--print", "-p", "all", str(many.folder / "results3"))
    assert done.stdout.split("\n\n")[0].split() == list(NODES) and "\nnumaprobe run '--quick' &&\n" in done.stdout
    assert not many.run("squeue", "-h").stdout


@contextlib.contextmanager
def collector(cluster, *options):
    """numaprobe-fleetd for the nodes, on which no daemon responds. Gives what runs the client with it."""
    folder = cluster.folder
    state = tempfile.mkdtemp(dir=folder)
    path = f"{state}/fleet.sock"
    with cluster.begin(BUILD / "fleet" / "numaprobe-fleetd", "--config=/dev/null", "--listen=", f"--socket={path}", f"--state-dir={state}",
                       f"--run-dir={state}", "--nodes=n[1-4]", "--url=http://127.0.0.1:1/%h", "--log-level=error", *options,
                       env={"PATH": f"{folder}:{os.environ['PATH']}"}) as process:
        def fleet(*words):
            return subprocess.run([BUILD / "client" / "numaprobe", "fleet", *words, f"--fleet=unix:{path}"], capture_output=True, text=True,
                                  timeout=120, stdin=subprocess.DEVNULL)

        def wait(*words):
            end = time.monotonic() + 60
            while (done := fleet(*words)).returncode:
                assert time.monotonic() < end, done
                select.select([], [], [], 0.1)
            return done.stdout
        try:
            yield wait
        finally:
            process.terminate()


def test_the_script_of_a_campaign_measures_each_of_its_nodes_once(many):
    for name in ("calls", "order"):
        (many.folder / name).unlink(missing_ok=True)
    with collector(many) as wait:
        wait("campaign", "start", "latency", "--quick", "--through=slurm", "-w", "n[1-3]", "--at-once=2", "--note=it's $x \"y\"")
        script = wait("campaign", "script", "1")
    (many.folder / "script").write_text(script)
    done = many.run("sh", str(many.folder / "script"), env={"PATH": f"{many.folder}:{os.environ['PATH']}"})
    assert done.returncode == 0 and re.fullmatch(r"job \d+: 3 nodes\n", done.stdout), done
    finished(many)
    calls = (many.folder / "calls").read_text().splitlines()
    assert sorted(calls) == [f"{n} run latency --quick --note=it's $x \"y\"" for n in ("n1", "n2", "n3")]
    running = [0]
    for word in (many.folder / "order").read_text().split():
        running.append(running[-1] + (1 if word == "begin" else -1))
    assert max(running) <= 2 and running[-1] == 0, running
    unknown = many.run("sh", "-c", f"sed 's/n2/n9/' {many.folder}/script | sh")
    assert unknown.returncode and not many.run("squeue", "-h", "-t", "PD,R").stdout, "a node that Slurm does not know leaves no job"


def test_the_collector_submits_a_campaign(many):
    for name in ("calls", "order"):
        (many.folder / name).unlink(missing_ok=True)
    for program in ("sbatch", "scontrol"):  # a child of the collector has no environment
        executable(many.folder / program, f'#!/bin/sh\nSLURM_CONF=/run/slurm/slurm.conf exec {shutil.which(program)} "$@"\n')
    with collector(many, "--slurm-submit") as wait:
        wait("campaign", "start", "latency", "--quick", "--through=slurm", "-w", "n[2-4]", "--at-once=2", "--note=it's $x \"y\"")
        end = time.monotonic() + 60
        while "Slurm runs it on 3 nodes: job" not in (shown := wait("campaign", "show", "1", "-o", "json")):
            assert time.monotonic() < end, shown
            select.select([], [], [], 0.1)
    finished(many)
    calls = (many.folder / "calls").read_text().splitlines()
    assert sorted(calls) == [f"{n} run latency --quick --note=it's $x \"y\"" for n in ("n2", "n3", "n4")]


def test_no_node_is_idle(many):
    for n in NODES:
        many.run("scontrol", "update", f"nodename={n}", "state=drain", "reason=test")
    done = array(many, str(many.folder / "results4"))
    assert done.returncode == 6 and "no node is idle" in done.stderr, done
    for n in NODES:
        many.run("scontrol", "update", f"nodename={n}", "state=resume")


@pytest.mark.parametrize("words", [[], ["-n"], ["-n", "x", "d"], ["--bogus", "d"], ["d", "e"]])
def test_wrong_words(many, words):
    done = array(many, *words)
    assert done.returncode == 2 and "numaprobe-array: " in done.stderr, done
    assert not many.run("squeue", "-h").stdout


# ---- numaprobe-features

def features(cluster, node):
    shown = cluster.run("scontrol", "-o", "show", "node", node).stdout
    return [re.search(rf" {name}=(\S*)", shown)[1] for name in ("AvailableFeatures", "ActiveFeatures")]


def write_features(cluster, node, line):
    """What the script says and does on this node where the client prints this line."""
    (cluster.folder / "line").write_text(line)
    return cluster.run(str(SCRIPTS / "numaprobe-features"), env={"SLURMD_NODENAME": node, "NUMAPROBE_PATH": f"{cluster.folder}:/usr/bin:/bin"})


def test_labels_become_features_that_jobs_choose(many):
    many.run("scontrol", "update", "nodename=n2", "availablefeatures=ib,gpu", "activefeatures=ib")
    assert write_features(many, "n2", "Features=numaprobe_verdict_ok,numaprobe_latency_class_80_100ns\n").returncode == 0
    ours = "numaprobe_verdict_ok,numaprobe_latency_class_80_100ns"
    assert features(many, "n2") == [f"ib,gpu,{ours}", f"ib,{ours}"], "features of others stay"
    ran = many.run("srun", "--constraint=numaprobe_verdict_ok&ib", "sh", "-c", "echo $SLURMD_NODENAME")
    assert ran.stdout == "n2\n", ran.stderr
    assert write_features(many, "n2", "Features=numaprobe_verdict_critical\n").returncode == 0
    assert features(many, "n2") == ["ib,gpu,numaprobe_verdict_critical", "ib,numaprobe_verdict_critical"]
    ran = many.run("srun", "--immediate=2", "--constraint=numaprobe_verdict_ok", "true")
    assert ran.returncode and "not available" in ran.stderr, ran


def test_features_without_a_verdict(many):
    for line in ("", "garbage\n"):
        assert write_features(many, "n3", line).returncode == 0
        assert features(many, "n3") == ["numaprobe_verdict_unknown"] * 2
    strange = write_features(many, "n9", "Features=numaprobe_verdict_ok\n")
    assert strange.returncode == 1 and "n9" in strange.stdout + strange.stderr, strange


def test_features_as_before_send_nothing(many):
    wrapper = many.folder / "scontrol"
    executable(wrapper, f"#!/bin/sh\necho \"$1\" >>{many.folder}/sent\nexec /usr/bin/scontrol \"$@\"\n")
    for line in ("ok", "ok", "warning"):
        assert write_features(many, "n4", f"Features=numaprobe_verdict_{line}\n").returncode == 0
    wrapper.unlink()
    assert (many.folder / "sent").read_text().split() == ["-o", "update", "-o", "-o", "update"]
