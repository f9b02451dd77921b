// SPDX-License-Identifier: Apache-2.0
// libpq's results become error values in one function, pg_fail. All calls block: the processes that
// use a store have nothing else to do meanwhile.
#include "fleet/store/pg.h"

#include <errno.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "base/suggest.h"
#include "fleet/store/pack.h"

struct pg {
    PGconn *conn;
    bool lost;  // libpq shows that late
    int posted; // statements that were sent, and not confirmed
};

enum { PG_POSTED_MAX = 128 }; // their confirmations must fit the socket: both sides would wait

struct pg_values {
    const char *values[FLEET_CELLS_MAX];
    int lengths[FLEET_CELLS_MAX], binary[FLEET_CELLS_MAX];
    char texts[FLEET_CELLS_MAX][32];
    struct buf repaired[FLEET_CELLS_MAX]; // texts that were no UTF-8
};

static void pg_values_fini(struct pg_values *v)
{
    for (size_t i = 0; i < COUNT_OF(v->repaired); i++)
        buf_free(&v->repaired[i]);
}
#define CLEANUP_VALUES CLEANUP(pg_values_fini)

// By the beginning of SQLSTATE.
static const struct {
    const char *state;
    enum err_code code;
    const char *text;
} meanings[] = {
    {"08", ERR_UNAVAILABLE, "the connection to PostgreSQL was lost"},
    {"57P", ERR_UNAVAILABLE, "PostgreSQL ended the connection"},
    {"53100", ERR_STORAGE, "PostgreSQL's disk is full"},
    {"53300", ERR_UNAVAILABLE, "PostgreSQL has no connection left"},
    {"53", ERR_STORAGE, "PostgreSQL has no room"},
    {"25006", ERR_STORAGE, "PostgreSQL only reads: a standby, or default_transaction_read_only"},
    {"58", ERR_STORAGE, "PostgreSQL's disk gave an error"},
    {"55P03", ERR_CONFLICT, "another process holds a lock"},
    {"23", ERR_CONFLICT, "another process has written the same"},
    {"40", ERR_CONFLICT, "another process has written at the same time"},
    {"42P01", ERR_STORAGE, "PostgreSQL does not have a table of ours"},
    {"42501", ERR_STORAGE, "PostgreSQL does not allow it"},
    {"XX", ERR_DAMAGED, "PostgreSQL found its data damaged"},
};

static int pg_fail(struct pg *c, const PGresult *result, struct err *err)
{
    const char *state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    const char *said = result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    char line[160];
    snprintf(line, sizeof line, "%s", said ? said : PQerrorMessage(c->conn));
    line[strcspn(line, "\n")] = '\0';
    if (!state || PQstatus(c->conn) != CONNECTION_OK) { // without a state, libpq itself says so
        c->lost = true;
        return err_set(err, ERR_UNAVAILABLE, "store", "no connection to PostgreSQL (%s)", line);
    }
    for (size_t i = 0; i < COUNT_OF(meanings); i++)
        if (str_starts(state, meanings[i].state))
            return err_set(err, meanings[i].code, "store", "%s (%s)", meanings[i].text, line);
    return err_set(err, ERR_INTERNAL, "store", "PostgreSQL: %s (%s)", line, state);
}

static void pg_result_cleanup(PGresult **r)
{
    PQclear(*r);
}
#define CLEANUP_RESULT CLEANUP(pg_result_cleanup)

static void pg_silent(void *ctx, const PGresult *notice)
{
    (void)ctx;
    (void)notice;
}

