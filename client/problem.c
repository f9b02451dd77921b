// SPDX-License-Identifier: Apache-2.0
#include "client/problem.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/print.h"
#include "client/socket.h"

// A request without a token over TCP: the socket may be closed to this account, or not be used.
static void print_access_hint(void)
{
    struct err denied;
    if (socket_denied(SOCKET_OF_SYSTEM)) {
        socket_set_denied(SOCKET_OF_SYSTEM, &denied);
        fprintf(stderr, "numaprobe: %s\n", denied.text);
    }
    fputs("numaprobe: use a token (--token-file=FILE) or the Unix socket "
          "(--url=unix:" SOCKET_OF_SYSTEM ")\n",
          stderr);
}

int problem_report(const char *about, const struct err *err)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    buf_str(&b, "numaprobe: ");
    if (about) {
        print_safe(&b, about);
        buf_str(&b, ": ");
    }
    bool said = strncmp(err->text, err->member, strlen(err->member)) == 0; // "line 3: …"
    if (*err->member && !said && strcmp(err->member, "url") != 0) {
        print_safe(&b, err->member);
        buf_str(&b, ": ");
    }
    print_safe(&b, err->text);
    fprintf(stderr, "%s\n", buf_text(&b));
    if (err->code == ERR_UNAUTHORIZED)
        print_access_hint();
    return err_info(err->code)->exit;
}
