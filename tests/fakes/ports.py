# SPDX-License-Identifier: Apache-2.0
"""Ports of servers that a test starts again, or of others' servers that cannot be asked for one."""
import contextlib
import pathlib
import random
import socket

# The kernel takes the ports of outgoing connections from here on. For a minute after such a connection nobody can listen on
# its port, and beside a fleet of virtual nodes there are thousands.
OUTGOING = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])


TAKEN = []


def take(port):
    """No other test is given the port while this process lives, though nothing may listen on it yet: each has a name of its own
    among the kernel's abstract sockets."""
    name = socket.socket(socket.AF_UNIX)
    try:
        name.bind(f"\0numaprobe-tests-port-{port}")
    except OSError:
        name.close()
        raise
    TAKEN.append(name)


def free_port():
    """A TCP port of 127.0.0.1 that nobody listens on, that no other test has, and that no outgoing connection is given."""
    while True:
        with contextlib.suppress(OSError), socket.socket() as s:
            s.bind(("127.0.0.1", random.randrange(10000, OUTGOING) if OUTGOING > 11000 else 0))
            take(s.getsockname()[1])
            return s.getsockname()[1]
