#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""TAP, inside the booted system: the units as an administrator uses them, with real mpirun and numactl.

Waits on systemctl, on runs and on the journal; where only a state can be looked at, it is looked at until it
is there.
"""
import contextlib
import json
import os
import pwd
import re
import signal
import subprocess
import sys
import time

UNIT, SOCKET = "numaprobed.service", "numaprobed.socket"
SOCKET_PATH = "/run/numaprobe/numaprobed.sock"
DROP_IN = f"/run/systemd/system/{UNIT}.d/test.conf"
CONFIG = "/etc/numaprobe/numaprobed.conf"
MOST_EXPOSED = 1.6
SLOW = int(os.environ.get("SLOW", "1"))  # all limits and waits so many times as long
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
QUICK = ["--size=256K", "--cell-ms=20", "--min-samples=7"]


class Skip(Exception):
    """What the machine has not."""


def sh(*argv, good=True, timeout=100):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=timeout * SLOW, env={**os.environ, "PATH": PATH})
    assert not good or done.returncode == 0, (argv, done.returncode, done.stdout[-2000:], done.stderr[-2000:], journal()[-3000:])
    return done


def journal():
    return subprocess.run(["journalctl", "-q", "-o", "cat", "-u", UNIT, "-u", SOCKET], capture_output=True, text=True).stdout


def until(what, timeout=30):
    """Looks until what() gives something."""
    end = time.monotonic() + timeout * SLOW
    while time.monotonic() < end:
        got = what()
        if got:
            return got
        time.sleep(0.05)
    raise AssertionError(f"it did not come about: {what.__name__}\n{journal()[-3000:]}")


def show(name, unit=UNIT):
    return sh("systemctl", "show", "-P", name, unit).stdout.strip()


def active(unit=UNIT):
    return show("ActiveState", unit) == "active"


def main_pid():
    return int(show("MainPID"))


def status_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def processes(name):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if status_of(pid)["Name"] == name:
                found.append(int(pid))
        except (OSError, KeyError):
            pass
    return found


def launchers():
    """mpirun, which is prterun from Open MPI 5 on."""
    return processes("mpirun") + processes("prterun")


def await_mpirun(options):
    """The daemon gives `mpirun --version` 5 s, which an emulated CPU may not keep; it looks again at each request."""
    def accepted():
        return sh("numaprobe", "run", "--dry-run", "--launcher=mpi", *QUICK, good=False).returncode == 0
    if "--launcher=processes" not in options:
        until(accepted)


def probe(*options):
    """A run by the command line over the unix socket; what the daemon then knows of it."""
    await_mpirun(options)
    done = sh("numaprobe", "-o", "json", "run", *options, good=False)
    run = get("/v1/runs?limit=1")["runs"][0]
    if done.returncode != 0 or run["state"] != "succeeded":
        printed = sh("numaprobe", "log", str(run["id"]), good=False).stdout
        raise AssertionError((options, run["state"], done.stderr, printed[-2000:]))
    return run


def started_run(*options):
    await_mpirun(options)
    said = sh("numaprobe", "-o", "json", "run", "--detach", *options).stdout
    return json.loads(said)["id"]


def get(path):
    return json.loads(sh("curl", "-fsS", "--unix-socket", SOCKET_PATH, "http://localhost" + path).stdout)


def started_by_hand(directory):
    """What a daemon leaves there that root started before the unit was installed."""
    os.makedirs(directory, 0o750)
    os.close(os.open(f"{directory}/lock", os.O_CREAT | os.O_WRONLY, 0o640))


# --- the checks, in order

def test_sysusers_makes_the_account():
    sh("systemd-sysusers")
    assert pwd.getpwnam("numaprobe").pw_dir == "/var/lib/numaprobe"
    started_by_hand("/var/lib/numaprobe")
    sh("systemd-tmpfiles", "--create", "numaprobe.conf")
    assert os.stat("/run/numaprobe").st_uid == pwd.getpwnam("numaprobe").pw_uid
    lock = os.lstat("/run/lock/numaprobe.lock")
    assert (lock.st_uid, lock.st_mode) == (0, 0o100644), lock


def test_it_starts_and_says_that_it_is_ready():
    # The machine under these tests is not idle; what is refused there is asked in tests/system.
    write(f"/run/systemd/system/{UNIT}.d/busy.conf", "[Service]\nEnvironment=NUMAPROBED_ADMISSION=warn\n")
    sh("systemctl", "daemon-reload")
    sh("systemctl", "start", UNIT)
    assert active() and show("StatusText") == "Ready", show("StatusText")
    assert get("/readyz?verbose")


def test_it_is_enabled_by_a_command():
    sh("systemctl", "enable", UNIT, SOCKET)
    assert sh("systemctl", "is-enabled", UNIT).stdout.strip() == "enabled"
    sh("systemctl", "disable", UNIT, SOCKET)


def test_little_is_exposed():
    said = json.loads(sh("systemd-analyze", "security", "--json=short", "--no-pager", UNIT).stdout)
    overall = sh("systemd-analyze", "security", "--no-pager", UNIT).stdout.splitlines()[-1]
    figure = float(re.search(r"level for \S+ (\d+\.\d+)", overall).group(1))
    assert figure <= MOST_EXPOSED, (figure, [s for s in said if s.get("exposure")])
    assert set(show("RestrictNamespaces").split()) == {"user", "net"}, "what a run of MPI needs, and no more"
    print(f"# exposure {figure}")


def test_mpirun_and_numactl_work_inside():
    run = probe("--launcher=mpi", *QUICK)
    assert run["spec"]["launcher"] == "mpi", run
    ranks = get(f"/v1/runs/{run['id']}/matrix")["ranks"]
    assert ranks
    for r in ranks:
        assert r["cpu"] == r["cpu_wanted"] and r["mem_share"] == 1 and r["mem_node"] >= 0, r
        assert r["pages_checked"] > 0 and r["mem_method"] == "move_pages", r


def listening(pid):
    """Local addresses of the TCP sockets that listen in this process's network."""
    found = []
    for name in ("tcp", "tcp6"):
        with open(f"/proc/{pid}/net/{name}", encoding="ascii") as f:
            found += [row[1] for row in map(str.split, list(f)[1:]) if row[3] == "0A"]
    return found


