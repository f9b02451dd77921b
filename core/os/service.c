// SPDX-License-Identifier: Apache-2.0
// The variables of systemd are read once and removed, so that no child believes that they are
// meant for it.
#include "core/os/service.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"

enum { USEC_OF_MS = 1000 };

// A day: longer is a mistake, and would not fit a timer's milliseconds for good.
#define WATCHDOG_USEC_MAX ((uint64_t)86400 * 1000 * USEC_OF_MS)

struct service {
    struct sockaddr_un address;
    socklen_t address_len; // 0: no service manager
    struct loop_timer *watchdog;
    int64_t watchdog_ms; // between two signs of life; 0: none
    int n_fds;
    int fds[SERVICE_FDS_MAX];
};

static void service_notify(struct service *s, const char *text)
{
    if (!s->address_len)
        return;
    CLEANUP_FD int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
                         (struct sockaddr *)&s->address, s->address_len) < 0)
        log_event(LOG_LVL_WARN, "notify", "text=\"systemd cannot be notified: %s\"",
                  log_quote(strerror(errno)).text);
}

static int read_address(struct service *s, struct err *err)
{
    const char *path = getenv("NOTIFY_SOCKET");
    if (!path || !*path)
        return 0;
    size_t n = strlen(path);
    if ((*path != '/' && *path != '@') || n < 2 || n >= sizeof s->address.sun_path)
        return err_set(err, ERR_USAGE, "NOTIFY_SOCKET",
                       "NOTIFY_SOCKET must be an absolute path or @name of at most %zu bytes",
                       sizeof s->address.sun_path - 1);
    s->address.sun_family = AF_UNIX;
    memcpy(s->address.sun_path, path, n);
    if (*path == '@')
        s->address.sun_path[0] = '\0';
    s->address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    return 0;
}

// A variable that holds a whole number; 1: there is one, 0: there is none.
static int service_read_number(const char *name, uint64_t most, uint64_t *out, struct err *err)
{
    const char *text = getenv(name);
    if (!text)
        return 0;
    if (!str_to_u64(text, out) || *out > most)
        return err_set(err, ERR_USAGE, name, "%s must be a number up to %" PRIu64 ", got \"%.40s\"",
                       name, most, text);
    return 1;
}

// Whether what the variables say is meant for this process. `absent`: what it means when the
// variable with the process number is not there.
static int meant_for_us(const char *name, bool absent, bool *us, struct err *err)
{
    uint64_t pid = 0;
    int there = service_read_number(name, INT32_MAX, &pid, err);
    *us = there ? pid == (uint64_t)getpid() : absent;
    return there < 0 ? -1 : 0;
}

static void on_watchdog(void *ctx, uint32_t events)
{
    struct service *s = ctx;
    (void)events;
    service_notify(s, "WATCHDOG=1");
    loop_timer_set(s->watchdog, s->watchdog_ms);
}

static int read_watchdog(struct service *s, struct loop *l, struct err *err)
{
    uint64_t usec = 0;
    bool us;
    int there = service_read_number("WATCHDOG_USEC", WATCHDOG_USEC_MAX, &usec, err);
    if (there < 0 || meant_for_us("WATCHDOG_PID", true, &us, err) < 0)
        return -1;
    if (!there || !us || !usec || !s->address_len)
        return 0;
    // Half of what is allowed, as systemd advises.
    s->watchdog_ms = (int64_t)(usec / 2 / USEC_OF_MS);
    s->watchdog_ms += !s->watchdog_ms;
    s->watchdog = loop_timer_new(l, on_watchdog, s, err);
    return s->watchdog ? 0 : -1;
}

static int read_fds(struct service *s, struct err *err)
{
    uint64_t n = 0;
    bool us;
    int there = service_read_number("LISTEN_FDS", SERVICE_FDS_MAX, &n, err);
    if (there < 0 || meant_for_us("LISTEN_PID", false, &us, err) < 0)
        return -1;
    for (int i = 0; us && i < (int)n; i++) {
        int fd = SERVICE_FD_FIRST + i;
        int flags = fcntl(fd, F_GETFD);
        if (flags < 0 || fcntl(fd, F_SETFD, flags | FD_CLOEXEC) < 0)
            return err_sys(err, "LISTEN_FDS is %" PRIu64 ", but file descriptor %d", n, fd);
        s->fds[s->n_fds++] = fd;
    }
    return 0;
}

static void forget_environment(void)
{
    static const char *const names[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
                                        "LISTEN_FDS",    "LISTEN_PID",    "LISTEN_FDNAMES"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        unsetenv(names[i]);
}

struct service *service_new(struct loop *l, struct err *err)
{
    struct service *s = calloc(1, sizeof *s);
    if (!s) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for the service");
        return NULL;
    }
    if (read_address(s, err) < 0 || read_watchdog(s, l, err) < 0 || read_fds(s, err) < 0) {
        service_free(s);
        return NULL;
    }
    forget_environment();
    return s;
}

void service_free(struct service *s)
{
    if (!s)
        return;
    loop_timer_free(s->watchdog);
    free(s);
}

int service_fds(const struct service *s, const int **fds)
{
    *fds = s->fds;
    return s->n_fds;
}

void service_ready(struct service *s)
{
    service_notify(s, "READY=1");
    if (s->watchdog)
        on_watchdog(s, 0);
}

void service_reloading(struct service *s)
{
    char text[64];
    // The time lets systemd distinguish this reload from an earlier one: with Type=notify-reload it
    // ignores one that is before its own request, which may be of the same millisecond.
    snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%" PRId64, clock_mono_us());
    service_notify(s, text);
}

void service_stopping(struct service *s)
{
    service_notify(s, "STOPPING=1\nSTATUS=Stopping");
}

void service_status(struct service *s, const char *fmt, ...)
{
    char text[320] = "STATUS=";
    size_t used = strlen(text);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text + used, sizeof text - used, fmt, ap);
    va_end(ap);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' '; // a line break would begin another message
    service_notify(s, text);
}
