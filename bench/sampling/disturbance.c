// SPDX-License-Identifier: Apache-2.0
// Two clocks are compared: the time that passed, and the time that the kernel gave this thread.
// Their difference is what others took.
#include "bench/sampling/disturbance.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"

static void read_counts(struct guard_mark *m)
{
    struct rusage use;
    getrusage(RUSAGE_THREAD, &use);
    m->preempted = use.ru_nivcsw;
    m->faults = use.ru_minflt + use.ru_majflt;
    m->cpu = sched_getcpu();
}

void guard_begin(struct guard_mark *m)
{
    read_counts(m);
    m->cpu_ns = clock_cpu_ns();
    m->wall_ns = clock_mono_ns();
}

void guard_end(struct guard_mark *m)
{
    m->wall_ns = clock_mono_ns();
    m->cpu_ns = clock_cpu_ns();
    read_counts(m);
}

struct guard_verdict guard_judge(const struct guard_mark *begin, const struct guard_mark *end)
{
    struct guard_verdict v = {0};
    double wall = (double)(end->wall_ns - begin->wall_ns);
    double on_cpu = (double)(end->cpu_ns - begin->cpu_ns);
    if (wall > on_cpu)
        v.off_share = (wall - on_cpu) / wall;
    if (v.off_share > GUARD_LOST_SHARE)
        v.flags |= GUARD_OFF_CPU;
    if ((double)(end->faults - begin->faults) * GUARD_FAULT_NS > GUARD_LOST_SHARE * wall)
        v.flags |= GUARD_FAULTS;
    if (end->cpu != begin->cpu)
        v.flags |= GUARD_MOVED;
    v.switches = end->preempted - begin->preempted;
    return v;
}

struct guard_verdict guard_tally(struct guard_total *total, const struct guard_mark *begin,
                                 const struct guard_mark *end)
{
    struct guard_verdict v = guard_judge(begin, end);
    double wall = (double)(end->wall_ns - begin->wall_ns);
    total->wall_ns += wall;
    total->off_ns += v.off_share * wall;
    return v;
}

double guard_off_share(const struct guard_total *total)
{
    return total->wall_ns > 0 ? total->off_ns / total->wall_ns : NAN;
}

int64_t guard_stolen_ms(int cpu)
{
    char head[24], line[256];
    long long steal = -1;
    FILE *f = fopen("/proc/stat", "re");
    if (!f)
        return -1;
    snprintf(head, sizeof head, "cpu%d ", cpu);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, head, strlen(head)) == 0) {
            // user nice system idle iowait irq softirq steal
            if (sscanf(line + strlen(head), "%*d %*d %*d %*d %*d %*d %*d %lld", &steal) != 1)
                steal = -1;
            break;
        }
    fclose(f);
    return steal < 0 ? -1 : steal * 1000 / sysconf(_SC_CLK_TCK);
}
