// SPDX-License-Identifier: Apache-2.0
// A PostgreSQL of the test alone: in a directory of its own, on a Unix socket, without TCP. It ends
// with the test, also when that is killed. As root it is run by the account nobody, because
// PostgreSQL refuses root.
#pragma once
#include <glob.h>
#include <grp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/core/dir.h"

struct cluster {
    char dir[64], bin[200], uri[200];
    pid_t pid;    // of the server; 0: none
    bool durable; // set before the start: commits wait for the disk
};

enum { CLUSTER_ACCOUNT = 65534, CLUSTER_START_S = 120 };

static pid_t cluster_spawn(const struct cluster *c, const char *program, const char *const *argv)
{
    char path[300], notify[100];
    snprintf(path, sizeof path, "%s/%s", c->bin, program);
    snprintf(notify, sizeof notify, "%s/notify", c->dir);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    if (geteuid() == 0 &&
        (setgroups(0, NULL) < 0 || setgid(CLUSTER_ACCOUNT) < 0 || setuid(CLUSTER_ACCOUNT) < 0))
        _exit(126);
    prctl(PR_SET_PDEATHSIG, SIGQUIT); // after the account: a change of it takes this back
    setenv("NOTIFY_SOCKET", notify, 1);
    setenv("LC_ALL", "C", 1);
    if (!freopen("/dev/null", "r", stdin) || !freopen("/dev/null", "w", stdout) ||
        !freopen("/dev/null", "w", stderr) || chdir(c->dir) < 0)
        _exit(126);
    execv(path, (char *const *)(uintptr_t)argv);
    _exit(127);
}

static bool cluster_ran(pid_t pid)
{
    int status = -1;
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

// The server says READY=1 to a socket, as it does to systemd.
static bool cluster_is_ready(int fd)
{
    char text[200];
    struct timeval most = {.tv_sec = CLUSTER_START_S};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    for (;;) {
        ssize_t n = recv(fd, text, sizeof text - 1, 0);
        if (n <= 0)
            return false;
        text[n] = '\0';
        if (strstr(text, "READY=1"))
            return true;
    }
}

__attribute__((unused)) static bool cluster_up(struct cluster *c)
{
    char data[100], sockets[120];
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(data, sizeof data, "%s/data", c->dir);
    snprintf(sockets, sizeof sockets, "unix_socket_directories=%s", c->dir);
    snprintf(a.sun_path, sizeof a.sun_path, "%s/notify", c->dir);
    unlink(a.sun_path);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || chmod(a.sun_path, 0777) < 0)
        return false;
    const char *const argv[] = {"postgres",
                                "-D",
                                data,
                                "-c",
                                sockets,
                                "-c",
                                "listen_addresses=",
                                "-c",
                                "shared_buffers=64MB",
                                "-c",
                                "max_wal_size=1GB",
                                "-c",
                                c->durable ? "fsync=on" : "fsync=off",
                                NULL};
    c->pid = cluster_spawn(c, "postgres", argv);
    bool ready = cluster_is_ready(fd);
    close(fd);
    return ready;
}

static void cluster_down(struct cluster *c, int signal)
{
    if (c->pid > 0) {
        kill(c->pid, signal);
        waitpid(c->pid, NULL, 0);
    }
    c->pid = 0;
}

// False: this machine has no server.
__attribute__((unused)) static bool cluster_start(struct cluster *c)
{
    glob_t found = {0};
    char data[100];
    if (!FLEET_POSTGRESQL || glob("/usr/lib/postgresql/*/bin", 0, NULL, &found) != 0)
        return false;
    snprintf(c->bin, sizeof c->bin, "%s", found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
    dir_make(c->dir);
    snprintf(data, sizeof data, "%s/data", c->dir);
    snprintf(c->uri, sizeof c->uri, "postgresql:///postgres?host=%s&user=fleet", c->dir);
    if (geteuid() == 0 && chown(c->dir, CLUSTER_ACCOUNT, CLUSTER_ACCOUNT) < 0)
        return false;
    const char *const argv[] = {"initdb", "-D", data,   "-U",         "fleet",     "-A",
                                "trust",  "-E", "UTF8", "--locale=C", "--no-sync", NULL};
    if (!cluster_ran(cluster_spawn(c, "initdb", argv)) || !cluster_up(c)) {
        printf("# PostgreSQL did not start\n");
        return false;
    }
    return true;
}

__attribute__((unused)) static void cluster_stop(struct cluster *c)
{
    cluster_down(c, SIGQUIT);
    if (*c->dir)
        dir_remove(c->dir);
}
