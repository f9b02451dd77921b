#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TAP: two real ranks under mpirun.

usage: test_real.py NUMA_BENCH
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

count = failed = 0
ENV = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
           OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_btl="self,vader",
           OMPI_MCA_plm="isolated")
FAST = ["--cell-ms=60", "--precision=5"]
WITHOUT_CALLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../fakes/without_calls.py")


def check(good, what, *details):
    global count, failed
    count += 1
    failed += not good
    print("ok" if good else "not ok", count, "-", what)
    for detail in details if not good else ():
        print("#", *str(detail).splitlines()[:20], sep="\n# ")
    return good


def mpirun(bench, *options, ranks=2, words=()):
    return subprocess.run(["mpirun", *words, "-np", str(ranks), bench, *options], capture_output=True,
                          text=True, env=ENV, timeout=200, stdin=subprocess.DEVNULL)


def cells(matrix):
    return [cell for row in matrix["cells"] for cell in row]


def as_json(bench):
    done = mpirun(bench, "--size=64K,1M", "--mode=both", "--json", *FAST)
    if not check(done.returncode == 0, "two ranks, both modes, JSON", done.stderr):
        return
    result = json.loads(done.stdout)
    names = [m["name"] for m in result["matrices"]]
    check(names == ["concurrent", "serial"], "a matrix a mode", names)
    for matrix in result["matrices"]:
        check(matrix["cols"]["values"] == [65536, 1048576] and matrix["rows"]["values"] == [0, 1],
              f"{matrix['name']}: its axes")
        check(all(0 <= (c["lo"] or 0) <= c["median"] <= (c["hi"] or c["median"]) and
                  c["median"] > 0.2 and (c["lo"] is None) == (c["n"] == 1) and
                  (c["p10"] is None if c["disturbed"] and c["mean"] is None else  # the least disturbed stands in
                   c["min"] <= c["p10"] <= c["median"] <= c["p90"] <= c["p99"]) and
                  c["n"] >= 1 for c in cells(matrix)),
              f"{matrix['name']}: every cell is in order", cells(matrix))
    concurrent, serial = result["matrices"]
    check(all(0 <= c["overlap"] <= 1 for c in cells(concurrent)), "overlap is a share")
    check(all(c["overlap"] is None for c in cells(serial)), "no overlap in serial mode")
    ranks = result["ranks"]
    check([r["rank"] for r in ranks] == [0, 1] and len({r["pid"] for r in ranks}) == 2,
          "two ranks, two processes")
    check(all(r["pages_total"] == 512 and r["arena_bytes"] == 2 << 20 for r in ranks),
          "one huge page each")
    check([r["seed"] for r in ranks] == [1, 2], "rank r uses seed + r")
    check(result["phases_ms"]["measure"] > 0, "phases are told apart")


def as_records(bench):
    folder = tempfile.mkdtemp()
    fifo = os.path.join(folder, "records")
    os.mkfifo(fifo)
    lines = []

    def read():
        with open(fifo, encoding="ascii") as f:
            lines.extend(json.loads(line) for line in f)
    reader = threading.Thread(target=read)
    reader.start()
    done = mpirun(bench, "latency", f"--channel={fifo}", "--nonce=abc", "--deadline=30",
                  "--size=64K,256K", "--stride=128", *FAST)
    reader.join(30)
    shutil.rmtree(folder)
    kinds = [line["rec"] for line in lines]
    check(done.returncode == 0 and done.stdout == "", "with a channel nothing is printed",
          done.stdout, done.stderr)
    check(kinds[:2] == ["hello", "matrix"] and kinds[-1] == "end", "hello, matrix … end", kinds)
    check(lines[0]["nonce"] == "abc" and lines[0]["ranks"] == 2, "the nonce comes back")
    check(kinds.count("cell") == 4 == lines[-1]["cells"] and kinds.count("rank") == 2,
          "four cells, two ranks", kinds)
    check(lines[-1]["ok"] is True, "the end says that all is well")


def by_hand(bench):
    done = mpirun(bench, "--size=64K", "--serial", *FAST)
    for text in ("=== Debug Information ===", "  Number of ranks: 2",
                 "|  MPI  |        CPU     |              MEMORY    |", "|  001  | ",
                 "Per-node memory usage of the ranks (in MBs)"):
        check(text in done.stdout, f"the table has: {text}", done.stdout)
    done = subprocess.run([bench, "--size=64K", "--csv", *FAST], capture_output=True, text=True,
                          env={"PATH": os.environ["PATH"]}, timeout=200)
    check(done.returncode == 0 and len(done.stdout.splitlines()) == 2,
          "one rank without a launcher, CSV", done.stdout, done.stderr)


