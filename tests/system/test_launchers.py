# SPDX-License-Identifier: Apache-2.0
"""Who starts the ranks: what they open and reach, what keeps mpirun from it, and what is said then. Black box."""
import contextlib
import itertools
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest

from conftest import FAKE_BENCH, Daemon, build_dir, descendants, fake_bench_env, is_sanitized, sanitizer, until

WITHOUT_CALLS = FAKE_BENCH.with_name("without_calls.py")
FAKE_MPIRUN = FAKE_BENCH.with_name("fake_mpirun.py")
ANSWER_S = 5  # mpirun has so long to say what it is
LONG = {"size": "64K", "cell_ms": 60000, "min_samples": 10000, "precision": 0.05, "timeout_s": 120}
SHORT = {"size": "64K", "cell_ms": 20, "min_samples": 7}
has_mpirun = any(os.access(f"{d}/mpirun", os.X_OK) for d in os.environ["PATH"].split(":"))
needs_mpirun = pytest.mark.skipif(not has_mpirun, reason="no mpirun on this machine")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def refused_namespaces(program="true", words=("--user", "--net")):
    return subprocess.run(["unshare", *words, program], capture_output=True).returncode != 0


needs_isolation = pytest.mark.skipif(os.geteuid() != 0 and refused_namespaces() or
                                     os.geteuid() == 0 and refused_namespaces(words=("--net",)),
                                     reason="no network namespace can be had here")


