// SPDX-License-Identifier: Apache-2.0
// numaprobed as a library: main() is one call, so that tests can link the real thing.
#pragma once

int daemon_main(int argc, char **argv); // exit status
