#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""TAP, inside a booted system (tests/booted/booted.py): every command of docs/INSTALL.md, as an administrator types it, in
a clone at /numaprobe. What the build needs is installed."""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import guest  # noqa: E402
from guest import UNIT, active, get, probe, sh, until, write  # noqa: E402

CLONE = "/numaprobe"
with open(f"{CLONE}/docs/INSTALL.md", encoding="utf-8") as document:
    TEXT = document.read()


def typed(command):
    """In a shell, in the clone; the answer to apt's question is yes."""
    done = subprocess.run(["sh", "-euc", command], cwd=CLONE, capture_output=True, text=True, timeout=900,
                          env={**os.environ, "PATH": guest.PATH, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"})
    assert done.returncode == 0, (command, done.returncode, done.stdout[-1500:], done.stderr[-1500:])


def block(heading):
    section = re.search(rf"^## {heading}.*?(?=^## )", TEXT, re.S | re.M)[0]
    lines = [line for text in re.findall(r"^```sh\n(.*?)^```", section, re.S | re.M) for line in text.splitlines()]
    assert len(lines) >= 3, section
    return lines


def measures():
    # The machine under these tests is not idle.
    write(f"/run/systemd/system/{UNIT}.d/busy.conf", "[Service]\nEnvironment=NUMAPROBED_ADMISSION=warn\n")
    sh("systemctl", "daemon-reload")
    sh("systemctl", "restart", UNIT)
    run = probe(*guest.QUICK)
    assert get(f"/v1/runs/{run['id']}/matrix")["ranks"]


def test_the_debian_package():
    write("/etc/apt/apt.conf.d/99yes", 'APT::Get::Assume-Yes "true";\n')
    for line in block("Debian"):
        typed(line)
    assert active() and sh("systemctl", "is-enabled", UNIT).stdout.strip() == "enabled"
    measures()


def test_the_package_of_the_collector():
    for line in block("The collector of a fleet"):
        typed(line)
    assert sh("systemctl", "is-enabled", "numaprobe-fleetd").stdout.strip() == "enabled"
    until(lambda: json.loads(sh("curl", "-fsS", "localhost:7790/v1/fleet/status").stdout)["runs_stored"] >= 1)
    typed("apt-get purge numaprobe-fleet")
    assert not os.path.exists("/var/lib/numaprobe-fleet") and not os.path.exists("/usr/sbin/numaprobe-fleetd")
    assert active(), "the daemon beside it is as it was"


def test_the_service():
    commands = re.findall(r"^\| `((?:systemctl|usermod) [^`]+)`", TEXT, re.M)
    assert len(commands) >= 5, commands
    sh("useradd", "-M", "administrator")
    for command in commands:
        if command.endswith(".socket"):
            sh("systemctl", "disable", "--now", UNIT)
        typed(command.replace("USER", "administrator"))
        if command.endswith(".socket"):
            assert not active()
            sh("numaprobe", "node")
            assert active()
    assert "numaprobe" in sh("id", "-Gn", "administrator").stdout.split()


def test_purge_removes_it():
    assert "`apt-get purge\nnumaprobe`" in TEXT or "`apt-get purge numaprobe`" in TEXT
    typed("apt-get purge numaprobe")
    assert not os.path.exists("/var/lib/numaprobe") and not os.path.exists("/usr/sbin/numaprobed") and not active()


def test_from_source():
    for line in block("From source"):
        typed(line)
    assert sh("systemctl", "show", "-P", "ExecStart", UNIT).stdout.count("/usr/local/sbin/numaprobed")
    until(active)
    measures()


if __name__ == "__main__":
    sys.exit(guest.main(globals()))
