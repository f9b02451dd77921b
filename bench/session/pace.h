// SPDX-License-Identifier: Apache-2.0
// When the next piece of work may begin, so that pieces keep to a rate. Pure: the caller brings the
// time. The schedule is absolute, so that what one piece loses the next ones make up for. How much
// they may make up for is bounded: after a longer pause the rest is skipped and counted, because a
// burst at full speed is another load than the requested one.
#pragma once

struct pace {
    double rate;    // bytes a nanosecond; 0: no limit
    double due_ns;  // since the begin: when the next piece may begin
    double slack;   // bytes that may be made up for
    double skipped; // bytes that were not
};

void pace_begin(struct pace *p, double mb_per_s, double slack_bytes); // 0: no limit
// `bytes` have been moved, `now_ns` after the begin. Then all bytes moved and skipped are rate ×
// due_ns.
void pace_moved(struct pace *p, double bytes, double now_ns);
