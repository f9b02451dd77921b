// SPDX-License-Identifier: Apache-2.0
// The least that libmicrohttpd can do: "hello" to everybody, epoll, one thread of its own, as much
// memory a connection as the daemon gives. What the daemon costs beyond this is ours. Who asks for
// /wait is answered when a line comes on standard input, all at once. Prints its port, ends when
// standard input does.
#include <microhttpd.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { WAITERS_MAX = 16384, CONNECTION_MEMORY = 16384 };

static struct {
    pthread_mutex_t lock;
    struct MHD_Connection *all[WAITERS_MAX];
    int n;
} waiting = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void wait_for_line(struct MHD_Connection *connection)
{
    pthread_mutex_lock(&waiting.lock);
    if (waiting.n < WAITERS_MAX) {
        MHD_suspend_connection(connection);
        waiting.all[waiting.n++] = connection;
    }
    pthread_mutex_unlock(&waiting.lock);
}

static void tell_all(void)
{
    pthread_mutex_lock(&waiting.lock);
    while (waiting.n)
        MHD_resume_connection(waiting.all[--waiting.n]);
    pthread_mutex_unlock(&waiting.lock);
}

static enum MHD_Result hello(void *ctx, struct MHD_Connection *connection, const char *url,
                             const char *method, const char *version, const char *data,
                             size_t *size, void **call)
{
    static char text[] = "{\"status\":\"ok\",\"version\":\"0.1.0\"}\n", asked[] = "asked";
    (void)ctx, (void)method, (void)version, (void)data, (void)size;
    if (!*call) {
        *call = asked;
        return MHD_YES;
    }
    if (*call == asked && strcmp(url, "/wait") == 0) {
        *call = text;
        wait_for_line(connection);
        return MHD_YES;
    }
    struct MHD_Response *r =
        MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_PERSISTENT);
    enum MHD_Result ok = MHD_queue_response(connection, 200, r);
    MHD_destroy_response(r);
    return ok;
}

int main(void)
{
    char line[8];
    struct MHD_Daemon *d = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, hello, NULL,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)WAITERS_MAX + 64, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_MEMORY, MHD_OPTION_LISTEN_BACKLOG_SIZE, 1024u, MHD_OPTION_END);
    if (!d)
        return 1;
    printf("%u\n", MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT)->port);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin))
        tell_all();
    MHD_stop_daemon(d);
    return 0;
}
