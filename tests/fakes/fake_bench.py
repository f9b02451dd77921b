#!/usr/bin/python3 -IS
# SPDX-License-Identifier: Apache-2.0
"""A numa_bench that measures nothing and can misbehave.

Point NUMAPROBE_BENCH of numaprobed at this file, or at a link or copy of it. It runs under the real
mpirun (it never calls MPI) or under fake_mpirun.py. Its environment is built by the daemon from
nothing, so what it shall do is chosen by

 1. a file "fake_bench.behaviour" beside the path it was started by: one line, "NAME [ARGUMENT]";
    it is read anew by each run (the account of the ranks must be able to read it);
 2. else the name it was started by: "fake_bench-NAME" (a link is enough);
 3. else "good".

Without MPI (--np=N) one process speaks for all ranks. It knows latency, matrix and c2c. Of c2c it knows one definition
of listed pairs, or of all pairs (the first --pairs-most of them, row by row), without single lines; of matrix all
--targets, or --pairs-most cells in which each rank and target has one. A good run: rank 0 writes hello, the matrices
that --mode asks for (sizes from --size), progress, cells, ranks, end. Cell (row, col) of "concurrent" has the median 10 + row + 10 * col, of "serial" half
of it, 11 samples. The placement it reports is that of --bind.

NAME               what it does instead
good               see above; prints "fake bench: rank R of N" on stdout, each rank
slow [S]           waits S seconds (0.05) before each cell
held               waits before each cell until a file "fake_bench.go" is beside that of the behaviour
short-limit        the same, after a condition says that the time limit has no room
hang               says hello, one progress, then nothing, for ever (all ranks)
hang-hard          the same, deaf to SIGTERM, with two children in sessions of their own, deaf too
orphan             a good run that leaves such a child behind
flood-stdout       prints without end
flood-channel      progress records without end
endless-line       a line without end
garbage            random bytes
text               a line that is not JSON
no-hello           starts with the matrix
second-hello       says hello twice
bad-nonce          another run's nonce
wrong-version      record version 999
wrong-benchmark    says it measured bandwidth
wrong-ranks        hello counts one rank more
unasked-matrix     announces a matrix "other"
matrix-twice       announces a matrix twice
wrong-shape        a matrix with one size more
wrong-unit         a matrix in "us"
cell-twice         sends cell 0,0 twice
out-of-range       a cell behind the last row
negative           a cell at row -1
nan                a median of NaN
huge               a median of 1e300
missing-cell       leaves the last cell out, and counts right
wrong-count        counts one cell too many
rank-twice         rank 0 twice
wrong-rank         a rank behind the last
missing-rank       leaves the last rank out
no-end             stops before the end, with status 0
after-end          says something after the end
bad-end            end with ok false, error memory-short and a text
early-end          the same before it says hello, as a bench that cannot begin
other-options      the same because of an option that it does not know, as a bench of another version
exit [N]           exits with status N (7) in the middle
signal [N]         dies by signal N (11) in the middle
placement          a good run on the wrong CPU and node
scaled [F]         a good run F times as slow (1.2)
throttled F        the same, and the clock is 4/F GHz
clock GHZ          a good run at this clock
slow-core GHZ      rank 0 had this clock, the others 4 GHz
off-cpu SHARE      rank 0 was off its CPU for this share of its time
fewer-pairs N      says that a budget has room for N pairs only, and measures the first N
uncounted-pairs N  measures N pairs, and says so of none
late-pairs N       says it behind the first matrix
disturbed N        a good run with N disturbed samples a cell
half               a good run with half of rank 0's pages elsewhere
noise              a good run that prints NUL, escape sequences and invalid UTF-8
timed MACHINE      ends at once, and says in phases_ms what a run takes on this machine (bench_time.py; any benchmark there)
"""
import json
import os
import random
import select
import signal
import sys

LINE_BYTES = 64
PAIR_BITS = 16  # axis_pair()
SHORT_LIMIT = "8 repetitions of all pairs take about 99 s, and the time limit has room for 9 s"


def options(argv):
    found = {}
    for word in argv:
        if word.startswith("--"):
            name, _, value = word[2:].partition("=")
            found[name] = value
    return found


