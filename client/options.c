// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "client/cli.h"

static const struct param *find(const struct option_set *sets, int n, const char *name,
                                void **object)
{
    for (int i = 0; i < n; i++) {
        const struct param *p = param_find_option(sets[i].table, name);
        if (p) {
            *object = sets[i].object;
            return p;
        }
    }
    return NULL;
}

static int set_one(const struct option_set *sets, int n_sets, const char *word, const char *next,
                   bool *took_next, struct err *err)
{
    char name[64];
    const char *equals = strchr(word, '=');
    size_t len = equals ? (size_t)(equals - word) : strlen(word);
    snprintf(name, sizeof name, "%.*s", (int)len, word);
    const char *value = equals ? equals + 1 : NULL;
    void *object = NULL;
    const struct param *p = find(sets, n_sets, name, &object);
    if (!p && str_starts(name, "no-") && !value) {
        p = find(sets, n_sets, name + 3, &object);
        p = p && p->kind == PARAM_BOOL ? p : NULL;
        value = "false";
    } else if (p && p->kind == PARAM_BOOL && !value) {
        value = "true";
    }
    if (!p)
        return err_set(err, ERR_USAGE, "", "unknown option --%s (see --help)", name);
    if (!value) {
        value = next;
        *took_next = true;
    }
    if (!value)
        return err_set(err, ERR_USAGE, "", "--%s needs a value", name);
    if (param_set_text(p, object, value, err) < 0) {
        err->code = ERR_USAGE;
        err->member[0] = '\0';
        return err_prefix(err, "--%s", name);
    }
    return 0;
}

int options_parse(const struct option_set *sets, int n_sets, int argc, char **argv, char **operands,
                  int most, int *n, struct err *err)
{
    bool options = true;
    *n = 0;
    for (int i = 0; i < argc; i++) {
        bool took_next = false;
        if (options && strcmp(argv[i], "--") == 0) {
            options = false;
        } else if (options && str_starts(argv[i], "-o")) {
            const char *value = argv[i][2] ? argv[i] + 2 : i + 1 < argc ? argv[i + 1] : NULL;
            if (set_one(sets, n_sets, "output", value, &took_next, err) < 0)
                return -1;
            i += !argv[i][2];
        } else if (options && str_starts(argv[i], "--")) {
            if (set_one(sets, n_sets, argv[i] + 2, i + 1 < argc ? argv[i + 1] : NULL, &took_next,
                        err) < 0)
                return -1;
            i += took_next;
        } else if (options && argv[i][0] == '-' && argv[i][1]) {
            return err_set(err, ERR_USAGE, "", "unknown option %s (see --help)", argv[i]);
        } else if (*n == most) {
            return err_set(err, ERR_USAGE, "", "one word too many: \"%.60s\"", argv[i]);
        } else {
            operands[(*n)++] = argv[i];
        }
    }
    return 0;
}
