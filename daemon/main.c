// SPDX-License-Identifier: Apache-2.0
// The program is daemon_main() of daemon/daemon.c.
#include "daemon/daemon.h"

int main(int argc, char **argv)
{
    return daemon_main(argc, argv);
}
