// SPDX-License-Identifier: Apache-2.0
// The readers of JSON and of the nouns say what is wrong as if a client had sent it; here the text
// came from the store.
#include "core/store/unreadable.h"

#include <stdarg.h>
#include <stdio.h>

int store_unreadable(struct err *err, const char *fmt, ...)
{
    char what[sizeof err->text];
    va_list ap;
    if (!err || err->code == ERR_NO_MEMORY)
        return -1;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    err_name_member(err);
    err->code = ERR_CONFLICT;
    err->member[0] = '\0';
    return err_prefix(err, "%s", what);
}

bool store_of_one_run(const struct err *err)
{
    return err->code == ERR_CONFLICT || err->code == ERR_NOT_FOUND;
}