def name_of(pid):
    """That of a process which has ended is empty."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/comm", encoding="ascii") as f:
        return f.read().strip()
    return ""


def is_mpirun(pid):
    """That of Open MPI 5 becomes prterun."""
    return name_of(pid) in ("mpirun", "prterun")


def sockets_of(pid):
    found = set()
    with contextlib.suppress(FileNotFoundError):  # it has ended meanwhile
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                target = os.readlink(f"/proc/{pid}/fd/{fd}")
                if target.startswith("socket:["):
                    found.add(target[8:-1])
    return found


def listening(pid):
    """{inode: where} of all that listens in the network namespace of that process."""
    found = {}
    for name, state, column in (("tcp", "0A", 9), ("tcp6", "0A", 9), ("udp", "07", 9), ("udp6", "07", 9)):
        with open(f"/proc/{pid}/net/{name}", encoding="ascii") as f:
            for words in map(str.split, list(f)[1:]):
                if words[3] == state:
                    found[words[column]] = f"{name} {words[1]}"
    with open(f"/proc/{pid}/net/unix", encoding="utf-8") as f:
        for words in map(str.split, list(f)[1:]):
            if int(words[3], 16) & 0x10000:  # it accepts connections
                found[words[6]] = " ".join(["unix", *words[7:]])
    return found


@pytest.fixture
def long_run(make_daemon):
    """long_run(launcher): the daemon, and the processes of a run whose ranks measure."""
    def begin(launcher, **more):
        daemon = make_daemon(**more)
        run = daemon.post("/v1/runs", {"benchmark": "latency", "launcher": launcher, **LONG}).json
        events = daemon.events(run["id"])
        next(e for e, _, _ in events if e == "progress")
        return daemon, run["id"], descendants(daemon.process.pid)
    return begin


@needs_mpirun
@needs_isolation
@pytest.mark.parametrize("launcher", ["mpi", "processes"])
def test_nothing_of_a_run_listens(long_run, launcher):
    daemon, run, pids = long_run(launcher)
    assert any(map(is_mpirun, pids)) == (launcher == "mpi")
    assert "numa_bench" in map(name_of, pids)
    ours = listening(daemon.process.pid)
    for pid in pids:
        assert not sockets_of(pid) & ours.keys(), (name_of(pid), [ours.get(i) for i in sockets_of(pid)])
    daemon.post(f"/v1/runs/{run}/cancel")


@needs_mpirun
@needs_isolation
def test_mpirun_is_alone_with_its_ranks(long_run):
    """Its port, which it opens to whoever comes, is in a network where there is nobody else."""
    daemon, run, pids = long_run("auto")
    ours = os.readlink(f"/proc/{daemon.process.pid}/ns/net")
    [mpirun] = filter(is_mpirun, pids)
    theirs = os.readlink(f"/proc/{mpirun}/ns/net")
    assert theirs != ours
    assert any(where.startswith("tcp") for where in listening(mpirun).values()), "this is what it is about"
    with open(f"/proc/{mpirun}/net/dev", encoding="ascii") as f:
        assert [line.split(":")[0].strip() for line in list(f)[2:]] == ["lo"]
    names = []
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile: none of the run's
            same = os.readlink(f"/proc/{pid}/ns/net") == theirs
            with open(f"/proc/{pid}/status", encoding="ascii") as f:
                status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
            assert same == (is_mpirun(pid) or status["Name"] == "numa_bench"), status["Name"]
            names.append(status["Name"])
            if same:
                assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0 and status["NoNewPrivs"] == "1", status
    assert "numa_bench" in names and len(names) >= 3, names
    daemon.post(f"/v1/runs/{run}/cancel")


# Other than TCP to loopback and sockets in the directory of runs: nothing. libc asks nscd where there is one.
ALLOWED = re.compile(r'inet_addr\("127\.|inet_pton\(AF_INET6, "::1"|AF_NETLINK|AF_UNSPEC|sun_path="/var/run/nscd/')


@needs_mpirun
@needs_isolation
@pytest.mark.skipif(not shutil.which("strace") or is_sanitized(), reason="no strace, or a sanitizer that cannot be traced")
@pytest.mark.parametrize("launcher", ["mpi", "processes"])
def test_nothing_of_a_run_connects_elsewhere(numaprobed, tmp_path_factory, launcher):
    home = tmp_path_factory.mktemp("numaprobed")
    trace, program = home / "trace", home / "traced"
    program.write_text(f"#!/bin/sh\nexec strace -D -f -qq -e trace=connect,sendto,sendmsg -o {trace} {numaprobed} \"$@\"\n")
    program.chmod(0o755)
    daemon = Daemon(program, home).start()
    try:
        run = daemon.run(launcher=launcher, **SHORT)
        assert run["state"] == "succeeded", run
    finally:
        daemon.stop()
    lines = [line for line in trace.read_text(encoding="utf-8", errors="replace").splitlines() if "sa_family=" in line]
    strange = [line for line in lines if not ALLOWED.search(line) and f'sun_path="{home}/run/' not in line]
    assert not strange, strange[:5]
    assert launcher == "processes" or any("127.0.0.1" in line for line in lines), "mpirun was watched"


class Displays(threading.Thread):
    """False displays. Programs of other tests may come too: they are sent away, so that they do not wait. Those that
    `ours` says to be of this test are kept waiting, and are in `came`."""

    def __init__(self, ours):
        super().__init__()
        self.ours, self.came, self.held = ours, [], []
        self.over, self.end = os.pipe()
        for display in range(10):
            s = socket.socket(socket.AF_UNIX)
            try:
                s.bind(f"\0/tmp/.X11-unix/X{display}")
            except OSError:
                continue  # there is a real one, or another test's
            s.listen()
            self.held.append(s)

    def run(self):
        while self.over not in (ready := select.select([self.over, *self.held], [], [])[0]):
            for s in ready:
                visitor, _ = s.accept()
                pid, _, _ = struct.unpack("3i", visitor.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
                if self.ours(pid):
                    self.came.append((name_of(pid), visitor))
                else:
                    visitor.close()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        os.close(self.end)
        self.join()
        for s in self.held:
            s.close()
        os.close(self.over)


@needs_mpirun
def test_a_false_display_holds_nobody_up(make_daemon):
    """hwloc's plugin for displays, in mpirun, would connect to it and wait for its answer for ever."""
    daemon = make_daemon()
    with Displays(lambda pid: pid in descendants(daemon.process.pid)) as displays:
        for launcher in ("auto", "processes"):
            assert daemon.run(launcher=launcher, timeout_s=100, **SHORT)["state"] == "succeeded"
    assert not displays.came, "somebody came"


def launcher_of(daemon, run):
    return daemon.get(f"/v1/runs/{run['id']}").json["plan"]["launcher"]


def why_not(run):
    return [c["text"] for c in run["conditions"] if c["kind"] == "launcher"]


@pytest.fixture
def as_nobody(tmp_path_factory):
    """as_nobody(*words): a daemon that has no privilege, started by these words before its own."""
    started = []

    def make(*words, env=None):
        home = tmp_path_factory.mktemp("nobody")
        program = home / "numaprobed"
        build = build_dir()
        drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
        for name in ("numa_bench", "numa_bench_mpi.so"):
            if (build / "bench" / name).exists():
                shutil.copy(build / "bench" / name, home / name)
        shutil.copy(build / "daemon" / "numaprobed", home / "daemon")
        for path in home.iterdir():
            path.chmod(0o755)
        program.write_text("#!/bin/sh\nexec " + " ".join([*drop, *map(str, words), f"{home}/daemon"]) + ' "$@"\n')
        program.chmod(0o755)
        for name in ("state", "run"):
            (home / name).mkdir()
            if os.geteuid() == 0:
                os.chown(home / name, 65534, 65534)
        daemon = Daemon(program, home, {"NUMAPROBE_BENCH": f"{home}/numa_bench", **(env or {})}).start()
        started.append(daemon)
        return daemon

    yield make
    for daemon in started:
        daemon.stop()


