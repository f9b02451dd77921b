// SPDX-License-Identifier: Apache-2.0
// Read from /proc at each request of the metrics; what cannot change is read once.
#include "core/os/process_use.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"

struct process_use { // -1: not known
    int64_t resident_bytes, virtual_bytes, open_fds, max_fds;
    double cpu_s, start_s; // start: seconds since 1970
};

static int64_t count_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    int64_t n = -1; // the directory's own is not counted
    if (!d)
        return -1;
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

// Field 22 of /proc/self/stat, after the name (which may hold blanks): ticks after boot.
static double start_after_boot_s(void)
{
    char text[1024];
    unsigned long long ticks;
    if (file_read_text("/proc/self/stat", text, sizeof text) < 0)
        return -1;
    const char *at = strrchr(text, ')');
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (!at || sscanf(at, " %llu", &ticks) != 1)
        return -1;
    return (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

// Read once: computed anew it would tremble with the rounding of the clocks.
static double start_s(void)
{
    static double known;
    struct timespec boot;
    double after = known > 0 ? 0 : start_after_boot_s();
    if (known > 0 || after < 0 || clock_gettime(CLOCK_BOOTTIME, &boot) < 0)
        return known > 0 ? known : -1;
    known =
        (double)clock_wall_ms() / 1e3 - ((double)boot.tv_sec + (double)boot.tv_nsec / 1e9) + after;
    return known;
}

static void process_use_read(struct process_use *out)
{
    char text[256];
    unsigned long long pages, resident;
    struct rusage use;
    struct rlimit files;
    *out = (struct process_use){-1, -1, count_fds(), -1, -1, start_s()};
    if (file_read_text("/proc/self/statm", text, sizeof text) >= 0 &&
        sscanf(text, "%llu %llu", &pages, &resident) == 2) {
        out->virtual_bytes = (int64_t)pages * sysconf(_SC_PAGESIZE);
        out->resident_bytes = (int64_t)resident * sysconf(_SC_PAGESIZE);
    }
    if (getrusage(RUSAGE_SELF, &use) == 0)
        out->cpu_s = (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
                     (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        out->max_fds = (int64_t)files.rlim_cur;
}

// Names, types and help as every client library has them, to the letter: whoever collects several
// programs' metrics in one place refuses a name that has two of them.
void process_use_write(struct exposition *e)
{
    struct process_use use;
    process_use_read(&use);
    exposition_single(e, "process_cpu_seconds", "counter",
                      "Total user and system CPU time spent in seconds.", use.cpu_s);
    exposition_single(e, "process_resident_memory_bytes", "gauge", "Resident memory size in bytes.",
                      (double)use.resident_bytes);
    exposition_single(e, "process_virtual_memory_bytes", "gauge", "Virtual memory size in bytes.",
                      (double)use.virtual_bytes);
    exposition_single(e, "process_open_fds", "gauge", "Number of open file descriptors.",
                      (double)use.open_fds);
    exposition_single(e, "process_max_fds", "gauge", "Maximum number of open file descriptors.",
                      (double)use.max_fds);
    exposition_single(e, "process_start_time_seconds", "gauge",
                      "Start time of the process since unix epoch in seconds.", use.start_s);
}
