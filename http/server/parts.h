// SPDX-License-Identifier: Apache-2.0
// Inside the server only: what its files share. The one door to libmicrohttpd.
//
// A listener is one daemon of the library; a connection (connections.h) is one of its
// connections; an exchange is one request on a connection, from its first byte until its reply is
// sent.
#pragma once
#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "http/access/access.h"
#include "http/access/audit.h"
#include "http/messages/ready_answer.h"
#include "http/messages/service.h"
#include "http/server/config.h"
#include "http/server/connections.h"
#include "http/server/share.h"
#include "http/server/sockets.h"
#include "http/server/tls.h"
#include "http/server/turns.h"
#include "http/server/worker.h"

enum {
    LISTENERS_MAX = 8,
    ACCEPT_BATCH = 64, // accepted in a round, before those that are there have their turn; so many
                       // may be there beyond the limit until those cut for them have gone
    HELD_MAX = 2048,   // connections of all listeners that are held while a run is measured
};

struct exchange;

struct listener {
    struct server *server;
    struct MHD_Daemon *mhd;
    struct listen_socket socket;    // owned
    int n;                          // connections, also those that are cut and not yet gone
    int most;                       // of n, since memory was given back
    struct connections connections; // all connections
    struct loop_watch *watch;       // of mhd
    bool touched;                   // mhd has something to do since it ran
    int64_t due_ms;                 // monotonic: it has in any case
    struct loop_watch *incoming;    // of the socket; NULL while none is accepted
    bool knocked;                   // some wait on the socket
    struct loop_timer *pause;
    bool resting;                        // until `pause` has ended
    int diag;                            // peer_diag_open(); -1: none
    TAILQ_HEAD(arrivals, arrival) given; // accepted, and the library has not begun them yet
    struct turns held;                   // accepted, and the library has not got them yet
};

struct server {
    struct loop *loop;                  // borrowed
    const struct http_service *service; // borrowed
    struct access_rules access;
    int n;
    struct listener listeners[LISTENERS_MAX];
    struct buf addresses;
    const char *names;          // borrowed, of the configuration
    char own_names[2 * 256];    // host name of the machine, in full and its first label
    char *socket_path;          // owned; NULL: none
    uint64_t requests;          // numbers them
    uint32_t salt;              // keeps the ids of two daemons apart
    size_t bodies, answers_own; // bytes of large ones under way
    struct answers answers;     // those that a worker made
    int answers_sent;           // of them: large ones under way
    struct worker *worker;
    struct turns job_turns;  // jobs that wait for it
    LIST_HEAD(, job) jobs;   // all of them
    struct loop_timer *rest; // until the worker may continue while a run is measured
    int64_t rest_until_ms;
    struct turns loop_turns; // exchanges that wait for their turn in the loop
    bool taking_over;        // in pieces, what the worker has made: it rests
    struct share share;
    int n_held;                            // connections of all listeners
    int held_max;                          // HELD_MAX, or fewer where file descriptors are few
    int64_t exchange_us;                   // what one took lately
    int64_t round_us;                      // what handlers took in this round of the loop
    int connections;                       // of a listener
    void (*hung_up)(struct exchange *x);   // what a client that has gone leaves behind
    struct exchange *waking, **waking_end; // due to be resumed, in the order of waking
    LIST_HEAD(, exchange) exchanges;       // all requests under way
    struct audit audit;
    struct log_budget spared; // for lines that any client may cause
    struct tls *tls;          // for new connections; NULL: none
    bool stopping;
    int64_t stopping_ms; // since when
};

struct exchange {
    LIST_ENTRY(exchange) entry;   // of server->exchanges
    struct exchange *next_waking; // of server->waking
    struct server *server;
    struct listener *listener;
    struct MHD_Connection *mhd;
    struct connection *connection; // NULL: no memory for it, and the exchange ends at once
    char bound[LISTEN_HOST_ROOM];  // of q
    struct request q;
    struct reply r;
    const struct reply_source *source; // of what is open
    void *opened;                      // NULL: nothing
    struct loop_timer *deadline;       // REPLY_WAIT
    struct turn turn;                  // of server->loop_turns
    struct job *job;                   // of the worker, for which it waits
    LIST_ENTRY(exchange) of_job;       // of job->exchanges
    struct ready_answer *made;         // by the job; NULL with `prepared`: why not is in job_err
    struct err job_err;
    int body_fd;                     // of a body that a worker reads; -1: it is in q.body
    const struct job_pieces *pieces; // of what is being taken over
    void *taking;                    // begun by them; NULL: nothing
    struct loop_watch *hangup;       // of a client that waits
    size_t received;
    size_t held, held_answer; // of server->bodies, ->answers_own
    bool begun, suspended, gone, crowded;
    bool paid;                  // SHARE_EXCHANGE_US
    bool waited_turn, has_turn; // it waited for its turn; and it has it now
    bool lost_turn;             // it had it, and the round had no time for it
    bool prepared, sends_large; // the job has finished; of server->answers_sent
    bool last;                  // of its connection
};

