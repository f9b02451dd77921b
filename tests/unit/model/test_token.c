// SPDX-License-Identifier: Apache-2.0
#include "model/token.h"

#include <string.h>

#include "base/cleanup.h"
#include "tests/unit/tap.h"

static const char hash_of_abc[] =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; // FIPS 180-2

static void makes(void)
{
    unsigned char random[TOKEN_RANDOM] = {0, 1, 0xff};
    char text[TOKEN_TEXT_SIZE], hash[TOKEN_HASH_SIZE];
    token_text(random, text);
    CHECK(strncmp(text, "np_0001ff00", 11) == 0 && strlen(text) == TOKEN_TEXT_SIZE - 1, "%s", text);
    token_hash("abc", hash);
    CHECK_STR(hash, hash_of_abc, "SHA-256");
}

// A difference anywhere counts, and the loop has no way out before the end.
static void compares(void)
{
    char other[TOKEN_HASH_SIZE];
    int missed = 0;
    CHECK(token_same_hash(hash_of_abc, hash_of_abc), "the same is the same");
    for (int i = 0; i < TOKEN_HASH_SIZE - 1; i++) {
        memcpy(other, hash_of_abc, sizeof other);
        other[i] ^= 1;
        missed += token_same_hash(hash_of_abc, other);
    }
    CHECK(missed == 0, "a difference at each of 64 places is seen");
}

static void reads(void)
{
    CLEANUP_BUF struct buf line = BUF_INIT;
    struct token t = {.name = "prometheus", .scope = SCOPE_READ, .created_ms = 1700000000123};
    struct token back;
    struct err err;
    memcpy(t.hash, hash_of_abc, sizeof t.hash);
    token_write_line(&t, &line);
    CHECK(line.len && line.data[line.len - 1] == '\n', "a line");
    line.data[--line.len] = '\0';
    CHECK(token_read_line(&back, buf_text(&line), &err) == 0, "is read back");
    CHECK_STR(back.name, t.name, "name");
    CHECK_STR(back.hash, t.hash, "hash");
    CHECK(back.scope == t.scope && back.created_ms == t.created_ms, "scope and time");
}

static void refuses(void)
{
    static const char *const bad[] = {
        "",
        "x",
        "x run 00 2026-01-01T00:00:00Z",
        "x none ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad "
        "2026-01-01T00:00:00Z",
        "x root ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad "
        "2026-01-01T00:00:00Z",
        "a/b run ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad "
        "2026-01-01T00:00:00Z",
        "x run BA7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad "
        "2026-01-01T00:00:00Z",
        "x run ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad never",
        "x run ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad "
        "2026-01-01T00:00:00Z y",
        "x push ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad "
        "2026-01-01T00:00:00Z",
        "x push ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad "
        "2026-01-01T00:00:00Z a b",
        "x push ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad "
        "2026-01-01T00:00:00Z @all",
    };
    struct token t;
    struct err err;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK(token_read_line(&t, bad[i], &err) < 0, "refused: %s", bad[i]);
}

static void names_nodes(void)
{
    CLEANUP_BUF struct buf line = BUF_INIT;
    struct token back, t = {.name = "rack", .scope = SCOPE_PUSH, .nodes = "n[1-9],m1"};
    struct err err = {0};
    char long_set[TOKEN_NODES_MAX + 2];
    memcpy(t.hash, hash_of_abc, sizeof t.hash);
    token_write_line(&t, &line);
    line.data[--line.len] = '\0';
    CHECK(token_read_line(&back, buf_text(&line), &err) == 0, "a token of nodes is read back");
    CHECK_STR(back.nodes, t.nodes, "its nodes");
    CHECK(token_names(&back, "n9") && token_names(&back, "m1") && !token_names(&back, "n10") &&
              !token_names(&back, "n") && !token_names(&back, ""),
          "it names these alone");
    back.scope = SCOPE_ADMIN;
    CHECK(!token_names(&back, "n9"), "no other scope names nodes");
    CHECK(token_check_nodes("n[1-9],m1", &err) == 0, "a set");
    memset(long_set, 'n', sizeof long_set - 1);
    long_set[sizeof long_set - 1] = '\0';
    static const char *const bad[] = {"", "n[1", "a b", "@g", "a!b", "-x"};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK(token_check_nodes(bad[i], &err) < 0 && strcmp(err.member, "nodes") == 0, "no set: %s",
              bad[i]);
    CHECK(token_check_nodes(long_set, &err) < 0, "a set that is too long");
}

int main(void)
{
    makes();
    compares();
    reads();
    refuses();
    names_nodes();
    return tap_done();
}
