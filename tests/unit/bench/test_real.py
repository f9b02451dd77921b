#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TAP: two real ranks under mpirun.

usage: test_real.py NUMA_BENCH
"""
import json
import os
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


def check(good, what, *details):
    global count, failed
    count += 1
    failed += not good
    print("ok" if good else "not ok", count, "-", what)
    for detail in details if not good else ():
        print("#", *str(detail).splitlines()[:20], sep="\n# ")
    return good


def mpirun(bench, *options, ranks=2):
    return subprocess.run(["mpirun", "-np", str(ranks), bench, *options], capture_output=True,
                          text=True, env=ENV, timeout=60, stdin=subprocess.DEVNULL)


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
        check(all(0 <= c["lo"] <= c["median"] <= c["hi"] and c["median"] > 0.2 and
                  c["min"] <= c["p10"] <= c["median"] <= c["p90"] <= c["p99"] and
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
                          env={"PATH": os.environ["PATH"]}, timeout=30)
    check(done.returncode == 0 and len(done.stdout.splitlines()) == 2,
          "one rank without a launcher, CSV", done.stdout, done.stderr)


def refusals(bench):
    done = mpirun(bench, "--size=60T")
    check(done.returncode == 1 and done.stderr.count("numa_bench: size: the ranks need") == 1,
          "memory that is not there is refused, once", done.stderr)
    done = mpirun(bench, "--size=none")
    check(done.returncode == 2 and done.stderr.count("numa_bench: --size") == 1,
          "wrong usage is status 2, said once", done.stderr)
    done = subprocess.run([bench, "--size=64K"], capture_output=True, text=True, timeout=30,
                          env={"PATH": os.environ["PATH"], "SLURM_STEP_NUM_TASKS": "2",
                               "SLURM_PROCID": "0"})
    check(done.returncode == 2 and "--mpi=pmix" in done.stderr,
          "tasks of srun that cannot see each other are refused", done.stderr)
    done = subprocess.run([bench, "--size=64K", "--deadline=1", "--cell-ms=9000",
                           "--precision=0.05", "--min-samples=9999"], capture_output=True,
                          text=True, timeout=30, env={"PATH": os.environ["PATH"]})
    check(done.returncode == 1 and "deadline" in done.stderr, "the deadline ends it", done.stderr)


def main(bench):
    if not shutil.which("mpirun"):
        print("1..0 # SKIP no mpirun")
        return 0
    as_json(bench)
    as_records(bench)
    by_hand(bench)
    refusals(bench)
    print(f"1..{count}")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
