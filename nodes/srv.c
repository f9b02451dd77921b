// SPDX-License-Identifier: Apache-2.0
// A response is a head of 12 bytes, the question again, and the records. The library expands the
// compressed names; every length is checked here.
#include "nodes/srv.h"

#include <arpa/nameser.h>
#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "nodes/named.h"

#define SRV_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

enum {
    RESPONSE_MAX = 65535,
    HEAD_BYTES = 12,
    QUESTION_BYTES = 4,  // behind the name: type and class
    RECORD_BYTES = 10,   // behind the name: type, class, time to live, length
    RECORD_SRV = 33,     // its type
    SRV_FIXED_BYTES = 6, // priority, weight, port
};

struct dns_at {
    const unsigned char *begin, *end, *at;
};

int srv_check(const char *name, struct err *err)
{
    enum { NAME_MAX_BYTES = 253, LABEL_MAX = 63 };
    size_t all = strlen(name), n = 0;
    for (const char *at = name; all <= NAME_MAX_BYTES && *at; at += n + (at[n] == '.')) {
        n = strcspn(at, ".");
        if (!n || n > LABEL_MAX || strspn(at, SRV_LETTERS) < n)
            break;
        if (at[n + (at[n] == '.')] == '\0')
            return 0;
    }
    return err_set(err, ERR_INVALID, "", "needs a name of DNS, such as _numaprobe._tcp.example");
}

static unsigned number_at(const unsigned char *at)
{
    return (unsigned)at[0] << 8 | at[1];
}

static int srv_broken(struct err *err)
{
    return err_set(err, ERR_INVALID, "", "the response of DNS cannot be read");
}

// Passes over a name and `more` bytes behind it.
static int dns_skip(struct dns_at *d, size_t more, struct err *err)
{
    int n = dn_skipname(d->at, d->end);
    if (n < 0 || (size_t)(d->end - d->at) < (size_t)n + more)
        return srv_broken(err);
    d->at += (size_t)n + more;
    return 0;
}

// The part of a host that names it. Cuts the host.
static const char *srv_name(char *host, const char *looked_up)
{
    const char *domain = looked_up;
    while (*domain == '_') { // "_numaprobe._tcp."
        domain += strcspn(domain, ".");
        domain += *domain == '.';
    }
    size_t n = strlen(host), m = strlen(domain);
    while (m && domain[m - 1] == '.')
        m--;
    if (m && n > m + 1 && host[n - m - 1] == '.' && strncasecmp(host + n - m, domain, m) == 0)
        host[n - m - 1] = '\0';
    return host;
}

static int srv_take(const struct dns_at *d, size_t n, const char *looked_up, struct buf *out,
                    struct err *err)
{
    char host[NS_MAXDNAME], name[NS_MAXDNAME], url[NS_MAXDNAME + 16];
    if (n <= SRV_FIXED_BYTES ||
        dn_expand(d->begin, d->end, d->at + SRV_FIXED_BYTES, host, sizeof host) < 0)
        return srv_broken(err);
    if (!*host)
        return 0; // "." says that there is no such service
    snprintf(url, sizeof url, "//%s:%u", host, number_at(d->at + 4));
    memcpy(name, host, sizeof name);
    return named_write(out, &(struct named_node){.name = srv_name(name, looked_up), .url = url},
                       err);
}

int srv_read(const unsigned char *response, size_t n, const char *name, struct buf *out,
             struct err *err)
{
    struct dns_at d = {response, response + n, response + HEAD_BYTES};
    if (n < HEAD_BYTES)
        return srv_broken(err);
    for (unsigned i = number_at(response + 4); i > 0; i--)
        if (dns_skip(&d, QUESTION_BYTES, err) < 0)
            return -1;
    for (unsigned i = number_at(response + 6); i > 0; i--) {
        if (dns_skip(&d, RECORD_BYTES, err) < 0)
            return -1;
        unsigned type = number_at(d.at - 10), bytes = number_at(d.at - 2);
        if ((size_t)(d.end - d.at) < bytes)
            return srv_broken(err);
        if (type == RECORD_SRV && srv_take(&d, bytes, name, out, err) < 0)
            return -1;
        d.at += bytes;
    }
    return 0;
}

int srv_named(const char *name, struct buf *out, struct err *err)
{
    static unsigned char response[RESPONSE_MAX];
    size_t before = out->len;
    int n = res_query(name, C_IN, RECORD_SRV, response, sizeof response);
    if (n < 0 && (h_errno == HOST_NOT_FOUND || h_errno == NO_DATA))
        return err_set(err, ERR_NOT_FOUND, "source", "DNS has no SRV record of %.200s", name);
    if (n < 0)
        return err_set(err, ERR_UNAVAILABLE, "source", "DNS: %.100s for %.150s", hstrerror(h_errno),
                       name);
    size_t bytes = (size_t)n < sizeof response ? (size_t)n : sizeof response;
    if (srv_read(response, bytes, name, out, err) < 0)
        return -1;
    return out->len > before
               ? 0
               : err_set(err, ERR_NOT_FOUND, "source",
                         "DNS has no host for %.200s: the service is not there", name);
}
