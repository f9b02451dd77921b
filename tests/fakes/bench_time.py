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
CORE_POPULATES, BASE_PAGES = 9e9, 1.8e9  # in huge pages, in pages of 4 KiB
NEAR, FAR = 60e-9, 250e-9  # round trip of a line, inside and outside of a last-level cache
MESSAGE, MESSAGE_BYTES = 0.5e-6, 2.5e9
SCAN_LINES = 8  # of a pair in a scan
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

    def populate(self, size, ranks, far=1, rate=CORE_POPULATES, phase="populate"):
        self.spend(phase, ranks * size / min(ranks * rate, NODE_MOVES) * far)

    def verify(self, size):
        self.spend("verify", (1.1e-3 if "np" in self.o else 3.4e-3) + size / 25e9)

    def sample(self, load):
        """Samples of a visit, until its part of the cell's time limit is over and there are enough of them."""
        sample = max(int(self.o["sample-us"]) / 1e6, 10000 * load)
        limit, least, taken, n = int(self.o["cell-ms"]) / 1e3 / self.visits, int(self.o["min-samples"]) / self.visits, 0, 0
        while taken < limit or n < least:
            taken, n = taken + sample, n + 1
        self.spend("measure", taken)

    def loads(self, size, load=LOAD):
        cached = min(1, self.m.llc_bytes / size)
        return cached * CACHED + (1 - cached) * load

    def teams(self):
        """The first 1, 2, 4, … ranks, and all."""
        return sorted({1 << k for k in range(20) if 1 << k < self.m.ranks} | {self.m.ranks})

    def chase_visit(self, size, ranks, far=1, rest=0.02 + 1e-3):
        """A chain is built, warmed up and sampled, on so many ranks of a node at once. Cores that slept begin with a rest."""
        self.spend("build", ranks * size / min(ranks * CORE_MOVES, NODE_MOVES) * far)
        links, lines, load = size // LINE, self.m.llc_bytes // LINE, LOAD * far
        walked, loaded = links, 0
        if links >= 4 * lines:
            walked, loaded = 8192, lines - links // 64
        elif links >= lines:
            walked, loaded = lines, links - lines
        self.spend("warm-up", max(walked * load + max(0, loaded) * load / TOGETHER, rest))
        self.sample(self.loads(size, load))

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
        visits = min(self.visits, int(self.o["passes"]))
        for turn in range(visits * max(nodes, targets)):
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
                self.spend("measure", math.ceil(int(self.o["passes"]) / visits) * moved / rate)
                self.meet(2)

    def firsttouch(self):
        """Own arrays, the first rank's, the next rank's: all ranks read at once, a word of each line."""
        size, ranks = 4 * self.m.llc_bytes, self.m.per_node
        self.populate(size, ranks, rate=BASE_PAGES)
        self.verify(size)
        for _ in range(3 * self.visits):
            self.spend("warm-up", max(size / LINE * LOAD / TOGETHER, 0.02) + 1e-3)
            self.sample(self.loads(size) / TOGETHER)
            self.meet(4)
        self.verify(size)

    def pagefault(self):
        """Teams on each target, pages of 4 KiB and huge ones. A pass that is not counted goes before."""
        size, first_node = int(self.o["size"]) << 20, self.m.per_node
        for target in range(self.targets()):
            for team in self.teams():
                far = 1 if target == 0 and team <= first_node else REMOTE
                for _ in range(int(self.o["passes"]) + 1):
                    for rate in (BASE_PAGES, CORE_POPULATES):
                        self.meet(2)
                        self.populate(size, team, far, rate, "measure")
                        self.verify(size)  # the node of each page
                        self.verify(size)  # how many are huge
                    self.populate(size / 10, team, far, BASE_PAGES, "verify")  # base pages are given back one by one

    def atomics(self):
        """Teams, and all operations of each: six, with one sample that does not count."""
        for _ in range(self.visits * len(self.teams())):
            self.spend("warm-up", 0.02)
            self.spend("measure", 6 * (math.ceil(int(self.o["min-samples"]) / self.visits) + 1) * int(self.o["sample-us"]) / 1e6)
            self.meet(2)

    def loaded(self):
        """All nodes at once: a rank chases, and the others of its node make loads. A scouting round goes first."""
        size, caches, ranks, levels = 4 * self.m.llc_bytes, self.m.caches, self.m.per_node, int(self.o["steps"])
        self.populate((1 + caches) * size / ranks, ranks)
        self.verify((1 + caches) * size)
        for turn in range(1 + self.visits):
            self.spend("warm-up", caches * size / min(ranks * CORE_MOVES, NODE_MOVES))  # loaders write what they read
            if turn == 0:
                self.spend("warm-up", 5 * 0.01)  # full load
            self.chase_visit(size, 1)
            for _ in range(levels):
                self.spend("warm-up", 0.015)
                self.meet(2)
                if turn == 0:
                    self.spend("measure", 5 * int(self.o["sample-us"]) / 1e6)
                else:
                    self.sample(self.loads(size))
        self.verify((1 + caches) * size)

    def hierarchy(self):
        """One rank after the other: curves over sizes and pages, chains at once, strides, and each node."""
        usual = 4 * self.m.llc_bytes
        size, pages = max(4 * usual, 256 << 20), 16384
        curve = [4096 * 2 ** (k / 4) for k in range(99) if 4096 * 2 ** (k / 4) < size] + [size]
        octaves = [16 * 2 ** (k / 8) for k in range(99) if 16 * 2 ** (k / 8) < pages] + [pages]
        huge = [n for n in octaves if n < size >> 21] + [size >> 21]
        for _ in range(self.m.ranks):
            self.populate(size, 1)
            self.populate(size / 4, 1, rate=BASE_PAGES)
            for memory in [size, size / 4] + [usual] * (self.targets() - 1):
                self.populate(memory, 1, 1 if memory != usual else REMOTE)
                self.verify(memory)
                self.verify(memory)
            for _ in range(self.visits):
                for cell in curve + [n * LINE for n in 2 * octaves + huge] + [usual]:  # the last one is that of the chains
                    self.chase_visit(int(cell), 1, rest=0)
                for _ in range(20):
                    self.sample(0)
                for _ in range(7):
                    self.chase_visit(usual, 1, rest=0)
                for node in range(self.targets()):
                    self.chase_visit(usual, 1, REMOTE if node else 1, rest=0)

    def scan(self):
        """All ranks at once: L2, memory, reading, and pairs in rounds. A part that confirms comes only if something deviates."""
        size, per_node = 4 * self.m.llc_bytes // self.m.cores, self.m.per_node
        rounds = math.ceil(min(4096, self.m.ranks * (self.m.ranks - 1) / 2) / (self.m.ranks // 2))
        read = size * per_node / min(per_node * CORE_MOVES, NODE_MOVES)
        self.populate(size, per_node)
        self.verify(size)
        for _ in range(self.visits):
            self.spend("build", read)
            self.spend("warm-up", 2 * 1e-3 + size / LINE * LOAD + 3 * read)
            self.spend("measure", 3 * int(self.o["cell-ms"]) / 1e3 / self.visits)
            self.spend("measure", rounds * (SCAN_LINES + 1) * int(self.o["repetitions"]) * FAR)
            self.meet(4 * (3 + rounds))
        self.verify(size)

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
