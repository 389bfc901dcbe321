/**
 * The address watch of one of many hosts: no latency counts, and a second refusal is believed, whatever process got the
 * first one; after a rest a single one is.
 */
import { type Advice, AddressWatch } from '../politeness/address-watch.ts';
import type { Judgement } from '../politeness/judgement.ts';

interface HostWatchParts {
  /** The host has refused this address, and has shown no right page since. */
  isSuspected: () => boolean;
  /** It has refused a page for the first time. */
  onRefusal: () => void;
  /** One of its pages was right. */
  onRight: () => void;
}

export class HostWatch extends AddressWatch {
  readonly #parts: HostWatchParts;

  constructor(parts: HostWatchParts) {
    super();
    this.#parts = parts;
  }

  override seen(judgement: Judgement, known: { canAsk: boolean; held: number }): Advice {
    if (judgement.kind === 'refusal') {
      if (this.#parts.isSuspected()) return 'ban';
      this.#parts.onRefusal();
    }
    if (judgement.kind === 'right') this.#parts.onRight();
    const advice = super.seen(judgement, known);
    // No page was ever right there: a parked name, or another kind of page than the mapping reads.
    return advice === 'suspect' ? 'accept' : advice;
  }
}
