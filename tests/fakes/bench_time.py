# SPDX-License-Identifier: Apache-2.0
"""How long numa_bench takes on a modelled machine: the loops of docs/METHOD.md, walked step by step.

It is written from METHOD and not from model/estimate.c, so that the one can be compared with the other. The machine is
regular: each node has so many last-level caches, and each cache so many cores, one CPU each. Its speeds are the ones
that METHOD assumes, and another node is at twice the distance. Times are in seconds, sizes in bytes.
"""
import math
import re

LINE, WORD = 64, 8
LOAD, CACHED, TOGETHER = 140e-9, 15e-9, 10  # a load of memory, of the last-level cache; loads at once
CORE_MOVES, NODE_MOVES = 15e9, 45e9  # bytes a second
CORE_POPULATES = 9e9  # in huge pages
NEAR, FAR = 60e-9, 250e-9  # round trip of a line, inside and outside of a last-level cache
MESSAGE, MESSAGE_BYTES = 0.5e-6, 2.5e9
COMPARED_BYTES = 1e9  # a second, of messages
REMOTE = 2  # times as long, and as few bytes a second, to another node
# Words that a kernel moves with cached stores: what it writes is read first.
KERNELS = {"copy": 3, "scale": 3, "add": 4, "triad": 4, "read": 1, "write": 1}


