// SPDX-License-Identifier: Apache-2.0
// Why a request has no whole response. The text of each stands in one table.
#pragma once

enum fetch_error {
    FETCH_OK,             // status, headers and body are there, whatever the status is
    FETCH_BAD_URL,        // not http:// or https://, or not a URL
    FETCH_NO_NAME,        // the name has no address
    FETCH_REFUSED,        // no process listens there
    FETCH_NO_ROUTE,       // the network or the host cannot be reached
    FETCH_DENIED,         // this account may not use the Unix socket
    FETCH_NO_CONNECTION,  // neither accepted nor refused in time
    FETCH_SILENT,         // connected, and no byte of a response in time
    FETCH_SLOW,           // less than the least rate
    FETCH_TIMEOUT,        // the response was not complete in time
    FETCH_BROKEN,         // the connection ended before the response was complete
    FETCH_NOT_HTTP,       // what came is no response
    FETCH_BODY_TOO_LARGE, // more bytes than the limit
    FETCH_HEAD_TOO_LARGE, // headers longer than the limit
    FETCH_TLS,            // no common version or cipher, a client certificate was refused
    FETCH_TLS_UNTRUSTED,  // unknown issuer, or not valid at this time
    FETCH_TLS_NAME,       // the certificate is another host's
    FETCH_TLS_FILES,      // our certificate, key or CA bundle cannot be used
    FETCH_STOPPED,        // the request's own function took no more
    FETCH_INTERRUPTED,    // by fetch_stop or a signal
    FETCH_NO_MEMORY,
    FETCH_FAILED, // anything else
    FETCH_ERRORS
};

struct fetch_error_info {
    const char *slug; // stable, for programs: "refused"
    const char *text; // for people, without a full stop
};
const struct fetch_error_info *fetch_error_info(enum fetch_error e);
