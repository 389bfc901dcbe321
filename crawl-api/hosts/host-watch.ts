/** The address watch of one of many hosts: no latency counts, and after a rest a single refusal is enough. */
import { type Advice, AddressWatch } from '../politeness/address-watch.ts';
import type { Judgement } from '../politeness/judgement.ts';

export class HostWatch extends AddressWatch {
  readonly #isOnProbation: () => boolean;

  /** @param isOnProbation the host has refused this address, has rested, and has shown no right page since */
  constructor(isOnProbation: () => boolean) {
    super();
    this.#isOnProbation = isOnProbation;
  }

  override seen(judgement: Judgement, known: { canAsk: boolean; held: number }): Advice {
    if (judgement.kind === 'refusal' && this.#isOnProbation()) return 'ban';
    const advice = super.seen(judgement, known);
    // No page was ever right there: a parked name, or another kind of page than the mapping reads.
    return advice === 'suspect' ? 'accept' : advice;
  }
}
