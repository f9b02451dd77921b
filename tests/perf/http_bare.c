// SPDX-License-Identifier: Apache-2.0
// The least that libmicrohttpd can do: "hello" to everybody, epoll, one thread of its own. What
// the daemon costs beyond this is ours. Prints its port, ends when standard input does.
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>

static enum MHD_Result hello(void *ctx, struct MHD_Connection *connection, const char *url,
                             const char *method, const char *version, const char *data,
                             size_t *size, void **call)
{
    static char text[] = "{\"status\":\"ok\",\"version\":\"0.1.0\"}\n";
    (void)ctx, (void)url, (void)method, (void)version, (void)data, (void)size;
    if (!*call) {
        *call = text;
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
    struct MHD_Daemon *d =
        MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, hello, NULL, MHD_OPTION_END);
    if (!d)
        return 1;
    printf("%u\n", MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT)->port);
    fflush(stdout);
    while (getchar() != EOF)
        continue;
    MHD_stop_daemon(d);
    return 0;
}
