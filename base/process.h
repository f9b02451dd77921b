// SPDX-License-Identifier: Apache-2.0
// What a program sets right at its start, because its parent may have left it otherwise.
#pragma once

// Standard descriptors that are closed are opened: a database or a socket would get their numbers,
// and be printed into. Of /dev/null for reading alone, so that output which is lost is a failure.
// A file at its limit of size is an error of write(2), not the end of the program. Children are
// waited for, also where the parent ignored its own.
void process_begin(void);
// Of a daemon that starts: SIGTERM and SIGINT end it at once with status 0, as they do later. They
// do not wait for what takes long, such as the upgrade of a database. Until loop_watch_signal().
void process_may_be_stopped(void);
