#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""numa_bench beside other people's tools: the same question, CPUs and pages, in pairs.

A round is one run of ours and one of theirs, one after the other; who is first alternates. What
is compared is the ratio of the medians over all rounds, ours / theirs, with a 95 % bootstrap
interval over whole rounds. Beside it stands how much each side's figure changes from run to run.

  latency    multichase: simple chase, -s LINE -T SIZE, so that the whole arena is one random
             order; the median of its samples of 0.5 s.
             lat_mem_rd -t with a stride of LINE: pages in random order, a line of each in turn.
  bandwidth  STREAM: its best rate beside our 99th percentile, its rate of the mean time beside
             our median; as many ranks as it has threads, arrays of the same size. Beside a STREAM
             that was compiled with streaming stores: --ours=--stores=streaming.
  pingpong   IMB-MPI1 PingPong: t[usec], a mean of its repetitions, beside our median.
  c2c        core-to-core-latency, its first benchmark: compare-and-swap on one flag. It prints
             half of a round trip (a mean); the table has the whole one.
  atomics    multichase's fairness, without pauses: fetch-and-add by one and two threads on a line. Of its
             time per increment of each thread the harmonic mean, which is that of all increments.
  parallel   multichase: parallelN, the time per load of N chases at once. par_mem: how many times
             as long one chase takes, at most of 16.
  tlb        lmbench's tlb: the pages from which on translations are missed.

Pages. 4k: multichase asks for them itself (MADV_NOHUGEPAGE), lat_mem_rd starts with transparent
huge pages switched off for the process (PR_SET_THP_DISABLE survives exec). thp: multichase -H;
lat_mem_rd through glibc's allocator (GLIBC_TUNABLES=glibc.malloc.hugetlb=1, glibc 2.35 or later).
STREAM's arrays are static and get huge pages where the machine gives them to everybody: ours asks
for what it got. No setting of the machine is changed. What a tool really got is looked up in smaps
in a run that is not counted, and a comparison of unlike pages is skipped.
"""
import argparse
import ctypes
import functools
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

KINDS = ("latency", "bandwidth", "pingpong", "c2c", "atomics", "parallel", "tlb")
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
HUGE = 2 << 20
PR_SET_THP_DISABLE = 41
RESAMPLES = 4000
TIME_LIMIT_S = 1800  # of one run: lat_mem_rd walks every size below the one asked for


class Skip(Exception):
    """Why a comparison cannot be made."""


# ---------------------------------------------------------------- running programs

def thp_off():
    ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)


def start(command, env=None, no_thp=False):
    try:
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
            text=True, start_new_session=True, preexec_fn=thp_off if no_thp else None,
            env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                 "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **(env or {})})
    except OSError as error:
        raise Skip(f"{command[0]}: {error.strerror}") from error


def stop(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.communicate()


def run(command, **how):
    """Standard output and standard error of a program that must succeed."""
    process = start(command, **how)
    try:
        out, complaint = process.communicate(timeout=TIME_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise Skip(f"{command_name(command)} took more than {TIME_LIMIT_S} s") from None
    finally:
        stop(process)
    if process.returncode:
        why = [line for line in complaint.splitlines() if line.strip(" -")] or ["no message"]
        raise Skip(f"{command_name(command)} ended with {process.returncode}: {why[0].strip()}")
    return out, complaint


def command_name(command):
    """The program behind its launchers."""
    words = [os.path.basename(word) for word in command if os.access(word, os.X_OK)]
    return words[-1] if words else command[0]


def on_cpus(cpus, command):
    return ["taskset", "-c", ",".join(map(str, cpus)), *command]


def on_ranks(cpus, command):
    """A rank on each CPU, by the kernel's numbers, which are not always mpirun's."""
    words = ["mpirun", "--bind-to", "none"]
    for cpu in cpus:
        words += [":"] if cpu != cpus[0] else []
        words += ["-np", "1", *on_cpus([cpu], command)]
    return words


def ours(args, launch, cpus, read, benchmark, *options):
    """What `read` makes of the JSON of one run."""
    out, _ = run(launch(cpus, [args.bench, benchmark, *options, *args.ours.split(), "--json"]))
    try:
        return read(json.loads(out))
    except (LookupError, TypeError, ValueError) as error:
        raise Skip(f"numa_bench {benchmark} reports something else than expected: "
                   f"{type(error).__name__}: {error}") from error


# ---------------------------------------------------------------- the pages a program got

def mappings(session):
    """[(bytes, resident, huge)] of the processes of a session."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.getsid(int(name)) == session:
                with open(f"/proc/{name}/smaps") as f:
                    found += [tuple(int(re.search(rf"^{key}: +(\d+) kB", text, re.M)[1]) << 10
                                    for key in ("Size", "Rss", "AnonHugePages"))
                              for text in re.split(r"^VmFlags:.*\n", f.read(), flags=re.M) if text]
        except OSError:
            continue
    return found


