# SPDX-License-Identifier: Apache-2.0
"""Makes one call of a program fail, by tests/fakes/fail_nth.c: the other side of the file that both map."""
import mmap
import struct

# In the order of enum kind.
KINDS = ["memory", "mmap", "open", "read", "write", "send", "recv", "sync", "truncate", "rename", "unlink", "mkdir",
         "stat", "lock", "flush", "pipe", "spawn", "socket", "epoll", "wait", "timer", "signals", "random", "other"]
# Calls that give something wrong instead of failing: only for tests that ask for them.
LIES = ["garble"]
HEAD = struct.Struct("=IIQII")
COUNTS = struct.Struct(f"={len(KINDS + LIES)}Q")


class Faults:
    """`program`: a text that is in the command line of the processes that are hit; "" hits all."""

    def __init__(self, path, program=""):
        self.path = str(path)
        with open(path, "wb") as f:
            f.write(bytes(HEAD.size + COUNTS.size) + program.encode().ljust(64, b"\0"))
        with open(path, "r+b") as f:
            self.memory = mmap.mmap(f.fileno(), 0)

    def arm(self, kind="memory", n=0):
        """From now on calls are counted, and the n-th of this kind fails; 0: none."""
        self.memory[HEAD.size:HEAD.size + COUNTS.size] = bytes(COUNTS.size)
        HEAD.pack_into(self.memory, 0, 1, (KINDS + LIES).index(kind), n, 0, 0)

    def disarm(self):
        """Whether it struck."""
        fired = HEAD.unpack_from(self.memory)[3]
        HEAD.pack_into(self.memory, 0, 0, 0, 0, fired, 0)
        return bool(fired)

    def counts(self):
        return dict(zip(KINDS + LIES, COUNTS.unpack_from(self.memory, HEAD.size)))

    def close(self):
        self.memory.close()
