# SPDX-License-Identifier: Apache-2.0
"""A real sshd on loopback, with keys of its own. Nothing of the machine's ssh is read or changed.

Each name n* is this machine. The daemon of ssh sees an empty /run of its own, and ends with the test.
"""
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess

from ports import free_port

SERVER = """Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
MaxStartups 1000
MaxSessions 100
AllowStreamLocalForwarding yes
LogLevel ERROR
"""

CLIENT = {"HostName": "127.0.0.1", "HostKeyAlias": "test", "User": "root", "IdentitiesOnly": "yes", "IdentityAgent": "none",
          "GlobalKnownHostsFile": "/dev/null", "StrictHostKeyChecking": "yes"}


class Missing(Exception):
    """Why there can be no sshd here."""


class Server:
    def __init__(self, folder, port, process):
        self.folder, self.port, self.process, self.made = folder, port, process, 0

    def program(self, **settings):
        """An ssh that knows this server as any n*, as a program: with the settings, instead of those that work."""
        self.made += 1
        config, script = self.folder / f"config{self.made}", self.folder / f"ssh{self.made}"
        have = {**CLIENT, "Port": self.port, "IdentityFile": self.folder / "user", "UserKnownHostsFile": self.folder / "known",
                **settings}
        config.write_text("Host n*\n" + "".join(f"{k} {v}\n" for k, v in have.items()))
        script.write_text(f'#!/bin/sh\nexec ssh -F {config} "$@"\n')
        script.chmod(0o755)
        return str(script)

    def cut(self, number):
        """Signals the processes that serve connections."""
        listener = int(pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()[0])
        for child in pathlib.Path(f"/proc/{listener}/task/{listener}/children").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(child), number)


def key(path):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(path)], check=True)


@contextlib.contextmanager
def server(folder):
    program = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin")
    gone = [p for p in ("ssh", "ssh-keygen", "unshare") if not shutil.which(p)] + ([] if program else ["sshd"])
    if gone:
        raise Missing("no " + " ".join(gone) + " (openssh-server)")
    if os.geteuid() != 0:
        raise Missing("sshd needs root")
    key(folder / "host")
    key(folder / "user")
    (folder / "known").write_text("test " + (folder / "host.pub").read_text())
    port = free_port()
    (folder / "sshd_config").write_text(SERVER.format(port=port, folder=folder))
    start = 'mount -t tmpfs run /run && mkdir -m 755 /run/sshd && exec "$@"'
    words = ["unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--propagation", "private", "sh", "-c", start, "sh",
             program, "-D", "-e", "-f", str(folder / "sshd_config")]
    with open(folder / "log", "wb") as log, subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as p:
        try:
            until_it_listens(port, p, folder / "log")
            yield Server(folder, port, p)
        finally:
            p.send_signal(signal.SIGKILL)


def until_it_listens(port, process, log):
    while True:
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None:
            raise Missing("sshd does not start: " + log.read_text()[-300:])
