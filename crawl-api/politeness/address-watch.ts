/**
 * What the replies together say about this instance's address. Pure: judgements go in, what to do comes out; whoever crawls does it.
 *
 *   open ──refusal, or odd pages in a row──▶ asking (a canary page, at the pace)
 *   asking ──the canary page is right──▶ open      the page is odd, not the address
 *   asking ──refused too──▶ banned
 *   asking ──wrong too──▶ suspect                 only the main server can tell a ban from a changed site
 *   open ──a ban beyond doubt──▶ banned           no canary page is asked: no request from an address that is known to be banned
 */
import type { Judgement } from './judgement.ts';

/**
 * accept   the result stands
 * hold     it stands as soon as the address is proven fine, by a page that is right
 * ask      ask a canary page before anything else, then tell `answered`
 * ban      the address is banned
 * suspect  stop until the main server has decided
 */
export type Advice = 'accept' | 'hold' | 'ask' | 'ban' | 'suspect';

/** Odd pages in a row before a canary page is asked. */
const ODD_BEFORE_ASKING = 3;
/** Without a canary page to ask. */
const ODD_BEFORE_SUSPECT = 5;
/** Of different products, with no canary page to ask. */
const REFUSALS_BEFORE_BAN = 2;
/** Unproven results that may wait before a canary page is asked. */
const MAX_HELD = 50;
/** Pages to wait after a canary page was fine before odd ones lead to the next question; doubles each time. */
const QUIET_PAGES = 20;
const MAX_QUIET_PAGES = 640;
/** Canary pages that gave no answer, one after the other. */
const MAX_UNANSWERED = 3;

export class AddressWatch {
  #oddInRow = 0;
  /** Addresses of pages that were refused, one after the other. */
  readonly #refused = new Set<string>();
  #quietLeft = 0;
  #quietNext = QUIET_PAGES;
  #unanswered = 0;

  /**
   * A product's page was judged.
   * @param known.canAsk there is a page whose values are known
   * @param known.held results that wait for a proof
   * @param isSlow the page was right, and the site has become slow
   */
  seen(judgement: Judgement, known: { canAsk: boolean; held: number }, isSlow = false): Advice {
    if (this.#quietLeft > 0) this.#quietLeft--;
    switch (judgement.kind) {
      case 'banned':
        return 'ban';
      case 'right':
        this.#refused.clear();
        if (isSlow) return this.#odd(known.canAsk, 'accept');
        this.#oddInRow = 0;
        return 'accept';
      case 'refusal':
        // The same page twice says nothing about any other.
        this.#refused.add(judgement.evidence?.url ?? '');
        if (known.canAsk) return 'ask';
        return this.#refused.size >= REFUSALS_BEFORE_BAN ? 'ban' : 'hold';
      case 'odd':
        return this.#odd(known.canAsk, 'hold');
      case 'gone':
        return known.canAsk && known.held >= MAX_HELD ? 'ask' : 'hold';
      case 'failed':
      case 'wait':
      case 'hop':
        return 'accept';
    }
  }

  /** The canary page was judged. `ask`: it gave no answer, ask again. */
  answered(judgement: Judgement): Extract<Advice, 'accept' | 'ask' | 'ban' | 'suspect'> {
    switch (judgement.kind) {
      case 'right':
        this.reopened();
        this.#quietLeft = this.#quietNext;
        this.#quietNext = Math.min(MAX_QUIET_PAGES, this.#quietNext * 2);
        return 'accept';
      case 'banned':
      case 'refusal':
        return 'ban';
      case 'odd':
      case 'gone':
        return 'suspect';
      case 'failed':
      case 'wait':
      case 'hop':
        return ++this.#unanswered < MAX_UNANSWERED ? 'ask' : 'suspect';
    }
  }

  /** The address counts as fine again: a cool-down is over, or the main server has said so. */
  reopened(): void {
    this.#oddInRow = 0;
    this.#refused.clear();
    this.#unanswered = 0;
  }

  #odd(canAsk: boolean, otherwise: 'accept' | 'hold'): Advice {
    this.#oddInRow++;
    if (canAsk) return this.#oddInRow >= ODD_BEFORE_ASKING && this.#quietLeft === 0 ? 'ask' : otherwise;
    return this.#oddInRow >= ODD_BEFORE_SUSPECT && otherwise === 'hold' ? 'suspect' : otherwise;
  }
}
