# SPDX-License-Identifier: Apache-2.0
"""Every allocation and every system call of thirteen scenarios fails once, one at a time.

The claim: nothing ends by a signal, nothing hangs, what was acknowledged is there, and nothing says that it went well
which did not. NUMAPROBE_FAILING_CALLS is a number: so many of each scenario, chosen by NUMAPROBE_SEED (1); or "all":
each call of each kind; or a share of all: "2/8" is every eighth, from the second; or one call: "lock:8". tests/fakes/fail_nth.c does the work.
"""
import contextlib
import http.client
import json
import os
import pathlib
import random
import select
import shutil
import signal
import sqlite3
import subprocess
import threading
import time

import pytest

from conftest import FINAL, PATIENCE, Daemon, build_dir, fake_bench_env, until
from faults import KINDS, Faults
from test_fleet import Fleet
from test_fleetd import Collector, measure

SAMPLE = os.environ.get("NUMAPROBE_FAILING_CALLS", "5")
SEED = int(os.environ.get("NUMAPROBE_SEED", "1"))
SLOW_S, WRONG_MAX = 5, 20
FAKES = build_dir() / "tests" / "fakes"
MPIRUN = pathlib.Path(__file__).resolve().parents[1] / "fakes" / "fake_mpirun.py"

pytestmark = pytest.mark.skipif(not (FAKES / "fail_nth.so").exists(),
                                reason="calls cannot be made to fail beside a sanitizer")


def sample(counts, leave_out=()):
    """[(kind, n)] of the calls that a run without faults has counted."""
    every = [(kind, n) for kind in KINDS if kind not in leave_out for n in range(1, counts[kind] + 1)]
    if ":" in SAMPLE:
        kind, n = SAMPLE.split(":")
        return [(kind, int(n))]
    if SAMPLE == "all" or "/" in SAMPLE:
        part, parts = map(int, SAMPLE.split("/")) if "/" in SAMPLE else (1, 1)
        assert 1 <= part <= parts, f"NUMAPROBE_FAILING_CALLS={SAMPLE}: there is no such share"
        return every[part - 1::parts]
    # A kind with few calls is as good as one with thousands.
    chance, chosen = random.Random(SEED), []
    kinds = [k for k in KINDS if counts[k] and k not in leave_out]
    while kinds and len(chosen) < min(int(SAMPLE), len(every)):
        kind = kinds[len(chosen) % len(kinds)]
        chosen.append((kind, chance.randint(1, counts[kind])))
    return chosen


def each_case(scenario, counts, one, leave_out=()):
    """one(kind, n) lets this call fail and returns whether it came to that. One that goes wrong does not end the rest."""
    cases, struck, wrong = sample(counts, leave_out), 0, []
    for kind, n in cases:
        begun = time.monotonic()
        try:
            struck += bool(one(kind, n))
        except Exception as e:  # pylint: disable=broad-except
            struck += 1
            wrong.append(f"{scenario}: call {n} of kind {kind} fails: {type(e).__name__}: {e}")
            print(wrong[-1], flush=True)
        seconds = time.monotonic() - begun
        if seconds > SLOW_S:
            print(f"{scenario}: call {n} of kind {kind} fails: {seconds:.0f} s", flush=True)
        if len(wrong) == WRONG_MAX:
            break
    print(f"{scenario}: {len(cases)} of {sum(counts.values())} calls, {struck} struck, {len(wrong)} wrong, seed {SEED}",
          flush=True)
    assert not wrong, "\n".join(wrong)
    assert struck > 0 or not cases


# ---- the daemon

