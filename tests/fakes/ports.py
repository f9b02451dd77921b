# SPDX-License-Identifier: Apache-2.0
"""Ports of servers that a test starts again, or of others' servers that cannot be asked for one."""
import pathlib
import random
import socket

# The kernel takes the ports of outgoing connections from here on. For a minute after such a connection nobody can listen on
# its port, and beside a fleet of virtual nodes there are thousands.
OUTGOING = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])


def free_port():
    """A TCP port of 127.0.0.1 that nobody listens on, and that no outgoing connection is given."""
    while True:
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", random.randrange(10000, OUTGOING) if OUTGOING > 11000 else 0))
            except OSError:
                continue
            return s.getsockname()[1]
