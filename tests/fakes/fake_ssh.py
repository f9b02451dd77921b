#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An ssh that does what the node's name says. FAKE_SSH is a folder: each call leaves its words in calls.PID there.

okN       makes the socket, which says "hello from okN"
late      makes the socket, and listens when the file "listen" is there (a FIFO: when it is opened)
slow      does nothing until it is killed
ends      makes the socket, and ends with an error when the FIFO "end" is opened
tty       says whether it has a terminal
silent    ends without a word
others    end with the text of the file of their name on stderr
"""
import os
import pathlib
import signal
import socket
import sys

folder = pathlib.Path(os.environ["FAKE_SSH"])
node = sys.argv[-1]
forward = next(word for word in sys.argv if word.startswith("-L"))
path, remote = forward.removeprefix("-L").split(":")
(folder / f"calls.{os.getpid()}").write_text("\n".join(sys.argv[1:]))


def listener():
    made = socket.socket(socket.AF_UNIX)
    made.bind(path)
    return made


def serve(made):
    made.listen()
    while True:
        connection, _ = made.accept()
        try:
            connection.sendall(f"hello from {node}\n".encode())
        except OSError:  # it only looked whether somebody listens
            pass
        connection.close()


if node.startswith("ok"):
    serve(listener())
elif node == "late":
    waiting = listener()
    open(folder / "listen", encoding="ascii").close()
    serve(waiting)
elif node == "slow":
    signal.pause()
elif node == "ends":
    ending = listener()
    ending.listen()
    for _ in range(2):
        ending.accept()[0].close()
    open(folder / "end", encoding="ascii").close()
    sys.exit("Connection to 192.0.2.1 closed by remote host.")
elif node == "tty":
    try:
        os.open("/dev/tty", os.O_RDWR)
        sys.exit("has a terminal")
    except OSError:
        sys.exit("has no terminal")
elif node != "silent":
    sys.stderr.buffer.write((folder / node).read_bytes())
    sys.exit(255)