@needs_mpirun
@pytest.mark.skipif(refused_namespaces(), reason="no user namespace can be had here")
@pytest.mark.skipif(sanitizer() == "thread", reason="a process with ThreadSanitizer's thread gets no user namespace")
def test_an_ordinary_account_isolates_too(as_nobody):
    daemon = as_nobody()
    uid = os.stat(f"/proc/{daemon.process.pid}").st_uid
    run = daemon.run(launcher="mpi", **SHORT)
    assert run["state"] == "succeeded" and not why_not(run), run
    long = daemon.post("/v1/runs", {"benchmark": "latency", **LONG}).json
    events = daemon.events(long["id"])
    next(e for e, _, _ in events if e == "progress")
    pids = descendants(daemon.process.pid)
    [mpirun] = filter(is_mpirun, pids)
    assert os.readlink(f"/proc/{mpirun}/ns/user") != os.readlink(f"/proc/{daemon.process.pid}/ns/user")
    with open(f"/proc/{mpirun}/uid_map", encoding="ascii") as f:
        assert f.read().split() == [str(uid), str(uid), "1"], "nobody else's account in there, least of all root's"
    with open(f"/proc/{mpirun}/status", encoding="ascii") as f:
        status = f.read()
    assert all(int(re.search(rf"{name}:\t(\w+)", status)[1], 16) == 0 for name in ("CapEff", "CapPrm", "CapBnd"))
    for path in (daemon.home / "run").rglob("*"):
        assert path.lstat().st_uid == uid, path
    daemon.post(f"/v1/runs/{long['id']}/cancel")


@needs_mpirun
def test_without_namespaces_there_is_no_mpirun(as_nobody):
    """As in a container whose filter refuses them: never a port that others can reach."""
    daemon = as_nobody(sys.executable, WITHOUT_CALLS, "unshare")
    run = daemon.run(**SHORT)
    assert run["state"] == "succeeded" and launcher_of(daemon, run) == "processes", run
    [why] = why_not(run)
    assert "without MPI" in why and "control port" in why and "namespace" in why, why
    for benchmark, members in (("latency", {"launcher": "mpi"}), ("pingpong", {})):
        answer = daemon.post("/v1/runs", {"benchmark": benchmark, **members})
        assert answer.status == 503 and answer.json["member"] == "launcher", answer.body
        assert "namespace" in answer.json["detail"], answer.body
    dry = daemon.post("/v1/runs?dry_run=true", {"benchmark": "latency"}).json
    assert dry["plan"]["launcher"] == "processes" and any("namespace" in note for note in dry["plan"]["notes"]), dry
    assert daemon.get("/readyz").status == 200
    checks = {c["name"]: c for c in daemon.get("/readyz?verbose").json["checks"]}
    assert checks["programs"]["ok"] and "namespace" in checks["programs"]["text"]


# --- what mpirun may turn out to be

class Mpirun:
    """A script in the place of mpirun that can be another at any time."""

    def __init__(self, path):
        self.path = path

    def be(self, script):
        new = self.path.with_name("new")
        new.write_text(script)
        new.chmod(0o755)
        new.rename(self.path)

    def be_good(self, first=":"):
        """What it is comes from the shell: it has 5 s for that, in which Python may not have begun on a busy machine."""
        self.be(f"#!/bin/sh\nif [ $1 = --version ]; then {first}; echo 'mpirun (Open MPI) 4.1.4'; exit; fi\nexec {FAKE_MPIRUN} \"$@\"\n")


@pytest.fixture
def mpirun(tmp_path):
    tmp_path.chmod(0o755)
    return Mpirun(tmp_path / "mpirun")


@pytest.fixture
def daemon_of(make_daemon, mpirun):
    def make():
        return make_daemon({**fake_bench_env(), "NUMAPROBE_MPIRUN": str(mpirun.path)})
    return make


