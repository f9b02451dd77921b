#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command with a seccomp filter that refuses system calls with EPERM, as container engines do.

usage: without_calls.py CALL[=0][,CALL…] COMMAND...
calls: mbind, set_mempolicy, get_mempolicy, move_pages, capset, fsync, fdatasync, unshare; =0: nothing is done, and all seems well
       netlink: sockets of that family
"""
import ctypes
import os
import struct
import sys

# By audit architecture: the kernel's numbers of the calls.
NUMBERS = {
    "x86_64": (0xC000003E, {"mbind": 237, "set_mempolicy": 238, "get_mempolicy": 239, "move_pages": 279, "capset": 126,
                           "fsync": 74, "fdatasync": 75, "unshare": 272, "netlink": 41}),
    "aarch64": (0xC00000B7, {"mbind": 235, "get_mempolicy": 236, "set_mempolicy": 237, "move_pages": 239, "capset": 91,
                            "fsync": 82, "fdatasync": 83, "unshare": 97, "netlink": 198}),
}
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE, PRETEND, KILL = 0x7FFF0000, 0x00050001, 0x00050000, 0x80000000  # REFUSE: errno 1, EPERM; PRETEND: 0
FIRST_ARGUMENT, AF_NETLINK = 16, 16
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, MODE_FILTER = 38, 22, 2


def program(calls):
    """The filter: which architecture, which call."""
    audit, numbers = NUMBERS[os.uname().machine]
    steps = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, audit), (RETURN, 0, 0, KILL), (LOAD, 0, 0, 0)]
    for call in calls:
        name, _, pretend = call.partition("=")
        refuse = (RETURN, 0, 0, PRETEND if pretend else REFUSE)
        if name == "netlink":  # of socket() this family alone
            steps += [(EQUAL, 0, 4, numbers[name]), (LOAD, 0, 0, FIRST_ARGUMENT), (EQUAL, 0, 1, AF_NETLINK), refuse,
                      (RETURN, 0, 0, ALLOW)]
        else:
            steps += [(EQUAL, 0, 1, numbers[name]), refuse]
    steps.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("HBBI", *s) for s in steps), len(steps)


def main(calls, command):
    code, n = program(calls)
    room = ctypes.create_string_buffer(code)
    fprog = struct.pack("HxxxxxxP", n, ctypes.addressof(room))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, MODE_FILTER, fprog, 0, 0):
        sys.exit("without_calls.py: " + os.strerror(ctypes.get_errno()))
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1].split(","), sys.argv[2:])
