// SPDX-License-Identifier: Apache-2.0
// Brings a database forward, one transaction a step; never back.
#pragma once
#include "base/embedded.h"
#include "core/store/sqlite.h"

#define STORE_APPLICATION_ID 0x6e756d61 // "numa"
#define STORE_APPLICATION_TEXT "1853189473"

// The steps of one program's databases.
struct migration {
    int64_t application; // PRAGMA application_id
    const struct embedded *steps;
    const char *option; // that names another place: "--state-dir"
    // A table that step 1 makes since it is what it is now. Programs that were never released made
    // less of it under the same number. NULL: none did.
    const char *table;
};

// Looks at the file itself, without SQLite, so that a database of another process or of a newer
// version is refused untouched (ERR_STORAGE). A file that is absent, empty or without a table is
// fine; one that no program can have written as a database, or that is cut off, is ERR_DAMAGED.
int migrate_check_file(const char *path, const struct migration *m, struct err *err);

// Whether the tables of an open database of `version` are those that its number says: ERR_STORAGE.
int migrate_check_tables(sqlite3 *db, const char *path, int64_t version, const struct migration *m,
                         struct err *err);

// Applies the steps that are missing. A database that held something already is first copied to
// `path`.v<its version>.bak.
int migrate_run(sqlite3 *db, const char *path, const struct migration *m, struct err *err);
