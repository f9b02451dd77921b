// SPDX-License-Identifier: Apache-2.0
// The list is short, so it is read again for each connection that shows a certificate.
#include "http/access/certificates.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

struct certificate_rule {
    char name[TOKEN_NAME_MAX + 1];
    enum scope scope;
};

static int rule_read(const char *text, size_t n, struct certificate_rule *out, struct err *err)
{
    static const char begin[] = "CN=";
    char word[TOKEN_NAME_MAX + 20];
    snprintf(word, sizeof word, "%.*s", (int)n, text);
    char *colon = strrchr(word, ':');
    if (n >= sizeof word || !str_starts(word, begin) || !colon)
        return err_set(err, ERR_INVALID, "tls_client_scope",
                       "\"%.60s\" must be CN=NAME:SCOPE, such as CN=fleetd.example:read", word);
    *colon = '\0';
    snprintf(out->name, sizeof out->name, "%s", word + sizeof begin - 1);
    if (token_check_name(word + sizeof begin - 1, err) < 0)
        return err_set(err, ERR_INVALID, "tls_client_scope",
                       "the name in \"%.60s\" must be 1 to %d letters, digits, . _ or -", word,
                       TOKEN_NAME_MAX);
    if (!scope_find(colon + 1, &out->scope) || out->scope < SCOPE_READ)
        return err_set(err, ERR_INVALID, "tls_client_scope",
                       "the scope of \"%.60s\" must be read, run or admin, not \"%.20s\"", word,
                       colon + 1);
    return 0;
}

// How many rules name the client; *out is the last of them. -1: the list is none.
static int rules_find(const char *list, const char *name, struct certificate_rule *out,
                      struct err *err)
{
    struct certificate_rule rule;
    int found = 0;
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        if (rule_read(at, strcspn(at, ","), &rule, err) < 0)
            return -1;
        if (strcmp(rule.name, name) != 0)
            continue;
        found++;
        *out = rule;
    }
    return found;
}

int certificates_check(const char *list, struct err *err)
{
    struct certificate_rule rule, same;
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        if (rule_read(at, strcspn(at, ","), &rule, err) < 0)
            return -1;
        else if (rules_find(list, rule.name, &same, err) > 1)
            return err_set(err, ERR_INVALID, "tls_client_scope", "CN=%s has two scopes", rule.name);
    return 0;
}

enum scope certificates_scope(const char *list, const char *common_name)
{
    struct certificate_rule rule;
    return rules_find(list, common_name, &rule, NULL) == 1 ? rule.scope : SCOPE_NONE;
}
