// SPDX-License-Identifier: Apache-2.0
// The policy: its settings, and that the documents have each kind.
#include "tests/unit/core/admission/node_folder.h"
#include "tests/unit/data.h"

static void test_policy(void)
{
    policy_defaults(&policy);
    CHECK(policy.strongest == POLICY_REFUSE, "by default a node that is not free refuses");
    production();
    struct err err;
    idle();
    struct look *l = fresh();
    put("proc/loadavg", "8.00 0.10 0.12 1/412 9123\n");
    l->force = true;
    judge(l);
    CHECK(l->a.n == 0 && l->a.n_warnings == 1 && l->a.warnings[0].forced, "force overrules a load");
    put("proc/self/status", "Cpus_allowed_list:\t0\nMems_allowed_list:\t0-1\n");
    judge(l);
    CHECK(l->a.n == 1 && l->a.list[0].kind == ADMIT_CPUSET, "but not a cpuset");
    idle();
    put("proc/loadavg", "8.00 0.10 0.12 1/412 9123\n");
    l = fresh();
    policy.strongest = POLICY_WARN;
    policy_finish(&policy, &err);
    judge(l);
    CHECK(l->a.n == 0 && l->a.n_warnings == 1 && !l->a.warnings[0].forced,
          "--admission=warn only notes");
    policy.strongest = POLICY_IGNORE;
    policy_finish(&policy, &err);
    free_now(l, "--admission=ignore");
    production();
    snprintf(policy.text[ADMIT_LOAD], sizeof policy.text[0], "refuse:2");
    policy_finish(&policy, &err);
    free_now(l, "a limit of two tasks a CPU");
    static const char *const wrong[] = {"perhaps", "refuse:", "refuse:-1",
                                        "warn:1x", "",        "refuse 1"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        production();
        snprintf(policy.text[ADMIT_LOAD], sizeof policy.text[0], "%s", wrong[i]);
        CHECK(policy_finish(&policy, &err) < 0 && !strcmp(err.member, "admit_load"),
              "\"%s\" is refused: %s", wrong[i], err.text);
    }
    CHECK(strstr(err.text, "with a limit in tasks/CPU if you like (refuse:0.5)"),
          "the unit and an example: %s", err.text);
    production();
    snprintf(policy.text[ADMIT_OTHER_INSTANCE], sizeof policy.text[0], "refuse:3");
    CHECK(policy_finish(&policy, &err) < 0 && !strcmp(err.member, "admit_other_instance"),
          "nothing is compared with a limit here: %s", err.text);
    production();
    l->other_instance = true;
    idle();
    blocked(l, ADMIT_OTHER_INSTANCE, 1, "another daemon measures");
    CHECK(admission_may_pass(&l->a), "which will be over");
}

// Each kind has a line in ADMISSION.md with its default and its severity, an option, and a
// condition.
static void test_documented(void)
{
    static char page[65536];
    char path[600];
    source_path(path, sizeof path, "docs/ADMISSION.md");
    CHECK_INT(file_read_text(path, page, sizeof page), 0, "docs/ADMISSION.md");
    for (int i = 0; i < ADMISSION_KINDS; i++) {
        char line[100];
        const char *def = i < POLICY_KINDS ? policy_table.params[i].def : "always refuses";
        enum condition_kind kind = condition_find(admission_kinds[i].name);
        snprintf(line, sizeof line, "| `%s` | %s%s%s | %s |", admission_kinds[i].name,
                 i < POLICY_KINDS ? "`" : "", def, i < POLICY_KINDS ? "`" : "",
                 severity_names[condition_kinds[kind].severity]);
        CHECK(strstr(page, line), "docs/ADMISSION.md has %s", line);
        CHECK(kind != CONDITION_OTHER, "a condition of kind %s", admission_kinds[i].name);
        if (i >= POLICY_KINDS)
            continue;
        CHECK_STR(policy_table.params[i].name + strlen("admit_"), admission_kinds[i].name,
                  "option of %s", admission_kinds[i].name);
    }
}

int main(void)
{
    if (!set_up())
        return 1;
    test_policy();
    test_documented();
    return tear_down();
}
