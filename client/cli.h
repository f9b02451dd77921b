// SPDX-License-Identifier: Apache-2.0
// The program: finds the command, reads its options, runs it, and says what went wrong.
#pragma once

int cli_main(int argc, char **argv); // the exit status