def test_mpirun_listens_in_a_network_of_its_own():
    """The default launcher, while it runs: the unit's network has no socket that the daemon did not open."""
    before = listening(1)
    run = started_run("--size=1M", "--cell-ms=60000")
    until(lambda: len(processes("numa_bench")) == len(os.sched_getaffinity(0)))
    (mpirun,) = launchers()
    assert listening(1) == before and len(before) == 1, listening(1)
    assert listening(mpirun), "in its own network it does listen"
    networks = {os.readlink(f"/proc/{pid}/ns/net") for pid in [mpirun, *processes("numa_bench")]}
    assert len(networks) == 1 and os.readlink(f"/proc/{main_pid()}/ns/net") not in networks
    sh("numaprobe", "cancel", str(run))
    until(lambda: show("StatusText") == "Ready")
    assert not [c for c in probe(*QUICK)["conditions"] if "network" in c["text"] or "port" in c["text"]]


def test_every_launcher_and_kind_of_page():
    for options in (["pingpong", "--quick"], ["c2c", "--quick"], ["latency", "--pages=thp", *QUICK],
                    ["bandwidth", "--quick", "--size=8M"], ["firsttouch", "--quick", "--size=4M", "--launcher=processes"]):
        probe(*options)


@contextlib.contextmanager
def huge_pages(wanted):
    """So many more for the time of a test: the machine's own setting, which no namespace has to itself."""
    knob = "/proc/sys/vm/nr_hugepages"
    try:
        with open(knob, encoding="ascii") as f:
            before = int(f.read())
        with open(knob, "w", encoding="ascii") as f:
            f.write(str(before + wanted))
    except OSError as e:
        raise Skip(f"no huge pages can be reserved: {e}") from e
    try:
        with open(knob, encoding="ascii") as f:
            got = int(f.read()) - before
        if got < wanted:
            raise Skip(f"the kernel reserves {got} of {wanted} huge pages")
        yield
    finally:
        with open(knob, "w", encoding="ascii") as f:
            f.write(str(before))


