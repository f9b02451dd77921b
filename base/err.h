// SPDX-License-Identifier: Apache-2.0
// Errors: one small value on the caller's stack, passed as the last argument. The function that
// finds the error names it; no caller on the way up logs it; outputs stay untouched on failure.
//
//     if (thing_do(x, &err) < 0)
//         return -1;
//     ...
//     return err_set(err, ERR_INVALID, "stride", "must be a multiple of 8, got %d", n);   // is -1
#pragma once

enum err_code {
    ERR_NONE,
    ERR_INTERNAL,       // a bug or a broken promise of ours
    ERR_NO_MEMORY,      // our own allocation failed
    ERR_SYSTEM,         // a system call failed; `sys` holds errno
    ERR_USAGE,          // command line is wrong
    ERR_BAD_REQUEST,    // not JSON, bad framing, bad query
    ERR_INVALID,        // understood, but a member has a value that cannot be
    ERR_NOT_FOUND,      // no such run, route, node
    ERR_GONE,           // it was known once, and does not come any more
    ERR_METHOD,         // route exists, method does not
    ERR_NOT_ACCEPTABLE, // no representation that the client accepts
    ERR_CONFLICT,       // the state of the thing does not allow it
    ERR_BUSY,           // the node is not free
    ERR_TOO_LARGE,      // body larger than the limit
    ERR_MEDIA_TYPE,     // body is not application/json
    ERR_MISDIRECTED,    // Host header is not ours
    ERR_UNAUTHORIZED,   // not without a token
    ERR_FORBIDDEN,      // not allowed
    ERR_QUEUE_FULL,     // too many waiting
    ERR_TOO_MANY,       // requests of this client
    ERR_STORAGE,        // database cannot store (disk full, I/O error)
    ERR_DAMAGED,        // the database is damaged; it will be quarantined
    ERR_UNAVAILABLE,    // cannot serve now
    ERR_UNREACHABLE,    // client: no answer from the daemon
    ERR_NO_MEMORY_NODE, // the target node cannot give the memory requested
    ERR_TIMEOUT,        // a deadline passed
    ERR_CODES
};

struct err {
    enum err_code code;
    int sys;         // errno, or 0
    char member[64]; // the request member, option or file line at fault; may be ""
    char text[256];  // a sentence without a full stop: UTF-8 without control characters
};

// Facts of a code, each in one place.
struct err_info {
    const char *slug;  // stable: RFC 9457 type is "/problems/<slug>"
    const char *title; // for people
    int http;          // status
    int exit;          // exit status of the command line
};
const struct err_info *err_info(enum err_code code);
enum err_code err_find(const char *slug); // "": ERR_NONE; unknown: ERR_INTERNAL

// Both fill *err (which may be NULL) and return -1.
__attribute__((format(printf, 4, 5))) int err_set(struct err *err, enum err_code code,
                                                  const char *member, const char *fmt, ...);
// As err_set with ERR_SYSTEM; appends strerror(errno).
__attribute__((format(printf, 2, 3))) int err_sys(struct err *err, const char *fmt, ...);
// Puts "<prefix>: " before the text already there. Returns -1.
__attribute__((format(printf, 2, 3))) int err_prefix(struct err *err, const char *fmt, ...);
// Puts the member before the text, for a line that has no other place for it: "node: must be a
// text". Without a member, or where the text begins with it, nothing changes. Returns -1.
int err_name_member(struct err *err);
