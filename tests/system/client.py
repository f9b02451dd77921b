# SPDX-License-Identifier: Apache-2.0
"""numaprobe as a user runs it: with pipes, or on a real terminal of a given size (tmux)."""
import os
import re
import shlex
import shutil
import subprocess

import pytest

from conftest import build_dir, until

CLIENT = build_dir() / "client" / "numaprobe"


def run(*args, url=None, env=None, **kw):
    full = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **(env or {})}
    if url:
        full["NUMAPROBE_URL"] = url
    return subprocess.run([str(CLIENT), *map(str, args)], capture_output=True, text=True, env=full, timeout=60, **kw)


class Terminal:
    """A terminal of `columns` × `rows` cells in which a shell runs. `screen` is what a user sees."""

    def __init__(self, home, columns=80, rows=40, env=None):
        if not shutil.which("tmux"):
            pytest.skip("tmux is not installed")
        self.socket = str(home / "tmux")
        full = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "PS1": "$ ", "NO_COLOR": "1", **(env or {})}
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", columns, "-y", rows, "env", "-i",
                  *(f"{k}={v}" for k, v in full.items()), "TERM=screen", "bash", "--norc", "--noprofile")

    def tmux(self, *words):
        return subprocess.run(["tmux", "-S", self.socket, *map(str, words)], capture_output=True, text=True,
                              timeout=20, env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}, check=True).stdout

    def screen(self, history=False):
        return self.tmux("capture-pane", "-p", *(["-S", "-"] if history else []))

    def type(self, *words):
        """Types the command and Enter."""
        self.tmux("send-keys", "-l", " ".join([str(CLIENT), *map(shlex.quote, words)]))
        self.tmux("send-keys", "Enter")

    def key(self, name):
        self.tmux("send-keys", name)

    def wait_for(self, pattern):
        """The screen, once it shows this."""
        found = []

        def shown():
            found.append(self.screen(history=True))
            return re.search(pattern, found[-1], re.M)
        assert until(shown), found[-1]
        return found[-1]

    def ran(self, *words):
        """Runs a command to its end: (what it showed, exit status). A line longer than the terminal shows as two."""
        self.tmux("send-keys", "-l", "clear; ")
        self.tmux("clear-history")
        self.tmux("send-keys", "-l", " ".join([str(CLIENT), *map(shlex.quote, words)]) + "; echo ended: $?")
        self.tmux("send-keys", "Enter")
        shown = self.wait_for(r"^ended: \d+$")
        shown, _, status = shown.rpartition("ended: ")
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