def test_explicit_huge_pages():
    """Nothing of the unit forbids them; they have to be reserved."""
    with huge_pages(8 * os.cpu_count()):
        for launcher in ("mpi", "processes"):
            run = probe("latency", "--pages=huge", f"--launcher={launcher}", *QUICK)
            ranks = get(f"/v1/runs/{run['id']}/matrix")["ranks"]
            assert ranks and all(r["pages_got"] == "huge" for r in ranks), ranks


def test_ranks_have_no_privilege():
    run = started_run("--launcher=mpi", "--size=1M", "--cell-ms=60000")
    until(lambda: processes("numa_bench"))
    uid = str(pwd.getpwnam("numaprobe").pw_uid)
    assert launchers()
    for pid in processes("numa_bench") + launchers() + [main_pid()]:
        s = status_of(pid)
        assert s["Uid"].split() == [uid] * 4, (s["Name"], s["Uid"])
        assert int(s["CapEff"], 16) == int(s["CapPrm"], 16) == int(s["CapBnd"], 16) == 0, (s["Name"], s["CapBnd"])
        assert s["NoNewPrivs"] == "1" and s["Seccomp"] == "2", s["Name"]
        with open(f"/proc/{pid}/cgroup", encoding="ascii") as f:
            assert UNIT in f.read()
    assert f"Run {run} is running" in show("StatusText")
    sh("numaprobe", "cancel", str(run))
    until(lambda: show("StatusText") == "Ready")


def test_a_run_has_a_group_of_its_own():
    run = started_run("--launcher=mpi", "--size=1M", "--cell-ms=60000")
    ranks = until(lambda: processes("numa_bench"))
    with open(f"/proc/{ranks[0]}/cgroup", encoding="ascii") as f:
        path = re.search(r"^0::(.*)$", f.read(), re.M).group(1)
    assert path.endswith(f"/{UNIT}/numaprobe-run-{run}"), path
    folder = "/sys/fs/cgroup" + path
    members = open(f"{folder}/cgroup.procs", encoding="ascii").read().split()
    assert {str(p) for p in ranks + launchers()} <= set(members)
    assert open(f"/proc/{ranks[0]}/oom_score_adj", encoding="ascii").read().strip() == "1000"
    controllers = open(f"{folder}/cgroup.controllers", encoding="ascii").read().split()
    print(f"# controllers: {' '.join(controllers) or 'none'}")
    if "memory" in controllers:
        assert 512 << 20 < int(open(f"{folder}/memory.max", encoding="ascii").read()) < 8 << 30
        assert open(f"{folder}/memory.swap.max", encoding="ascii").read().strip() == "0"
    if "cpu" in controllers:
        assert open(f"{folder}/cpu.weight", encoding="ascii").read().strip() == "10"
    said = [c for c in get(f"/v1/runs/{run}")["conditions"] if c["kind"] == "cgroup"]
    assert said == [] if "memory" in controllers else len(said) == 1 and "has no memory controller" in said[0]["text"], said
    assert not any(b["kind"] == "disturbing" for b in get("/v1/availability")["warnings"])
    sh("numaprobe", "cancel", str(run))
    until(lambda: get(f"/v1/runs/{run}")["state"] == "canceled")
    until(lambda: not os.path.exists(folder))
    assert not processes("numa_bench")


def test_the_system_is_read_only_inside():
    pid = main_pid()
    enter = ["nsenter", "-t", str(pid), "-m", "setpriv", "--reuid=numaprobe", "--regid=numaprobe", "--clear-groups"]
    for path in ("/etc/x", "/usr/x", "/opt/x", "/srv/x", "/var/x", "/proc/sys/kernel/hostname", "/sys/kernel/mm/ksm/run"):
        assert sh(*enter, "sh", "-c", f"echo 1 >{path}", good=False).returncode != 0, path
    sh("nsenter", "-t", str(pid), "-m", "sh", "-c", "! echo 1 >/etc/x")  # not even root
    sh(*enter, "sh", "-c", "echo 1 >/var/lib/numaprobe/x && rm /var/lib/numaprobe/x")


def groups_of_runs():
    folder = f"/sys/fs/cgroup/system.slice/{UNIT}"
    return [name for name in (os.listdir(folder) if os.path.isdir(folder) else []) if name.startswith("numaprobe-run-")]


def left_behind():
    return [name for folder in ("/dev/shm", "/run/numaprobe") for name in os.listdir(folder)
            if name != "numaprobed.sock"] + processes("numa_bench") + launchers() + groups_of_runs()


