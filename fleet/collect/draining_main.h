// SPDX-License-Identifier: Apache-2.0
// Takes nodes out of service: sinfo once, then scontrol for each node that has no reason yet. That
// takes as long as Slurm takes, and starts other programs; so it is a child.
#pragma once

// The child: numaprobe-fleetd --drain, with lines "FINDING\tNODE\tREASON" as standard input.
// Prints a line "FINDING\tNODE\tREASON\tPROBLEM" for each; PROBLEM is empty if the node is drained.
// Or '!' and an error: nothing was drained. Exit status: 1 after that.
int draining_main(int argc, char **argv);
