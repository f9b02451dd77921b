// SPDX-License-Identifier: Apache-2.0
// What strangers can send us, as functions of bytes. One table of targets; two mains: replay.c
// gives the corpus and a bounded number of mutations to a target in every build, libfuzzer.c lets
// libFuzzer look for new inputs. A target holds promises with fuzz_hold, sanitizers hold the rest.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fuzz_target {
    const char *name; // its corpus is corpus/<name>
    // Once, before the first input; NULL: nothing to do. *dir is a directory of its own for files.
    void (*begin)(const char *dir);
    void (*run)(const uint8_t *data, size_t size);
    // run() sets fuzz_accepted. A seed of such a target is refused if its name begins so
    // ("refused-no-node.xml"), and accepted otherwise.
    bool judges;
    int mutations; // in ./check: together they take less than 10 s
};
extern bool fuzz_accepted;
extern const struct fuzz_target fuzz_targets[]; // name NULL ends
const struct fuzz_target *fuzz_find(const char *name);
// Calls begin() with a new directory in memory where there is /dev/shm, which is removed when the
// program ends.
void fuzz_begin(const struct fuzz_target *t);

// A promise of ours; aborts with the place where it was broken.
#define fuzz_hold(promise) ((promise) ? (void)0 : fuzz_broken(#promise, __FILE__, __LINE__))
_Noreturn void fuzz_broken(const char *promise, const char *file, int line);

// A copy with a NUL behind it that ends exactly there, so that reading past it is seen. free().
char *fuzz_text(const uint8_t *data, size_t size);
// Replaces the file's content.
void fuzz_write(const char *path, const void *data, size_t size);

void fuzz_request_begin(const char *dir), fuzz_request(const uint8_t *data, size_t size);
void fuzz_http(const uint8_t *data, size_t size);
void fuzz_api_begin(const char *dir), fuzz_api(const uint8_t *data, size_t size);
void fuzz_records_begin(const char *dir), fuzz_records(const uint8_t *data, size_t size);
void fuzz_config_begin(const char *dir), fuzz_config(const uint8_t *data, size_t size);
void fuzz_tokens_begin(const char *dir), fuzz_tokens(const uint8_t *data, size_t size);
void fuzz_import(const uint8_t *data, size_t size);
void fuzz_client_begin(const char *dir), fuzz_client(const uint8_t *data, size_t size);
void fuzz_client_config_begin(const char *dir);
void fuzz_client_config(const uint8_t *data, size_t size);
void fuzz_smbios(const uint8_t *data, size_t size);
void fuzz_feed_begin(const char *dir), fuzz_feed(const uint8_t *data, size_t size);
void fuzz_summary(const uint8_t *data, size_t size);
void fuzz_topology(const uint8_t *data, size_t size);
void fuzz_readings_begin(const char *dir), fuzz_readings(const uint8_t *data, size_t size);
void fuzz_fleet_config(const uint8_t *data, size_t size);
void fuzz_groups_begin(const char *dir), fuzz_groups(const uint8_t *data, size_t size);
void fuzz_facts(const uint8_t *data, size_t size);
void fuzz_reference(const uint8_t *data, size_t size);
void fuzz_nodeset(const uint8_t *data, size_t size);
void fuzz_sd(const uint8_t *data, size_t size);
void fuzz_srv(const uint8_t *data, size_t size);
