// SPDX-License-Identifier: Apache-2.0
// With privilege the network namespace is made before the change of account. Without it a user
// namespace is made after, and its capabilities leave the bounding set, so that no exec regains
// them.
#include "core/os/become.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

static int become_failed(const char **step, const char *what)
{
    *step = what;
    return -1;
}

static int raise_loopback(void)
{
    struct ifreq r = {.ifr_name = "lo"};
    CLEANUP_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &r) < 0)
        return -1;
    r.ifr_flags |= IFF_UP;
    return ioctl(fd, SIOCSIFFLAGS, &r);
}

static int write_proc(const char *path, const char *text)
{
    CLEANUP_FD int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}

static int change_account(const struct become *b)
{
    if (geteuid() == 0 && setgroups(0, NULL) < 0)
        return -1;
    if (b->gid != getegid() && setresgid(b->gid, b->gid, b->gid) < 0)
        return -1;
    return b->uid != geteuid() ? setresuid(b->uid, b->uid, b->uid) : 0;
}

// Each number stands for itself, so files belong to whom they belonged. The kernel wants setgroups
// forbidden first.
static int map_ourselves(uid_t uid, gid_t gid)
{
    char users[64], groups[64];
    snprintf(users, sizeof users, "%u %u 1\n", (unsigned)uid, (unsigned)uid);
    snprintf(groups, sizeof groups, "%u %u 1\n", (unsigned)gid, (unsigned)gid);
    if (write_proc("/proc/self/uid_map", users) < 0 ||
        write_proc("/proc/self/setgroups", "deny\n") < 0)
        return -1;
    return write_proc("/proc/self/gid_map", groups);
}

// All capabilities of the new user namespace, for the program after exec and for its children.
static void forget_capabilities(void)
{
    for (unsigned long cap = 0; prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0; cap++)
        continue;
}

static int isolate_as_user(const char **step)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); // after a change of account our own /proc is root's
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
        return become_failed(step, "user and network namespace");
    if (map_ourselves(uid, gid) < 0)
        return become_failed(step, "map of a user namespace");
    if (raise_loopback() < 0)
        return become_failed(step, "loopback of a network namespace");
    forget_capabilities();
    return 0;
}

int become(const struct become *b, const char **step)
{
    bool isolated = b->isolated && unshare(CLONE_NEWNET) == 0;
    if (b->isolated && !isolated && errno != EPERM)
        return become_failed(step, "network namespace");
    if (isolated && raise_loopback() < 0)
        return become_failed(step, "loopback of a network namespace");
    if (change_account(b) < 0)
        return become_failed(step, "change of account");
    return b->isolated && !isolated ? isolate_as_user(step) : 0;
}