def pages_got(command, size, resident, limit_s=20, **how):
    """4k or thp: what the smallest mapping of `size` has once so much of it is resident."""
    process = start(command, **how)
    end = time.monotonic() + limit_s
    arenas = []
    while time.monotonic() < end and process.poll() is None and not arenas:
        time.sleep(0.02)
        arenas = [m for m in mappings(process.pid) if m[0] >= size and m[1] >= resident]
    stop(process)
    if not arenas:
        raise Skip(f"the pages of {command_name(command)} could not be looked up")
    _, got, huge = min(arenas)
    if 0.1 < huge / got < 0.8:
        raise Skip(f"{command_name(command)} got {huge / got:.0%} of its memory in huge pages")
    return "thp" if huge > got / 2 else "4k"


def want_pages(pages, command, size, resident, **how):
    got = pages_got(command, size, resident, **how)
    if got != pages:
        raise Skip(f"{command_name(command)} got {got} pages")


# ---------------------------------------------------------------- reading our JSON

def matrix(result, name):
    for found in result["matrices"]:
        if found["name"] == name:
            return found
    raise Skip(f"numa_bench reports no matrix \"{name}\"")


def read_cells(result):
    """The first rank's cells of latency, a size each."""
    return result["matrices"][0]["cells"][0]


def read_latency(result):
    """{bytes: ns} of the first rank."""
    sizes = result["matrices"][0]["cols"]["values"]
    return {size: cell["median"] for size, cell in zip(sizes, read_cells(result))}


def read_bandwidth(result):
    """{"copy best": MB/s, "copy mean": MB/s, ...}: the last cell has all ranks at once."""
    rates = {}
    for found in result["matrices"]:
        cell = found["cells"][-1][-1]
        rates[f"{found['name']} best"] = cell["p99"]
        rates[f"{found['name']} mean"] = cell["median"]
    return rates


def read_pingpong(result):
    """{bytes: us} of the one pair."""
    found = matrix(result, "pingpong")
    return {size: cell["median"] for size, cell in zip(found["cols"]["values"], found["cells"][0])}


def read_c2c(result):
    """{"cas": ns}: the round trip between rank 0 and rank 1."""
    return {"cas": matrix(result, "cas")["cells"][0][1]["median"]}


def read_atomics(result):
    """{"1 thread": ns, "2 threads": ns}: per fetch_add of a thread, on one line."""
    alone, both = matrix(result, "time")["cells"]
    return {"1 thread": alone[0]["median"], "2 threads": both[0]["median"]}


PAR_MEM_MOST = 16  # chases of lmbench's par_mem at most


def row_of(result, name):
    """{column: median} of the first rank."""
    found = matrix(result, name)
    return {value: cell["median"] for value, cell in zip(found["cols"]["values"], found["cells"][0])}


def read_parallel(result):
    """{"2 chases": ns, ..., "loads at once": number}."""
    times = row_of(result, "parallel")
    most = max(times[1] / ns for chases, ns in times.items() if chases <= PAR_MEM_MOST)
    return {f"{chases} chases": ns for chases, ns in times.items()} | {"loads at once": most}


def read_tlb(result):
    """{"pages": number}: as tlb, the last number of pages that takes less than 1.15 of its lines alone."""
    pages, packed = row_of(result, "base_pages"), row_of(result, "packed")
    for before, number in zip(pages, list(pages)[1:]):
        if pages[number] > 1.15 * packed[number]:
            return {"pages": before}
    raise Skip("no translation was missed")


