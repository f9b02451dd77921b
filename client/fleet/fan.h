// SPDX-License-Identifier: Apache-2.0
// A conversation with each of many nodes: some requests, one after the other, of which what is done
// next may depend on the last response. At most --at-once nodes are in progress. A node that fails
// never ends the others.
//
//     struct fan *f = fan_new(cli, &names, &work, &err);
//     fan_run(f);                  // begin() per node; each ends with fan_done() or fan_fail()
//     fan_print_failures(f, stderr);
//     status = fan_status(f, verdict);
//     fan_free(f);
#pragma once
#include "client/config.h"
#include "client/http.h"
#include "fetch/fetch.h"
#include "model/nodeset.h"

enum fan_state {
    FAN_WAITING,  // its turn has not come, or it is busy and comes again later
    FAN_REACHING, // ssh is connecting
    FAN_TALKING,
    FAN_DONE,
    FAN_FAILED,
};

struct fan_node {
    const char *name; // borrowed from the set
    enum fan_state state;
    enum err_code code; // of FAN_FAILED
    char *why;          // owned: for people, without the node's name, so that equal ones fold
    int64_t again_ms;   // it comes again at this time of clock_mono_ms(); 0: no such time
    int64_t skew_ms;    // the node's clock minus ours; 0 without fan_node.dated
    bool dated;         // its responses have a Date
    bool reached;       // it has sent a response of any kind
    char *base;         // owned; "http://host:port"; NULL: it is reached by its socket
    char *socket;       // owned; NULL: by TCP
};

struct fan;

struct fan_work {
    // The node is reached. Must end in fan_call, fan_later, fan_done or fan_fail, now or in a
    // reply.
    void (*begin)(struct fan *f, int node, void *ctx);
    // Ctrl-C came for the first time. `hurry`: why nothing waits for results any more, as after
    // SIGTERM, or NULL. False, or NULL: all that is in progress ends.
    bool (*interrupted)(struct fan *f, const char *hurry, void *ctx);
    // A node has ended (done or failed), for output as it comes; may be NULL.
    void (*ended)(struct fan *f, int node, void *ctx);
    // Written behind the counts of the progress line; may be NULL.
    void (*progress)(const struct fan *f, struct buf *line, void *ctx);
    void *ctx;
};

// Names and work are borrowed. ERR_USAGE: the pattern of addresses, a token in clear.
struct fan *fan_new(const struct cli *c, const struct nodeset *names, const struct fan_work *work,
                    struct err *err);
void fan_free(struct fan *f);
void fan_run(struct fan *f);

int fan_count(const struct fan *f);
struct fan_node *fan_node(struct fan *f, int node);
bool fan_stopped(const struct fan *f);                    // by Ctrl-C, or its reader has gone
int fan_ended(const struct fan *f, enum fan_state state); // how many are FAN_DONE or FAN_FAILED

// A response of status 2xx; body as JSON, borrowed. Others end the node, unless the call has
// `refused`, which gets the error that the problem document names (its text has the option for the
// member) and how many seconds the node wants us to wait (0: it did not say).
typedef void fan_reply(struct fan *f, int node, const struct json *body, void *ctx);
typedef void fan_refused(struct fan *f, int node, const struct err *why, int retry_s, void *ctx);
struct fan_request {
    const char *method; // NULL: GET
    const char *path;
    const char *body;   // NULL: none; JSON
    const char *header; // one more, or NULL
    int wait_s;         // how long the node may hold the request, at most; 0: not
    bool last;          // the connection is not kept: another request needs a new one
    bool optional;      // `refused` gets a failure (ERR_UNREACHABLE), or what is no JSON, too
    fan_reply *reply;
    fan_refused *refused;    // NULL: it ends the node
    const char *interrupted; // borrowed: why it failed if that comes first; NULL: "interrupted"
};
void fan_call(struct fan *f, int node, const struct fan_request *q);

// Is this the node's name? "n1" and "n1.cluster" are one node; under an address any name will do.
bool fan_is_node(struct fan *f, int node, const char *name);

void fan_done(struct fan *f, int node);
// A sentence that does not name the node. Texts of a node are made printable.
void fan_fail(struct fan *f, int node, enum err_code code, const char *why);
// The same for a refusal. An older daemon does not know the path of the request, or its form, and
// the text of its refusal would not say so: `too_old` does.
void fan_fail_refused(struct fan *f, int node, const struct err *refusal, const char *too_old);
void fan_later(struct fan *f, int node, int64_t delay_ms); // begins again then; gives up its place
void fan_pause(struct fan *f, int node, int64_t delay_ms); // the same, and keeps its place

// As client/fleet/failures.h has it.
void fan_print_failures(struct fan *f, FILE *out);
void fan_write_failures(struct fan *f, struct jsonw *w, const char *key);
// Exit status: interrupted, none reached, all busy, `verdict` if it is slower, partial, `verdict`.
int fan_status(struct fan *f, int verdict, bool partial_ok);
