#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""TAP, inside the booted system: the collector's unit as an administrator uses it, over this machine's own daemon."""
import json
import os
import pwd
import re
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import guest  # noqa: E402
from guest import QUICK, SLOW, active, probe, sh, show, status_of, until, write  # noqa: E402

UNIT, SOCKET = "numaprobe-fleetd.service", "numaprobe-fleetd.socket"
ACCOUNT = "numaprobe-fleet"
SOCKET_PATH = "/run/numaprobe-fleet/numaprobe-fleetd.sock"
CONFIG = "/etc/numaprobe/numaprobe-fleetd.conf"
DROP_IN = f"/run/systemd/system/{UNIT}.d/test.conf"
MOST_EXPOSED = 1.5


def get(path):
    return json.loads(sh("curl", "-fsS", "http://127.0.0.1:7790" + path).stdout)


def main_pid():
    return int(show("MainPID", UNIT))


def children():
    with open(f"/proc/{main_pid()}/task/{main_pid()}/children", encoding="ascii") as f:
        return [int(pid) for pid in f.read().split()]


def child(option):
    for pid in children():
        with open(f"/proc/{pid}/cmdline", encoding="ascii") as f:
            if option in f.read().split("\0"):
                return pid
    return 0


def journal():
    return sh("journalctl", "-q", "-o", "cat", "-u", UNIT).stdout


def await_collected(runs=0):
    """Until the node is up, and so many of its runs are stored."""
    status = {}

    def collected():
        status.update(get("/v1/fleet/status"))
        return status["states"]["up"] == 1 and not status["backlog_bytes"] and status["runs_stored"] >= runs
    try:
        until(collected)
    except AssertionError as e:
        raise AssertionError(f"{status}\n{get('/v1/fleet/nodes')}\n{journal()[-2000:]}") from e
    return status


def runs_read():
    """As the process that reads sees them. On a busy machine a run is disturbed, and not judged."""
    verdict = get("/v1/fleet/outliers")
    return verdict["nodes"] + verdict["left_out"]["disturbed"]


# --- the checks, in order

def test_sysusers_makes_the_account():
    sh("systemd-sysusers")
    assert pwd.getpwnam(ACCOUNT).pw_dir == "/var/lib/numaprobe-fleet"
    assert pwd.getpwnam(ACCOUNT).pw_uid != pwd.getpwnam("numaprobe").pw_uid
    guest.started_by_hand("/var/lib/numaprobe-fleet")
    sh("systemd-tmpfiles", "--create", "numaprobe.conf", "numaprobe-fleet.conf")
    assert os.stat("/run/numaprobe-fleet").st_uid == pwd.getpwnam(ACCOUNT).pw_uid


def test_it_collects_from_the_daemon_of_this_machine():
    write(f"/run/systemd/system/{guest.UNIT}.d/busy.conf", "[Service]\nEnvironment=NUMAPROBED_ADMISSION=warn\n")
    name = os.uname().nodename
    write(CONFIG, f"nodes = {name}\nhosts_file = /etc/numaprobe/hosts\nevery = 1\n")
    write("/etc/numaprobe/hosts", f"127.0.0.1 {name}\n")
    sh("systemctl", "daemon-reload")
    sh("systemctl", "start", guest.UNIT, UNIT)
    assert active(UNIT)
    probe(*QUICK)
    status = await_collected(1)
    assert status["nodes"] == 1 and not status["sources_problem"], status
    assert show("StatusText", UNIT) == "Collecting from 1 node", show("StatusText", UNIT)
    assert get("/v1/fleet/nodes")["nodes"][0]["node"] == name
    assert get("/readyz") is not None


def test_the_history_is_read_by_a_process_of_its_own():
    assert runs_read() == 1
    assert child("--ingest") and child("--work")


def test_little_is_exposed():
    overall = sh("systemd-analyze", "security", "--no-pager", UNIT).stdout.splitlines()[-1]
    figure = float(re.search(r"level for \S+ (\d+\.\d+)", overall).group(1))
    assert figure <= MOST_EXPOSED, overall
    print(f"# exposure {figure}")


