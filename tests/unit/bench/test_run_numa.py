#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TAP: run_numa.sh gives each rank its node and its words, under each launcher's names.

usage: test_run_numa.py SCRIPT
"""
import os
import subprocess
import sys
import tempfile

count = failed = 0


def check(good, what, *details):
    global count, failed
    count += 1
    failed += not good
    print("ok" if good else "not ok", count, "-", what)
    for detail in details if not good else ():
        print("#", repr(detail))


FAKE = "#!/bin/sh\nprintf '%s|' \"${0##*/}\" \"$@\"\n"


def run(script, folder, *words, **env):
    done = subprocess.run([script, *words], capture_output=True, text=True, env={
        "PATH": folder + ":/usr/bin:/bin", "NUMA_BENCH": folder + "/numa_bench", **env})
    return done.returncode, done.stdout.replace(folder + "/", ""), done.stderr


def main(script):
    with tempfile.TemporaryDirectory() as folder:
        for name in ("numactl", "numa_bench"):
            with open(os.path.join(folder, name), "w", encoding="ascii") as f:
                f.write(FAKE)
            os.chmod(os.path.join(folder, name), 0o755)

        def out(*words, **env):
            return run(script, folder, *words, **env)[1]

        check(out("--", "--size=1") == "numa_bench|--size=1|", "without --numa: no binding")
        for name in ("OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK", "PMIX_RANK"):
            got = out("--numa=4,5,6", "--", "--size=1", **{name: "2"})
            check(got == "numactl|--membind=6|numa_bench|--size=1|", f"rank 2 by {name}", got)
        got = out("--numa=4,5,6", "--", PMIX_RANK="0", PMI_RANK="1", PMI_SIZE="2", SLURM_STEP_NUM_TASKS="1", SLURM_PROCID="0")
        check(got == "numactl|--membind=5|numa_bench|", "a rank of hydra's, whose proxy is a task of srun", got)
        check(out("--numa=3", "--", OMPI_COMM_WORLD_RANK="7") ==
              "numactl|--membind=3|numa_bench|", "one node for all ranks")
        check(out("--numa=auto", "--", OMPI_COMM_WORLD_RANK="5").startswith("numactl|--membind="),
              "auto chooses a node")
        odd = ["--size=1, 2", "$(touch x)", "a'b\"c", ""]
        check(out("--numa=0", "--serial", "--", *odd) ==
              "|".join(["numactl", "--membind=0", "numa_bench", "--serial", *odd]) + "|",
              "words arrive as they are, --serial too")
        got = out("--numa=0,1", "--verbose", "--", "--size=2", OMPI_COMM_WORLD_RANK="1")
        check(got.startswith("[Rank 1] Binding to NUMA domain 1\n"
                             "[Rank 1] Executing: numactl --membind=1 numa_bench --size=2\n"),
              "--verbose says what it does", got)
        for bad in ("--numa=", "--numa=a", "--numa=0,,1", "--numa=1;ls", "--size=4", "--numa"):
            status, _, error = run(script, folder, bad, "--")
            check(status == 2 and error, f"{bad} is refused", error)
            check(run(script, folder, bad, OMPI_COMM_WORLD_RANK="3")[2] == "",
                  f"{bad}: one rank says so")
        status, _, error = run(script, folder, "--numa=0,1", "--", OMPI_COMM_WORLD_RANK="2")
        check(status == 2 and "every rank" in error, "a list too short is refused", error)
        check("--numa=auto" in out("--help"), "--help")
    print(f"1..{count}")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
