// SPDX-License-Identifier: Apache-2.0
// Core to core: the time to hand a cache line from one core to another and back.
//
// Two definitions of a round trip are in use and differ by about a factor of two to three:
//   CAS    both cores spin with compare-and-swap on ONE flag in one line (the definition of the
//          core-to-core-latency tool): the line moves in exclusive state with every attempt.
//   LOAD   each core writes its own line and spins reading the other's: two lines, plain loads and
//          stores (a message and its answer).
// A round trip is there and back; one way is half of it by definition, not by measurement.
//
// Two are of one way, and say in which state the line was in the other core's cache:
//   HITM   it was modified there
//   HIT    it was clean there: read after it had been written back to memory
// The far side prepares all C2C_AREA_LINES lines of an area, then the near side reads them one
// after the other, each address from the line before.
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/method.h"

enum c2c_method { C2C_CAS, C2C_LOAD, C2C_HITM, C2C_HIT, C2C_METHODS };
extern const char *const c2c_method_names[C2C_METHODS];

struct c2c_line {
    // The longest line there is (A64FX), and two of 128: some CPUs fetch the neighbour too.
    _Alignas(256) atomic_uint value;
};

struct c2c_pair {
    struct c2c_line *line; // two lines: ping, pong; borrowed
    enum c2c_method method;
    int trips; // timed round trips, after two that are not; or lines read, rounded up to areas
    struct c2c_line *area; // C2C_AREA_LINES lines, linked by c2c_link; for HITM and HIT; borrowed
};

// Links the lines of an area to a cycle in random order.
void c2c_link(struct c2c_line *area, uint64_t seed);
bool c2c_has_method(enum c2c_method method); // HIT takes an instruction that writes a line back

// Both sides call their half at the same time on their own CPUs. The lines must be zero at the
// start; they are zero again at the end. c2c_ping returns ns a round trip, or ns a line read: the
// first trips wait for the other side and are not timed. NAN: a line that was read had not been
// written by the other side before.
double c2c_ping(const struct c2c_pair *p);
void c2c_pong(const struct c2c_pair *p);
