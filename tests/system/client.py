# SPDX-License-Identifier: Apache-2.0
"""numaprobe as a user runs it: with pipes, or on a real terminal of a given size (tmux)."""
import os
import re
import shlex
import shutil
import subprocess

import pytest

from conftest import PATIENCE, build_dir, until, without_fault

CLIENT = build_dir() / "client" / "numaprobe"


def run(*args, url=None, env=None, **kw):
    full = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **(env or {})}
    if url:
        full["NUMAPROBE_URL"] = url
    done = subprocess.run([str(CLIENT), *map(str, args)], capture_output=True, text=True, env=full, timeout=PATIENCE, **kw)
    without_fault(done.stderr)
    return done


class Terminal:
    """A terminal of `columns` × `rows` cells in which a shell runs. `screen` is what a user sees."""

    def __init__(self, home, columns=80, rows=40, env=None):
        if not shutil.which("tmux"):
            pytest.skip("tmux is not installed")
        self.socket, self.commands = str(home / "tmux"), 0
        full = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "NO_COLOR": "1", **(env or {})}
        rc = home / "rc"
        rc.write_text(f'PS1="$ "; count=0\nn() {{ {CLIENT} "$@"; echo "ended-$((++count)): $?"; }}\n')
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", columns, "-y", rows, "env", "-i",
                  *(f"{k}={v}" for k, v in full.items()), "TERM=screen", "bash", "--noprofile", "--rcfile", rc)

    def tmux(self, *words):
        return subprocess.run(["tmux", "-S", self.socket, *map(str, words)], capture_output=True, text=True,
                              timeout=PATIENCE, env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}, check=True).stdout

    def screen(self):
        """All lines since the last clear; one that the terminal broke is one line here."""
        return self.tmux("capture-pane", "-p", "-J", "-S", "-")

    def type(self, *words):
        """Types the command and Enter."""
        self.tmux("send-keys", "-l", "n " + shlex.join(words))
        self.tmux("send-keys", "Enter")

    def key(self, name):
        self.tmux("send-keys", name)

    def wait_for(self, pattern):
        """The screen, once it shows this."""
        found = []

        def shown():
            found.append(self.screen())
            return re.search(pattern, found[-1], re.M)
        assert until(shown), found[-1]
        return found[-1]

    def ran(self, *words):
        """Runs a command to its end: (the lines that it showed, exit status)."""
        self.commands += 1
        self.type(*words)
        mark = f"ended-{self.commands}: "
        shown = self.wait_for(rf"^{mark}\d+$")
        _, _, shown = shown.rpartition("$ n " + shlex.join(words) + "\n")
        shown, _, status = shown.rpartition(mark)
        return shown, int(status.split()[0])

    def close(self):
        self.tmux("kill-server")


@pytest.fixture
def terminal(tmp_path):
    opened = []

    def open_one(**kw):
        opened.append(Terminal(tmp_path, **kw))
        return opened[-1]
    yield open_one
    for t in opened:
        t.close()
