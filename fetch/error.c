// SPDX-License-Identifier: Apache-2.0
// The table of errors. A text follows "HOST: " and names what was seen, not what it may mean.
#include "fetch/error.h"

static const struct fetch_error_info table[FETCH_ERRORS] = {
    [FETCH_OK] = {"ok", "responded"},
    [FETCH_BAD_URL] = {"bad-url", "the address is not a URL of http or https"},
    [FETCH_NO_NAME] = {"no-name", "the host name has no address"},
    [FETCH_REFUSED] = {"refused", "connection refused: no process listens there"},
    [FETCH_NO_ROUTE] = {"no-route", "the host or its network cannot be reached"},
    [FETCH_DENIED] = {"denied", "permission denied on the Unix socket"},
    [FETCH_NO_CONNECTION] = {"no-connection", "no connection within the time limit"},
    [FETCH_SILENT] = {"silent", "connected, but no response within the time limit"},
    [FETCH_SLOW] = {"slow", "the response came slower than the least rate"},
    [FETCH_TIMEOUT] = {"timeout",
                       "the response stopped, or was not complete within the time limit"},
    [FETCH_BROKEN] = {"broken", "the connection ended before the response was complete"},
    [FETCH_NOT_HTTP] = {"not-http", "the response is not HTTP"},
    [FETCH_BODY_TOO_LARGE] = {"body-too-large", "the response is larger than the limit"},
    [FETCH_HEAD_TOO_LARGE] = {"head-too-large", "the headers are larger than the limit"},
    [FETCH_TLS] = {"tls", "the TLS handshake failed"},
    [FETCH_TLS_UNTRUSTED] =
        {"tls-untrusted", "the TLS certificate is not trusted: unknown issuer, or not valid now"},
    [FETCH_TLS_NAME] = {"tls-name", "the TLS certificate belongs to another host"},
    [FETCH_TLS_FILES] = {"tls-files",
                         "the files of TLS (CA bundle, certificate, key) cannot be used"},
    [FETCH_STOPPED] = {"stopped", "the response was not read to its end"},
    [FETCH_INTERRUPTED] = {"interrupted", "interrupted"},
    [FETCH_NO_MEMORY] =
        {"no-memory", "no memory for the request, or for its socket (fs.epoll.max_user_watches)"},
    [FETCH_FAILED] = {"failed", "the request failed"},
};

const struct fetch_error_info *fetch_error_info(enum fetch_error e)
{
    return &table[e];
}