SMALL = ["--size=4", "--min-samples=7", "--cell-ms=30"]
# benchmark, its options, the matrices and their size with two ranks
BENCHMARKS = [
    ("latency", ["--size=64K,1M", "--method=classic", "--mode=both"],
     {"concurrent": (2, 2), "serial": (2, 2)}),
    ("latency", ["--size=1M", "--locality=64K", *FAST], {"concurrent": (2, 1)}),
    ("matrix", [*SMALL, "--visits=1", "--targets=0"], {"idle": (2, 1)}),
    ("bandwidth", ["--size=8", "--passes=3"],
     dict.fromkeys(["copy", "scale", "add", "triad", "read", "write"], (1, 1))),
    ("bandwidth", ["--size=8", "--passes=3", "--sweep=threads", "--kernel=triad"],
     {"triad": (2, 1)}),
    ("bandwidth", ["--size=8", "--passes=3", "--sweep=own", "--kernel=read"], {"read": (1, 1)}),
    ("bandwidth", ["--size=8", "--passes=3", "--kernel=triad", "--targets=0+interleave:all"],
     {"triad": (1, 2)}),
    ("latency", ["--size=1M", "--numa=interleave:all", *FAST], {"concurrent": (2, 1)}),
    ("bandwidth", ["--size=16K,1M", "--passes=3", "--sweep=sizes", "--kernel=triad",
                   "--instructions=scalar"], {"triad": (2, 2)}),
    ("bandwidth", ["--size=8", "--passes=3", "--sweep=memcpy"],
     {"memcpy": (1, 1), "streaming": (1, 1)}),
    ("pingpong", ["--message-max=64K", "--repetitions=50"], {"pingpong": (1, 18)}),
    ("pingpong", ["--message-max=64K", "--repetitions=50", "--pairs=all"],
     {"latency": (2, 2), "bandwidth": (2, 2)}),
    ("c2c", ["--repetitions=50", "--min-samples=8"],
     {"cas": (2, 2), "load": (2, 2), "cas_lines": (1, 8), "load_lines": (1, 8)}),
    ("c2c", ["--quick", "--definition=load", "--lines=3"], {"load": (2, 2), "load_lines": (1, 3)}),
    ("c2c", ["--quick", "--definition=cas", "--lines=1"], {"cas": (2, 2)}),
    ("c2c", ["--quick", "--definition=states"], {"hitm": (2, 2), "hit": (2, 2)}),
    ("c2c", ["--quick", "--definition=all", "--pairs=0-1", "--lines=3"],
     {"cas": (1, 1), "load": (1, 1), "hitm": (1, 1), "hit": (1, 1), "cas_lines": (1, 3),
      "load_lines": (1, 3)}),
    ("atomics", ["--quick", "--sample-us=200"],
     {"time": (2, 6), "rate": (2, 6), "fairness": (2, 6), "share": (2, 6), "handover": (1, 3)}),
    ("atomics", ["--quick", "--sample-us=200", "--operation=ticket", "--threads=2"],
     {"time": (1, 1), "rate": (1, 1), "fairness": (1, 1), "share": (1, 1), "handover": (1, 1)}),
    ("atomics", ["--quick", "--sample-us=200", "--operation=exchange", "--threads=1"],
     {"time": (1, 1), "rate": (1, 1), "fairness": (1, 1), "share": (1, 1)}),
    ("firsttouch", [*SMALL, "--visits=1"], {"access": (2, 3)}),
    ("pagefault", ["--size=4", "--passes=3"], {"4k": (2, 1), "thp": (2, 1)}),
    ("pagefault", ["--size=4", "--passes=3", "--cost=collapse"], {"collapse": (2, 1)}),
    ("hierarchy", ["--size=32M", "--quick", "--visits=2", "--sample-us=50"],
     {"latency": (2, 53), "base_pages": (2, 57), "packed": (2, 57), "huge_pages": (2, 7),
      "parallel": (2, 20), "stride": (2, 7), "cycle": (2, 1), "nodes": (2, 1)}),
    ("scan", ["--quick", "--visits=4", "--cell-ms=5", "--sample-us=50", "--repetitions=50"],
     {"latency": (2, 2), "bandwidth": (2, 1), "transfer": (1, 1), "core": (2, 4), "l3": (1, 3),
      "node": (1, 3), "pair": (1, 1)}),
    ("loaded", [*SMALL, "--visits=1", "--steps=2"], {"latency": (1, 3), "bandwidth": (1, 3)}),
    ("loaded", [*SMALL, "--visits=2", "--steps=3", "--mix=reads,1:1,nt,chase", "--targets=0"],
     {f"{what}_{mix}": (1, 4) for mix in ("reads", "1r1w", "nt", "chase")
      for what in ("latency", "bandwidth")}),
]


