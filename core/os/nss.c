// SPDX-License-Identifier: Apache-2.0
// A question and its answer lie in memory shared with a child. The child runs the modules of
// nsswitch.conf; whatever they do to it, we get an answer or a reason within the limit.
#include "core/os/nss.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/os/child.h"

enum answer { FOUND, NONE, LACKING };

struct question {
    bool (*ask)(struct question *);
    const char *name;
    struct lookup found;
    int lacked; // errno
};

static bool nss_put(struct question *q, uid_t uid, gid_t gid, const char *name)
{
    q->found = (struct lookup){.uid = uid, .gid = gid};
    // A name cut short would be another's.
    return snprintf(q->found.name, sizeof q->found.name, "%s", name) <= LOOKUP_NAME_MAX;
}

static bool ask_user(struct question *q)
{
    const struct passwd *pw = getpwnam(q->name);
    return pw && nss_put(q, pw->pw_uid, pw->pw_gid, pw->pw_name);
}

static bool ask_user_id(struct question *q)
{
    const struct passwd *pw = getpwuid(q->found.uid);
    return pw && nss_put(q, pw->pw_uid, pw->pw_gid, pw->pw_name);
}

static bool ask_group(struct question *q)
{
    const struct group *g = getgrnam(q->name);
    return g && nss_put(q, (uid_t)-1, g->gr_gid, g->gr_name);
}

// What a module leaves in errno where there is no such name is its own affair; only what says that
// something was lacking says that they are not known.
static int nss_work(void *arg)
{
    static const int lacking[] = {ENOMEM, EMFILE, ENFILE, EIO, EINTR};
    struct question *q = arg;
    errno = 0;
    if (q->ask(q))
        return FOUND;
    for (size_t i = 0; i < sizeof lacking / sizeof *lacking; i++)
        if (errno == lacking[i]) {
            q->lacked = errno;
            return LACKING;
        }
    return NONE;
}

static int look_up(struct lookup *out, const struct question *asked, struct err *err)
{
    struct question *q = child_share(sizeof *q);
    if (!q)
        return err_set(err, ERR_NO_MEMORY, "", "no memory");
    *q = *asked;
    int rc = child_run(nss_work, q, LOOKUP_MS, err);
    *out = q->found;
    out->name[LOOKUP_NAME_MAX] = '\0';
    if (rc == LACKING)
        err_set(err, ERR_UNAVAILABLE, "", "%s", strerror(q->lacked));
    else if (rc == NONE)
        err_set(err, ERR_NOT_FOUND, "", "there is none of this name");
    child_unshare(q, sizeof *q);
    return rc == FOUND ? 0 : -1;
}

int lookup_user(struct lookup *out, const char *name, struct err *err)
{
    return look_up(out, &(struct question){.ask = ask_user, .name = name}, err);
}

int lookup_user_id(struct lookup *out, uid_t uid, struct err *err)
{
    return look_up(out, &(struct question){.ask = ask_user_id, .found.uid = uid}, err);
}

int lookup_group(struct lookup *out, const char *name, struct err *err)
{
    return look_up(out, &(struct question){.ask = ask_group, .name = name}, err);
}
