// SPDX-License-Identifier: Apache-2.0
// An old document is rewritten before anything reads it: members get their present names, and
// sentences become conditions by how they begin.
#include "formats/earlier.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

static const struct json_rename names[] = {
    {NULL, "tight", "converged"},         {"run", "class", "hardware_hash"},
    {"run", "config", "config_hash"},     {"run", "topology", "topology_hash"},
    {"fingerprint", "class", "hardware"},
};

void earlier_names(struct json *document)
{
    json_rename(document, names, COUNT_OF(names));
}

void earlier_text(const char *json, struct buf *out)
{
    static const char is[] = "\"converged\":", was[] = "\"tight\":";
    // What the CPU counted: earlier cells had no such members.
    static const char none[] = "\"misses_per_hop\":null,\"walks_per_hop\":null,"
                               "\"cycles_per_hop\":null,\"confirmed\":null";
    // From quote to quote: a sanitizer's strstr reads all of a document at each call.
    for (const char *at = json; (at = strchr(at, '"')); at++)
        if (str_starts(at, is)) {
            buf_add(out, json, (size_t)(at - json));
            buf_str(out, was);
            json = at + strlen(is);
        } else if (str_starts(at, none) && at > json && at[-1] == ',') {
            buf_add(out, json, (size_t)(at - 1 - json));
            json = at + strlen(none);
        }
    buf_str(out, json);
}

// How sentences began. schema/sql has the same list for stored runs; a test compares the two.
static const struct {
    const char *begin;
    enum condition_kind kind;
} marks[] =
    {
        {"FORCED, ", CONDITION_FORCED},
        {"DISTURBED: ", CONDITION_DISTURBED},
        {"PLACEMENT: ", CONDITION_PLACEMENT},
},
  sentences[] = {
      {"no control group", CONDITION_CGROUP},
      {"its control group", CONDITION_CGROUP},
      {"ranks run as ", CONDITION_ACCOUNT},
      {"whether CPUs and memory ", CONDITION_MACHINE},
      {"mpirun did not end", CONDITION_LAUNCHER},
      {"numa_bench did not end", CONDITION_LAUNCHER},
      {"moved between CPUs ", CONDITION_MIGRATED},
      {"only ", CONDITION_PLACEMENT},
      {"the kernel moved pages ", CONDITION_PLACEMENT},
      {"the kernel refused to bind ", CONDITION_MEMORY_POLICY},
      {"memory is bound to ", CONDITION_MEMORY_POLICY},
      {"the host took the CPU ", CONDITION_STEAL},
      {"arrays of ", CONDITION_CACHE},
      {"all ranks are on one NUMA node", CONDITION_TOPOLOGY},
      {"its node ", CONDITION_TOPOLOGY},
      {"pair ", CONDITION_PAIR},
      {"date: not known; when it was imported stands for it", CONDITION_IMPORT_UNDATED},
      {"date: ", CONDITION_IMPORT},
      {"node: ", CONDITION_IMPORT},
      {"method: ", CONDITION_IMPORT},
      {"pages: ", CONDITION_IMPORT},
      {"mode: ", CONDITION_IMPORT},
      {"cells hold one value", CONDITION_IMPORT},
};

// "load: 3.92 tasks per CPU": the text after the name of a kind; NULL: it begins with none.
static const char *after_kind(const char *text, enum condition_kind *kind)
{
    char name[24];
    size_t n = strcspn(text, ": ");
    if (n >= sizeof name || !str_starts(text + n, ": "))
        return NULL;
    memcpy(name, text, n);
    name[n] = '\0';
    *kind = condition_find(name);
    return *kind == CONDITION_OTHER ? NULL : text + n + 2;
}

static const char *after_mark(const char *text, enum condition_kind *kind)
{
    for (size_t i = 0; i < COUNT_OF(marks); i++)
        if (str_starts(text, marks[i].begin)) {
            *kind = marks[i].kind;
            return text + strlen(marks[i].begin);
        }
    const char *rest = after_kind(text, kind);
    return rest ? rest : text;
}

// "rank 3: text", "rank 3 ran on ...".
static const char *after_rank(const char *text, int64_t *rank)
{
    char *end;
    if (!str_starts(text, "rank ") || !isdigit((unsigned char)text[5]))
        return text;
    *rank = strtoll(text + 5, &end, 10);
    return end + strspn(end, ": ");
}

int earlier_condition(struct condition *c, const char *sentence, struct err *err)
{
    enum condition_kind kind = CONDITION_OTHER;
    int64_t rank = -1;
    const char *text = after_rank(after_mark(sentence, &kind), &rank);
    for (size_t i = 0; kind == CONDITION_OTHER && i < COUNT_OF(sentences); i++)
        if (str_starts(text, sentences[i].begin))
            kind = sentences[i].kind;
    if (strlen(text) >= sizeof c->text)
        return err_set(err, ERR_INVALID, "text", "must be a text of at most %zu bytes",
                       sizeof c->text - 1);
    condition_set(c, kind, rank, "%s", text);
    return 0;
}