// What libpq would refuse only when it connects, by the name of its option.
static const struct {
    const char *option, *words; // words: between blanks; NULL: a number
    int64_t least, most;
} pg_values_known[] = {
    {"port", NULL, 1, 65535}, // a list for a list of hosts
    {"connect_timeout", NULL, INT32_MIN, INT32_MAX},
    {"keepalives", NULL, INT32_MIN, INT32_MAX},
    {"keepalives_idle", NULL, INT32_MIN, INT32_MAX},
    {"keepalives_interval", NULL, INT32_MIN, INT32_MAX},
    {"keepalives_count", NULL, INT32_MIN, INT32_MAX},
    {"tcp_user_timeout", NULL, INT32_MIN, INT32_MAX},
    {"sslmode", " disable allow prefer require verify-ca verify-full ", 0, 0},
    {"gssencmode", " disable prefer require ", 0, 0},
    {"channel_binding", " disable prefer require ", 0, 0},
    {"target_session_attrs", " any read-write read-only primary standby prefer-standby ", 0, 0},
    {"ssl_min_protocol_version", " TLSv1 TLSv1.1 TLSv1.2 TLSv1.3 ", 0, 0},
    {"ssl_max_protocol_version", " TLSv1 TLSv1.1 TLSv1.2 TLSv1.3 ", 0, 0},
    {"sslsni", " 0 1 ", 0, 0},
    {"sslcompression", " 0 1 ", 0, 0},
    {"sslnegotiation", " postgres direct ", 0, 0},
    {"sslcertmode", " disable allow require ", 0, 0},
    {"load_balance_hosts", " disable random ", 0, 0},
    {"client_encoding", " UTF8 utf8 UTF-8 utf-8 ", 0, 0}, // of all texts here
    {"replication", " false off no 0 ", 0, 0},            // such a connection knows no tables
};

// Paths that have to be there. libpq does without most of those that are not, and without a file of
// passwords that others may read.
static const struct {
    const char *option, *word; // a value that is no path; NULL: none
    mode_t kind, secret;       // bits of the mode that it must not have
    mode_t of_root;            // those of them that it may have where root owns it
} pg_files[] = {
    {"sslrootcert", "system", S_IFREG, 0, 0},
    {"sslcert", NULL, S_IFREG, 0, 0},
    {"sslkey", NULL, S_IFREG, S_IRWXG | S_IRWXO, S_IRGRP},
    {"sslcrl", NULL, S_IFREG, 0, 0},
    {"sslcrldir", NULL, S_IFDIR, 0, 0},
    {"passfile", NULL, S_IFREG, S_IRWXG | S_IRWXO, 0},
};

static bool pg_value_known(size_t i, const char *value)
{
    char text[40];
    int64_t number;
    bool list = i == 0;
    size_t n = list ? strcspn(value, ",") : strlen(value);
    snprintf(text, sizeof text, pg_values_known[i].words ? " %.*s " : "%.*s", (int)n, value);
    if (n > sizeof text - sizeof "  ")
        return false;
    if (pg_values_known[i].words)
        return !strchr(value, ' ') && strstr(pg_values_known[i].words, text);
    if (n && !(str_to_i64(text, &number) && number >= pg_values_known[i].least &&
               number <= pg_values_known[i].most))
        return false;
    return !value[n] || pg_value_known(i, value + n + 1);
}

// Of PQconninfoParse. Values are not repeated: a part of a password may look like one.
static int pg_check_values(const PQconninfoOption *options, struct err *err)
{
    for (const PQconninfoOption *o = options; o && o->keyword; o++)
        for (size_t i = 0; o->val && i < COUNT_OF(pg_values_known); i++) {
            const char *words = pg_values_known[i].words;
            if (strcmp(o->keyword, pg_values_known[i].option) != 0 || pg_value_known(i, o->val))
                continue;
            if (words)
                return err_set(err, ERR_USAGE, "store", "%s must be one of%.*s", o->keyword,
                               (int)strlen(words) - 1, words);
            return err_set(err, ERR_USAGE, "store",
                           "%s must be a number from %" PRId64 " to %" PRId64, o->keyword,
                           pg_values_known[i].least, pg_values_known[i].most);
        }
    return 0;
}

static const char *pg_option(const PQconninfoOption *options, const char *keyword)
{
    while (options->keyword && strcmp(options->keyword, keyword) != 0)
        options++;
    return options->keyword && options->val ? options->val : "";
}

