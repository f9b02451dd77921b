// SPDX-License-Identifier: Apache-2.0
// A table has what a code means outside: its name and title in a problem document, its HTTP
// status and its exit status.
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

static const struct err_info infos[ERR_CODES] = {
    [ERR_NONE] = {"none", "No error", 200, 0},
    [ERR_INTERNAL] = {"internal", "Internal error", 500, 1},
    [ERR_NO_MEMORY] = {"no-memory", "The daemon is out of memory", 503, 1},
    [ERR_SYSTEM] = {"system", "A system call failed", 500, 1},
    [ERR_USAGE] = {"usage", "Wrong usage", 400, 2},
    [ERR_BAD_REQUEST] = {"bad-request", "The request cannot be understood", 400, 2},
    [ERR_INVALID] = {"invalid", "A value cannot be used", 422, 2},
    [ERR_NOT_FOUND] = {"not-found", "Not found", 404, 5},
    [ERR_GONE] = {"gone", "Not available any more", 410, 5},
    [ERR_METHOD] = {"method-not-allowed", "Method not allowed", 405, 2},
    [ERR_NOT_ACCEPTABLE] = {"not-acceptable", "No acceptable representation", 406, 2},
    [ERR_CONFLICT] = {"conflict", "Not possible in this state", 409, 1},
    [ERR_BUSY] = {"busy", "The node is busy", 409, 6},
    [ERR_TOO_LARGE] = {"too-large", "The request body is too large", 413, 2},
    [ERR_MEDIA_TYPE] = {"media-type", "The media type of the body is not supported", 415, 2},
    [ERR_MISDIRECTED] = {"misdirected", "The Host is not a name of this daemon", 421, 4},
    [ERR_UNAUTHORIZED] = {"unauthorized", "A token is required", 401, 4},
    [ERR_FORBIDDEN] = {"forbidden", "Not allowed", 403, 4},
    [ERR_QUEUE_FULL] = {"queue-full", "Too many runs are waiting", 429, 6},
    [ERR_TOO_MANY] = {"too-many-requests", "Too many requests at once", 429, 1},
    [ERR_STORAGE] = {"storage", "The daemon cannot store this", 507, 1},
    [ERR_DAMAGED] = {"damaged", "The database is damaged", 503, 1},
    [ERR_UNAVAILABLE] = {"unavailable", "Not available now", 503, 1},
    [ERR_UNREACHABLE] = {"unreachable", "The daemon does not reply", 502, 3},
    [ERR_NO_MEMORY_NODE] = {"memory-short", "The node has too little free memory", 409, 6},
    [ERR_TIMEOUT] = {"timeout", "A deadline passed", 504, 1},
};

const struct err_info *err_info(enum err_code code)
{
    return &infos[(unsigned)code < ERR_CODES ? code : ERR_INTERNAL];
}

// Errors repeat what was received, in a log or on a terminal that might obey it. What a program
// printed may have several lines. A limit may have cut a character: utf8_plain() replaces it.
int err_set(struct err *err, enum err_code code, const char *member, const char *fmt, ...)
{
    if (!err)
        return -1;
    *err = (struct err){.code = code};
    snprintf(err->member, sizeof err->member, "%s", member ? member : "");
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    utf8_plain(err->member);
    utf8_plain(err->text);
    return -1;
}

int err_sys(struct err *err, const char *fmt, ...)
{
    int saved = errno;
    if (!err)
        return -1;
    *err = (struct err){.code = ERR_SYSTEM, .sys = saved};
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof err->text)
        snprintf(err->text + n, sizeof err->text - (size_t)n, ": %s", strerror(saved));
    utf8_plain(err->text);
    return -1;
}

int err_prefix(struct err *err, const char *fmt, ...)
{
    if (!err)
        return -1;
    char head[sizeof err->text];
    char whole[2 * sizeof err->text + 2];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(head, sizeof head, fmt, ap);
    va_end(ap);
    snprintf(whole, sizeof whole, "%s: %s", head, err->text);
    memcpy(err->text, whole, sizeof err->text - 1);
    err->text[sizeof err->text - 1] = '\0';
    utf8_plain(err->text);
    return -1;
}

int err_name_member(struct err *err)
{
    if (!err || strncmp(err->text, err->member, strlen(err->member)) == 0)
        return -1;
    return err_prefix(err, "%s", err->member);
}

enum err_code err_find(const char *slug)
{
    for (int c = 0; c < ERR_CODES; c++)
        if (strcmp(err_info(c)->slug, slug) == 0)
            return (enum err_code)c;
    return *slug ? ERR_INTERNAL : ERR_NONE;
}

void mem_cleanup(void *pointer_to_pointer)
{
    void **p = pointer_to_pointer;
    free(*p);
    *p = NULL;
}
