// SPDX-License-Identifier: Apache-2.0
// The program is cli_main() of client/cli.c.
#include "client/cli.h"

int main(int argc, char **argv)
{
    return cli_main(argc, argv);
}