def exists(matrix, row, col):
    between_ranks = matrix["rows"]["name"] == matrix["cols"]["name"] == "rank"
    return not between_ranks or row < col


def every_benchmark(bench, start, launcher):
    for name, options, wanted in BENCHMARKS:
        what = f"{launcher}: {name} {' '.join(options)}"
        if launcher != "mpi" and name == "pingpong":
            continue
        done = start(bench, name, "--json", *options)
        if not check(done.returncode == 0, what, done.stderr):
            continue
        result = json.loads(done.stdout)
        sizes = {m["name"]: (len(m["rows"]["values"]), len(m["cols"]["values"]))
                 for m in result["matrices"]}
        check(sizes == wanted and result["launcher"] == launcher, "its matrices", sizes)
        empty = [(m["name"], r, c) for m in result["matrices"] for r, row in enumerate(m["cells"])
                 for c, cell in enumerate(row)
                 if (cell["median"] is not None) != exists(m, r, c)]
        check(not empty, "every cell that exists has a median, and no other", empty)
        single = "--visits=1" in options
        kinds = [c["kind"] for c in result["conditions"]]
        check(("one_repetition" in kinds) == single, "that it has one repetition", kinds)
        check(all(r["pages_checked"] > 0 and r["mem_share"] == 1 or r["mem_method"] == "none"
                  for r in result["ranks"]), "its memory was looked up", result["ranks"])
        check(all(n["process_kib"] > 0 for r in result["ranks"] for n in r["nodes"][:1]),
              "and the process's memory by node", result["ranks"])


def processes(bench, *options):
    few = [] if len(os.sched_getaffinity(0)) > 1 else ["--oversubscribe"]
    return subprocess.run([bench, options[0], "--np=2", *few, *options[1:]], capture_output=True,
                          text=True, timeout=200, env={"PATH": os.environ["PATH"]})


