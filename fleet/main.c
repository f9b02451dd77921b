// SPDX-License-Identifier: Apache-2.0
// The program is fleetd_main() of fleet/fleetd.c.
#include "fleet/fleetd.h"

int main(int argc, char **argv)
{
    return fleetd_main(argc, argv);
}
