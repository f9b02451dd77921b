// SPDX-License-Identifier: Apache-2.0
// The supervisor as a process (core/launch/supervisor.h starts it).
#pragma once

// Command line, socket and files as core/launch/supervisor.h describes; returns the exit status.
int supervisor_main(int argc, char **argv);