# ---------------------------------------------------------------- reading what peers print

def parse_multichase(text):
    samples = [float(value) for value in re.findall(r"avg=([\d.]+)", text)]
    if not samples:
        raise Skip("multichase printed no samples")
    return statistics.median(samples)


def parse_lat_mem_rd(text):
    rows = re.findall(r"^(\d+\.\d+) (\d+\.\d+)$", text, re.M)
    return {round(float(mib) * (1 << 20)): float(ns) for mib, ns in rows}


def parse_par_mem(text):
    rows = re.findall(r"^\d+\.\d+ (\d+\.\d+)$", text, re.M)
    if not rows:
        raise Skip("par_mem printed no figure")
    return {"loads at once": float(rows[-1])}


def parse_tlb(text):
    found = re.search(r"^tlb: (\d+) pages", text, re.M)
    if not found:
        raise Skip("tlb found no translation that is missed")
    return {"pages": int(found[1])}


def parse_stream(text):
    if "Solution Validates" not in text:
        raise Skip("STREAM did not validate its arrays")
    rates = {}
    row = r"^(\w+): +([\d.]+) +([\d.]+) +([\d.]+)"
    for name, best, mean_s, min_s in re.findall(row, text, re.M):
        rates[f"{name.lower()} best"] = float(best)
        rates[f"{name.lower()} mean"] = float(best) * float(min_s) / float(mean_s)
    return rates


def parse_imb(text):
    rows = re.findall(r"^ +(\d+) +\d+ +(\d+\.\d+) +\d+\.\d+ *$", text, re.M)
    return {int(size): float(us) for size, us in rows}


def parse_c2c(text):
    halves = [float(value) for value in re.findall(r"\d+\.\d+|\d+", text)]
    if not halves:
        raise Skip("core-to-core-latency printed no figure")
    return {"cas": 2 * halves[-1]}


def parse_fairness(text):
    """Each line has the time per increment of each thread, then their mean."""
    lines = text.partition("unrelaxed:")[2].partition("relaxed:")[0].splitlines()
    samples = [[float(value) for value in line.partition(":")[0].split()] for line in lines if ":" in line]
    if not samples:
        raise Skip("fairness printed no figure")
    return statistics.median(statistics.harmonic_mean(times) for times in samples)


# ---------------------------------------------------------------- figures

def ratio_of_medians(pairs):
    return statistics.median(a for a, _ in pairs) / statistics.median(b for _, b in pairs)


def bootstrap(pairs, rng):
    """95 % interval of the ratio of the medians, resampling whole rounds."""
    ratios = []
    for _ in range(RESAMPLES):
        drawn = rng.choices(pairs, k=len(pairs))
        ratios.append(ratio_of_medians(drawn))
    ratios.sort()
    return ratios[int(0.025 * RESAMPLES)], ratios[int(0.975 * RESAMPLES) - 1]


