/**
 * Begins and ends the address's incidents, in the journal first: a restarted process must not send what this one may
 * not.
 */
import type { Evidence } from '../../shared/domain/verdict.ts';
import { restAfterBanMs } from '../../shared/domain/pacing.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { Incident } from '../../shared/wire/callbacks.ts';
import type { AddressWatch } from '../politeness/address-watch.ts';
import type { Refusals } from './domain-crawl.ts';
import type { Queue } from './queue.ts';
import { atDomain } from './records.ts';

export interface IncidentTrackerParts {
  queue: Queue;
  /** One for each domain. */
  watches: readonly AddressWatch[];
  clock: Clock;
  coolDownMs: number;
  /** A probe measures a ban by tries a fixed time apart: its rests do not get longer. */
  isProbe?: boolean;
  /** Called when an incident has begun, changed or ended. */
  onChange: () => void;
  /** Called before the first request after a ban. */
  onBanOver: () => void;
}

export class IncidentTracker implements Refusals {
  readonly canCompare = true;
  readonly #parts: IncidentTrackerParts;
  /** The domains with incidents since requests were last sent: pages of several may be under way when one begins. */
  readonly #domains = new Set<number>();

  constructor(parts: IncidentTrackerParts) {
    this.#parts = parts;
  }

  /**
   * Stops all requests, at every domain. A ban lasts for the cool-down, longer the more of them there were, or as the
   * site asks. During an incident, a suspicion at another domain changes nothing, and a ban never shortens the rest.
   */
  begin(verdict: 'suspect' | 'banned', evidence: Evidence, { domain = 0, minMs = 0 } = {}): void {
    const { queue, clock, coolDownMs, isProbe = false, onChange } = this.#parts;
    const { incident } = queue.state;
    if (incident !== null && verdict === 'suspect') return;
    const sinceMs = clock.now();
    const restMs = isProbe ? coolDownMs : restAfterBanMs(coolDownMs, queue.state.domains.at(domain).bans + 1);
    const restedMs = Math.max(sinceMs + Math.max(restMs, minMs), incident?.untilMs ?? 0);
    const untilMs = verdict === 'banned' ? restedMs : null;
    this.#domains.add(domain);
    queue.note({ t: 'incident', incident: { verdict, sinceMs, untilMs, evidence, ...atDomain(domain) } });
    onChange();
  }

  /** A pause that would outlast the deadline is a ban. */
  pause({ n, domain, forMs }: { n: number; domain: number; forMs: number }, evidence: Evidence): boolean {
    const { queue, clock } = this.#parts;
    const untilMs = clock.now() + forMs;
    if (untilMs < queue.deadlineMs) {
      queue.note({ t: 'paused', n, untilMs, ...atDomain(domain) });
      return true;
    }
    this.begin('banned', evidence, { domain, minMs: forMs });
    return false;
  }

  /** The main server's decision about a suspicion; ignored without one. */
  decide(word: 'ok' | 'banned'): void {
    const { queue } = this.#parts;
    const { incident } = queue.state;
    if (incident?.verdict !== 'suspect') return;
    const { domain = 0 } = incident;
    if (word === 'banned') return this.begin('banned', incident.evidence, { domain });
    queue.note({ t: 'accepted', ...atDomain(domain) });
    this.#end();
  }

  /** Ends a ban whose cool-down is over. */
  endWhenOver(): void {
    const untilMs = this.#parts.queue.state.incident?.untilMs ?? null;
    if (untilMs !== null && this.#parts.clock.now() >= untilMs) this.#end();
  }

  /** The incident as the heartbeat reports it; null when there is none. */
  describe(): Incident | null {
    const { incident } = this.#parts.queue.state;
    if (!incident) return null;
    const { verdict, sinceMs, untilMs, evidence } = incident;
    const nowMs = this.#parts.clock.now();
    return {
      verdict,
      sinceMs: Math.max(0, nowMs - sinceMs),
      leftMs: untilMs === null ? null : Math.max(0, untilMs - nowMs),
      evidence,
    };
  }

  #end(): void {
    const { queue, watches, onChange, onBanOver } = this.#parts;
    const { domain = 0, verdict } = queue.state.incident ?? {};
    this.#domains.add(domain);
    // Not when the ban begins: a reply that is under way at another domain would set its cookies afterwards.
    if (verdict === 'banned') onBanOver();
    queue.note({ t: 'reopened' });
    for (const at of this.#domains) watches[at]!.reopened();
    this.#domains.clear();
    onChange();
  }
}
