/** Bans for the report: the evidence of each, and what to do about them. Pure. */
import { epochKey } from '../../shared/domain/epoch-id.ts';
import type { Evidence } from '../../shared/domain/verdict.ts';
import { ALL_GONE } from './ban-policy.ts';
import type { IncidentRecord } from './stores.ts';

export interface BanReport {
  slot: number;
  epoch: number;
  address: string | null;
  /** Name of the ban rule that matched; docs/bans.md lists them. */
  rule: string;
  atMs: number;
  /** When the address left, or would have left, its cool-down. */
  untilMs: number | null;
  /** When the ban was over; null when it was not. */
  overAtMs: number | null;
  evidence: Evidence;
}

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