class Machine:
    """Of "32M:8:1": bytes of a last-level cache, cores on it, caches of a node."""

    def __init__(self, text, places):
        size, cores, caches = text.split(":")
        self.llc_bytes, self.cores, self.caches = int(size[:-1]) << 20, int(cores), int(caches)
        self.cpus = [cpu for cpu, _ in places]
        self.ranks = len(places)
        self.per_node = max(self.ranks_of(node) for node in range(self.nodes()))

    def cache_of(self, rank):
        return self.cpus[rank] // self.cores

    def nodes(self):
        return max(self.cpus) // (self.cores * self.caches) + 1

    def ranks_of(self, node):
        return sum(self.cache_of(rank) // self.caches == node for rank in range(self.ranks))

    def trip(self, a, b):
        return NEAR if self.cache_of(a) == self.cache_of(b) else FAR


class Walk:
    """A run of the options of numa_bench. `phases` are the seconds of each."""

    def __init__(self, benchmark, options, machine):
        self.o, self.m = options, machine
        self.phases = dict.fromkeys(("start", "populate", "build", "warm-up", "measure", "verify", "meet"), 0)
        self.visits = int(options["visits"])
        self.spend("start", 0.02 + 0.01 * machine.ranks / machine.ranks if "np" in options else 0.12 + 0.008 * machine.ranks)
        getattr(self, benchmark)()

    def spend(self, phase, seconds):
        self.phases[phase] += seconds

    def total(self):
        return sum(self.phases.values())

    def meet(self, times):
        self.spend("meet", times * (5e-6 + 5e-6 * self.m.ranks))

    # ---- parts ----

    def populate(self, size, ranks, far=1):
        self.spend("populate", ranks * size / min(ranks * CORE_POPULATES, NODE_MOVES) * far)

    def verify(self, size):
        self.spend("verify", (1.1e-3 if "np" in self.o else 3.4e-3) + size / 25e9)

    def chase_visit(self, size, ranks, far=1):
        """A chain is built, warmed up and sampled, on so many ranks of a node at once."""
        self.spend("build", ranks * size / min(ranks * CORE_MOVES, NODE_MOVES) * far)
        links, lines, load = size // LINE, self.m.llc_bytes // LINE, LOAD * far
        walked, loaded = links, 0
        if links >= 4 * lines:
            walked, loaded = 8192, lines - links // 64
        elif links >= lines:
            walked, loaded = lines, links - lines
        self.spend("warm-up", max(walked * load + max(0, loaded) * load / TOGETHER, 0.02) + 1e-3)
        cached = min(1, self.m.llc_bytes / size)
        sample = max(int(self.o["sample-us"]) / 1e6, 10000 * (cached * CACHED + (1 - cached) * load))
        limit, least, taken, n = int(self.o["cell-ms"]) / 1e3 / self.visits, int(self.o["min-samples"]) / self.visits, 0, 0
        while taken < limit or n < least:
            taken, n = taken + sample, n + 1
        self.spend("measure", taken)

    # ---- benchmarks ----

    def latency(self):
        sizes = [int(size) << 20 for size in self.o["size"].split(",")]
        self.populate(max(sizes), self.m.per_node)
        self.verify(max(sizes))
        for _ in range(self.visits):
            for size in sizes:
                self.chase_visit(size, self.m.per_node)
                self.meet(3)
        self.verify(max(sizes))

    def matrix(self):
        size = max(4 * self.m.llc_bytes, 64 << 20)
        targets, most = self.targets(), int(self.o["pairs-most"])
        for _ in range(self.visits):
            for cell in range(most or self.m.ranks * targets):
                far = REMOTE if cell >= self.m.ranks else 1  # one of each rank is on its own node
                self.populate(size, 1, far)
                self.verify(size)
                self.chase_visit(size, 1, far)
                self.verify(size)
                self.meet(2)

    def targets(self):
        return sum(int(last or first) - int(first) + 1 for first, last in re.findall(r"(\d+)(?:-(\d+))?", self.o["targets"]))

    def bandwidth(self):
        """Teams of a node's ranks, in each round on targets of their own: placed at once, timed in turns."""
        nodes, targets, size = self.m.nodes(), self.targets(), max(4 * self.m.llc_bytes * self.m.caches, 64 << 20)
        ranks, kernel = self.m.per_node, self.o["kernel"]
        moved = (sum(KERNELS.values()) if kernel == "all" else KERNELS[kernel]) * size
        for turn in range(self.visits * max(nodes, targets)):
            far = REMOTE if turn % max(nodes, targets) else 1  # in one round each team is on its own node
            rate = min(ranks * CORE_MOVES, NODE_MOVES) / far
            self.populate(3 * size / ranks, ranks, far)
            self.verify(3 * size / ranks)
            self.spend("build", 3 * 3 * size / rate)  # filled, which reads first, and compared at the end
            self.verify(3 * size / ranks)
            self.meet(2)
            for _ in range(min(nodes, targets)):  # a turn each
                lap = 2 * (size / 2) / rate
                self.spend("warm-up", math.ceil(0.01 / lap) * lap + 1e-3)
                self.spend("measure", math.ceil(int(self.o["passes"]) / self.visits) * moved / rate)
                self.meet(2)

    def c2c(self):
        lines, trips = int(self.o["lines"]), int(self.o["repetitions"])
        samples = max(math.ceil(int(self.o["min-samples"]) / self.visits), lines) + lines / 4
        definitions = 2 if self.o["definition"] == "both" else 1
        self.all_pairs(lambda a, b: definitions * samples * trips * self.m.trip(a, b))

    def pingpong(self):
        most, trips = int(self.o["message-max"].rstrip("M")) << 20, int(self.o["repetitions"])
        sizes = [0] + [size for size in (65536 << 2 * k for k in range(20)) if size <= most]

        def of_size(size):
            trip = 2 * (MESSAGE + size / MESSAGE_BYTES)
            timed = max(min(trips, (40 << 20) / size if size else trips), 20)
            batch = min(max(1, int(1e-4 / trip)), 1000)
            samples = max(math.ceil(timed / batch / self.visits), math.ceil(20 / self.visits))
            warm = 4 if size > 65536 else 20
            return (warm + samples * (batch + 1) + 2) * trip + 4 * size / COMPARED_BYTES
        whole = sum(map(of_size, sizes))
        self.all_pairs(lambda a, b: whole)

    def all_pairs(self, pair_takes):
        """A tournament: the last rank stays, and the others move on by a place each round."""
        ranks = self.m.ranks
        most = int(self.o["pairs-most"]) or ranks * ranks
        for _ in range(self.visits):
            left = most
            for turn in range(ranks - 1):
                pairs = [((turn + k) % (ranks - 1), (turn - k) % (ranks - 1)) for k in range(1, ranks // 2)]
                pairs = ([(turn, ranks - 1)] + pairs)[:left]
                left -= len(pairs)
                self.spend("measure", max((pair_takes(a, b) for a, b in pairs), default=0) + (1e-4 if pairs else 0))
        for a, b in self.one_of_each_class():  # control pairs: seven times alone, seven times in company
            self.spend("warm-up", 7 * 2 * (pair_takes(a, b) + 1e-4))

    def one_of_each_class(self):
        """The same cache, another cache of the node, another node."""
        same, node = self.m.cores, self.m.cores * self.m.caches
        return [(0, b) for b in dict.fromkeys((1, same, node)) if b < self.m.ranks]