static void pg_options_cleanup(PQconninfoOption **options)
{
    PQconninfoFree(*options);
}

static int pg_check_file(size_t i, const char *path, struct err *err)
{
    const char *option = pg_files[i].option;
    bool folder = pg_files[i].kind == S_IFDIR;
    struct stat st;
    if (access(path, R_OK) < 0 || stat(path, &st) < 0)
        return err_set(err, ERR_USAGE, "store", "%s is no %s that can be read: %s", option,
                       folder ? "directory" : "file", strerror(errno));
    if (S_ISDIR(st.st_mode) != folder)
        return err_set(err, ERR_USAGE, "store", "%s must be a %s, and is a %s", option,
                       folder ? "directory" : "file", folder ? "file" : "directory");
    if (st.st_mode & pg_files[i].secret & ~(st.st_uid == 0 ? pg_files[i].of_root : 0))
        return err_set(err, ERR_USAGE, "store",
                       "%s: others may use the file; its mode must be 0600", option);
    return 0;
}

static int pg_check_files(const PQconninfoOption *options, struct err *err)
{
    for (size_t i = 0; i < COUNT_OF(pg_files); i++) {
        const char *path = pg_option(options, pg_files[i].option), *word = pg_files[i].word;
        // A key with a colon may be one of an engine of OpenSSL.
        if (!*path || (word && strcmp(path, word) == 0) || (*path != '/' && strchr(path, ':')))
            continue;
        if (pg_check_file(i, path, err) < 0)
            return -1;
    }
    return 0;
}

static int pg_check_addresses(const PQconninfoOption *options, struct err *err)
{
    char one[64];
    const char *list = pg_option(options, "hostaddr");
    for (size_t n; *list; list += n + (list[n] == ',')) {
        n = strcspn(list, ",");
        snprintf(one, sizeof one, "%.*s", (int)n, list);
        one[strcspn(one, "%")] = '\0'; // a network card
        if (n && (n >= sizeof one || !str_is_address(one)))
            return err_set(err, ERR_USAGE, "store",
                           "hostaddr must be IPv4 or IPv6 addresses; names belong to host");
    }
    return 0;
}

// Names an option of the query that libpq does not know. Not if an '@' follows: then the query may
// be a part of a password.
static bool pg_unknown_option(const char *uri, struct err *err)
{
    CLEANUP(pg_options_cleanup) PQconninfoOption *known = PQconninfoParse("", NULL);
    const char *at = strchr(uri, '?');
    if (!known || !at || strchr(at, '@'))
        return false;
    for (at++; *at; at += strcspn(at, "&"), at += *at == '&') {
        char name[40], text[SUGGEST_TEXT_ROOM];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "=&"), at);
        struct suggestion near = SUGGESTION_FOR(name);
        bool found = strcmp(name, "ssl") == 0; // ssl=true of JDBC
        for (const PQconninfoOption *o = known; o->keyword; o++) {
            found |= strcmp(name, o->keyword) == 0;
            suggest_consider(&near, o->keyword);
        }
        if (!found && name[strspn(name, "abcdefghijklmnopqrstuvwxyz_")] == '\0') {
            err_set(err, ERR_USAGE, "store", "%s is no option of a connection to PostgreSQL%s",
                    name, suggest_text(&near, "", text, sizeof text));
            return true;
        }
    }
    return false;
}

static int pg_count(const char *list)
{
    int n = 1;
    for (; *list; list++)
        n += *list == ',';
    return n;
}

static int pg_check_ports(const PQconninfoOption *options, struct err *err)
{
    const char *host = pg_option(options, "host"), *address = pg_option(options, "hostaddr");
    int ports = pg_count(pg_option(options, "port")), hosts = pg_count(*address ? address : host);
    if (*host && *address && pg_count(host) != hosts)
        return err_set(err, ERR_USAGE, "store", "has %d host%s, and %d address%s for them",
                       pg_count(host), str_plural(pg_count(host)), hosts, hosts == 1 ? "" : "es");
    return ports == 1 || ports == hosts
               ? 0
               : err_set(err, ERR_USAGE, "store", "has %d port%s for %d host%s", ports,
                         str_plural(ports), hosts, str_plural(hosts));
}

