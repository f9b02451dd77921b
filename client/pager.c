// SPDX-License-Identifier: Apache-2.0
// All output of the command is collected first: a command that waits or fails shows no pager, and
// what fits on the screen stays on it.
#include "client/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { PAGER_WORDS = 16, BLOCK = 65536 };
static int terminal = -1; // the real standard output, while it is replaced

// The program and its words, blanks between them; NULL for none ("", "cat").
static const char *pager_name(void)
{
    const char *name = getenv("PAGER");
    if (!name)
        return "less";
    return *name && strcmp(name, "cat") != 0 ? name : NULL;
}

void pager_begin(const struct cli *c)
{
    if (!c->to_terminal || !c->term_obeys || config_lines_of(STDOUT_FILENO) <= 0 || !pager_name())
        return;
    CLEANUP_FD int kept = memfd_create("numaprobe", MFD_CLOEXEC);
    if (kept < 0)
        return; // it is printed at once
    fflush(stdout);
    terminal = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (terminal >= 0 && dup2(kept, STDOUT_FILENO) < 0) {
        close(terminal);
        terminal = -1;
    }
}

static bool is_longer(int fd, int height)
{
    char block[BLOCK];
    int lines = 0;
    off_t at = 0;
    for (ssize_t n; lines < height && (n = pread(fd, block, sizeof block, at)) > 0; at += n)
        for (ssize_t i = 0; i < n; i++)
            lines += block[i] == '\n';
    return lines >= height;
}

static void copy_out(int from)
{
    char block[BLOCK];
    lseek(from, 0, SEEK_SET);
    for (ssize_t n; (n = read(from, block, sizeof block)) > 0;)
        fwrite(block, 1, (size_t)n, stdout);
}

// False: it could not be started.
static bool run_pager(int input)
{
    char words[256], *argv[PAGER_WORDS + 1] = {NULL}, *rest = words;
    int n = 0;
    pid_t pid;
    posix_spawn_file_actions_t files;
    snprintf(words, sizeof words, "%s", pager_name());
    for (char *word; n < PAGER_WORDS && (word = strsep(&rest, " "));)
        if (*word)
            argv[n++] = word;
    setenv("LESS", "FRX", 0); // end on one screen, colours, leave the text on the screen
    lseek(input, 0, SEEK_SET);
    if (!n || posix_spawn_file_actions_init(&files) != 0)
        return false;
    posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
    int rc = posix_spawnp(&pid, argv[0], &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    if (rc != 0)
        return false;
    signal(SIGINT, SIG_IGN); // Ctrl-C is the pager's
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return !WIFEXITED(status) || WEXITSTATUS(status) != 127;
}

int pager_terminal(void)
{
    return terminal < 0 ? STDOUT_FILENO : terminal;
}

void pager_end(void)
{
    if (terminal < 0)
        return;
    fflush(stdout);
    CLEANUP_FD int kept = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    dup2(terminal, STDOUT_FILENO);
    close(terminal);
    terminal = -1;
    if (kept >= 0 && !(is_longer(kept, config_lines_of(STDOUT_FILENO)) && run_pager(kept)))
        copy_out(kept);
}
