# SPDX-License-Identifier: Apache-2.0
"""A Slurm of this machine alone: munge, slurmctld and a slurmd in namespaces of their own.

Nothing is installed or configured on the machine itself: /etc/munge, /run and the logs are empty file systems there, and
the network has only loopback. All of it ends with the process that made it, also after a kill.
"""
import contextlib
import os
import pathlib
import shutil
import subprocess

PROGRAMS = ["munged", "slurmctld", "slurmd", "srun", "sinfo", "unshare", "nsenter"]
ALONE = ["unshare", "--mount", "--pid", "--net", "--uts", "--fork", "--kill-child=KILL", "--mount-proc", "--propagation", "private"]
HOST = "slurmtest"
START_S, PORT = 60, 17001

CONFIG = f"""ClusterName=test
SlurmctldHost={HOST}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
InactiveLimit=0
StateSaveLocation=/run/slurm/state
SlurmdSpoolDir=/run/slurm/spool.%n
SlurmctldPidFile=/run/slurm/slurmctld.pid
SlurmdPidFile=/run/slurm/slurmd.%n.pid
SlurmctldLogFile=/run/slurm/slurmctld.log
SlurmdLogFile=/run/slurm/slurmd.%n.log
{{more}}
NodeName={{names}} NodeHostname={HOST} NodeAddr=127.0.0.1 Port={{ports}} CPUs={{cpus}} Sockets=1 CoresPerSocket={{cpus}} ThreadsPerCore=1 RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=30 State=UP OverSubscribe=YES
"""

# Says "ready" when the nodes take jobs, then waits for the end of its input.
START = """set -eu
hostname "$1"
ip link set lo up
ip address add 192.0.2.1/32 dev lo # with 127.0.0.1 alone, the resolver says that this host has no IPv4
mount -t tmpfs -o mode=755 run /run
mount -t tmpfs -o mode=755 etc /etc/munge
mount -t tmpfs -o mode=755 lib /var/lib/munge
mount -t tmpfs -o mode=755 log /var/log/munge
printf '127.0.0.1 localhost %s\\n' "$1" > /run/hosts
mount --bind /run/hosts /etc/hosts
mkdir -p /run/munge /run/slurm/state
dd if=/dev/urandom of=/etc/munge/munge.key bs=1024 count=1 status=none
chown -R munge:munge /run/munge /etc/munge /var/lib/munge /var/log/munge
chmod 400 /etc/munge/munge.key
setpriv --reuid=munge --regid=munge --clear-groups munged
printf '%s' "$2" > /run/slurm/slurm.conf
slurmctld -i -f /run/slurm/slurm.conf
for node in $4; do
    mkdir "/run/slurm/spool.$node"
    slurmd -N "$node" -f /run/slurm/slurm.conf
done
until [ "$(sinfo -h -N -o %t 2>/dev/null | grep -cx idle)" = "$(echo "$4" | wc -w)" ]; do
    [ "$SECONDS" -lt "$3" ] || { tail -n 20 /run/slurm/*.log >&2; exit 1; }
    sleep 0.2
done
echo ready
cat > /dev/null
"""


class Missing(Exception):
    """Why there can be no Slurm here."""


class Cluster:
    def __init__(self, init):
        self.init = init

    def inside(self, words, env):
        """A command line that enters it, and its environment."""
        enter = ["nsenter", "--target", str(self.init), "--mount", "--pid", "--net", "--uts"]
        return [*enter, *words], {**os.environ, "SLURM_CONF": "/run/slurm/slurm.conf", **(env or {})}

    def run(self, *words, timeout=120, env=None):
        """A command in it, as root: the completed process."""
        line, around = self.inside(words, env)
        return subprocess.run(line, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL, env=around)

    def begin(self, *words, env=None):
        """The same, while it runs: its standard error is read by the caller."""
        line, around = self.inside(words, env)
        return subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                env=around)


def init_of(unshare):
    """The first process of the namespaces is the only child of unshare."""
    return int(pathlib.Path(f"/proc/{unshare.pid}/task/{unshare.pid}/children").read_text().split()[0])


@contextlib.contextmanager
def cluster(nodes=(HOST,), more=""):
    """A Slurm whose nodes are all this machine and have its CPUs; more: lines of its configuration."""
    if os.geteuid() != 0:
        raise Missing("needs root")
    gone = [p for p in PROGRAMS if not shutil.which(p)]
    if gone:
        raise Missing("no " + " ".join(gone))
    ports = f"[{PORT}-{PORT + len(nodes) - 1}]" if len(nodes) > 1 else PORT
    config = CONFIG.format(cpus=len(os.sched_getaffinity(0)), names=",".join(nodes), ports=ports, more=more)
    with subprocess.Popen([*ALONE, "bash", "-c", START, "start", HOST, config, str(START_S), " ".join(nodes)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "SLURM_CONF": "/run/slurm/slurm.conf"}) as p:
        try:
            if p.stdout.readline() != "ready\n":
                raise AssertionError(f"Slurm does not start: {p.stderr.read()[-3000:]}")
            yield Cluster(init_of(p))
        finally:
            p.kill()