def test_nothing_is_left_behind():
    until(lambda: not left_behind())


def test_a_reload_is_told_apart_from_a_wrong_file():
    os.makedirs(os.path.dirname(CONFIG), exist_ok=True)
    write(CONFIG, "keep_runs = 77\n")
    sh("systemctl", "reload", UNIT)
    until(lambda: get("/v1/storage")["retention"]["keep_runs"] == 77)
    pid = main_pid()
    write(CONFIG, "keep_runs = lots\n")
    assert sh("systemctl", "reload", UNIT, good=False).returncode != 0
    until(lambda: "numaprobed.conf:1: keep_runs: must be a whole number" in journal())
    os.kill(pid, signal.SIGHUP)
    until(lambda: "the old one kept" in show("StatusText"))
    assert active() and main_pid() == pid
    assert get("/v1/storage")["retention"]["keep_runs"] == 77
    write(CONFIG, "")
    sh("systemctl", "reload", UNIT)
    until(lambda: show("StatusText") == "Ready")


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def restarted(pid):
    return until(lambda: active() and main_pid() not in (0, pid), 60)


def test_it_comes_back_when_it_is_killed():
    run = started_run("--launcher=mpi", "--size=1M", "--cell-ms=60000")
    until(lambda: processes("numa_bench"))
    pid = main_pid()
    os.kill(pid, signal.SIGKILL)
    restarted(pid)
    assert get(f"/v1/runs/{run}")["state"] == "interrupted"
    until(lambda: not left_behind())
    assert int(show("NRestarts")) == 1


def test_the_group_goes_with_a_supervisor_that_is_killed():
    run = started_run("--launcher=mpi", "--size=1M", "--cell-ms=60000")
    until(lambda: processes("numa_bench"))
    assert groups_of_runs() == [f"numaprobe-run-{run}"]
    (supervisor,) = processes("exe")  # as it was started: /proc/self/exe
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: get(f"/v1/runs/{run}")["state"] == "interrupted")
    until(lambda: not left_behind())


def test_it_comes_back_when_it_hangs():
    write(DROP_IN, f"[Service]\nWatchdogSec={2 * SLOW}\n")
    sh("systemctl", "daemon-reload")
    sh("systemctl", "restart", UNIT)
    pid = main_pid()
    time.sleep(4 * SLOW)  # twice as long as it may be silent
    assert main_pid() == pid, "it says that it is alive"
    os.kill(pid, signal.SIGSTOP)
    restarted(pid)
    assert "Watchdog timeout" in journal() or "watchdog" in journal()
    os.unlink(DROP_IN)
    sh("systemctl", "daemon-reload")


def test_it_stops_at_once_and_keeps_what_it_has():
    runs = len(get("/v1/runs?limit=100")["runs"])
    begun = time.monotonic()
    sh("systemctl", "stop", UNIT)
    assert time.monotonic() - begun < 5 * SLOW and show("Result") == "success" and not active()
    sh("systemctl", "start", UNIT)
    assert len(get("/v1/runs?limit=100")["runs"]) == runs > 3
    sh("systemctl", "stop", UNIT)


def test_it_starts_when_somebody_asks():
    sh("systemctl", "start", SOCKET)
    assert not active() and active(SOCKET)
    made = os.stat(SOCKET_PATH)
    assert pwd.getpwuid(made.st_uid).pw_name == "numaprobe" and made.st_mode & 0o777 == 0o660
    for ask in (["curl", "-fsS", "http://127.0.0.1:7780/v1/node"], ["numaprobe", "node"]):
        assert not active()
        sh(*ask)
        assert active()
        probe(*QUICK)
        sh("systemctl", "stop", UNIT)  # the socket listens on
        assert os.path.exists(SOCKET_PATH)
    sh("systemctl", "stop", SOCKET)
    assert not os.path.exists(SOCKET_PATH)


def test_strangers_cannot_use_the_socket():
    sh("systemctl", "start", UNIT)
    stranger = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "curl", "-sS"]
    done = sh(*stranger, "--unix-socket", SOCKET_PATH, "http://localhost/v1/node", good=False)
    assert done.returncode == 7, done.stdout
    sh("setpriv", "--reuid=nobody", "--regid=nogroup", "--groups=numaprobe", "curl", "-fsS", "--unix-socket",
       SOCKET_PATH, "http://localhost/v1/node")