class FaultyDaemon(Daemon):
    """One whose own calls fail (or those of the supervisor, by `program`)."""

    def __init__(self, home, program="--listen"):
        exe = home / "numaprobed"
        if not exe.exists():
            shutil.copy(FAKES / "numaprobed_faulty", exe)
        self.faults = Faults(f"{exe}.faults", program)
        super().__init__(exe, home, {**fake_bench_env(), "NUMAPROBE_MPIRUN": str(MPIRUN)})

    def ended(self):
        return self.process.poll()

    def end(self):
        """After a case that went wrong it may still be there."""
        if self.process and self.ended() is None:
            self.process.kill()
            self.process.wait()

    def start_or_end(self):
        """True: it serves. Else it has ended, and not by a signal."""
        self.home.chmod(0o755)
        self.log = []
        self.process = subprocess.Popen(
            [str(self.program), "--listen=127.0.0.1:0", f"--state-dir={self.home}/state",
             f"--run-dir={self.home}/run", "--anonymous=admin"],
            env=self.env, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        hangs = threading.Timer(PATIENCE, self.process.kill)
        hangs.start()
        for line in self.process.stderr:
            line = line.decode(errors="replace")
            self.log.append(line)
            if "event=ready" in line:
                hangs.cancel()
                self.port = int(line.split("listen=127.0.0.1:")[1].split()[0].split(",")[0])
                os.set_blocking(self.process.stderr.fileno(), False)
                return True
        self.process.wait(PATIENCE)
        hangs.cancel()
        return False


@pytest.fixture
def make_faulty(tmp_path_factory):
    made, home = [], tmp_path_factory.mktemp("faulty")

    def make(program="--listen"):
        made.append(FaultyDaemon(home, program))
        return made[-1]
    yield make
    for daemon in made:
        daemon.end()
        daemon.faults.close()


@pytest.fixture
def faulty(make_faulty):
    daemon = make_faulty().start()
    daemon.run(size="1-2", ranks="one-per-numa")
    yield daemon
    assert daemon.stop() == 0, "\n".join(daemon.log)


def ask(daemon, *request, **more):
    """The answer, or None if the connection was cut."""
    try:
        return daemon.request(*request, **more)
    except (OSError, ValueError) as e:  # refused, cut, cut in the middle
        assert "timed out" not in str(e), f"{request} hangs"
        return None
    except Exception as e:  # http.client's own
        assert type(e).__module__ == "http.client", repr(e)
        return None


def each_fault(daemon, scenario, act, check, leave_out=()):
    """act() with each fault; check(answer) afterwards, without one."""
    daemon.faults.arm()
    act()
    daemon.faults.disarm()

    def one(kind, n):
        if daemon.ended() is not None:
            daemon.start()  # after a case that went wrong
        daemon.faults.arm(kind, n)
        answer = act()
        struck = daemon.faults.disarm()
        assert daemon.ended() is None, f"the daemon ended: {daemon.ended()}"
        assert ask(daemon, "GET", "/healthz").status == 200, "it does not serve on"
        check(answer)
        return struck
    each_case(scenario, daemon.faults.counts(), one, leave_out)


READS = ["/v1/node", "/v1/topology", "/v1/runs", "/v1/runs/1", "/v1/runs/1/matrix", "/v1/runs/1/report",
         "/v1/runs/1/matrix.svg", "/v1/runs/1/export", "/v1/history", "/v1/compare?base=1&target=1", "/v1/storage",
         "/v1/feed", "/v1/availability", "/v1/baselines", "/metrics", "/readyz?verbose"]


def test_reads(faulty):
    """1. Reading: what is answered with 200 is whole and the same as ever."""
    volatile = {"/metrics", "/v1/storage", "/v1/availability", "/readyz?verbose", "/v1/node"}
    whole = {path: faulty.get(path).body for path in READS}

    def act():
        return {path: ask(faulty, "GET", path) for path in READS}

    def check(answers):
        for path, answer in answers.items():
            if answer:
                missing = {"Content-Security-Policy", "Content-Type", "X-Request-Id"} - set(answer.headers)
                assert not missing, f"{path}: {missing}"
            if not answer or answer.status >= 400:
                assert not answer or answer.status in (500, 503, 507), f"{path}: {answer.status}"
                continue
            if path in volatile:
                assert len(answer.body) > 20, f"{path} is cut"
            else:
                assert answer.body == whole[path], f"{path} is another:\n{answer.body}\n{whole[path]}"
    each_fault(faulty, "reads", act, check)


def submit_and_wait(daemon):
    answer = ask(daemon, "POST", "/v1/runs", {"benchmark": "latency", "size": "1-2", "ranks": "one-per-numa"})
    end = time.monotonic() + PATIENCE
    while answer and answer.status == 202 and time.monotonic() < end:
        run = ask(daemon, "GET", f"/v1/runs/{answer.json['id']}?wait=5")
        if run and run.status == 200 and run.json["state"] in FINAL:
            break
    return answer


def check_run(daemon, answer):
    if not answer or answer.status != 202:
        return
    run = ask(daemon, "GET", f"/v1/runs/{answer.json['id']}?wait=60")
    assert run.status == 200, "an acknowledged run is lost"
    assert run.json["state"] in FINAL, f"stuck: {run.body}"
    if run.json["state"] == "succeeded":
        matrix = daemon.get(f"/v1/runs/{answer.json['id']}/matrix").json["matrices"][0]
        numbers = [cell["median"] for row in matrix["cells"] for cell in row]
        assert len(numbers) == 2 and all(numbers), "a success without its numbers"
    else:
        assert run.json["error"]["text"], "it failed and does not say why"


def check_nothing_left(daemon):
    left = [d for d in (daemon.home / "run").iterdir() if d.is_dir()]
    assert not left, f"left behind: {left}"


def test_run(faulty):
    """2. A run, from asking to its end: never lost, never stuck, never a success that is none."""
    each_fault(faulty, "run", lambda: submit_and_wait(faulty), lambda answer: check_run(faulty, answer))


def test_supervisor(make_faulty):
    """3. The same, with the fault in the process that owns the run's processes."""
    daemon = make_faulty("--supervise").start()

    def check(answer):
        check_run(daemon, answer)
        check_nothing_left(daemon)
    each_fault(daemon, "supervisor", lambda: submit_and_wait(daemon), check)
    assert daemon.stop() == 0


def test_import(faulty):
    """4. An import: what was acknowledged is there."""
    serial = iter(range(1, 1 << 20))

    def act():
        table = f"size (MB),0,1\n1,10.{next(serial)},10.25\n2,11.5,11.25\n"
        return ask(faulty, "POST", "/v1/imports?node=elsewhere", table, {"Content-Type": "text/csv"})

    def check(answer):
        if answer and answer.status < 300:
            run = faulty.get(f"/v1/runs/{answer.json['id']}/matrix")
            assert run.status == 200 and "10.25" in str(run.body), "the import is lost"
        else:
            assert not answer or answer.status in (500, 503, 507), answer.status
    each_fault(faulty, "import", act, check)


def test_changes_of_state(faulty):
    """5. Labels, baselines, tokens: what was acknowledged holds, what was refused changed nothing that was there."""
    serial = iter(range(1, 1 << 20))

    def act():
        name = f"x{next(serial)}"
        return name, [ask(faulty, "PUT", "/v1/runs/1/label", {"label": name}),
                      ask(faulty, "PUT", f"/v1/baselines/{name}", {"runs": [1]}),
                      ask(faulty, "POST", "/v1/tokens", {"name": name, "scope": "read"})]

    def check(answer):
        name, (label, baseline, token) = answer
        if label and label.status == 200:
            assert faulty.get("/v1/runs/1").json["label"] == name, "the label is lost"
        if baseline and baseline.status < 300:
            assert faulty.get(f"/v1/baselines/{name}").status == 200, "the baseline is lost"
        if token and token.status < 300:
            known = faulty.get("/v1/node", Authorization="Bearer " + token.json["token"]).status
            assert known == 200, "the token is none"
        ask(faulty, "DELETE", f"/v1/baselines/{name}")
        ask(faulty, "DELETE", f"/v1/tokens/{name}")
    each_fault(faulty, "changes of state", act, check)


@pytest.mark.parametrize("others", [0, 1], ids=["alone", "beside another"])
def test_accept(faulty, others):
    """A connection that cannot be taken in is taken in a moment later, also while others stay open."""
    with contextlib.ExitStack() as stack:
        for _ in range(others):
            connection = stack.enter_context(contextlib.closing(http.client.HTTPConnection("127.0.0.1", faulty.port)))
            connection.request("GET", "/healthz")
            assert connection.getresponse().read()
        for _ in range(5):
            faulty.faults.arm("socket", 1)
            assert ask(faulty, "GET", "/healthz").status == 200
            assert faulty.faults.disarm()


def whole_database(path):
    with contextlib.closing(sqlite3.connect(path)) as db:
        found = db.execute("PRAGMA integrity_check").fetchone(), db.execute("SELECT count(*) FROM run").fetchone()
        return found == (("ok",), (1,)) or print(path, found)


def wait_for_children(daemon):
    """A check of the database that the last fault brought about must not meet the next one too."""
    pid = daemon.process.pid
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with contextlib.suppress(ProcessLookupError):
            with open(os.pidfd_open(int(child))) as gone:
                assert select.select([gone], [], [], PATIENCE)[0], "a child hangs"


@pytest.mark.parametrize("program", ["--listen", "--database"])
def test_backup(make_faulty, tmp_path, program):
    """6. A copy of the database, with the fault in the daemon and in the child that copies."""
    daemon = make_faulty(program).start()
    daemon.run(size="1-2", ranks="one-per-numa")

    def check(answer):
        if answer and answer.status == 200 and len(answer.body) == int(answer.headers["Content-Length"]):
            copy = tmp_path / "copy.db"
            copy.write_bytes(answer.body)
            assert whole_database(copy), "the copy is none"
            copy.unlink()
        wait_for_children(daemon)
        assert daemon.get("/v1/runs/1").status == 200, "the history was set aside for one call"
    each_fault(daemon, f"backup ({program})", lambda: ask(daemon, "GET", "/v1/backup"), check)
    assert daemon.stop() == 0


def import_run(daemon, run, cpus, node):
    sizes = range(1, 49)
    table = "size (MB)," + ",".join(map(str, range(cpus))) + "\n" + "".join(
        f"{s}," + ",".join(f"{100 * run + s}.{c:03}" for c in range(cpus)) + "\n" for s in sizes)
    answer = daemon.request("POST", f"/v1/imports?node={node}", table, {"Content-Type": "text/csv"})
    assert answer.status == 201, answer.body
    return answer.json["id"]


def fill_by_import(daemon):
    """Runs that the daemon itself answers about, without its worker; {path of a matrix: what it answers}."""
    paths = [f"/v1/runs/{import_run(daemon, run, 4, 'elsewhere')}/matrix" for run in range(6)]
    return {path: daemon.get(path).body for path in paths}


def forget_pages(daemon):
    """More pages than the daemon keeps in memory."""
    forget_pages.node = getattr(forget_pages, "node", 0) + 1
    for run in range(14):
        import_run(daemon, run, 256, f"ballast{forget_pages.node}")


def read_wrong_once(daemon, paths, gone=False):
    """One page comes wrong from the disk, and is kept like that: the answers to all who want it. With gone, later ones
    may come from a fresh database."""
    forget_pages(daemon)
    daemon.faults.arm("garble", 1)
    answers = [ask(daemon, "GET", path) for path in paths]
    assert daemon.faults.disarm(), "no page was read"
    assert gone or all(a.body == paths[path] for a, path in zip(answers, paths) if a.status == 200), "right, or refused"
    hit = [a for a in answers if a.status != 200 and not (gone and a.status == 404)]
    assert hit and all(a.status == 503 and a.json["type"] == "/problems/damaged" for a in hit), [a.body for a in hit]
    assert all(a.headers["Retry-After"] for a in hit)


def set_aside(daemon):
    return [p.name for p in (daemon.home / "state").iterdir() if ".damaged-" in p.name]


def reopened(daemon):
    """Waits until it has a fresh connection, once more."""
    before = sum("event=store.reopened" in line for line in daemon.log)
    while sum("event=store.reopened" in line for line in daemon.log) == before:
        daemon.wait_for_line("event=store.reopened")


def test_a_page_read_wrong(make_faulty):
    """What one connection takes for damage is looked at by another process before anything is renamed; when that finds
    all of it whole, the daemon goes on with a fresh connection."""
    daemon = make_faulty().start()
    whole = fill_by_import(daemon)
    for _ in range(3):
        read_wrong_once(daemon, whole)
        reopened(daemon)
        assert set_aside(daemon) == []
        assert {path: daemon.get(path).body for path in whole} == whole
        assert daemon.run(size="1-2", ranks="one-per-numa")["state"] == "succeeded"
        assert daemon.get("/readyz?verbose").json["findings"] == []
    # Again and again in a few minutes it is damage, whatever the checks say: else nobody could work with it.
    read_wrong_once(daemon, whole, gone=True)
    line = daemon.wait_for_line("event=store.damaged")
    assert "4 times in 10 minutes" in line and len(set_aside(daemon)) >= 1
    assert daemon.run(size="1-2", ranks="one-per-numa")["state"] == "succeeded"
    assert daemon.stop() == 0


@pytest.mark.parametrize("fresh", [True, False])
def test_start(make_faulty, fresh):
    """7, 8. Starting, with nothing and with a history: it serves, or ends with a status and a line that says why; the
    next start is as if nothing had been."""
    daemon = make_faulty()
    home = daemon.home
    runs = 0
    if not fresh:
        daemon.start()
        daemon.run(size="1-2", ranks="one-per-numa")
        daemon.stop()
        runs = 1
    forget = (lambda: shutil.rmtree(home / "state", ignore_errors=True)) if fresh else lambda: None
    forget()
    daemon.faults.arm()
    assert daemon.start_or_end()
    daemon.faults.disarm()
    counts = daemon.faults.counts()
    assert daemon.stop() == 0

    def one(kind, n):
        daemon.end()
        forget()
        daemon.faults.arm(kind, n)
        serves = daemon.start_or_end()
        struck = daemon.faults.disarm()
        if serves:
            ask(daemon, "GET", "/healthz")  # if the fault waited for the first connection
        else:
            status = daemon.process.returncode
            assert status > 0, f"status {status}\n" + "".join(daemon.log)
            assert any(line.strip() for line in daemon.log), "it ends and does not say why"
            assert daemon.start_or_end(), "the next start fails:\n" + "".join(daemon.log)
        assert len(daemon.get("/v1/runs").json["runs"]) == runs, "runs are lost"
        assert daemon.stop() == 0, "".join(map(str, daemon.log))
        return struck
    each_case("start " + ("fresh" if fresh else "again"), counts, one)


# ---- programs that end

class Program:
    """A command with fail_nth.so before it."""

    def __init__(self, tmp_path, argv, env=None):
        self.argv = [str(a) for a in argv]
        self.faults = Faults(tmp_path / "faults")
        self.env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LD_PRELOAD": str(FAKES / "fail_nth.so"),
                    "FAULTS": self.faults.path, **(env or {})}

    def run(self, kind="memory", n=0):
        self.faults.arm(kind, n)
        done = subprocess.run(self.argv, env=self.env, capture_output=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
        return done, self.faults.disarm()

    def each_fault(self, scenario, check, leave_out=()):
        good, _ = self.run()
        assert good.returncode == 0, good.stderr
        check(good)

        def one(kind, n):
            done, struck = self.run(kind, n)
            assert done.returncode >= 0, signal.Signals(-done.returncode).name
            if done.returncode:
                assert done.stderr.strip(), f"status {done.returncode} and no word why"
            else:
                check(done)
            return struck
        each_case(scenario, self.faults.counts(), one, leave_out)


@pytest.fixture(scope="module")
def served(numaprobed, tmp_path_factory):
    """A daemon without faults, with a run."""
    d = Daemon(numaprobed, tmp_path_factory.mktemp("served"), {**fake_bench_env(), "NUMAPROBE_MPIRUN": str(MPIRUN)})
    d.start()
    d.run(size="1-2", ranks="one-per-numa")
    yield d
    assert d.stop() == 0


def client(tmp_path, daemon, *words):
    return Program(tmp_path, [build_dir() / "client" / "numaprobe", f"--url=http://127.0.0.1:{daemon.port}", *words])


@pytest.mark.parametrize("words", [["runs"], ["show", "1"], ["report", "1"], ["topo", "-o", "csv"],
                                   ["export", "1"], ["matrix", "1", "-o", "ndjson"]], ids=lambda w: w[0])
def test_client_reads(tmp_path, served, words):
    """9. The command line: status 0 means that all of it was printed."""
    program = client(tmp_path, served, *words)
    good = program.run()[0].stdout

    def check(done):
        assert done.stdout == good, f"status 0 and not all of it:\n{done.stdout.decode()}"
    program.each_fault("client " + words[0], check)


def test_client_files(tmp_path, served):
    """10. Files that the command line writes: status 0 means that they are whole."""
    kept = tmp_path / "kept"

    def written(words, is_whole):
        def check(_):
            assert is_whole(kept), f"{words[0]} wrote something else"
            kept.unlink()
        client(tmp_path, served, *words).each_fault("client " + words[0], check)
        kept.unlink(missing_ok=True)
    whole = served.get("/v1/runs/1/export").json
    written(["export", "1", f"--file={kept}"], lambda f: json.loads(f.read_text())["matrices"] == whole["matrices"])
    picture = served.get("/v1/runs/1/matrix.svg").body
    written(["plot", "1", f"--file={kept}"], lambda f: f.read_bytes() == picture)
    written(["backup", kept, "--force"], whole_database)


def test_client_of_a_fleet(tmp_path):
    """12. Many nodes at once: a node that could not be asked is named, and the others are there. Without memory libcurl
    7.88 can end by SIGFPE in its table of sockets."""
    fleet = Fleet(tmp_path, 5)
    program = Program(tmp_path, [build_dir() / "client" / "numaprobe", "fleet", "status", f"--nodes={fleet.all}"], fleet.env)
    good = program.run()[0].stdout

    def check(done):
        assert done.stdout == good, f"status 0 and not all of it:\n{done.stdout.decode()}"
    try:
        program.each_fault("client fleet status", check, leave_out=("memory",))
    finally:
        fleet.close()


@pytest.mark.parametrize("program", ["--listen", "--ingest", "--judge", "--work"])
def test_collector(tmp_path, program):
    """13. The collector and its processes: each run of a node is stored once, and what is answered is whole."""
    collector = Collector(tmp_path, Fleet(tmp_path, 4))
    collector.program = tmp_path / "numaprobe-fleetd"
    shutil.copy(FAKES / "numaprobe-fleetd_faulty", collector.program)
    faults = Faults(f"{collector.program}.faults", program)
    collector.start().wait_known(4)
    runs = "SELECT count(*), count(DISTINCT feed || '.' || seq) FROM run"
    expected = collector.rows(runs)[0][0]
    collector.wait_judged()

    def asked(path):
        with contextlib.suppress(OSError, http.client.HTTPException):  # refused, or cut
            return collector.ask(path)

    def judged():
        status = asked("/v1/fleet/status")
        return status and status["findings"]["judged"]

    def act():
        nonlocal expected
        expected += 4
        before = judged()
        measure(collector.fleet, 4)
        until(lambda: collector.rows(runs)[0][0] >= expected)
        asked("/v1/fleet/outliers")
        asked("/v1/fleet/runs?form=summary&newest=3")
        until(lambda: judged() not in (None, before))

    def one(kind, n):
        faults.arm(kind, n)
        act()
        struck = faults.disarm()
        assert collector.is_running(), f"the collector ended: {collector.process.returncode}"
        assert collector.rows(runs) == [(expected, expected)]
        assert collector.get("/v1/fleet/drain")["drain"] and collector.status()["coverage"]
        return struck
    try:
        faults.arm()
        act()
        faults.disarm()
        each_case(f"collector ({program})", faults.counts(), one)
    finally:
        faults.disarm()
        collector.close()
        faults.close()


def test_bench(tmp_path):
    """11. numa_bench without MPI: status 0 means a whole table of numbers."""
    program = Program(tmp_path, [build_dir() / "bench" / "numa_bench", "--np=1", "--size=32K", "--json",
                                 "--quick"])

    def check(done):
        answer = json.loads(done.stdout)
        cells = [c for m in answer["matrices"] for row in m["cells"] for c in row]
        assert cells and all(c["median"] > 0 for c in cells), done.stdout
    program.each_fault("numa_bench", check)
