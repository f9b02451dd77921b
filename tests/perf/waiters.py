#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A crowd that waits for one run: what each costs the daemon, how soon all are told, what another client sees
meanwhile; and, in turns, how soon a bare libmicrohttpd tells such a crowd (tests/perf/http_bare).

usage: waiters.py BUILD [--waiters=5000] [--rounds=3]
"""
import argparse
import http.client
import pathlib
import resource
import select
import socket
import statistics
import sys
import tempfile
import threading
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1] / "system"))
from conftest import FAKE_BENCH, Daemon, fake_bench_env  # noqa: E402
from http_rate import Bare, cpu_s, memory  # noqa: E402

# The crowd is one process on the daemon's own machine: were it woken for each, the daemon's CPU would do it.
LOOK_S = 0.002

SPEC = {"benchmark": "latency", "size": "1", "cpus": "0"}


class Crowd:
    """n sockets that have asked for what is answered later."""

    def __init__(self, port, target, n):
        self.epoll, self.sockets = select.epoll(), {}
        ask = f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        for i in range(n):
            s = socket.create_connection(("127.0.0.1", port), timeout=20)
            s.sendall(ask)
            s.setblocking(False)
            self.epoll.register(s, select.EPOLLIN | select.EPOLLET)
            self.sockets[s.fileno()] = s

    def told(self, began, timeout=20):
        """{status: count} and the times since `began` at which each was told."""
        status, times, left = {}, [], dict(self.sockets)
        while left and time.monotonic() - began < timeout:
            time.sleep(LOOK_S)
            for fd, _ in self.epoll.poll(0.2, 4096):
                if fd not in left:
                    continue
                data = left.pop(fd).recv(65536)
                times.append(time.monotonic() - began)
                code = data.split()[1].decode() if data else "closed"
                status[code] = status.get(code, 0) + 1
        return status, times

    def close(self):
        for s in self.sockets.values():
            s.close()
        self.epoll.close()


class Other(threading.Thread):
    """Asks for /healthz again and again."""

    def __init__(self, daemon):
        super().__init__(daemon=True)
        self.daemon_, self.stop, self.times, self.failed = daemon, threading.Event(), [], 0

    def run(self):
        c = http.client.HTTPConnection("127.0.0.1", self.daemon_.port, timeout=20)
        while not self.stop.is_set():
            began = time.monotonic()
            c.request("GET", "/healthz")
            answer = c.getresponse()
            answer.read()
            self.failed += answer.status != 200
            self.times.append(time.monotonic() - began)
            self.stop.wait(0.001)
        c.close()


def one_round(daemon, n):
    run = daemon.post("/v1/runs", SPEC).json["id"]  # it waits behind one that hangs
    before = memory(daemon.process.pid)
    crowd = Crowd(daemon.port, f"/v1/runs/{run}?wait=60", n)
    daemon.get("/healthz")  # comes after the last of them in the daemon's queue
    each = (memory(daemon.process.pid)[1] - before[1]) / n
    other = Other(daemon)
    other.start()
    while len(other.times) < 50:
        time.sleep(0.01)
    calm = statistics.median(other.times)
    del other.times[:]
    began, used = time.monotonic(), cpu_s(daemon.process.pid)
    canceler = threading.Thread(target=daemon.post, args=(f"/v1/runs/{run}/cancel",))
    canceler.start()
    status, times = crowd.told(began)
    canceler.join()
    used = cpu_s(daemon.process.pid) - used
    other.stop.set()
    other.join()
    crowd.close()
    times.sort()
    print(f"{n} waiters: {each:.1f} KiB each; told {status}, first after {times[0] * 1e3:.0f} ms, last "
          f"{times[-1] * 1e3:.0f} ms ({used * 1e3:.0f} ms of CPU); /healthz meanwhile: {len(other.times)} asked, "
          f"{other.failed} failed, slowest {max(other.times) * 1e3:.1f} ms (calm median {calm * 1e3:.2f})")
    return times[-1]


def bare_round(bare, n):
    crowd = Crowd(bare.port, "/wait", n)
    urllib.request.urlopen(f"http://127.0.0.1:{bare.port}/").read()  # comes after the last of them in its queue
    began, used = time.monotonic(), cpu_s(bare.process.pid)
    bare.process.stdin.write("go\n")
    bare.process.stdin.flush()
    status, times = crowd.told(began)
    used = cpu_s(bare.process.pid) - used
    crowd.close()
    print(f"{n} of a bare libmicrohttpd: told {status}, last {max(times) * 1e3:.0f} ms ({used * 1e3:.0f} ms of CPU)")
    return max(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--waiters", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (args.waiters + 1000, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with tempfile.TemporaryDirectory() as home:
        bench = pathlib.Path(home) / "fake_bench-hang"  # its run goes on until it is canceled
        bench.symlink_to(FAKE_BENCH)
        daemon = Daemon(args.build / "daemon" / "numaprobed", home,
                        {**fake_bench_env(), "NUMAPROBE_BENCH": str(bench)},
                        [f"--connections={min(16384, 2 * args.waiters + 64)}", "--socket=none"]).start()
        bare = Bare(args.build)
        try:
            pathlib.Path(home).chmod(0o755)
            daemon.post("/v1/runs", SPEC)
            pairs = [(one_round(daemon, args.waiters), bare_round(bare, args.waiters))
                     for _ in range(args.rounds)]
            time.sleep(1)
            print("afterwards: RSS %d KiB, private %d KiB" % memory(daemon.process.pid)[:2])
            print(f"last told: median {statistics.median(p[0] for p in pairs) * 1e3:.0f} ms, "
                  f"{statistics.median(p[0] / p[1] for p in pairs):.2f} times a bare libmicrohttpd")
        finally:
            daemon.stop()
            bare.stop()


if __name__ == "__main__":
    main()