def test_no_process_has_a_privilege():
    runs_read()
    uid = str(pwd.getpwnam(ACCOUNT).pw_uid)
    for pid in [main_pid(), child("--ingest"), child("--work")]:
        s = status_of(pid)
        assert s["Uid"].split() == [uid] * 4, (s["Name"], s["Uid"])
        assert int(s["CapEff"], 16) == int(s["CapPrm"], 16) == int(s["CapBnd"], 16) == 0, (s["Name"], s["CapBnd"])
        assert s["NoNewPrivs"] == "1" and s["Seccomp"] == "2", s["Name"]
        with open(f"/proc/{pid}/cgroup", encoding="ascii") as f:
            assert UNIT in f.read()


def test_the_system_is_read_only_inside():
    enter = ["nsenter", "-t", str(main_pid()), "-m", "setpriv", f"--reuid={ACCOUNT}", f"--regid={ACCOUNT}", "--clear-groups"]
    for path in ("/etc/x", "/usr/x", "/opt/x", "/srv/x", "/var/x", "/var/lib/numaprobe/x", "/sys/kernel/mm/ksm/run"):
        assert sh(*enter, "sh", "-c", f"echo 1 >{path}", good=False).returncode != 0, path
    sh("nsenter", "-t", str(main_pid()), "-m", "sh", "-c", "! echo 1 >/etc/x")  # not even root
    sh(*enter, "sh", "-c", "echo 1 >/var/lib/numaprobe-fleet/x && rm /var/lib/numaprobe-fleet/x")


def test_a_reload_reads_the_sources_again():
    write("/etc/numaprobe/groups", "all: n[1-3]\n")
    pid = main_pid()
    sh("systemctl", "reload", UNIT)
    await_collected()
    assert main_pid() == pid and active(UNIT)


def restarted(pid):
    return until(lambda: active(UNIT) and main_pid() not in (0, pid), 60)


def test_what_is_killed_comes_back():
    for process in (lambda: child("--ingest"), main_pid):
        killed = process()
        os.kill(killed, signal.SIGKILL)
        until(lambda: active(UNIT) and process() not in (0, killed), 60)
        await_collected()
    assert int(show("NRestarts", UNIT)) == 1, "the process that stores is started by the collector"
    assert runs_read() == 1, "and nothing was lost"


def test_it_comes_back_when_it_hangs():
    write(DROP_IN, f"[Service]\nWatchdogSec={2 * SLOW}\n")
    sh("systemctl", "daemon-reload")
    sh("systemctl", "restart", UNIT)
    pid = main_pid()
    time.sleep(4 * SLOW)  # twice as long as it may be silent
    assert main_pid() == pid, "it says that it is alive"
    os.kill(pid, signal.SIGSTOP)
    restarted(pid)
    assert "atchdog timeout" in journal()
    os.unlink(DROP_IN)
    sh("systemctl", "daemon-reload")


def test_it_stops_and_leaves_no_process():
    begun = time.monotonic()
    sh("systemctl", "stop", UNIT)
    assert time.monotonic() - begun < 10 * SLOW and show("Result", UNIT) == "success" and not active(UNIT)
    assert not guest.processes("numaprobe-fleetd")


def test_its_socket_is_on_loopback_and_starts_it():
    sh("systemctl", "start", SOCKET)
    assert active(SOCKET) and not active(UNIT)
    made = os.stat(SOCKET_PATH)
    assert pwd.getpwuid(made.st_uid).pw_name == ACCOUNT and made.st_mode & 0o777 == 0o660
    assert sorted(guest.listening(1))[0].startswith("0100007F:"), guest.listening(1)
    until(lambda: get("/healthz") is not None)
    assert active(UNIT)
    await_collected()
    sh("curl", "-fsS", "--unix-socket", SOCKET_PATH, "http://localhost/v1/fleet/status")
    sh("systemctl", "stop", UNIT, SOCKET)
    assert not os.path.exists(SOCKET_PATH)


if __name__ == "__main__":
    sys.exit(guest.main(globals()))
