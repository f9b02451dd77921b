// SPDX-License-Identifier: Apache-2.0
// A client's scope is what its account may do, or its token where it sent one. A token that is
// wrong gives nothing: a mistake must not go unnoticed.
#include "http/access/access.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/str.h"

// In a user namespace every account that is not mapped has these numbers. They name no account.
enum { OVERFLOW_ID = 65534, GROUPS_MAX = 1024 };

static bool has_group(gid_t wanted, const gid_t *groups, int n)
{
    for (int i = 0; i < n; i++)
        if (groups[i] == wanted && wanted != (gid_t)-1 && wanted != OVERFLOW_ID)
            return true;
    return false;
}

enum scope access_of_account(const struct access_rules *a, int fd)
{
    struct ucred who;
    gid_t groups[GROUPS_MAX + 1];
    socklen_t n = sizeof who, room = GROUPS_MAX * sizeof groups[0];
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0)
        return SCOPE_NONE; // the kernel always says it; when it does not, nothing is known
    if (who.uid == 0 || (who.uid == geteuid() && who.uid != OVERFLOW_ID))
        return SCOPE_ADMIN;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &room) < 0)
        room = 0; // an account of more groups counts by its first
    int count = (int)(room / sizeof groups[0]);
    groups[count++] = who.gid;
    if (has_group(a->admin_group, groups, count))
        return SCOPE_ADMIN;
    if (has_group(a->run_group, groups, count) && a->anonymous < SCOPE_RUN)
        return SCOPE_RUN;
    return a->anonymous;
}

int access_identify(struct request *q, struct err *err)
{
    static const char bearer[] = "Bearer ";
    const char *sent = request_header(q, "Authorization");
    if (!sent)
        return 0;
    size_t n = sizeof bearer - 1;
    const struct token *token = NULL;
    if (strncasecmp(sent, bearer, n) == 0 && q->tokens)
        token = tokens_find(q->tokens, sent + n);
    if (!token)
        return err_set(
            err, ERR_UNAUTHORIZED, "Authorization",
            "is not a valid token (numaprobe token list prints the names of all tokens)");
    memcpy(q->token, token->name, sizeof q->token);
    q->granted = token->scope;
    return 0;
}

int access_check(const struct request *q, enum scope needed, struct err *err)
{
    if (needed == SCOPE_PUSH ? q->granted == SCOPE_PUSH : q->granted >= needed)
        return 0;
    if (*q->token)
        return err_set(err, ERR_FORBIDDEN, "Authorization",
                       "a token of scope %s is required; this one has scope %s", scope_name(needed),
                       scope_name(q->granted));
    if (*q->certificate)
        return err_set(err, ERR_FORBIDDEN, "Authorization",
                       "scope %s is required; the certificate of %s has scope %s",
                       scope_name(needed), q->certificate, scope_name(q->granted));
    if (needed == SCOPE_PUSH) // of no account
        return err_set(err, ERR_UNAUTHORIZED, "Authorization",
                       "scope push is required: send a token of a node (Authorization: Bearer …), "
                       "also over the Unix socket");
    return err_set(err, ERR_UNAUTHORIZED, "Authorization",
                   "scope %s is required: send a token (Authorization: Bearer …), or use the Unix "
                   "socket with an account that has this scope",
                   scope_name(needed));
}

int access_check_node(const struct request *q, const char *node, struct err *err)
{
    const struct token *list = NULL;
    int n = 0;
    if (q->tokens && tokens_list(q->tokens, &list, &n, err) < 0)
        return -1;
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].name, q->token) == 0 && token_names(&list[i], node))
            return 0;
    return err_set(err, ERR_FORBIDDEN, "name", "the token %s is not for the node %.63s", q->token,
                   node);
}

int access_check_member(const struct request *q, enum scope needed, const char *member,
                        struct err *err)
{
    if (q->granted >= needed)
        return 0;
    return err_set(
        err, ERR_FORBIDDEN, member,
        "requires scope %s: a token, or the Unix socket as root or as the daemon's account",
        scope_name(needed));
}

bool access_sees_names(const struct request *q)
{
    return q->granted >= SCOPE_RUN && !*q->bound;
}

void access_write_client(const struct request *q, char out[static ACCESS_CLIENT_ROOM])
{
    snprintf(out, ACCESS_CLIENT_ROOM, "any");
    if (*q->token)
        snprintf(out, ACCESS_CLIENT_ROOM, "token:%s", q->token);
    else if (*q->certificate)
        snprintf(out, ACCESS_CLIENT_ROOM, "cert:%s", q->certificate);
    else if (q->uid != (uid_t)-1)
        snprintf(out, ACCESS_CLIENT_ROOM, "uid:%u", (unsigned)q->uid);
}
