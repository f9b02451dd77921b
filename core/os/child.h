// SPDX-License-Identifier: Apache-2.0
// Work that may end its process, or never end, is done by a child: libraries that abort where they
// lack memory, modules that an administrator has configured and that ask a network. What it finds
// out comes by memory shared with it (child_share), of which nothing is to be believed unchecked.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

enum { CHILD_RESULT_MAX = 255 };

// Zeroed memory that a child's writing reaches us by, address space only until it is written to;
// NULL if there is none. For child_unshare.
void *child_share(size_t bytes);
void child_unshare(void *p, size_t bytes);

// Forks a child that runs work(arg), ends with us at the latest, and waits for it at most
// `limit_ms`. What `work` returned (0 … CHILD_RESULT_MAX), or -1: ERR_UNAVAILABLE, there is no
// process for it; ERR_TIMEOUT, it was ended; ERR_INTERNAL, it ended by a signal.
int child_run(int (*work)(void *arg), void *arg, int limit_ms, struct err *err);

// This program again, as a process that has nothing of ours but the listed file descriptors, stderr
// and no environment. Its stdin and stdout are /dev/null unless they are listed. `session`: it
// leads a session of its own. 0, or errno.
struct child_fd {
    int from, to; // from -1: it gets none
};
int child_exec(pid_t *pid, char *const argv[], const struct child_fd *fds, int n, bool session);
// The same for one that starts other programs. variables: names of the variables of our environment
// that it gets, at most CHILD_VARIABLES_MAX and NULL; NULL: none. Other accounts do not see them,
// as they see argv.
enum { CHILD_VARIABLES_MAX = 8 };
int child_exec_with(pid_t *pid, char *const argv[], const struct child_fd *fds, int n, bool session,
                    const char *const *variables);
// Kills a child of child_exec() and reaps it. A status of waitpid(): its own, if it had ended
// before. pid 0: there is none. One that the kernel does not let end within `limit_ms` (-1: no
// limit), because a disk or a network file system does not respond, is reaped by a later call.
enum { CHILD_END_MS = 10 }; // one that nothing holds ends within 2 ms
int child_end(pid_t *pid, int limit_ms);
// For one that was killed otherwise: takes its pidfd. It is reaped now if it has ended, else by a
// later call of this or of child_end().
void child_reap(int pidfd);
// A text for a child that no other account may see, as all may see argv: a file descriptor for its
// list, of which it reads the text with child_read_text(). -1 and an error.
int child_text(const char *text, struct err *err);
bool child_read_text(int fd, char *out, size_t room); // false: there is none, or it is too long
// The calling process may have `bytes` of address space more than it has now, or what a lower limit
// (ulimit -v) leaves.
bool child_limit_memory(size_t bytes);
