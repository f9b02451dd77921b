// SPDX-License-Identifier: Apache-2.0
// What a program sets right at its start, because its parent may have left it otherwise.
#pragma once

// Standard descriptors that are closed are opened: a database or a socket would get their numbers,
// and be printed into. Of /dev/null for reading alone, so that output which is lost is a failure.
// A file at its limit of size is an error of write(2), not the end of the program. Children are
// waited for, also where the parent ignored its own.
void process_begin(void);