// What stands behind an '@' or a '/' of a password is taken for a host, a port or a database, and
// the library shows them in its messages. Here all who may read see those.
int pg_check_uri(const char *uri, struct err *err)
{
    CLEANUP(pg_options_cleanup) PQconninfoOption *options = PQconninfoParse(uri, NULL);
    bool sound = options;
    for (const PQconninfoOption *o = options; o && o->keyword; o++) {
        bool port = strcmp(o->keyword, "port") == 0, host = strcmp(o->keyword, "host") == 0;
        if (o->val && port)
            sound = sound && !o->val[strspn(o->val, "0123456789,")];
        else if (o->val && (host || strcmp(o->keyword, "dbname") == 0))
            sound = sound && !strchr(o->val, '@');
    }
    if (!options && pg_unknown_option(uri, err))
        return -1;
    if (!sound)
        return err_set(err, ERR_USAGE, "store",
                       "must be a URI of PostgreSQL, with @, :, / and %% of a user or password "
                       "as %%40, %%3A, %%2F and %%25");
    if (pg_check_values(options, err) < 0 || pg_check_ports(options, err) < 0 ||
        pg_check_addresses(options, err) < 0)
        return -1;
    return pg_check_files(options, err);
}

// One label that the encoding lacks would keep all nodes from being stored. SQL_ASCII takes any
// bytes.
static int pg_check_encoding(const struct pg *c, struct err *err)
{
    const char *encoding = PQparameterStatus(c->conn, "server_encoding");
    return !encoding || strcmp(encoding, "UTF8") == 0 || strcmp(encoding, "SQL_ASCII") == 0
               ? 0
               : err_set(err, ERR_STORAGE, "store",
                         "the encoding of the database is %.20s: create one with ENCODING 'UTF8'",
                         encoding);
}

// What the URI says goes before what stands before it here.
static int pg_connect(struct pg *c, const char *uri, struct err *err)
{
    // A server that is gone without closing the connection is missed after a minute at most.
    static const char *const names[] = {
        "connect_timeout",  "keepalives_idle",  "keepalives_interval",
        "keepalives_count", "tcp_user_timeout", "fallback_application_name",
        "client_encoding",  "dbname",           NULL};
    const char *const values[] = {"10",   "30", "10", "3", "60000", "numaprobe-fleetd",
                                  "UTF8", uri,  NULL};
    c->conn = PQconnectdbParams(names, values, 1);
    if (!c->conn)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a connection");
    PQsetNoticeReceiver(c->conn, pg_silent, NULL);
    return PQstatus(c->conn) == CONNECTION_OK ? pg_check_encoding(c, err) : pg_fail(c, NULL, err);
}

struct pg *pg_open(const char *uri, struct err *err)
{
    struct pg *c = calloc(1, sizeof *c);
    if (!c) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for a connection");
        return NULL;
    }
    if (pg_check_uri(uri, err) == 0 && pg_connect(c, uri, err) == 0)
        return c;
    pg_close(c);
    return NULL;
}

void pg_close(struct pg *c)
{
    if (c)
        PQfinish(c->conn);
    free(c);
}

bool pg_alive(const struct pg *c)
{
    return !c->lost && PQstatus(c->conn) == CONNECTION_OK;
}

int pg_reopen(struct pg *c, struct err *err)
{
    PQreset(c->conn);
    c->lost = false;
    c->posted = 0;
    return pg_alive(c) ? 0 : pg_fail(c, NULL, err);
}

void pg_give_up(struct pg *c)
{
    c->lost = true;
}

static int pg_check(struct pg *c, const PGresult *r, ExecStatusType wanted, struct err *err)
{
    ExecStatusType got = PQresultStatus(r);
    return got == wanted || (wanted == PGRES_COMMAND_OK && got == PGRES_TUPLES_OK)
               ? 0
               : pg_fail(c, r, err);
}

