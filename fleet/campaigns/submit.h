// SPDX-License-Identifier: Apache-2.0
// Gives the nodes of a campaign to Slurm: sbatch, scontrol for each task, and the release. That
// takes as long as Slurm takes, and starts other programs; so it is a child.
#pragma once

// The child: numaprobe-fleetd --submit NAME AT_ONCE MINUTES, with the nodes as the first line
// of standard input and the body of the job behind it. Prints the number of the job, or '!' and the
// error. Exit status: 1 after an error, and there is no job then.
int submit_main(int argc, char **argv);