def spread(values):
    """Interquartile range / median and standard deviation / mean, in per cent."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return (100 * (high - low) / middle, 100 * statistics.stdev(values) / statistics.mean(values))


HEAD = (f"{'':28} {'n':>3} {'ours':>10} {'theirs':>10} {'':4} {'ratio':>6} {'95 % interval':16}"
        f" {'ours: IQR':>9} {'sd':>6}  {'theirs: IQR':>11} {'sd':>6}")


def table_row(label, unit, pairs, rng):
    a, b = [p[0] for p in pairs], [p[1] for p in pairs]
    left, right = statistics.median(a), statistics.median(b)
    if not right:
        return f"{label:28} {len(pairs):3} {left:10.4g} {right:10.4g} {unit:4} no ratio to zero"
    low, high = bootstrap(pairs, rng)
    (iqr_a, sd_a), (iqr_b, sd_b) = spread(a), spread(b)
    return (f"{label:28} {len(pairs):3} {left:10.2f} {right:10.2f} {unit:4} {left / right:6.3f} "
            f"[{low:.3f}, {high:.3f}]   {iqr_a:7.1f} % {sd_a:4.1f} %   {iqr_b:9.1f} % "
            f"{sd_b:4.1f} %")


def size_name(size):
    for letter, unit in reversed(UNITS.items()):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{letter}"
    return str(size)


def key_name(key):
    return size_name(key) if isinstance(key, int) else key


# ---------------------------------------------------------------- comparisons in pairs

class Report:
    def __init__(self, args):
        self.args, self.rng, self.skipped, self.raw = args, random.Random(args.seed), [], {}

    def skip(self, label, why):
        self.skipped.append(f"{label}: {why}")
        print(f"{label:28} skipped: {why}", flush=True)

    def rows(self, label, unit, rounds):
        both = [key for key in rounds[0][0] if all(key in a and key in b for a, b in rounds)]
        for key in both:
            pairs = [(a[key], b[key]) for a, b in rounds]
            name = f"{label} {key_name(key)}"
            self.raw[name] = pairs
            print(table_row(name, unit, pairs, self.rng), flush=True)
        if not both:
            raise Skip("the two printed nothing in common")

    def compare(self, label, unit, make, sizes=()):
        """make() gives two functions without arguments that return {key: value}."""
        try:
            mine, other = make()
            rounds = []
            for number in range(self.args.rounds):
                if number % 2:
                    b, a = other(), mine()
                else:
                    a, b = mine(), other()
                rounds.append((a, b))
            self.rows(label, unit, rounds)
        except Skip as why:
            self.skip(" ".join([label, *map(size_name, sizes)]), why)


def need(path, option):
    if not path:
        raise Skip(f"--{option} was not given")
    if not os.access(path, os.X_OK):
        raise Skip(f"{path} is no program")


def our_latency(args, sizes, pages):
    return ours(args, on_cpus, args.cpus[:1], read_latency, "latency",
                "--size=" + ",".join(map(size_name, sizes)), f"--pages={pages}")


def with_multichase(args, size, pages):
    need(args.multichase, "multichase")
    if pages == "thp" and size < HUGE:
        raise Skip("multichase maps less than one huge page")
    command = on_cpus(args.cpus[:1], [
        args.multichase, "-v", "-c", "simple", "-s", str(args.line), "-m", str(size),
        "-T", str(size), "-n", str(args.samples), *(["-H"] if pages == "thp" else [])])
    if size >= HUGE:
        # Without the memory that flushes the caches, which is never in huge pages.
        want_pages(pages, [*command, "-F", "4k"], size, 0.9 * size)
    return (lambda: our_latency(args, [size], pages),
            lambda: {size: parse_multichase(run(command)[0])})


# Its own calibration would take longer than the measuring, once a size: the shortest interval in
# us that its clock can time, and the costs of its loop and clock, nothing beside so many loads.
LMBENCH_ENV = {"ENOUGH": "5000", "LOOP_O": "0", "TIMING_O": "0.1"}


def with_lat_mem_rd(args, sizes, pages):
    need(args.lat_mem_rd, "lat-mem-rd")
    arena = max(*sizes, 16 << 20)  # the smaller are rows of the same run
    if arena > args.lat_mem_rd_max:
        raise Skip("it walks every size below too, minutes a run: --lat-mem-rd-max")
    command = on_cpus(args.cpus[:1], [args.lat_mem_rd, "-N", "1", "-t", str(arena >> 20),
                                      str(args.line)])
    tunables = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"} if pages == "thp" else {}
    how = {"env": {**LMBENCH_ENV, **tunables}, "no_thp": pages == "4k"}
    want_pages(pages, command, arena, 1 << 20, **how)

    def theirs():
        rows = parse_lat_mem_rd("\n".join(run(command, **how)))
        return {size: rows[size] for size in sizes if size in rows}
    return lambda: our_latency(args, sizes, pages), theirs


def together(sizes):
    """lat_mem_rd's runs: the small sizes are rows of one."""
    small = [size for size in sizes if size <= 16 << 20]
    return ([small] if small else []) + [[size] for size in sizes if size not in small]


def latency(args, report):
    for pages in args.pages:
        for size in args.sizes:
            report.compare(f"multichase {pages}", "ns",
                           lambda: with_multichase(args, size, pages), [size])
        for sizes in together(args.sizes):
            report.compare(f"lat_mem_rd {pages}", "ns",
                           lambda: with_lat_mem_rd(args, sizes, pages), sizes)
        for size in args.sizes if args.null else []:
            mine = functools.partial(our_latency, args, [size], pages)
            report.compare(f"null: ours twice {pages}", "ns", lambda: (mine, mine), [size])