// listeners.c: opens all sockets of the configuration and serves them. After an error
// listeners_stop() closes those that were.
int listeners_start(struct server *s, const struct http_config *c, struct err *err);
void listeners_stop(struct server *s); // no exchange may be suspended
// What listeners_start() would refuse, but for what only binding shows. tls: there is a
// certificate.
int listeners_check(const struct http_config *c, bool beyond, bool tls, struct err *err);
// Empties what sockets that were passed replace.
int listeners_replace(struct http_config *c, bool beyond, struct err *err);

// arrivals.c: accepts connections, and holds those that must wait while a run is measured.
// After an error arrivals_stop() closes what was opened.
int arrivals_start(struct listener *l, struct err *err);
void arrivals_stop(struct listener *l);
void arrivals_go_on(struct listener *l); // a connection has ended: there may be room
// The library begins it; NULL: no memory.
struct connection *arrival_take(struct listener *l, int fd);
void arrivals_given(struct listener *l);       // the library has run: it has refused what is left
void arrivals_admit(struct listener *l);       // at the beginning of a round
void arrivals_accept(struct listener *l);      // at its end
bool arrivals_wait(const struct exchange *x);  // of its client: it must not keep its connection
int64_t arrivals_ms(const struct listener *l); // until the next may come in; -1: for ever

// requests.c: what the library reports of requests. `listener` is the struct listener.
void *exchange_on_uri(void *listener, const char *uri, struct MHD_Connection *mhd);
enum MHD_Result exchange_on_access(void *listener, struct MHD_Connection *mhd, const char *url,
                                   const char *method, const char *version, const char *data,
                                   size_t *size, void **exchange);
void exchange_on_completed(void *listener, struct MHD_Connection *mhd, void **exchange,
                           enum MHD_RequestTerminationCode why);

// answers.c: of a request that is whole; again when its wait has ended. Sends the reply, or
// suspends the exchange until there is one.
enum MHD_Result exchange_answer(struct exchange *x);
// It waits neither for a turn nor for a worker any more.
void exchange_leave_queues(struct exchange *x);

// replies.c: what is sent. MHD_NO closes the connection.
enum MHD_Result exchange_send(struct exchange *x); // x->r; 304 if the client has it
enum MHD_Result exchange_send_error(struct exchange *x, const struct err *err, bool close);
// Takes over m, which may be NULL.
enum MHD_Result exchange_queue(struct exchange *x, struct MHD_Response *m, int status,
                               const char *etag);

// rounds.c: what the loop does in one round. False: the exchange is suspended, and answered when
// its turn has come.
bool exchange_takes_turn(struct exchange *x);
void exchange_leaves_turn(struct exchange *x);
void exchange_charge(struct exchange *x, int64_t us);     // what it took of the loop
void exchange_charge_bytes(struct exchange *x, size_t n); // what it is sent
void server_give_turns(struct server *s);                 // at the beginning of a round
int64_t server_turn_ms(struct server *s);                 // until the next one; -1: none waits
bool exchange_is_paced(const struct exchange *x); // it must not disturb the run that is measured

// jobs.c: what a worker does. 1: the exchange was suspended or answered (*out), 0: the loop can
// do it itself, -1: it needs the worker, and the daemon is stopping.
int exchange_begin_job(struct exchange *x, enum MHD_Result *out);
enum MHD_Result exchange_send_made(struct exchange *x); // its job has finished
void exchange_leave_job(struct exchange *x);
void exchange_drop_pieces(struct exchange *x); // nothing more is taken over
int server_jobs_start(struct server *s, struct err *err);
void server_jobs_stop(struct server *s); // no exchange may wait for it

// suspension.c: exchanges that are suspended.
void exchange_suspend(struct exchange *x); // for as long as it takes
void exchange_resume(void *exchange);      // soon; an exchange that is not suspended stays as it is
// The library does not watch a suspended connection, so we do: if its client goes, the exchange is
// resumed and `gone`.
int exchange_watch_hangup(struct exchange *x, struct err *err);
// Takes one of the listener's places for long waits, and watches the client. ERR_UNAVAILABLE: none
// is left for this client.
int exchange_begin_wait(struct exchange *x, struct err *err);
void exchange_end_wait(struct exchange *x); // gives back what the two above took, if they did
void exchange_close_source(struct exchange *x);
void server_wake_some(struct server *s); // of those that exchange_resume() noted
