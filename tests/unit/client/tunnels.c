// SPDX-License-Identifier: Apache-2.0
// Tunnels to nodes, for tests that give it an ssh and nodes (test_via_ssh.py, tests/perf/ssh.py).
//
//   tunnels PROGRAM AT_ONCE CONNECT_S SOCKET HOLD NODE...
//
// For each node a line: "NODE ready REPLY", where REPLY is the first line that its socket sends
// ("" and what ssh says about it, if it sends none), or "NODE failed CODE TEXT", or "NODE ended
// TEXT" after it was ready. With HOLD "hold" tunnels stay until stdin ends; else each is stopped
// when it has replied. "stop" stops the first node as soon as there is an event of any other.
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "client/fleet/via_ssh.h"

static struct via_ssh *tunnels;
static char **names;
static bool hold, stop, *ready;
static int left;

static void read_reply(const char *path, char *out, size_t room)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    CLEANUP_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
    ssize_t n = connect(fd, (struct sockaddr *)&to, sizeof to) == 0 ? read(fd, out, room - 1) : 0;
    out[n > 0 ? n : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
}

static void on_event(void *ctx, int node, const char *path, const struct err *why)
{
    (void)ctx;
    if (path) {
        char reply[200];
        read_reply(path, reply, sizeof reply);
        printf("%s ready %s\n", names[node], *reply ? reply : via_ssh_why(tunnels, node));
        ready[node] = true;
    } else if (ready[node]) {
        printf("%s ended %s\n", names[node], why->text);
    } else {
        printf("%s failed %s %s\n", names[node], err_info(why->code)->slug, why->text);
    }
    fflush(stdout);
    left -= !path || !hold;
    if (path && !hold)
        via_ssh_stop(tunnels, node);
    if (stop && node > 0) {
        stop = false;
        via_ssh_stop(tunnels, 0);
        left--;
    }
}

static bool input_ended(short events)
{
    char c;
    return (events & (POLLIN | POLLHUP)) && read(STDIN_FILENO, &c, 1) <= 0;
}

int main(int argc, char **argv)
{
    struct err err = {0};
    if (argc < 7)
        return 2;
    const struct via_ssh_options o = {.program = argv[1],
                                      .at_once = (int)strtol(argv[2], NULL, 10),
                                      .connect_s = (int)strtol(argv[3], NULL, 10),
                                      .socket = argv[4]};
    hold = strcmp(argv[5], "hold") == 0;
    stop = strcmp(argv[5], "stop") == 0;
    names = argv + 6;
    left = argc - 6;
    ready = calloc((size_t)left, sizeof *ready);
    tunnels = via_ssh_new(&o, on_event, NULL, &err);
    if (!ready || !tunnels) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    for (int i = 0, n = left; i < n; i++)
        if (via_ssh_start(tunnels, i, names[i], &err) < 0) {
            printf("%s refused %s\n", names[i], err.text);
            left--;
        }
    while (left > 0) {
        struct pollfd fds[] = {{.fd = via_ssh_fd(tunnels), .events = POLLIN},
                               {.fd = hold ? STDIN_FILENO : -1, .events = POLLIN}};
        if (poll(fds, 2, -1) > 0 && fds[1].revents && input_ended(fds[1].revents))
            break;
        via_ssh_turn(tunnels);
    }
    via_ssh_free(tunnels);
    free(ready);
    return 0;
}
