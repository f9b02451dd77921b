#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TAP: the units are ones that systemd understands in full, and hardened as far as mpirun allows.
tests/booted boots them.

usage: test_systemd.py UNIT SOCKET DAEMON RUN_UNIT TIMER COLLECTOR_UNIT COLLECTOR_SOCKET
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

from tap import check, end

# systemd's own figures times ten. The daemon: "OK" with mpirun, its own network, numactl and a cgroup. The collector
# needs none of them, but the network.
MOST_EXPOSED = 16
COLLECTOR_MOST_EXPOSED = 15


def verify(folder, text, name="numaprobed.service"):
    """What systemd-analyze has to say; it exits with 0 for unknown keys, so words count."""
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    done = subprocess.run(["systemd-analyze", "verify", path], capture_output=True,
                          text=True)
    said = done.stdout + done.stderr
    # other units of this machine are not ours to judge
    return "\n".join(l for l in said.splitlines() if "numaprobe" in l)


def exposure(folder, text, most=MOST_EXPOSED):
    path = os.path.join(folder, "numaprobed.service")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return subprocess.run(["systemd-analyze", "security", "--offline=yes", "--no-pager",
                           f"--threshold={most}", path], capture_output=True, text=True)


def collector(folder, unit, socket, program):
    """The collector's unit, its socket, and how little it is exposed."""
    with open(unit, encoding="utf-8") as f:
        text = f.read()
    check(re.search(r"^ExecStart=/\S+/numaprobe-fleetd$", text, re.M), "the collector is started by an absolute path")
    text = without_manual(re.sub(r"^ExecStart=\S+", "ExecStart=" + program, text, flags=re.M))
    said = verify(folder, text, "numaprobe-fleetd.service")
    check(said == "", "systemd-analyze verify has nothing to say of the collector", said.splitlines()[:20])
    with open(socket, encoding="utf-8") as f:
        listening = without_manual(f.read())
    said = verify(folder, listening, "numaprobe-fleetd.socket")
    check(said == "", "nor of its socket", said.splitlines()[:20])
    streams = re.findall(r"^ListenStream=(\S+)$", listening, re.M)
    check(streams and all(re.match(r"/run/|127\.0\.0\.1:", s) for s in streams), "which is on loopback alone", streams)
    done = exposure(folder, text, COLLECTOR_MOST_EXPOSED)
    check(done.returncode == 0, f"its exposure is at most {COLLECTOR_MOST_EXPOSED / 10}",
          done.stdout.splitlines()[-3:] + done.stderr.splitlines()[:20])
    done = exposure(folder, text.replace("RestrictNamespaces=yes", ""), COLLECTOR_MOST_EXPOSED)
    check(done.returncode != 0, "a softer unit is caught")


def timed(folder, name, run, timer, program):
    """A command and its timer, beside each other, as systemd wants a timer's unit to be there."""
    with open(run, encoding="utf-8") as f:
        text = re.sub(r"^ExecStart=\S+/numaprobe ", f"ExecStart={program} ", without_manual(f.read()), flags=re.M)
    check(program in text, f"{name} is started by an absolute path")
    said = verify(folder, text, f"{name}.service")
    check(said == "", f"nor of {name}.service", said.splitlines()[:20])
    with open(timer, encoding="utf-8") as f:
        text = without_manual(f.read())
    said = verify(folder, text, f"{name}.timer")
    check(said == "" and "RandomizedDelaySec" in text, "nor of its timer, which differs per node", said.splitlines()[:20])


def without_manual(text):
    """The manual that is installed is not there yet."""
    return re.sub(r"^Documentation=.*\n", "", text, flags=re.M)


def main(unit, socket, daemon, run, timer, fleetd, fleetd_socket, push, push_timer):
    if not shutil.which("systemd-analyze"):
        print("1..0 # SKIP systemd-analyze is not installed")
        return 0
    with open(unit, encoding="utf-8") as f:
        text = f.read()
    check(re.search(r"^ExecStart=/\S+/numaprobed$", text, re.M), "ExecStart is an absolute path")
    # As installed the program is elsewhere; verify wants one that is there.
    text = re.sub(r"^(Exec\w+)=\S+/numaprobed", r"\1=" + daemon, text, flags=re.M)
    text = without_manual(text)
    beat = int(re.search(r"^WatchdogSec=(\d+)$", text, re.M)[1]) / 2
    check(60 / beat <= 2, "the watchdog wakes an idle daemon at most twice a minute", [str(beat)])
    with tempfile.TemporaryDirectory() as folder:
        said = verify(folder, text)
        check(said == "", "systemd-analyze verify has nothing to say", said.splitlines()[:20])
        with open(socket, encoding="utf-8") as f:
            listening = without_manual(f.read())
        said = verify(folder, listening, "numaprobed.socket")
        check(said == "", "nor of the socket", said.splitlines()[:20])
        timed(folder, "numaprobe-run", run, timer, daemon)
        timed(folder, "numaprobe-push", push, push_timer, daemon)
        said = verify(folder, text.replace("UMask=", "UnMask="))
        check("UnMask" in said, "verify catches a key that systemd does not know", said.splitlines()[:20])
        done = exposure(folder, text)
        check(done.returncode == 0, f"exposure is at most {MOST_EXPOSED / 10}",
              done.stdout.splitlines()[-3:] + done.stderr.splitlines()[:20])
        done = exposure(folder, text.replace("ProtectControlGroups=yes", ""))
        check(done.returncode != 0, "a softer unit is caught")
        collector(folder, fleetd, fleetd_socket, daemon)
    return end()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
