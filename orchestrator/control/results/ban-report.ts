/** Bans for the report: the evidence of each, and what to do about them. Pure. */
import { epochKey } from '../../../shared/domain/epoch-id.ts';
import { ALL_GONE } from '../decide/ban-policy.ts';
import type { BanReport } from '../model/report.ts';
import type { IncidentRecord } from '../model/stores.ts';

export function bansOf(incidents: readonly IncidentRecord[]): BanReport[] {
  return incidents
    .filter((t) => t.verdict === 'banned' && t.rule !== ALL_GONE)
    .map(({ slot, epoch, address, rule, atMs, untilMs, overAtMs, evidence }) => {
      return { slot, epoch, address, rule, atMs, untilMs, overAtMs, evidence };
    });
}

/** One line for all bans together: each has an alarm of its own. */
export function banNotes(bans: readonly BanReport[]): string[] {
  if (bans.length === 0) return [];
  const addresses = new Set(bans.map((b) => b.address ?? epochKey(b))).size;
  const rules = [...new Set(bans.map((b) => b.rule))].join(', ');
  const back = bans.filter((b) => b.overAtMs !== null).length;
  return [
    `the site banned ${addresses} ${addresses === 1 ? 'address' : 'addresses'} (${rules}), ${back} of ${bans.length} bans ended in time: ` +
      'the evidence is under `bans` in report.json, the meaning of each rule in docs/bans.md; ' +
      'a longer site.interval or a site.max_rate makes the next run gentler',
  ];
}
