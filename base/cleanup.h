// SPDX-License-Identifier: Apache-2.0
// Ownership by scope: a local marked CLEANUP(f) is released when its scope ends; steal_* hands it
// on.
#pragma once
#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#define CLEANUP(fn) __attribute__((cleanup(fn)))
#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

static inline int steal_fd(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

// Hands the pointer out of a cleanup local: `return steal_ptr(&p);`
#define steal_ptr(pp)                                                                              \
    (__extension__({                                                                               \
        __typeof__(*(pp)) taken_ = *(pp);                                                          \
        *(pp) = NULL;                                                                              \
        taken_;                                                                                    \
    }))

static inline void fd_cleanup(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static inline void file_cleanup(FILE **f)
{
    if (*f)
        fclose(*f);
}

static inline void dir_cleanup(DIR **d)
{
    if (*d)
        closedir(*d);
}

void mem_cleanup(void *pointer_to_pointer); // free(*p); p is any `T **`

#define CLEANUP_FD CLEANUP(fd_cleanup)
#define CLEANUP_FILE                                                                               \
    CLEANUP(file_cleanup) // of what was read: a failure to write shows here too late
#define CLEANUP_DIR CLEANUP(dir_cleanup)
#define CLEANUP_MEM CLEANUP(mem_cleanup)