def without_mpi(bench):
    every_benchmark(bench, processes, "processes")
    cpus = sorted(os.sched_getaffinity(0))[:2] * 2
    done = processes(bench, "latency", "--size=64K", "--json", *FAST,
                     f"--bind={cpus[0]}:-1,{cpus[1]}:-1")
    ranks = json.loads(done.stdout)["ranks"] if done.returncode == 0 else []
    check([r["cpu_wanted"] for r in ranks] == cpus[:2], "ranks are where --bind says", done.stderr)
    done = processes(bench, "latency", "--size=64K", "--json", *FAST)
    ranks = json.loads(done.stdout)["ranks"] if done.returncode == 0 else []
    got = {r["cpu_wanted"] for r in ranks}
    check(-1 not in got and len(got) == min(2, len(os.sched_getaffinity(0))),
          "without --bind each rank has a CPU of its own", ranks, done.stderr)
    for options, word in [(["--bind=0:0"], "--bind"), (["--bind=0:0,9999:0"], "9999"),
                          (["--bind=0:0,1:0,2:0"], "no more"), (["--bind=-2:0,0:0"], "got"),
                          (["--bind=4294967296:0,1:0"], "got"), (["--bind=0:0,0:0"], "oversubscribe"),
                          (["--bind=0:0,1:0,"], "got"), (["--bind=0: 0,1:0"], "got"),
                          (["--bind=0:0,1"], "got"), (["--np=1000"], "oversubscribe"),
                          (["--np=0"], "--np: must be from 1 to 1024, got 0"),
                          (["--np=1000"], "--np=1000: more ranks than the CPUs"),
                          (["--size=900T"], "--size: the largest must be at most 64T, got 900T"),
                          (["-n", "3"], "options begin with two dashes"),
                          (["--oversubscribe", "--bind=0:77,0:0"], "77")]:
        done = processes(bench, "latency", "--size=64K", *FAST, *options)
        check(done.returncode == 2 and word in done.stderr and done.stderr.count("numa_bench") == 1,
              f"{' '.join(options)} is refused, once", done.stderr)
    for name in ("scan", "c2c", "atomics"):
        done = processes(bench, name, "--quick", "--np=1")
        check(done.returncode == 2 and "two ranks are needed" in done.stderr, f"{name} of one rank is refused, with the reason", done.stderr)
    done = processes(bench, "latency", "--size=64K", "--json", *FAST, "--oversubscribe",
                     f"--bind={cpus[0]}:-1,{cpus[0]}:-1")
    check(done.returncode == 0 and "cpu_wanted" in done.stdout, "two ranks on one CPU, if asked for",
          done.stderr)
    # Both on one CPU: every sample of 20 ms has a switch in it.
    for name in ("latency", "firsttouch"):
        done = processes(bench, name, "--size=1M", "--json", "--visits=1", "--sample-us=20000",
                         "--cell-ms=60", "--min-samples=7", "--oversubscribe",
                         f"--bind={cpus[0]}:-1,{cpus[0]}:-1")
        notes = json.loads(done.stdout)["conditions"] if done.returncode == 0 else []
        few = [n for n in notes if n["kind"] == "few_samples"]
        check(len(few) == 1, f"{name}: disturbed cells are told of, in one note", notes, done.stderr)
    for options, named in ((["--sweep=own", "--size=1M"], "(copy: threads 2, target own)"),
                           (["--sweep=sizes", "--threads=2", "--size=64K"], "(copy: threads 2, working set 64K)")):
        done = processes(bench, "bandwidth", "--kernel=copy", "--passes=4", "--visits=2", "--json", *options, "--oversubscribe",
                         f"--bind={cpus[0]}:-1,{cpus[0]}:-1")
        notes = json.loads(done.stdout)["conditions"] if done.returncode == 0 else []
        check(any(n["kind"] == "few_samples" and named in n["text"] for n in notes), f"cells have the names of their axes: {named}",
              notes, done.stderr)
    done = processes(bench, "c2c", "--definition=cas", "--repetitions=20", "--min-samples=3000",
                     "--json")
    cell = json.loads(done.stdout)["matrices"][0]["cells"][0][1] if done.returncode == 0 else {}
    taken = cell.get("n", 0) + (cell.get("disturbed") or 0)
    check(3000 <= taken <= 4 * 3000, "c2c: as many samples as asked for, more if disturbed",
          cell, done.stderr)
    one_node = not os.path.exists("/sys/devices/system/node/node1")
    for home in ("second", "third") if one_node else ():
        done = processes(bench, "c2c", "--definition=states", f"--home={home}")
        check(done.returncode == 2 and "--home" in done.stderr and
              done.stderr.count("numa_bench:") == 1, f"home {home} is refused on one node", done.stderr)
    done = processes(bench, "pingpong")
    check(done.returncode == 2 and "mpirun" in done.stderr, "pingpong needs MPI", done.stderr)
    victim = subprocess.Popen([bench, "--np=2", "--size=64K", "--cell-ms=60000", "--precision=0.05",
                               "--min-samples=9999"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True)
    ranks = children_of(victim.pid, 2)
    os.kill(ranks[1], 9)
    _, err = victim.communicate(timeout=200)
    check(victim.returncode == 137 and "killed by signal 9" in err, "a rank that is killed ends all",
          victim.returncode, err)
    check(not any(os.path.exists(f"/proc/{pid}") for pid in ranks), "and none is left")


def time_limit(bench):
    """Far more steps than fit: what was measured is reported, and the run states what is missing."""
    slow = ["--precision=0.05", "--min-samples=10000", "--deadline=6", "--json"]
    sizes = ",".join(f"{64 + i}K" for i in range(40))
    done = processes(bench, "latency", f"--size={sizes}", "--visits=1", "--cell-ms=500", *slow)
    result = json.loads(done.stdout)
    medians = [c["median"] for c in cells(result["matrices"][0])]
    check(done.returncode == 1 and None in medians and any(medians), "cells before the time limit are kept", medians)
    left_out = [c["text"] for c in result["conditions"] if c["kind"] == "time_limit"]
    missing = f"the time limit of 6 s left out {medians.count(None)} of 80 cells"
    check(left_out == [missing] and missing in done.stderr, "what is missing is counted", left_out, done.stderr)
    done = processes(bench, "latency", "--size=64K", "--visits=40", "--cell-ms=20000", *slow)
    kinds = [c["kind"] for c in json.loads(done.stdout)["conditions"]]
    check(done.returncode == 0 and "time_limit" in kinds, "fewer repetitions of all cells are a success with a condition", kinds,
          done.stderr)
    done = processes(bench, "hierarchy", "--size=64M", "--visits=1", "--cell-ms=500", *slow)
    curve = cells(json.loads(done.stdout)["matrices"][0]) if done.stdout else []
    medians = [c["median"] for c in curve]
    check(done.returncode == 1 and "left out" in done.stderr and None in medians and any(medians),
          "hierarchy: a single repetition ends too", medians, done.stderr)


def by_place(bench):
    """One list of places for all ranks of mpirun, bound by numactl or by themselves."""
    cpus = sorted(os.sched_getaffinity(0))[:2] * 2
    wanted = f"--bind={cpus[1]}:0,{cpus[0]}:-1"
    numactl = shutil.which("numactl")
    for how in [f"--numactl={numactl}"] * bool(numactl) + [""]:
        done = mpirun(bench, "latency", "--size=64K", "--json", wanted, *[how] * bool(how), *FAST,
                      words=["--bind-to", "none"])
        ranks = json.loads(done.stdout)["ranks"] if done.returncode == 0 else []
        check([r["cpu"] for r in ranks] == [cpus[1], cpus[0]] and [r["cpu_wanted"] for r in ranks] == [cpus[1], cpus[0]]
              and [r["mem_wanted"] for r in ranks] == [0, -1], f"each rank finds its place, {how or 'by libnuma'}",
              ranks, done.stderr)
    for options, word in [(["--bind=0:0"], "no more"), (["--bind=0:0,0:0,0:0"], "no more"), (["--bind=0:0,9999:0"], "9999"),
                          ([wanted, "--numactl=/nonexistent/numactl"], "cannot run /nonexistent"),
                          (["--numactl=/usr/bin/numactl"], "needs --bind")]:
        done = mpirun(bench, "latency", "--size=64K", *FAST, *options, words=["--bind-to", "none"])
        check(done.returncode != 0 and word in done.stderr, f"{' '.join(options)} is refused", done.stderr)


def not_bound(bench):
    """Ranks without a CPU of their own measure each other: the run has that as a condition."""
    for words, bound in ((["--bind-to", "core"], True), (["--bind-to", "none"], False)):
        done = mpirun(bench, "latency", "--size=64K", "--json", *FAST, words=words)
        kinds = [c["kind"] for c in json.loads(done.stdout)["conditions"]] if done.returncode == 0 else None
        check(kinds is not None and ("binding" in kinds) != bound, f"mpirun {' '.join(words)}", done.stderr, kinds)


def by_another_launcher(bench):
    """What a launcher says must be what MPI finds: Open MPI makes each rank of hydra's a job of one."""
    folder = tempfile.mkdtemp()
    for name in ("numa_bench", "numa_bench_mpi.so"):
        shutil.copy(os.path.join(os.path.dirname(bench), name), folder)
    bench = os.path.join(folder, "numa_bench")
    for rank, size in ((0, 2), (1, 2), (3, 4)):
        done = subprocess.run([bench, "--size=64K", "--json", *FAST], capture_output=True, text=True, timeout=200,
                              env={"PATH": os.environ["PATH"], "HOME": "/", "PMI_RANK": str(rank), "PMI_SIZE": str(size),
                                   "PMI_FD": "99", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
        check(done.returncode == 1 and not done.stdout, f"rank {rank} of {size} by another vendor's launcher",
              done.returncode, done.stderr)
        said = f"the launcher counts this as rank {rank} of {size}, MPI as rank 0 of 1"
        check(done.stderr.count("numa_bench:") == 1 and said in done.stderr and "env -u PMI_RANK" in done.stderr,
              "each says it: there may be no other", done.stderr)
    # Left of a shell: there is no rank 0 that could say it.
    for name, size in (("PMIX_RANK", {}), ("OMPI_COMM_WORLD_RANK", {}), ("OMPI_COMM_WORLD_RANK", {"OMPI_COMM_WORLD_SIZE": "2"})):
        for word, status, said in (("--quick", 1, "MPI as rank 0 of 1"), ("--bogus", 2, "--bogus")):
            done = subprocess.run([bench, "--size=64K", word], capture_output=True, text=True, timeout=200,
                                  env={"PATH": os.environ["PATH"], "HOME": "/", name: "1", **size,
                                       "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
            check(done.returncode == status and done.stderr.count("numa_bench:") == 1 and said in done.stderr,
                  f"a rank with a leftover {name} is not silent with {word}", done.returncode, done.stderr)
    for given, hint in (({"PMIX_RANK": "0"}, "--mpi=pmi2"), ({"PMI_RANK": "0"}, "--mpi=pmix")):
        done = subprocess.run([bench, "--size=64K", "--json", *FAST], capture_output=True, text=True, timeout=200,
                              env={"PATH": os.environ["PATH"], "HOME": "/", "SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0",
                                   "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **given})
        check(done.returncode == 2 and f"use srun {hint}" in done.stderr, f"a task of srun with {list(given)[0]} hears of {hint}",
              done.returncode, done.stderr)
    # Hydra's proxies are tasks of srun, which may give them PMIx by default.
    done = subprocess.run([bench, "--size=64K", "--json", *FAST], capture_output=True, text=True, timeout=200,
                          env={"PATH": os.environ["PATH"], "HOME": "/", "SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0",
                               "PMIX_RANK": "0", "PMI_RANK": "0", "PMI_SIZE": "4", "PMI_FD": "99",
                               "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    check(done.returncode == 1 and not done.stdout and "counts this as rank 0 of 4, MPI as rank 0 of 1" in done.stderr,
          "a rank of hydra's below srun is not the only one by PMIX_RANK of the proxy", done.returncode, done.stderr)
    done = subprocess.run([bench, "--np=2", "--size=64K"], capture_output=True, text=True, timeout=200,
                          env={"PATH": os.environ["PATH"], "PMIX_RANK": "0"})
    check(done.returncode == 2 and "(PMIX_RANK is set)" in done.stderr and "env -u PMIX_RANK" in done.stderr,
          "the refusal names the variable", done.returncode, done.stderr)
    os.remove(os.path.join(folder, "numa_bench_mpi.so"))
    done = subprocess.run([bench, "--size=64K"], capture_output=True, text=True, timeout=200,
                          env={"PATH": os.environ["PATH"], "PMI_RANK": "1", "PMI_SIZE": "2"})
    check(done.returncode == 1 and "(PMI_RANK is set)" in done.stderr and "numa_bench_mpi.so" in done.stderr and
          "use --np=N" in done.stderr, "a module that is not there is named, with what to do", done.returncode, done.stderr)
    shutil.rmtree(folder)


def by_hydra(bench):
    """MPICH's launcher starts the module that is built with MPICH."""
    if not shutil.which("mpiexec.hydra") or not os.path.exists(os.path.join(os.path.dirname(bench), "numa_bench_mpi_mpich.so")):
        check(True, "ranks by hydra # SKIP no MPICH (packages mpich, libmpich-dev) when it was built")
        return

    def hydra(bench, *options, **env):
        return subprocess.run(["mpiexec.hydra", "-np", "2", bench, *options], capture_output=True, text=True, timeout=200,
                              env={"PATH": os.environ["PATH"], "HOME": "/", **env}, stdin=subprocess.DEVNULL)
    for options in (["latency", "--size=64K", *FAST], ["pingpong", "--message-max=4K", "--repetitions=20"]):
        done = hydra(bench, *options, "--json")
        result = json.loads(done.stdout) if done.returncode == 0 else {}
        check(len(result.get("ranks", [])) == 2 and result["launcher"] == "mpi", f"hydra: {options[0]}", done.stderr)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("libmpi.so.12", "libmpich.so.12"):
            pathlib.Path(folder, name).write_text("no library")
        done = hydra(bench, "latency", "--size=64K", *FAST, LD_LIBRARY_PATH=folder)
        check(done.returncode and "neither libmpi.so.12 nor libmpich.so.12" in done.stderr and "LD_LIBRARY_PATH" in done.stderr,
              "without a library of MPICH's ABI both names are told", done.stderr)
        os.remove(os.path.join(folder, "libmpi.so.12"))
        listed = subprocess.run("/sbin/ldconfig -p", shell=True, capture_output=True, text=True).stdout
        library = re.search(r"libmpich\.so\.12 .*=> (/\S+)", listed)
        if not library:
            check(True, "a library by the name that Intel MPI gives it comes first # SKIP where is libmpich.so.12?")
            return
        os.symlink(library[1], os.path.join(folder, "libmpi.so.12"))
        done = hydra(bench, "pingpong", "--message-max=4K", "--repetitions=20", "--json", LD_LIBRARY_PATH=folder)
        check(done.returncode == 0 and len(json.loads(done.stdout)["ranks"]) == 2,
              "a library by the name that Intel MPI gives it comes first", done.stderr)


def children_of(pid, n):
    while True:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            pids = [int(word) for word in f.read().split()]
        if len(pids) >= n:
            return pids


def loads(bench):
    cpus = sorted(os.sched_getaffinity(0))
    done = subprocess.run([bench, "--size=1M", "--json", "--load=read", f"--load-cpus={cpus[-1]}",
                           "--load-rate=500", *FAST], capture_output=True, text=True, timeout=200,
                          env={"PATH": os.environ["PATH"]})
    told = re.search(r"the background load of 1 CPU moved (\d+) MB/s", done.stdout)
    check(done.returncode == 0 and told and 0 < int(told[1]) <= 500,
          "a background load is told of, and is not above its rate", done.stdout[-300:], done.stderr)
    refused = subprocess.run([WITHOUT_CALLS, "mbind", bench, "--size=1M", "--json", "--load=read", f"--load-cpus={cpus[-1]}",
                              *FAST], capture_output=True, text=True, timeout=200, env={"PATH": os.environ["PATH"]})
    said = [c["text"] for c in json.loads(refused.stdout)["conditions"]] if refused.returncode == 0 else []
    check(any("moved" in text and " on memory of node" in text for text in said)
          and any("refused to bind the memory of the background load" in text for text in said),
          "where the memory of the load was, and that it could not be bound", said, refused.stderr)
    done = subprocess.run([bench, "--size=1M", "--np=1", f"--bind={cpus[-1]}:-1", "--load=read",
                           f"--load-cpus={cpus[-1]}", *FAST], capture_output=True, text=True,
                          timeout=200, env={"PATH": os.environ["PATH"]})
    check(done.returncode == 2 and f"CPU {cpus[-1]} has rank 0" in done.stderr,
          "a load on the rank's own CPU is refused", done.stderr)


def large_pages(bench):
    """A kernel of arm64 with base pages of 64 KiB says 512 MiB here; its sysfs is played in a namespace."""
    file = "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size"
    with tempfile.NamedTemporaryFile("w", encoding="ascii") as fake:
        fake.write("536870912\n")
        fake.flush()
        played = ["unshare", "-m", "sh", "-c", f'mount --bind {fake.name} {file} && exec "$@"', "sh", bench,
                  "--np=1", "--quick", "--json"]
        if os.geteuid() or not os.path.exists(file) or subprocess.run([*played[:-3], "--version"], check=False,
                                                                      capture_output=True).returncode:
            check(True, "an arena of large pages # SKIP needs root, and a kernel with transparent huge pages")
            return
        for pages, size, bytes_, noted in [("4k", "1M", 1 << 20, False), ("thp", "1M", 1 << 20, True),
                                           ("thp", "513M", 1 << 30, False)]:
            done = subprocess.run([*played, f"--pages={pages}", f"--size={size}"], capture_output=True, text=True,
                                  timeout=200)
            result = json.loads(done.stdout) if done.returncode == 0 else {}
            notes = [c["text"] for c in result.get("conditions", []) if c["kind"] == "huge_pages"]
            # The pages of 2 MiB that this kernel really gives are smaller than those of the played one.
            notes = [text for text in notes if "smaller than the usual" not in text]
            check(result and result["ranks"][0]["arena_bytes"] == bytes_ and (len(notes) == 1) == noted,
                  f"{size} of {pages} pages maps {bytes_ >> 20} MiB{', and a note says why' if noted else ''}",
                  done.stderr, notes, result.get("ranks"))
        # Its memory holds no huge page, so the matrix of huge pages is one of base pages.
        done = subprocess.run([*played[:-3], "hierarchy", "--np=1", "--size=32M", "--visits=1", "--cell-ms=7",
                               "--min-samples=7", "--sample-us=100", "--json"], capture_output=True, text=True, timeout=200)
        result = json.loads(done.stdout) if done.returncode == 0 else {"matrices": [], "ranks": []}
        columns = [m["cols"]["values"] for m in result["matrices"] if m["name"] == "huge_pages"]
        check(len(columns) == 1 and columns[0][0] == 8 and columns[0][-1] == (32 << 20) // (os.sysconf("SC_PAGE_SIZE") + result["line_bytes"]),
              "a hierarchy smaller than huge pages is measured", done.stderr, columns)


def full_disk(bench):
    for options in (["--help"], ["--version"], ["--size=64K", "--csv", *FAST], ["--size=64K", *FAST]):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([bench, *options], stdout=full, stderr=subprocess.PIPE, text=True,
                                  timeout=200, env={"PATH": os.environ["PATH"]})
        check(done.returncode == 1 and done.stderr.startswith("numa_bench: cannot "),
              f"{options[0]} onto a full disk is a failure", done.returncode, done.stderr)


def refusals(bench):
    for options, word in [(["--size=0"], "size"), (["--size=9223372036854775808"], "size"),
                          (["matrix", "--targets=63"], "--targets=63: node 63 is not there; nodes with memory are"),
                          (["--bind=4095:0"], "CPU 4095 is not there, offline or outside the cpuset; CPUs are "),
                          (["--bind=99999:0"], "CPUs are "), (["--bind=0:63"], "node 63 is not there; nodes with memory are "),
                          (["--load=read", "--load-cpus=4095"], "--load-cpus: CPU 4095 is not there, offline or outside the cpuset; CPUs are "),
                          (["scan", "--size=8"], "but of latency"), (["--cpus=0"], "--bind"), (["--timeout=3"], "--deadline"),
                          (["--hyperthreads"], "of numaprobe run"), (["--sise=1"], "--size"), (["c2c"], "two"), (["atomics"], "two"),
                          (["loaded", "--size=4"], "rank"), (["--load=read"], "load-cpus"),
                          (["bandwith"], "is not a benchmark")]:
        done = mpirun(bench, *options, ranks=1)
        check(done.returncode in (1, 2) and word in done.stderr and
              done.stderr.count("numa_bench:") == 1, f"{' '.join(options)} is refused", done.stderr)
    done = mpirun(bench, "--size=64K", *FAST, ":", "-np", "1", bench, "--size=1M", *FAST, ranks=1)
    check(done.returncode == 2 and done.stderr.count("other options than rank 0") == 1,
          "ranks with different options are refused, once", done.stderr)
    done = mpirun(bench, "--size=60T")
    check(done.returncode == 1 and done.stderr.count("numa_bench: --size=60T: the ranks need") == 1 and
          " fits\n" in done.stderr,
          "memory that is not there is refused, once, with a size that there is", done.stderr)
    done = mpirun(bench, "--size=none")
    check(done.returncode == 2 and done.stderr.count("numa_bench: --size") == 1,
          "wrong usage is status 2, said once", done.stderr)
    done = subprocess.run([bench, "--size=64K"], capture_output=True, text=True, timeout=200,
                          env={"PATH": os.environ["PATH"], "SLURM_STEP_NUM_TASKS": "2",
                               "SLURM_PROCID": "0"})
    check(done.returncode == 2 and "--mpi=pmix" in done.stderr,
          "tasks of srun that cannot see each other are refused", done.stderr)
    done = subprocess.run([bench, "--size=64K", "--deadline=1", "--cell-ms=9000",
                           "--precision=0.05", "--min-samples=9999"], capture_output=True,
                          text=True, timeout=200, env={"PATH": os.environ["PATH"]})
    check(done.returncode == 1 and done.stderr.endswith("numa_bench: not ready after 1 s: raise --deadline or measure less\n"),
          "the deadline ends it, and the line names what to raise", done.stderr)
    done = subprocess.run([bench, "--np=1", "--size=64K", "--deadline=1", "--cell-ms=9000", "--visits=1",
                           "--precision=0.05", "--min-samples=9999", "--channel=/dev/stdout", "--nonce=x"],
                          capture_output=True, text=True, timeout=200, env={"PATH": os.environ["PATH"]})
    check("not ready after 1 s: raise timeout_s or measure less" in done.stdout,
          "its last record states what to do", done.stdout[-300:])


def main(bench):
    if not shutil.which("mpirun"):
        print("1..0 # SKIP no mpirun")
        return 0
    as_json(bench)
    as_records(bench)
    by_hand(bench)
    every_benchmark(bench, mpirun, "mpi")
    time_limit(bench)
    by_place(bench)
    by_another_launcher(bench)
    not_bound(bench)
    by_hydra(bench)
    without_mpi(bench)
    loads(bench)
    large_pages(bench)
    full_disk(bench)
    refusals(bench)
    print(f"1..{count}")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
