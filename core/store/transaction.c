// SPDX-License-Identifier: Apache-2.0
// A transaction looks at the files first (core/store/files.h): a commit into files that no path
// leads to would be lost at the next start. The numbers that it gave to runs count from its commit.
#include "core/store/transaction.h"

#include "core/store/db.h"
#include "core/store/files.h"

int store_begin(struct store *s, struct err *err)
{
    if (s->doubted)
        return err_set(err, ERR_DAMAGED, "",
                       "a statement found the database damaged; until all of it is checked nothing "
                       "is written");
    if (s->db && store_files_check(s, err) < 0)
        return -1;
    return sq_exec(s->db, "BEGIN IMMEDIATE", err);
}

int store_end(struct store *s, int result, struct err *err)
{
    bool done = result == 0 && sq_exec(s->db, "COMMIT", err) == 0;
    if (done)
        store_files_grown(s);
    if (done && s->new_id)
        s->last_id = s->new_id;
    if (done && s->new_seq)
        s->last_seq = s->new_seq;
    s->new_id = s->new_seq = 0;
    if (done)
        return 0;
    if (!sqlite3_get_autocommit(s->db)) // some errors have rolled back already
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return -1;
}
