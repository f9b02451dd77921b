// SPDX-License-Identifier: Apache-2.0
// ssh ends with one line that says why, behind warnings. Its known forms are reduced to their
// reason; an unknown one is printed as it is, with HOST for the node's name.
#include "client/fleet/ssh_reason.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

enum { LINE_ROOM = 256 };

// A line that holds `sign` means `words`; with a "%s" in them, it is what follows `behind` in the
// line.
static const struct {
    const char *sign, *behind, *words;
} reasons[] = {
    {"Permission denied (", " denied (",
     "ssh: Permission denied (%s No key of this account is accepted, and passwords are not "
     "requested"},
    {"Could not resolve hostname ", ": ", "ssh: the host name cannot be resolved: %s"},
    {"Host key verification failed", NULL,
     "ssh: Host key verification failed: the host's key is not in known_hosts, or has changed"},
    {"connect to host ", ": ", "ssh: %s"},
    {"timed out", NULL, "ssh: Connection timed out"},
    {"connect failed: open failed", NULL,
     "ssh: the node has no socket of the daemon, or it is closed to this account"},
    {"open failed: connect failed: ", "connect failed: ",
     "ssh: the daemon's socket cannot be reached on the node: %s"},
    {"administratively prohibited", NULL,
     "ssh: the node does not allow forwarding (AllowStreamLocalForwarding in sshd_config)"},
    {"Connection closed by ", NULL, "ssh: Connection closed by the node"},
    {"closed by remote host", NULL, "ssh: Connection closed by the node"},
    {"client_loop: send disconnect", NULL, "ssh: Connection closed by the node"},
    {"Connection reset by ", NULL, "ssh: Connection reset by the node"},
};

// The last line that is not empty, printable, without ssh's own name and "debug" of -v.
static void last_line(const char *said, char *out)
{
    const char *end = said + strlen(said), *from;
    do {
        while (end > said && strchr("\r\n ", end[-1]))
            end--;
        for (from = end; from > said && from[-1] != '\n';)
            from--;
        size_t n = (size_t)(end - from) < LINE_ROOM ? (size_t)(end - from) : LINE_ROOM - 1;
        for (size_t i = 0; i < n; i++)
            out[i] = (char)(from[i] >= ' ' && from[i] < 0x7f ? from[i] : '?');
        out[n] = '\0';
        end = from;
    } while (from > said && strncmp(out, "debug", strlen("debug")) == 0);
}

static bool is_word(const char *line, const char *at, size_t n)
{
    static const char part[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return (at == line || !strchr(part, at[-1])) && (!at[n] || !strchr(part, at[n]));
}

static void without_name(const char *line, const char *node, char *out, size_t room)
{
    size_t n = strlen(node), len = 0;
    for (const char *at = line; *at && len + 5 < room;) {
        if (n && strncmp(at, node, n) == 0 && is_word(line, at, n)) {
            len += (size_t)snprintf(out + len, room - len, "HOST");
            at += n;
        } else {
            out[len++] = *at++;
        }
    }
    out[len] = '\0';
}

void ssh_reason(const char *said, const char *node, char *out, size_t room)
{
    char line[LINE_ROOM], general[LINE_ROOM];
    last_line(said, line);
    for (size_t i = 0; i < COUNT_OF(reasons); i++) {
        const char *sign = strstr(line, reasons[i].sign);
        const char *rest = sign && reasons[i].behind ? strstr(sign, reasons[i].behind) : NULL;
        if (!sign || (reasons[i].behind && !rest))
            continue;
        const char *hole = strstr(reasons[i].words, "%s");
        int before = (int)(hole ? hole - reasons[i].words : (ptrdiff_t)strlen(reasons[i].words));
        snprintf(out, room, "%.*s%s%s", before, reasons[i].words,
                 hole ? rest + strlen(reasons[i].behind) : "", hole ? hole + 2 : "");
        return;
    }
    without_name(line, node, general, sizeof general);
    snprintf(out, room, "ssh: %s", *general ? general : "ended without a reason");
}
