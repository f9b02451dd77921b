# SPDX-License-Identifier: Apache-2.0
"""Many connections of one account that ask for the same path without a pause.

usage: crowd.py PORT CONNECTIONS MODE PATH [SECONDS]
MODE  keep       the next request on the same connection
      reconnect  a new connection for each request
      half       half of a request's headers; a new connection when this one is closed
      once       one request on each connection, then the end
{n}, {0} and {t} in PATH are a new number, 0 and a year each time, so that no answer is kept.

Prints "on" when all connections are open. Ends after SECONDS and some responses, or when its input is closed, and prints as JSON
how many connections it opened ("opened"), how many were closed without an answer ("closed"), and how many
answers it got by status.
"""
import collections
import itertools
import json
import re
import selectors
import socket
import sys
import time

PORT, CONNECTIONS, MODE, PATH = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
END = time.monotonic() + float(sys.argv[5]) if len(sys.argv) > 5 else None
number = itertools.count(1)
counts = collections.Counter(opened=0, closed=0)
selector = selectors.DefaultSelector()


def target():
    n = next(number)
    varied = str(n % 10000) if "after" in PATH else "%d.%06d" % (1 + n % 90, n)
    return PATH.replace("{n}", varied).replace("{0}", "0").replace("{t}", "20%02d-01-01" % (17 + n % 3))


class Connection:
    def __init__(self):
        self.open()

    def open(self):
        counts["opened"] += 1
        self.socket = socket.socket()
        try:
            self.socket.connect(("127.0.0.1", PORT))
        except OSError:
            pass  # the selector says so too
        self.socket.setblocking(False)
        selector.register(self.socket, selectors.EVENT_READ, self)
        self.ask()

    def close(self):
        selector.unregister(self.socket)
        self.socket.close()

    def ask(self):
        self.head, self.left, self.last = b"", None, False
        request = b"GET %s HTTP/1.1\r\nHost: localhost\r\n" % target().encode()
        try:
            self.socket.send(request if MODE == "half" else request + b"\r\n")
        except OSError:
            pass

    def ready(self):
        try:
            data = self.socket.recv(1 << 20)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self.take(data)
        else:
            counts["closed"] += 1
            self.close()
            self.open()

    def take(self, data):
        if self.left is None:
            self.head += data
            end = self.head.find(b"\r\n\r\n")
            if end < 0:
                return
            counts[self.head[9:12].decode()] += 1
            self.left = int(re.search(rb"(?i)content-length: *(\d+)", self.head).group(1)) - (len(self.head) - end - 4)
            self.last = MODE == "reconnect" or b"\r\nConnection: close\r\n" in self.head
        else:
            self.left -= len(data)
        if self.left <= 0:
            self.answered()

    def answered(self):
        if MODE == "once":
            selector.unregister(self.socket)
        elif self.last:
            self.close()
            self.open()
        else:
            self.ask()


def is_early():
    """On a busy machine a crowd may have no responses in its time: it waits for some."""
    return MODE != "half" and sum(counts.values()) - counts["opened"] - counts["closed"] <= 20


connections = [Connection() for _ in range(CONNECTIONS)]
print("on", flush=True)
selector.register(sys.stdin, selectors.EVENT_READ, None)
while (END is None or time.monotonic() < END or is_early()) and len(selector.get_map()) > 1:
    ready = selector.select(None if END is None or time.monotonic() > END else max(0, END - time.monotonic()))
    if any(key.data is None for key, _ in ready):
        break
    for key, _ in ready:
        key.data.ready()
print(json.dumps(counts), flush=True)