@needs_isolation
@pytest.mark.parametrize("script,word", [
    ("#!/bin/sh\necho 'HYDRA build details:'\n", "HYDRA"),
    ("#!/bin/sh\nexit 1\n", "prints nothing"),
    ("#!/nonexistent/sh\n", "cannot run"),
])
def test_what_is_not_open_mpi(daemon_of, mpirun, script, word):
    mpirun.be(script)
    daemon = daemon_of()
    run = daemon.run(size="1-4")
    assert run["state"] == "succeeded" and launcher_of(daemon, run) == "processes", run
    assert word in why_not(run)[0] and str(mpirun.path)[:40] in why_not(run)[0], run["conditions"]
    answer = daemon.post("/v1/runs", {"benchmark": "latency", "launcher": "mpi"})
    assert answer.status == 503 and word in answer.json["detail"], answer.body
    checks = {c["name"]: c for c in daemon.get("/readyz?verbose").json["checks"]}
    assert checks["programs"]["ok"] and word in checks["programs"]["text"], checks


@needs_isolation
def test_mpirun_that_comes_and_goes(daemon_of, mpirun):
    """Without a restart, each run knows what is there when it starts."""
    mpirun.be_good()
    daemon = daemon_of()
    run = daemon.run(size="1-4")
    assert launcher_of(daemon, run) == "mpi" and not why_not(run), run
    mpirun.path.unlink()
    run = daemon.run(size="1-4")
    assert run["state"] == "succeeded" and launcher_of(daemon, run) == "processes", run
    assert "mpirun is missing" in why_not(run)[0] and "openmpi-bin" in why_not(run)[0], run
    mpirun.be("#!/bin/sh\necho other\n")
    assert "other" in why_not(daemon.run(size="1-4"))[0]
    mpirun.be_good()
    assert launcher_of(daemon, daemon.run(size="1-4")) == "mpi"


@needs_isolation
def test_mpirun_that_does_not_answer_holds_nobody_up(daemon_of, mpirun):
    """It hangs until this test lets it go; meanwhile everything is answered."""
    mpirun.be_good()
    daemon = daemon_of()
    gate = mpirun.path.with_name("gate")
    os.mkfifo(gate)
    gate.chmod(0o666)

    def asked():
        return [(pid, name_of(pid)) for pid in descendants(daemon.process.pid) if name_of(pid) in ("mpirun", "sh")]

    def held(turn):
        """What was seen while it hung, and the run; None: mpirun has 5 s to answer, and on a busy machine we took longer."""
        mpirun.be_good(f"read line <{gate}; : {turn}")  # another file, so it is asked
        begun = time.monotonic()
        run = daemon.post("/v1/runs", {"benchmark": "latency", "size": "1-4"}).json
        writer = os.open(gate, os.O_RDWR)  # it has somebody to wait for
        statuses = {daemon.get(path).status for _ in range(10) for path in ("/readyz", "/healthz")}
        state = daemon.get(f"/v1/runs/{run['id']}").json["state"]
        # On a busy machine requests are faster than the start of a program.
        until(lambda: asked() or time.monotonic() - begun > ANSWER_S)
        questions = asked()
        os.write(writer, b"go\n")
        run = daemon.wait(run["id"])
        os.close(writer)  # not before: what no reader has opened yet would be lost
        late = any("did not answer --version" in why for why in why_not(run))
        return None if late else (statuses, state, questions, run)
    turns = itertools.count()
    statuses, state, questions, run = until(lambda: held(next(turns)))
    assert statuses == {200} and state == "queued", "it waits for the answer, and alone"
    assert len(questions) == 1, f"many requests, and one question: {questions}"
    assert run["state"] == "succeeded" and launcher_of(daemon, run) == "mpi", run


@needs_isolation
def test_mpirun_that_never_answers(daemon_of, mpirun):
    mpirun.be("#!/bin/sh\ntrap '' TERM HUP\nsetsid sleep 3600 &\nsleep 3600\n")
    daemon = daemon_of()
    run = daemon.run(size="1-4")
    assert run["state"] == "succeeded" and "did not answer --version" in why_not(run)[0], run
    until(lambda: not descendants(daemon.process.pid))


# --- ends that need words

@needs_isolation
@needs_mpirun
def test_mpirun_that_is_stopped_loses_no_result(long_run, make_daemon):
    """All results have come, and only mpirun hangs."""
    daemon = make_daemon()

    def stopped():
        """A run of which mpirun was stopped; None: on a busy machine it had ended before."""
        answer = daemon.post("/v1/runs", {"benchmark": "latency", "launcher": "mpi", "size": "64K", "cell_ms": 5000,
                                          "min_samples": 7, "precision": 0.05}).json
        next((e for e, _, _ in daemon.events(answer["id"]) if e == "progress"), None)
        pids = [pid for pid in descendants(daemon.process.pid) if is_mpirun(pid)]
        with contextlib.suppress(ProcessLookupError):
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
        run = daemon.wait(answer["id"])
        return pids and run
    run = until(stopped)
    assert run["state"] == "succeeded", run
    assert any("mpirun did not exit by itself" in c["text"] for c in run["conditions"]), run["conditions"]
    assert daemon.get(f"/v1/runs/{run['id']}/matrix").status == 200
    until(lambda: not descendants(daemon.process.pid))


