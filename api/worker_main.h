// SPDX-License-Identifier: Apache-2.0
// The worker process of this daemon (http/server/worker.h). numaprobed starts itself again as
//   numaprobed --work <database>
// with a socket on file descriptor WORKER_CONTROL_FD and the machine (core/node/machine_image.h) on
// WORKER_MACHINE_FD. It has a read-only connection to the database.
#pragma once

enum { WORKER_MACHINE_FD = 4 };

int worker_main(int argc, char **argv); // exit status