def with_stream(args):
    need(args.stream, "stream")
    threads = len(args.cpus)
    command = on_cpus(args.cpus, [args.stream])
    env = {"OMP_NUM_THREADS": str(threads), "OMP_PROC_BIND": "true",
           "OMP_PLACES": ",".join(f"{{{cpu}}}" for cpu in args.cpus)}
    text, _ = run(command, env=env)
    elements = int(re.search(r"Array size = (\d+)", text)[1])
    pages = pages_got(command, 24 * elements, 22 * elements, env=env)
    size = f"--size={8 * elements >> 10}K"
    print(f"{'STREAM':28} {threads} threads, arrays of {elements} doubles, {pages} pages")
    return (lambda: ours(args, on_ranks, args.cpus, read_bandwidth, "bandwidth", size,
                         "--sweep=own", f"--pages={pages}"),
            lambda: parse_stream(run(command, env=env)[0]))


def bandwidth(args, report):
    report.compare("STREAM", "MB/s", lambda: with_stream(args))


def pair(args):
    if len(args.cpus) < 2:
        raise Skip("takes two CPUs (--cpus)")
    return args.cpus[:2]


def with_imb(args):
    need(args.imb, "imb")
    command = on_ranks(pair(args), [args.imb, "PingPong"])
    return (lambda: ours(args, on_ranks, pair(args), read_pingpong, "pingpong"),
            lambda: parse_imb(run(command)[0]))


def pingpong(args, report):
    report.compare("IMB PingPong", "us", lambda: with_imb(args))


def with_c2c(args):
    need(args.c2c, "c2c")
    command = [args.c2c, "--csv", "--bench=1", "--cores=" + ",".join(map(str, pair(args)))]
    return (lambda: ours(args, on_ranks, pair(args), read_c2c, "c2c", "--definition=cas"),
            lambda: parse_c2c(run(command)[0]))


def c2c(args, report):
    report.compare("core-to-core-latency", "ns", lambda: with_c2c(args))


def with_fairness(args):
    need(args.fairness, "fairness")
    command = [args.fairness, "-t", "0.2", "-n", str(args.samples)]

    def theirs():
        return {name: parse_fairness(run(on_cpus(pair(args)[:n], command))[0])
                for n, name in ((1, "1 thread"), (2, "2 threads"))}
    return (lambda: ours(args, on_ranks, pair(args), read_atomics, "atomics", "--operation=fetch_add",
                         "--threads=1,2"), theirs)


def atomics(args, report):
    report.compare("multichase fairness", "ns", lambda: with_fairness(args))


PARALLEL_BYTES, PARALLEL_CHASES = 128 << 20, (2, 4, 8)


def our_hierarchy(args, read):
    return ours(args, on_cpus, args.cpus[:1], read, "hierarchy", f"--size={PARALLEL_BYTES >> 20}")


def parallel_multichase(args):
    need(args.multichase, "multichase")

    def theirs():
        return {f"{n} chases": parse_multichase(run(on_cpus(args.cpus[:1], [
            args.multichase, "-v", "-c", f"parallel{n}", "-s", str(args.line), "-H", "-m",
            str(PARALLEL_BYTES), "-T", str(PARALLEL_BYTES), "-n", str(args.samples)]))[0])
                for n in PARALLEL_CHASES}
    return lambda: our_hierarchy(args, read_parallel), theirs


def with_par_mem(args):
    need(args.par_mem, "par-mem")
    command = on_cpus(args.cpus[:1], [args.par_mem, "-N", "1", "-L", str(args.line), "-M",
                                      size_name(PARALLEL_BYTES)])
    return (lambda: our_hierarchy(args, read_parallel),
            lambda: parse_par_mem("\n".join(run(command, env=LMBENCH_ENV))))


def parallel(args, report):
    report.compare("multichase parallel", "ns", lambda: parallel_multichase(args))
    report.compare("par_mem", "", lambda: with_par_mem(args))


def with_tlb(args):
    need(args.tlb, "tlb")
    command = on_cpus(args.cpus[:1], [args.tlb, "-L", str(args.line), "-M", "64M"])
    return (lambda: our_hierarchy(args, read_tlb),
            lambda: parse_tlb("\n".join(run(command, no_thp=True))))