@needs_isolation
def test_ranks_that_never_report_end_the_run(daemon_of, mpirun):
    """As 32 ranks that exit at once leave Open MPI 4."""
    mpirun.be(f"#!/bin/sh\n[ $1 != --version ] && exec sleep 3600\nexec {FAKE_MPIRUN} \"$@\"\n")
    daemon = daemon_of()
    run = daemon.run(size="1-4", timeout_s=300)
    assert run["state"] == "failed" and "no rank reported within 30 s" in run["error"]["text"], run
    until(lambda: not descendants(daemon.process.pid))


@pytest.mark.parametrize("launcher,program", [("processes", "numa_bench"), ("mpi", "mpirun")])
def test_the_program_that_failed_is_named(daemon_of, mpirun, make_daemon, launcher, program):
    mpirun.be_good()
    daemon = make_daemon({"NUMAPROBE_BENCH": "/bin/false", "NUMAPROBE_MPIRUN": str(mpirun.path)})
    answer = daemon.post("/v1/runs", {"benchmark": "latency", "launcher": launcher})
    if answer.status == 503 and launcher == "mpi":
        pytest.skip("no network namespace can be had here")
    run = daemon.wait(answer.json["id"])
    assert run["state"] == "failed" and run["error"]["text"].startswith(f"{program} exited with status 1"), run


def test_a_directory_of_runs_that_is_gone_is_made_again(make_daemon):
    daemon = make_daemon(fake_bench_env())
    assert daemon.run(size="1-4")["state"] == "succeeded"
    shutil.rmtree(daemon.home / "run")
    run = daemon.run(size="1-4")
    assert run["state"] == "succeeded", run
    assert (daemon.home / "run").stat().st_mode & 0o777 == 0o711


@needs_root
@needs_isolation
@needs_mpirun
def test_a_directory_of_runs_that_is_too_small(make_daemon, tmp_path_factory):
    home = tmp_path_factory.mktemp("small")
    (home / "run").mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", home / "run"], capture_output=True)
    if mounted.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        daemon = make_daemon(home=home)
        answer = daemon.post("/v1/runs", {"benchmark": "latency", "launcher": "mpi"})
        assert answer.status == 503 and re.search(r"run directory has \d MiB free", answer.json["detail"]), answer.body
        run = daemon.run(**SHORT)
        assert run["state"] == "succeeded" and "(4 per rank)" in why_not(run)[0], run
        daemon.stop()
    finally:
        subprocess.run(["umount", "-l", home / "run"], check=True)


@needs_root
@needs_isolation
@needs_mpirun
def test_limits_of_processes_are_known_before_the_start(make_daemon, numaprobed, tmp_path):
    """As TasksMax of a unit that is too small: RLIMIT_NPROC of the ranks' account."""
    tmp_path.chmod(0o711)
    daemon = make_daemon(args=["--job-user=games"])
    subprocess.run(["prlimit", "--nproc=18:18", f"--pid={daemon.process.pid}"], check=True)
    answer = daemon.run(**SHORT)
    assert answer["state"] == "succeeded" and "processes and threads" in why_not(answer)[0], answer
    subprocess.run(["prlimit", "--nproc=4:4", f"--pid={daemon.process.pid}"], check=True)
    run = daemon.run(**SHORT)
    assert run["state"] == "failed" and "limits leave 4" in run["error"]["text"], run


# --- and the numbers are the same

@needs_isolation
@needs_mpirun
def test_both_launchers_measure_the_same(make_daemon):
    """Roughly, on a machine where others work: tests/perf/launchers.py has the pairs and their interval."""
    daemon = make_daemon()
    medians = {}
    for launcher in ("mpi", "processes", "mpi", "processes"):
        run = daemon.run(launcher=launcher, size="32K", cell_ms=100)
        assert run["state"] == "succeeded" and launcher_of(daemon, run) == launcher, run
        answer = daemon.get(f"/v1/runs/{run['id']}/matrix").json
        assert all(r["cpu"] == r["cpu_wanted"] and r["mem_node"] == r["mem_wanted"] and r["mem_share"] == 1
                   for r in answer["ranks"]), answer["ranks"]
        cells = [cell["min"] for line in answer["matrices"][0]["cells"] for cell in line]
        medians[launcher] = min(cells + [medians.get(launcher, cells[0])])
    assert 0.1 < medians["mpi"] / medians["processes"] < 10, f"another quantity, or another unit: {medians}"
