/**
 * What happens when one of many hosts refuses this address: it rests once, and if it refuses again, it is asked nothing
 * more in this run. The others are asked as before.
 */
import { restAfterBanMs } from '../../shared/domain/pacing.ts';
import { describeRule, type Evidence } from '../../shared/domain/verdict.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { Refusals } from '../queue/domain-crawl.ts';
import type { Queue } from '../queue/queue.ts';
import { atDomain } from '../queue/records.ts';
import type { AddressDoubt } from './address-doubt.ts';

export interface HostRefusalsParts {
  queue: Queue;
  clock: Pick<Clock, 'now'>;
  coolDownMs: number;
  /** The next owner of the host must know it before the host is asked again. */
  onNews: () => void;
  doubt: Pick<AddressDoubt, 'refused'>;
}

export class HostRefusals implements Refusals {
  /** A host has one owner: there is no other address to compare with. */
  readonly canCompare = false;
  readonly #parts: HostRefusalsParts;

  constructor(parts: HostRefusalsParts) {
    this.#parts = parts;
  }

  begin(
    _verdict: 'suspect' | 'banned',
    evidence: Evidence,
    { domain, minMs }: { domain: number; minMs: number },
  ): void {
    const { queue, clock, coolDownMs, onNews, doubt } = this.#parts;
    const { bans } = queue.state.domains.at(domain);
    const untilMs = clock.now() + Math.max(restAfterBanMs(coolDownMs, 1), minMs);
    if (bans > 0 || untilMs >= queue.deadlineMs) {
      const detail = `the host refuses this address (${describeRule(evidence)})`;
      queue.note({ t: 'given-up', reason: 'banned', detail, ...atDomain(domain) });
    } else queue.note({ t: 'rested', untilMs, evidence, ...atDomain(domain) });
    doubt.refused(domain);
    onNews();
  }

  /** Retry-After is a refusal like any other, of a known length. */
  pause({ domain, forMs }: { domain: number; forMs: number }, evidence: Evidence): boolean {
    this.begin('banned', evidence, { domain, minMs: forMs });
    return true;
  }
}
