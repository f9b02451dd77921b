# SPDX-License-Identifier: Apache-2.0
"""numa_bench as a step of a real Slurm: by PMIx, by PMI-2 and by nothing."""
import json
import os
import pathlib

import pytest

BUILD = pathlib.Path(os.environ["NUMAPROBE_BUILD"])
BENCH = BUILD / "bench" / "numa_bench"
MPICH = BENCH.with_name("numa_bench_mpi_mpich.so")
WORDS = ["--size=64K", "--quick", "--json"]
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
needs_two = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two tasks need two CPUs")


def srun(cluster, mpi, tasks=2, bind="cores"):
    return cluster.run("srun", f"--mpi={mpi}", f"--cpu-bind={bind}", f"--ntasks={tasks}", "--nodes=1", str(BENCH), "latency",
                       *WORDS, env=ROOT)


def kinds(result):
    return {c["kind"] for c in result["conditions"]}


def measured(done, ranks):
    """The result that one of the tasks printed, by so many ranks."""
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert len(result["ranks"]) == ranks, done.stdout[:500]
    return result


def plugins(cluster):
    return cluster.run("srun", "--mpi=list").stdout + cluster.run("srun", "--mpi=list").stderr


@needs_two
def test_pmix(cluster):
    if "pmix" not in plugins(cluster):
        pytest.skip("this Slurm has no PMIx")
    result = measured(srun(cluster, "pmix"), 2)
    assert len({r["cpu"] for r in result["ranks"]}) == 2, result["ranks"]
    assert not kinds(result) & {"binding"}, result["conditions"]


@needs_two
def test_ranks_that_srun_does_not_bind_are_noted(cluster):
    if "pmix" not in plugins(cluster):
        pytest.skip("this Slurm has no PMIx")
    result = measured(srun(cluster, "pmix", bind="none"), 2)
    assert "binding" in kinds(result), result["conditions"]


@needs_two
def test_pmi2_finds_the_module_of_mpich(cluster):
    if not MPICH.exists():
        pytest.skip("no MPICH (libmpich-dev) when it was built")
    measured(srun(cluster, "pmi2"), 2)


@needs_two
def test_nothing_names_what_to_use(cluster):
    done = srun(cluster, "none")
    assert done.returncode != 0 and not done.stdout, done.stdout
    assert "without PMIx" in done.stderr and "use srun --mpi=pmix" in done.stderr, done.stderr


@pytest.mark.parametrize("mpi", ["none", "pmi2"])
def test_one_task_needs_no_mpi(cluster, mpi):
    measured(srun(cluster, mpi, tasks=1), 1)
