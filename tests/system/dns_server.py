# SPDX-License-Identifier: Apache-2.0
"""A server of DNS with a few SRV records on 127.0.0.1. usage: dns_server.py FIFO, which gets a line when it serves."""
import socket
import struct
import sys


def name(text):
    return b"".join(bytes([len(part)]) + part.encode() for part in text.split(".") if part) + b"\0"


def srv(target, port):
    data = struct.pack(">HHH", 0, 0, port) + name(target)
    return b"\xc0\x0c" + struct.pack(">HHIH", 33, 1, 60, len(data)) + data  # the name of the question


def respond(query):
    end = query.index(b"\0", 12)
    first = query[13:13 + query[12]]
    question = query[12:end + 5]
    records = {b"_numaprobe": [srv("n1.example", 7780), srv("n2.example", 7781), srv("n3.other", 7780)],
               b"_empty": [srv("", 0)], b"_evil": [srv("n\x1b[2J.example", 7780)],
               b"_long": [srv("n" * 60 + ".more.other", 7780)], b"_port": [srv("n1.example", 0)], b"_broken": [b"\xc0\x0c" + struct.pack(">HHIH", 33, 1, 60, 500) + b"\0" * 10]}
    code = 2 if first == b"_fails" else 0 if first in records else 3
    answers = records.get(first, [])
    return query[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, len(answers), 0, 0) + question + b"".join(answers)


with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
    server.bind(("127.0.0.1", 53))
    with open(sys.argv[1], "w", encoding="ascii") as ready:
        ready.write("ready\n")
    while True:
        request, peer = server.recvfrom(4096)
        server.sendto(respond(request), peer)