// All results are taken, also after an error: those behind it are void.
int pg_settle(struct pg *c, struct err *err)
{
    int posted = c->posted, rc = 0;
    if (!posted)
        return 0;
    c->posted = 0;
    if (PQpipelineSync(c->conn) != 1)
        return pg_fail(c, NULL, err);
    for (int i = 0; i <= posted; i++) { // the last one is the end of the pipeline
        for (PGresult *r; (r = PQgetResult(c->conn));) {
            bool end = PQresultStatus(r) == PGRES_PIPELINE_SYNC;
            if (rc == 0 && !end)
                rc = pg_check(c, r, PGRES_COMMAND_OK, err);
            PQclear(r);
            if (end)
                break;
        }
    }
    if (PQexitPipelineMode(c->conn) != 1 && rc == 0)
        rc = pg_fail(c, NULL, err);
    return rc;
}

int pg_exec(struct pg *c, const char *sql, struct err *err)
{
    if (pg_settle(c, err) < 0)
        return -1;
    CLEANUP_RESULT PGresult *r = PQexec(c->conn, sql);
    return pg_check(c, r, PGRES_COMMAND_OK, err);
}

// bytea comes as text, "\x" and two digits per byte, and is decoded where it lies.
static struct fleet_cell pg_bytes(char *text)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = strlen(text) / 2 - 1;
    for (size_t i = 0; i < n; i++) {
        const char *high = strchr(digits, text[2 * i + 2]), *low = strchr(digits, text[2 * i + 3]);
        text[i] = (char)(high && low ? (high - digits) << 4 | (low - digits) : 0);
    }
    return CELL_B(text, n);
}

static struct fleet_cell pg_cell(const PGresult *r, int row, int column)
{
    enum { BYTEA = 17, INT8 = 20, INT2 = 21, INT4 = 23, FLOAT4 = 700, FLOAT8 = 701 }; // pg_type.dat
    struct fleet_cell cell = {.t = ""};
    if (PQgetisnull(r, row, column))
        return cell;
    const char *text = PQgetvalue(r, row, column);
    Oid type = PQftype(r, column);
    if ((type == INT8 || type == INT4 || type == INT2) && str_to_i64(text, &cell.i)) {
        cell.type = CELL_INT;
        cell.d = (double)cell.i;
    } else if ((type == FLOAT4 || type == FLOAT8) && str_to_double(text, &cell.d)) {
        cell.type = CELL_REAL;
    } else if (type == BYTEA && str_starts(text, "\\x")) {
        cell = pg_bytes(PQgetvalue(r, row, column));
    } else {
        cell.type = CELL_TEXT;
        cell.t = text;
    }
    return cell;
}

static void pg_values_of(struct pg_values *v, const struct fleet_cell *in, int n)
{
    *v = (struct pg_values){0};
    for (int i = 0; i < n; i++) {
        bool bytes = in[i].type == CELL_BYTES;
        v->binary[i] = bytes;
        v->lengths[i] = bytes ? (int)in[i].i : 0; // of a text it does not count
        if (in[i].type == CELL_INT)
            snprintf(v->texts[i], sizeof v->texts[i], "%lld", (long long)in[i].i);
        else if (in[i].type == CELL_REAL)
            snprintf(v->texts[i], sizeof v->texts[i], "%.17g", in[i].d);
        v->values[i] = in[i].type == CELL_NULL   ? NULL
                       : in[i].type == CELL_TEXT ? pack_text(in[i].t, &v->repaired[i])
                       : bytes                   ? in[i].t
                                                 : v->texts[i];
    }
}

int pg_post(struct pg *c, const char *sql, const struct fleet_cell *in, int n, struct err *err)
{
    CLEANUP_VALUES struct pg_values v;
    pg_values_of(&v, in, n);
    if (!c->posted && PQenterPipelineMode(c->conn) != 1)
        return pg_fail(c, NULL, err);
    c->posted++;
    if (PQsendQueryParams(c->conn, sql, n, NULL, v.values, v.lengths, v.binary, 0) != 1)
        return pg_fail(c, NULL, err);
    return c->posted < PG_POSTED_MAX ? 0 : pg_settle(c, err);
}