def tlb(args, report):
    report.compare("lmbench tlb", "", lambda: with_tlb(args))


# ---------------------------------------------------------------- command line

def size_bytes(text):
    match = re.fullmatch(r"(\d+)([KMG])", text.strip().upper())
    if not match:
        raise argparse.ArgumentTypeError(f"\"{text}\" is no size such as 64K, 16M, 1G")
    return int(match[1]) * UNITS[match[2]]


def listed(convert):
    def parse(text):
        return [convert(word) for word in text.split(",") if word]
    parse.__name__ = "list"
    return parse


def one_of(*names):
    def parse(text):
        if text not in names:
            raise argparse.ArgumentTypeError(f"\"{text}\" is none of {', '.join(names)}")
        return text
    return parse


def at_least(least):
    def parse(text):
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"at least {least}")
        return int(text)
    parse.__name__ = "number"
    return parse


def arguments(words):
    p = argparse.ArgumentParser(description=__doc__, allow_abbrev=False,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    add = p.add_argument
    add("--bench", required=True, metavar="PATH", help="our numa_bench")
    for name, what in (("multichase", "multichase"), ("lat-mem-rd", "lmbench's lat_mem_rd"),
                       ("stream", "STREAM with OpenMP"), ("imb", "IMB-MPI1"),
                       ("c2c", "core-to-core-latency"), ("par-mem", "lmbench's par_mem"),
                       ("fairness", "multichase's fairness"),
                       ("tlb", "lmbench's tlb")):
        add(f"--{name}", metavar="PATH", help=f"{what}; without it its comparison is skipped")
    add("--only", type=listed(one_of(*KINDS)), default=list(KINDS), metavar="LIST",
        help=f"comparisons to make, of {','.join(KINDS)} [all]")
    add("--rounds", type=at_least(3), default=10, metavar="N", help="pairs of runs [10]")
    add("--sizes", type=listed(size_bytes), default="64K,1M,16M,64M,256M,1G", metavar="LIST",
        help="working sets of latency [%(default)s]")
    add("--pages", type=listed(one_of("4k", "thp")), default="4k,thp", metavar="LIST",
        help="page sizes of latency [%(default)s]")
    add("--cpus", type=listed(int), default=sorted(os.sched_getaffinity(0)), metavar="LIST",
        help="latency takes the first, pingpong, c2c and atomics two, bandwidth all [those allowed]")
    add("--line", type=at_least(8), default=64, metavar="BYTES", help="cache line [64]")
    add("--samples", type=at_least(1), default=5, metavar="N",
        help="multichase's samples of 0.5 s a run [5]")
    add("--lat-mem-rd-max", type=size_bytes, default="64M", metavar="SIZE",
        help="largest size for lat_mem_rd: 20 s a run at 64M, minutes at 256M [%(default)s]")
    add("--ours", default="", metavar="OPTIONS",
        help="further options for numa_bench: --ours='--cell-ms=1000 --seed=7'")
    add("--null", action="store_true",
        help="latency: also ours beside ours, which is what this machine can tell at all")
    add("--seed", type=int, default=1, metavar="N", help="of the bootstrap [1]")
    add("--save", metavar="FILE", help="write every round's figures as JSON")
    return p.parse_args(words)


def main():
    args = arguments(sys.argv[1:])
    need(args.bench, "bench")
    for program in ("taskset", "mpirun"):
        if not shutil.which(program):
            sys.exit(f"{program} is not installed")
    print(f"{args.rounds} rounds, CPUs {','.join(map(str, args.cpus))}, bootstrap seed "
          f"{args.seed}; ratio = ours / theirs\n{HEAD}", flush=True)
    report = Report(args)
    for kind in KINDS:
        if kind in args.only:
            globals()[kind](args, report)
        else:
            report.skip(kind, "not in --only")
    if args.save:
        with open(args.save, "w") as f:
            json.dump(report.raw, f)
    print(f"{len(report.raw)} figures, {len(report.skipped)} skipped")


if __name__ == "__main__":
    try:
        main()
    except Skip as why:
        sys.exit(str(why))
