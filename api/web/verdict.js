// SPDX-License-Identifier: Apache-2.0
// The verdict in words. The daemon judges (GET /v1/check); here its result is put into sentences.
import { percent, runCount, when } from "./format.js";
import { causeHead } from "./time.js";

const TONES = { OK: "good", WARNING: "warn", CRITICAL: "bad", UNKNOWN: "none" };
const ORDER = ["CRITICAL", "WARNING", "UNKNOWN", "OK"];

const size = (group) => `${Math.abs(group.percent).toFixed(1)} %`;

// Of several checks, the one to show first: the most severe.
export function foremost(checks) {
  return [...checks].sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state))[0];
}

// What changed on the machine: "microcode: 0x1000065 → 0x1000070". At most `most` of them.
export function causes(changes, most = 3) {
  const texts = changes.slice(0, most).map((c) => `${c.name}: ${c.before ?? "not known"} → ${c.after ?? "not known"}`);
  return texts.concat(changes.length > most ? [`and ${changes.length - most} more`] : []);
}

function headline(check, since) {
  const { overall, worst, verdict } = check;
  const from = since ? ` since ${when(since.at)}` : "";
  if (check.state === "UNKNOWN") return "No verdict";
  if (check.state === "OK") return verdict === "faster" ? `Fine, and faster by ${size(overall)}` : "This node is fine";
  if (overall && overall.verdict === "slower") return `Slower by ${size(overall)}${from}`;
  return worst && worst.verdict === "slower" ? `Slower by ${size(worst)} at ${worst.name}${from}` : check.verdict;
}

// The newest change of a metric to the worse: {at, run, percent, fact_changes}, or null. `history`
// is that of GET /v1/history?metric=.
export function turn(history) {
  const worse = (c) => history.better === "more" ? c.percent < 0 : c.percent > 0;
  return (history && history.change_points || []).filter(worse).at(-1) || null;
}

// A change of a metric, and what of the machine changed with it.
export function turnText(change) {
  const began = `${percent(change.percent)} since ${when(change.at)}.`, changes = change.fact_changes || [];
  return changes.length ? `${began} ${causeHead(change)} ${causes(changes).join("; ")}.` : began;
}

// {tone: good, warn, bad or none; headline; sentences}. `check` is a result of GET /v1/check.
// `since` is the change that explains it, from turn(), or null.
export function verdict(check, since) {
  const { overall, worst, state } = check;
  const sentences = [];
  if (!overall) return { tone: TONES[state], headline: headline(check, null), sentences: [check.text] };
  sentences.push(`Run ${check.run} of ${check.benchmark} is ${check.verdict === "same" ? "the same as" : check.verdict + " than"} ` +
    `baseline ${check.baseline}: ${percent(overall.percent)} over all (95 %: ${percent(overall.lo_percent)} to ${percent(overall.hi_percent)}).`);
  if (worst && worst.verdict === "slower") sentences.push(`Worst at ${worst.name}: ${percent(worst.percent)}.`);
  if (state === "OK" || state === "UNKNOWN") return { tone: TONES[state], headline: headline(check, null), sentences };
  const changed = since ? since.fact_changes : check.fact_changes;
  const runs = since && since.setup_runs;
  const then = runs ? `Changed ${runCount(runs)} ${runs < 0 ? "before" : "after"} run ${since.run}` : since ? `Then changed (run ${since.run})` : "Changed since the baseline";
  if (changed && changed.length) sentences.push(`${then}: ${causes(changed).join("; ")}.`);
  else if (changed) sentences.push(since ? "No recorded fact of the machine changed then." : "No recorded fact of the machine changed since the baseline.");
  return { tone: TONES[state], headline: headline(check, since), sentences };
}
