#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long it takes to reach 100 nodes by ssh: forwarded sockets with one reply each, and beside them `ssh NODE true`
by xargs with as many at once, in turn. All nodes are this machine, so it does both ends of the work. Needs root and
openssh-server.

usage: ssh.py BUILD [--nodes=100] [--at-once=16] [--rounds=3]
"""
import argparse
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "fakes"))
import sshd  # noqa: E402


def listen(path):
    """A daemon's socket: it replies with a line to each connection."""
    made = socket.socket(socket.AF_UNIX)
    made.bind(path)
    made.listen(100)

    def serve():
        while True:
            connection, _ = made.accept()
            try:
                connection.sendall(b"hello\n")
            except OSError:
                pass
            connection.close()

    threading.Thread(target=serve, daemon=True).start()


def seconds(words, **how):
    begin = time.monotonic()
    done = subprocess.run(words, capture_output=True, text=True, check=True, **how)
    return time.monotonic() - begin, done.stdout


def main():
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("build", type=pathlib.Path)
    parse.add_argument("--nodes", type=int, default=100)
    parse.add_argument("--at-once", type=int, default=16)
    parse.add_argument("--rounds", type=int, default=3)
    o = parse.parse_args()
    nodes = [f"n{i}" for i in range(o.nodes)]
    ours, theirs = [], []
    try:
        with tempfile.TemporaryDirectory() as folder, sshd.server(pathlib.Path(folder)) as server:
            path, program = f"{folder}/d.sock", server.program()
            listen(path)
            for _ in range(o.rounds):
                took, out = seconds([str(o.build / "tests/unit/client/tunnels"), program, str(o.at_once), "60", path, "", *nodes],
                                    env={**os.environ, "XDG_RUNTIME_DIR": "/nonexistent"})
                reached = out.count(" ready hello")
                if reached != o.nodes:
                    raise SystemExit(f"{reached} of {o.nodes} nodes were reached:\n{out[:500]}")
                ours.append(took)
                theirs.append(seconds(["xargs", f"-P{o.at_once}", "-I{}", program, "-oBatchMode=yes", "{}", "true"],
                                      input="\n".join(nodes))[0])
    except sshd.Missing as e:
        raise SystemExit(str(e)) from e
    print(f"{o.nodes} nodes, {o.at_once} at once, medians of {o.rounds}: forwarded sockets {statistics.median(ours):.2f} s "
          f"({1000 * statistics.median(ours) / o.nodes:.0f} ms per node), ssh NODE true {statistics.median(theirs):.2f} s; "
          f"the goal for 100 nodes is 8 s")


if __name__ == "__main__":
    main()
