// SPDX-License-Identifier: Apache-2.0
#include "api/scope.h"

#include <unistd.h>

int scope_check(const struct request *q, enum scope want, const char *member, struct err *err)
{
    bool admin = q->peer_uid == 0 || q->peer_uid == (int64_t)geteuid();
    if (want < SCOPE_ADMIN || admin)
        return 0;
    return err_set(err, ERR_FORBIDDEN, member,
                   "is for administrators: ask over the unix socket as root or as the account of "
                   "the daemon");
}