def as_account(name):
    return ["setpriv", f"--reuid={name}", f"--regid={name}", "--init-groups"]


def post_as(name, path, kind, body):
    """The status of a POST over the unix socket by this account."""
    return sh(*as_account(name), "curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "--unix-socket", SOCKET_PATH,
              "-H", f"Content-Type: {kind}", "-d", body, "http://localhost" + path).stdout


@contextlib.contextmanager
def run_group():
    """A daemon with run_group = probers, whose member is the account prober. The account reader is in no group."""
    for command in (["groupadd", "-f", "probers"], ["useradd", "-M", "-G", "probers", "prober"], ["useradd", "-M", "reader"]):
        sh(*command, good=False)  # the second test finds them
    write(CONFIG, "run_group = probers\n")
    sh("systemctl", "restart", UNIT)
    try:
        yield pwd.getpwnam("prober").pw_uid, pwd.getpwnam("reader").pw_uid
    finally:
        write(CONFIG, "")
        sh("systemctl", "restart", UNIT)


def test_a_member_of_the_run_group_may_run_and_the_log_has_its_uid():
    table = "size (MB),0,1\n1,11.5,12.5\n2,13.0,14.0\n"
    with run_group() as (prober, reader):
        assert post_as("prober", "/v1/imports?node=x", "text/plain", table) == "201"
        assert post_as("reader", "/v1/imports?node=x", "text/plain", table) == "401"
        spec = '{"benchmark":"latency","size":"256K","cell_ms":20,"min_samples":7}'
        assert post_as("prober", "/v1/runs", "application/json", spec) == "202"
        assert post_as("reader", "/v1/runs", "application/json", spec) == "401"
        run = get("/v1/runs?limit=1")["runs"][0]["id"]
        assert get(f"/v1/runs/{run}?wait=60")["state"] == "succeeded"
        for line in (f"event=request .*from=uid:{prober} .*path=/v1/imports status=201",
                     f"event=request .*from=uid:{prober} .*path=/v1/runs status=202",
                     f"event=refused .*from=uid:{reader} .*status=401"):
            assert re.search(line, journal()), line
        assert "uid:65534" not in journal()


# Opens so many connections that say nothing, and says on request how many of them the daemon has not closed.
HOLD = """
import socket, sys
def is_open(s):
    try:
        return s.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False
held = [socket.socket(socket.AF_UNIX) for _ in range(int(sys.argv[2]))]
for s in held:
    s.connect(sys.argv[1])
    s.setblocking(False)
print("held", flush=True)
sys.stdin.readline()
print(sum(map(is_open, held)), flush=True)
"""


@contextlib.contextmanager
def holding(name, connections):
    """The account holds them; what it gives counts those that are still open."""
    holder = subprocess.Popen([*as_account(name), sys.executable, "-c", HOLD, SOCKET_PATH, str(connections)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    try:
        yield lambda: int(holder.communicate("count\n")[0])
    finally:
        holder.kill()
        holder.wait()


def test_each_account_has_its_own_share_of_the_socket():
    """One account takes all it can get, a quarter of 256: no connection of another is closed for that."""
    with run_group(), holding("reader", 10) as of_reader, holding("prober", 250) as of_prober:
        assert get("/healthz")["status"] == "ok"  # behind them all: they have been accepted
        assert of_reader() == 10
        assert 0 < of_prober() <= 64


def main(names):
    checks = [(name, f) for name, f in names.items() if name.startswith("test_") and re.search(os.environ.get("CHECKS", "."), name)]
    failed = 0
    for number, (name, check) in enumerate(checks, 1):
        what = name.removeprefix("test_").replace("_", " ")
        begun = time.monotonic()
        try:
            check()
            print(f"ok {number} - {what}")
        except Skip as e:
            print(f"ok {number} - {what} # SKIP {e}")
        except Exception as e:  # the next ones still tell something
            failed += 1
            print(f"not ok {number} - {what}")
            for line in f"{type(e).__name__}: {e}".replace("\\n", "\n").splitlines()[:40]:
                print("#", line)
        print(f"# {time.monotonic() - begun:.1f} s", flush=True)
    print(f"1..{len(checks)}")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main(globals()))
