// SPDX-License-Identifier: Apache-2.0
// The maker keeps the file open as long as it is mapped; others open it as /proc/<pid>/fd/<n>.
// No name means that nothing is left behind.
#include "bench/memory/shared_memory.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static int map(struct share *s, int fd, uint64_t bytes, struct err *err)
{
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return err_sys(err, "cannot map %" PRIu64 " KiB of shared memory", bytes >> 10);
    madvise(base, bytes, MADV_NOHUGEPAGE); // whatever shmem_enabled says: results say 4 KiB
    s->base = base;
    s->bytes = bytes;
    return 0;
}

int share_make(struct share *s, uint64_t bytes, struct err *err)
{
    *s = (struct share){.fd = memfd_create("numa_bench", MFD_CLOEXEC)};
    if (s->fd < 0)
        return err_sys(err, "cannot make shared memory");
    if (ftruncate(s->fd, (off_t)bytes) < 0) {
        err_sys(err, "cannot make %" PRIu64 " KiB of shared memory", bytes >> 10);
        share_fini(s);
        return -1;
    }
    if (map(s, s->fd, bytes, err) == 0)
        return 0;
    share_fini(s);
    return -1;
}

int share_open(struct share *s, int64_t pid, int fd, uint64_t bytes, struct err *err)
{
    char path[64];
    *s = (struct share){.fd = -1};
    snprintf(path, sizeof path, "/proc/%" PRId64 "/fd/%d", pid, fd);
    int opened = open(path, O_RDWR | O_CLOEXEC);
    if (opened < 0)
        return err_sys(err, "cannot open the memory of the rank with process %" PRId64, pid);
    int outcome = map(s, opened, bytes, err);
    close(opened);
    return outcome;
}

void share_fini(struct share *s)
{
    if (s->base)
        munmap(s->base, s->bytes);
    if (s->fd >= 0)
        close(s->fd);
    *s = (struct share){.fd = -1};
}
