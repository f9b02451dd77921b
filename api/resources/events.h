// SPDX-License-Identifier: Apache-2.0
// Waiting for a run: until it is over (long poll), or for every change (Server-Sent Events).
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "api/services/services.h"

// Calls done once: when the run is over or after ms, whichever is first.
struct waiter;
struct waiter *waiter_new(const struct api_services *api, int64_t run_id, int64_t ms,
                          void (*done)(void *ctx), void *ctx, struct err *err);
void waiter_free(struct waiter *w); // NULL is fine

// One reader of one run's events. It keeps no queue: a reader that is slow gets the newest state.
struct stream;
struct stream *stream_new(const struct api_services *api, int64_t run_id, int64_t after,
                          void (*wake)(void *ctx), void *ctx, struct err *err);
void stream_free(struct stream *s);
// Bytes copied; 0: nothing now, wake() comes; -1: the stream is over.
ssize_t stream_read(struct stream *s, char *out, size_t room);
