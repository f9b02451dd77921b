// SPDX-License-Identifier: Apache-2.0
// What doctor shows of the database, in the order of how serious it is.
#include <inttypes.h>
#include <stdio.h>

#include "core/store/age.h"
#include "core/store/damage.h"
#include "core/upkeep/parts.h"
#include "core/upkeep/upkeep.h"

// A step of the clock is reported until the clock was steady for a day.
static int find_age(const struct upkeep *k, struct finding *out, int most)
{
    struct age a;
    struct age_clock now;
    int n = 0;
    if (store_age_get(k->store, &a, NULL) < 0 || age_clock_read(&now) < 0)
        return 0;
    age_advance(&a, &now);
    if (a.step_ms && age_unsteady_ms(&a) && n < most) {
        out[n] = (struct finding){.name = "clock_step"};
        snprintf(out[n].text, sizeof out[n].text,
                 "the wall clock moved by %+.1f h against the time since the boot, or the node was "
                 "off; runs age by the time that was seen to pass",
                 (double)a.step_ms / 3600000);
        snprintf(out[n].remedy, sizeof out[n].remedy, "timedatectl (shows whether NTP sets it)");
        n++;
    }
    if (k->held && n < most) {
        out[n] = (struct finding){.name = "retention_held"};
        snprintf(out[n].text, sizeof out[n].text,
                 "more runs are older than keep_days = %" PRId64 "; they go after a day in which "
                 "neither the clock nor keep_days changed (%" PRId64 " went today)",
                 k->limits.keep_days, a.day_deleted);
        snprintf(out[n].remedy, sizeof out[n].remedy,
                 "if keep_days or the clock is wrong, correct it now; labelled runs stay");
        n++;
    }
    return n;
}

int upkeep_findings(const struct upkeep *k, struct finding *out, int most)
{
    struct store_damaged_file files[1];
    int n = 0, damaged_files = store_damaged_list(k->store, files, 1);
    const struct store_damage *d = store_damage(k->store);
    if (*k->why && n < most) {
        out[n] = (struct finding){.name = "database_damaged", .serious = true};
        snprintf(out[n].text, sizeof out[n].text, "the database is being %s: %.150s",
                 k->verdict == CONFIRMED ? "quarantined" : "checked", k->why);
        n++;
    }
    if (damaged_files && n < most) {
        out[n] = (struct finding){.name = "damaged_database_kept", .serious = true};
        snprintf(out[n].text, sizeof out[n].text,
                 "%d damaged database%s quarantined, the last as %s%s%.70s; a fresh one was begun",
                 damaged_files, damaged_files == 1 ? " was" : "s were", files[0].name,
                 d->when_ms ? ": " : "", d->when_ms ? d->why : "");
        snprintf(out[n].remedy, sizeof out[n].remedy,
                 "look at the disk (dmesg, smartctl); get the runs back or remove the file as "
                 "STORAGE.md says, \"Damaged\"");
        n++;
    }
    n += find_age(k, out + n, most - n);
    if (k->short_of && n < most) {
        out[n] = (struct finding){.name = "retention_short"};
        snprintf(out[n].text, sizeof out[n].text,
                 "a retention limit is passed, but all runs that are left are labelled, in a "
                 "baseline, or not over");
        snprintf(out[n].remedy, sizeof out[n].remedy, "numaprobe label ID (takes a label away)");
        n++;
    }
    return n;
}