def beside(name):
    return os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), name)


def behaviour():
    try:
        with open(beside("fake_bench.behaviour"), encoding="ascii") as f:
            words = f.read().split()
    except OSError:
        words = []
    if not words:
        name = os.path.basename(sys.argv[0])
        words = [name[len("fake_bench-"):]] if name.startswith("fake_bench-") else ["good"]
    return words[0], words[1] if len(words) > 1 else None


def size_bytes(text):
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
    text = text.strip().upper()
    for tail in ("IB", "B"):
        if text.endswith(tail):
            text = text[:-len(tail)]
    return int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text) << 20


def sizes(text):
    found = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        at, end = size_bytes(first), size_bytes(last if dash else first)
        while at < end:
            found.add(at)
            at *= 2
        found.add(end)
    return sorted(found)


def placements(bind):
    """[(cpu, node)] of all ranks."""
    return [tuple(map(int, place.split(":"))) for place in bind.split(",")]


def listed_pairs(text):
    """The values of axis "pair", as axis_pair() packs them."""
    return [int(first) << PAIR_BITS | int(second) for first, _, second in (pair.partition("-") for pair in text.split(","))]


def ids(text):
    """[0, 1, 2, 5] of "0-2,5"."""
    ends = [part.partition("-") for part in text.split(",")]
    return [n for first, _, last in ends for n in range(int(first), int(last or first) + 1)]


