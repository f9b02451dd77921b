# SPDX-License-Identifier: Apache-2.0
"""The nodes that a real Slurm lists, and those that are idle."""
import os
import pathlib

import slurm

NAMES = pathlib.Path(os.environ["NUMAPROBE_BUILD"]) / "tests" / "unit" / "client" / "names_of"


def names(cluster, nodes="", partition="", idle=""):
    done = cluster.run(str(NAMES), nodes, "", partition, idle, "", "")
    return done.stdout.split(), done.stderr.strip(), done.returncode


def test_from_slurm(cluster):
    assert names(cluster, partition="*") == ([slurm.HOST], "", 0)
    assert names(cluster, partition="all") == ([slurm.HOST], "", 0)
    assert names(cluster, "n[1-2]", partition="all")[0] == ["n1", "n2", slurm.HOST]


def test_a_partition_that_is_not_there(cluster):
    found, error, status = names(cluster, partition="none")
    assert not found and status != 0, (found, error)
    assert error in ("from_slurm: the set has no nodes",) or "partition" in error, error


def test_idle(cluster):
    """A node that has a job is not idle, and is again when the job has ended."""
    assert names(cluster, idle="idle") == ([slurm.HOST], "", 0)
    assert names(cluster, f"n1,{slurm.HOST}", idle="idle") == ([slurm.HOST], "", 0)
    cluster.run("mkfifo", "/run/hold")
    done = cluster.run("sbatch", "--parsable", "--exclusive", "--output=/dev/null", "--wrap=echo begun >/run/hold; cat /run/hold")
    job = done.stdout.strip()
    assert job.isdigit(), done.stderr
    assert cluster.run("cat", "/run/hold").stdout == "begun\n"
    assert names(cluster, idle="idle") == ([], "idle: Slurm lists no idle node", 6)
    assert names(cluster, slurm.HOST, idle="idle")[1] == "idle: Slurm lists none of the named nodes as idle"
    assert names(cluster, partition="*")[0] == [slurm.HOST]
    cluster.run("sh", "-c", "echo go >/run/hold")
    cluster.run("srun", "--exclusive", "true")  # it begins when the other has ended
    assert cluster.run("scontrol", "show", "job", job).stdout.count("JobState=COMPLETED") == 1