int pg_query(struct pg *c, const char *sql, const struct fleet_cell *in, int n,
             int (*fn)(void *ctx, const struct fleet_cell *row, struct err *err), void *ctx,
             int64_t *rows, struct err *err)
{
    struct fleet_cell row[FLEET_CELLS_MAX];
    CLEANUP_VALUES struct pg_values v;
    pg_values_of(&v, in, n);
    if (pg_settle(c, err) < 0)
        return -1;
    CLEANUP_RESULT PGresult *r =
        PQexecParams(c->conn, sql, n, NULL, v.values, v.lengths, v.binary, 0);
    if (pg_check(c, r, PGRES_COMMAND_OK, err) < 0)
        return -1;
    for (int i = 0; fn && i < PQntuples(r); i++) {
        for (int k = 0; k < PQnfields(r) && k < FLEET_CELLS_MAX; k++)
            row[k] = pg_cell(r, i, k);
        if (fn(ctx, row, err) < 0)
            return -1;
    }
    if (rows && !str_to_i64(PQcmdTuples(r), rows))
        *rows = PQntuples(r);
    return 0;
}

// ---- COPY

int pg_copy_begin(struct pg *c, const char *sql, struct err *err)
{
    if (pg_settle(c, err) < 0)
        return -1;
    CLEANUP_RESULT PGresult *r = PQexec(c->conn, sql);
    return pg_check(c, r, PGRES_COPY_IN, err);
}

int pg_copy_bytes(struct pg *c, const unsigned char *bytes, size_t n, struct err *err)
{
    return PQputCopyData(c->conn, (const char *)bytes, (int)n) == 1 ? 0 : pg_fail(c, NULL, err);
}

// The command's own result, and the one that says that there is no more.
static int pg_copy_result(struct pg *c, struct err *err)
{
    int result = 0;
    PGresult *r;
    while ((r = PQgetResult(c->conn))) {
        if (result == 0)
            result = pg_check(c, r, PGRES_COMMAND_OK, err);
        PQclear(r);
    }
    return result;
}

int pg_copy_end(struct pg *c, struct err *err)
{
    return PQputCopyEnd(c->conn, NULL) == 1 ? pg_copy_result(c, err) : pg_fail(c, NULL, err);
}

// All rows are taken, also after an error: the connection is to be used again.
static int pg_copy_rows(struct pg *c, int result,
                        int (*fn)(void *ctx, const unsigned char *bytes, size_t n, struct err *err),
                        void *ctx, struct err *err)
{
    char *row = NULL;
    int n;
    while ((n = PQgetCopyData(c->conn, &row, 0)) > 0) {
        if (result == 0)
            result = fn(ctx, (const unsigned char *)row, (size_t)n, err);
        PQfreemem(row);
    }
    if (n != -2)
        return result;
    struct err lost; // what failed first is what is said
    return pg_fail(c, NULL, result == 0 ? err : &lost);
}

int pg_copy_out(struct pg *c, const char *sql,
                int (*fn)(void *ctx, const unsigned char *bytes, size_t n, struct err *err),
                void *ctx, struct err *err)
{
    int result = 0;
    PGresult *r;
    if (pg_settle(c, err) < 0)
        return -1;
    if (PQsendQuery(c->conn, sql) != 1)
        return pg_fail(c, NULL, err);
    // Two of each statement: that it begins, and that it ends. Once the connection is lost, libpq
    // may say for ever that it begins.
    while (!c->lost && (r = PQgetResult(c->conn))) {
        if (PQresultStatus(r) == PGRES_COPY_OUT)
            result = pg_copy_rows(c, result, fn, ctx, err);
        else if (result == 0)
            result = pg_check(c, r, PGRES_COMMAND_OK, err);
        PQclear(r);
    }
    return result;
}
