// SPDX-License-Identifier: Apache-2.0
// The lesser of two limits, either of which may not exist.
#include "core/os/task_room.h"

#include <stdio.h>
#include <sys/resource.h>

#include "base/memory.h"
#include "base/str.h"
#include "core/os/processes.h"

// Of all accounts: "0.05 0.10 0.20 2/345 6789" has 345.
static int64_t all_tasks(void)
{
    char text[128];
    int n;
    if (file_read_text("/proc/loadavg", text, sizeof text) < 0 ||
        sscanf(text, "%*s %*s %*s %*d/%d", &n) != 1)
        return -1;
    return n;
}

static int64_t limit_room(uid_t uid)
{
    struct rlimit r;
    if (uid == 0 || getrlimit(RLIMIT_NPROC, &r) < 0 || r.rlim_cur == RLIM_INFINITY)
        return -1;
    int64_t limit = (int64_t)r.rlim_cur, all = all_tasks();
    // Those of all accounts are usually few against the limit; then they need not be counted by
    // account.
    int64_t used = all >= 0 && all <= limit / 2 ? all : proc_tasks_of(uid);
    return used < limit ? limit - used : 0;
}

int64_t task_room(uid_t uid)
{
    int64_t limit = limit_room(uid), group = cgroup_room_tasks("");
    if (limit < 0 || group < 0)
        return limit < 0 ? group : limit;
    return limit < group ? limit : group;
}
