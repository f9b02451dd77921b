#!/usr/bin/python3 -IS
# SPDX-License-Identifier: Apache-2.0
"""An mpirun for tests on machines without Open MPI: starts the program of its one application context
("-np N program …") N times, in a process group of its own each as Open MPI does, with OMPI_COMM_WORLD_RANK
and _SIZE.

Ends with the first status that is not 0 and then kills the others. SIGTERM: SIGTERM to all, after a second
SIGKILL. Point NUMAPROBE_MPIRUN of numaprobed here.
"""
import os
import signal
import sys


def start(program, rank, ranks):
    pid = os.fork()
    if pid:
        return pid
    os.setpgid(0, 0)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    env = dict(os.environ, OMPI_COMM_WORLD_RANK=str(rank), OMPI_COMM_WORLD_SIZE=str(ranks))
    try:
        os.execve(program[0], program, env)
    except OSError as e:
        print(f"mpirun: {program[0]}: {e.strerror}", file=sys.stderr)
    os._exit(127)


def kill(pids, signo):
    for pid in pids:
        try:
            os.kill(pid, signo)
        except ProcessLookupError:
            pass


def main():
    if "--version" in sys.argv:
        print("mpirun (Open MPI) 4.1.4", flush=True)
        return 0
    signals = {signal.SIGCHLD, signal.SIGTERM, signal.SIGALRM}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    at = sys.argv.index("-np")
    ranks = int(sys.argv[at + 1])
    pids = {start(sys.argv[at + 2:], rank, ranks) for rank in range(ranks)}
    status = 0
    while pids:
        signo = signal.sigwait(signals)
        if signo == signal.SIGTERM:
            status = status or 143
            kill(pids, signal.SIGTERM)
            signal.alarm(1)
        elif signo == signal.SIGALRM:
            kill(pids, signal.SIGKILL)
        for pid in list(pids):
            done, how = os.waitpid(pid, os.WNOHANG)
            if done:
                pids.remove(pid)
                code = os.waitstatus_to_exitcode(how)
                if code and not status:
                    status = code if code > 0 else 128 - code
                    kill(pids, signal.SIGKILL)
    return status


sys.exit(main())
