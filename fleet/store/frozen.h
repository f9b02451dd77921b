// SPDX-License-Identifier: Apache-2.0
// A SQLite file in a folder where this process can create no file: on a read-only file system, or
// by its permissions. A reader of a database with a log (WAL) needs a file of shared memory beside
// it, and cannot make it. Where there is no log, the file is all there is, and SQLite reads it as
// one that never changes (immutable=1): it neither locks it nor looks for changes. So whoever reads
// it asks before and after each transaction whether that still holds.
#pragma once
#include <stdbool.h>
#include <sys/stat.h>

enum { FROZEN_PATH_MAX = 512 };
struct frozen {
    bool is;
    char path[FROZEN_PATH_MAX];
    struct stat file; // when it was found
};
// out->is: it can be read as one that never changes. path: of less than FROZEN_PATH_MAX bytes.
void frozen_find(struct frozen *out, const char *path);
// Whether the folder of a file is one, and a log beside it may have changes.
bool frozen_has_log(const char *path);
// A log is there, a file can be made, or the file has changed.
bool frozen_no_more(const struct frozen *f);
// For sqlite3_open_v2 with SQLITE_OPEN_URI.
enum { FROZEN_URI_MAX = 3 * FROZEN_PATH_MAX + 32 };
void frozen_uri(const struct frozen *f, char out[FROZEN_URI_MAX]);