def spread_cells(rows, columns, most):
    """So many cells along diagonals, with one of each row and column first."""
    return [(k % rows, (k % rows + k // rows) % columns) for k in range(most or rows * columns)]


# Of each benchmark: method, quantity of its matrices, axis of their columns.
BENCHMARKS = {"latency": ("prp4-v2", "latency", {"name": "working_set", "unit": "bytes"}),
              "matrix": ("prp4-v2", "latency", {"name": "target", "unit": ""}),
              "c2c": ("c2c-v2", "round_trip", {"name": "message", "unit": "bytes"})}


class Fake:
    def __init__(self):
        self.name, self.argument = behaviour()
        self.o = options(sys.argv[1:])
        self.rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
        self.ranks = int(os.environ.get("OMPI_COMM_WORLD_SIZE", self.o.get("np", "1")))
        self.benchmark = next(iter(b for b in BENCHMARKS if b in sys.argv[1:]), "latency")
        self.pairs, self.all_pairs, self.every = [], [], self.o.get("pairs") == "all"
        self.columns = self.choose_cells(int(self.o.get("pairs-most", "0")))
        if self.name in ("fewer-pairs", "uncounted-pairs"):
            self.all_pairs = self.all_pairs[:int(self.argument)]
        self.rows = len(self.pairs) or self.ranks
        self.out = None
        self.cells = 0

    def choose_cells(self, most):
        """The values of columns. Of all pairs those that are measured are kept: no others have a value."""
        if self.benchmark == "latency":
            return sizes(self.o["size"])
        if self.benchmark == "matrix":
            targets = ids(self.o["targets"])
            self.all_pairs = spread_cells(self.ranks, len(targets), most)
            return targets
        if not self.every:
            self.pairs = listed_pairs(self.o["pairs"])
            return [LINE_BYTES]
        self.all_pairs = [(a, b) for a in range(self.ranks) for b in range(a + 1, self.ranks)][:most or None]
        return list(range(self.ranks))

    def record(self, rec, **members):
        self.out.write(json.dumps({"rec": rec, **members}) + "\n")
        self.out.flush()

    def hello(self):
        self.record("hello", version=999 if self.name == "wrong-version" else 1,
                    nonce="0" * 32 if self.name == "bad-nonce" else self.o["nonce"],
                    benchmark="bandwidth" if self.name == "wrong-benchmark" else self.benchmark,
                    method=BENCHMARKS[self.benchmark][0], launcher="processes" if "np" in self.o else "mpi",
                    ranks=self.ranks + (self.name == "wrong-ranks"), line_bytes=64)

    def matrix(self, name):
        columns = self.columns + ([self.columns[-1] * 2] if self.name == "wrong-shape" else [])
        _, quantity, axis = BENCHMARKS[self.benchmark]
        rows = {"name": "pair", "values": self.pairs} if self.pairs else {"name": "rank", "values": list(range(self.ranks))}
        self.record("matrix", name="other" if self.name == "unasked-matrix" else name,
                    quantity=quantity, unit="us" if self.name == "wrong-unit" else "ns",
                    rows={"unit": "", **rows},
                    cols={**({"name": "rank", "unit": ""} if self.every else axis), "values": columns})

    def progress(self, done=0):
        self.record("progress", phase="measure", done=done, total=self.rows * len(self.columns),
                    eta_ms=1000)

    def cell(self, matrix, row, col):
        v = (10 + row + 10 * col) * (0.5 if matrix == "serial" else 1)
        v *= float(self.argument or "1.2") if self.name in ("scaled", "throttled") else 1
        v = {"nan": float("nan"), "huge": 1e300}.get(self.name, v)
        self.cells += 1
        disturbed = int(self.argument) if self.name == "disturbed" else 1
        spread = {"distribution": f"{v + 1.5:.3f} 2 4 -1 5"} if 2 < v < 1e9 else {}
        self.record("cell", matrix=matrix, row=row, col=col, n=11, disturbed=disturbed, median=v, lo=v - 0.125,
                    hi=v + 0.125, min=v - 1, p10=v - 0.5, p90=v + 0.5, p99=v + 1, mean=v, sd=0.25,
                    overlap=0.975, converged=1, **spread)

    def clock(self, rank):
        if self.name == "clock" or (self.name == "slow-core" and rank == 0):
            return float(self.argument)
        return 4 / float(self.argument) if self.name == "throttled" else 4

    def rank_record(self, rank, cpu, node):
        share = 0.5 if self.name == "half" and rank == 0 else 1
        wrong = self.name == "placement"
        self.record("rank", rank=rank + (self.ranks if self.name == "wrong-rank" else 0),
                    pid=os.getpid(), cpu_wanted=cpu, cpu=cpu + wrong, cpu_node=0, mem_wanted=node,
                    mem_node=node + wrong, mem_share=share, pages_checked=256, pages_total=256,
                    mem_method="move_pages", pages_wanted="thp", pages_got="thp", huge_share=1,
                    seed=1 + rank, migrations=0, arena_bytes=1 << 20, address="0x7f0000000000",
                    off_cpu_share=float(self.argument) if self.name == "off-cpu" and rank == 0 else 0.001,
                    clock_ghz=self.clock(rank), load_cycles=5,
                    nodes=[{"node": node + wrong, "pages": 256}])

    def all_cells(self, names):
        done, total = 0, self.rows * len(self.columns)
        for name in names:
            for row in range(self.rows):
                for col in range(len(self.columns)):
                    if self.all_pairs and (row, col) not in self.all_pairs:
                        continue
                    if self.name == "slow":
                        select.select([], [], [], float(self.argument or "0.05"))
                    while self.name in ("held", "short-limit") and not os.path.exists(beside("fake_bench.go")):
                        select.select([], [], [], 0.02)
                    last = (row, col) == (self.rows - 1, len(self.columns) - 1)
                    if not (last and self.name == "missing-cell"):
                        self.cell(name, row, col)
                    done += 1
                    self.progress(min(done, total))

    def all_ranks(self):
        places = placements(self.o["bind"])
        for rank, (cpu, node) in enumerate(places):
            if rank < self.ranks - (self.name == "missing-rank"):
                self.rank_record(rank, cpu, node)
        if self.name == "rank-twice":
            self.rank_record(0, *places[0])

    def end(self):
        if self.name == "no-end":
            return
        phases = {"populate": 1.5, "build": 2, "warm-up": 3, "measure": 4, "verify": 5}
        if self.name == "other-options":
            self.record("end", ok=False, cells=0, phases_ms=phases, error="usage", member="pairs-most",
                        text="unknown option --pairs-most (see --help)")
            return
        if self.name in ("bad-end", "early-end"):
            self.record("end", ok=False, cells=self.cells, phases_ms=phases, error="memory-short",
                        member="size", text="node 0 has not that much memory")
            return
        self.record("end", ok=True, cells=self.cells + (self.name == "wrong-count"), phases_ms=phases)
        if self.name == "after-end":
            self.record("condition", kind="other", severity="notice", rank=None, text="one thing more")

    def in_the_middle(self, first):
        """What some do after the first matrix was announced."""
        if self.name == "cell-twice":
            self.cell(first, 0, 0)
        elif self.name == "out-of-range":
            self.cell(first, self.ranks, 0)
        elif self.name == "negative":
            self.cell(first, -1, 0)
        elif self.name == "matrix-twice":
            self.matrix(first)
        elif self.name == "second-hello":
            self.hello()
        elif self.name == "late-pairs":
            self.record("pairs", most=int(self.argument))
        elif self.name == "text":
            self.out.write("all is well\n")
        elif self.name == "exit":
            sys.exit(int(self.argument or "7"))
        elif self.name == "signal":
            os.kill(os.getpid(), int(self.argument or "11"))

    def flood(self):
        raw = self.out.buffer
        chunk = random.Random(1)
        while True:
            if self.name == "flood-channel":
                self.progress()
            elif self.name == "endless-line":
                raw.write(b"x" * 4096)
            else:
                raw.write(chunk.randbytes(4096))
            raw.flush()

    def matrices(self):
        if self.benchmark != "latency":
            return [self.o["definition"] if self.benchmark == "c2c" else "idle"]
        return ["concurrent", "serial"] if self.o["mode"] == "both" else [self.o["mode"]]

    def measure(self):
        self.out = open(self.o["channel"], "w", encoding="utf-8")
        if self.name in ("early-end", "other-options"):
            self.end()
            return
        if self.name != "no-hello":
            self.hello()
        if self.name in ("flood-channel", "endless-line", "garbage"):
            self.flood()
        self.progress()
        if self.name in ("hang", "hang-hard"):
            wait_for_ever()
        if self.name == "fewer-pairs":
            self.record("pairs", most=int(self.argument))
        names = self.matrices()
        for name in names:
            self.matrix(name)
        if self.name == "short-limit":
            self.record("condition", kind="time_limit", severity="warning", rank=None, text=SHORT_LIMIT)
            self.progress()
        self.in_the_middle(names[0])
        self.all_cells(names)
        self.all_ranks()
        self.end()
        self.out.close()


def timed(machine):
    sys.path.append(os.path.dirname(os.path.realpath(__file__)))
    import bench_time
    o = options(sys.argv[1:])
    walk = bench_time.Walk(sys.argv[1], o, bench_time.Machine(machine, placements(o["bind"])))
    phases = {phase: seconds * 1e3 for phase, seconds in walk.phases.items()}
    with open(o["channel"], "w", encoding="utf-8") as out:
        out.write(json.dumps({"rec": "end", "ok": True, "cells": 0, "phases_ms": phases}) + "\n")


def wait_for_ever():
    while True:
        signal.pause()


def deaf_child():
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        null = os.open("/dev/null", os.O_RDWR)
        for fd in range(3):  # mpirun waits for whoever holds its ranks' output
            os.dup2(null, fd)
        wait_for_ever()


def main():
    if "--version" in sys.argv:
        print("numa_bench (fake)")
        return
    if behaviour()[0] == "timed":
        timed(behaviour()[1])
        return
    fake = Fake()
    if fake.name == "hang-hard":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        deaf_child()
        deaf_child()
    if fake.name == "orphan":
        deaf_child()
    if fake.name == "noise":
        sys.stdout.buffer.write(b"a\0b\x1b[31mred\xff\xfe\xc3\xa9 end\n")
    if fake.name == "flood-stdout":
        while True:
            print("x" * 1000)
    print(f"fake bench: rank {fake.rank} of {fake.ranks}", flush=True)
    if fake.rank == 0:
        fake.measure()
    elif fake.name in ("hang", "hang-hard"):
        wait_for_ever()


try:
    main()
except BrokenPipeError:
    os._exit(1)
