/**
 * Decides from the replies whether the site still serves this instance's address. Pure: takes judgements, returns
 * advice; the crawl loop acts on it.
 *
 *   open ──refusal, or odd pages in a row──▶ asking (fetch a canary page, at the pace)
 *   asking ──the canary page is right──▶ open     the page is odd, not the address
 *   asking ──also refused──▶ banned
 *   asking ──also wrong──▶ suspect                only the main server can tell a ban from a changed site
 *   open ──an unambiguous ban──▶ banned           no canary page: no request from an address that is known to be banned
 */
import { MAX_UNPROVED } from '../../shared/domain/validators.ts';
import type { Judgement } from './judgement.ts';

/**
 * accept   the result stands
 * hold     the result stands once a page that is right proves that the site serves the address
 * ask      fetch a canary page before anything else, then call `answered`
 * ban      the address is banned
 * suspect  stop until the main server has decided
 */
export type Advice = 'accept' | 'hold' | 'ask' | 'ban' | 'suspect';

/** Odd pages in a row before a canary page is fetched. */
const ODD_BEFORE_ASKING = 3;
/** Odd pages in a row before the address is suspect, without a canary page. */
const ODD_BEFORE_SUSPECT = 5;
/** Refusals of different products before a ban, without a canary page. */
const REFUSALS_BEFORE_BAN = 2;
/** Pages after a right canary page before odd ones lead to the next one; doubles each time. */
const QUIET_PAGES = 20;
const MAX_QUIET_PAGES = 640;
/** Maximum canary pages in a row without an answer. */
const MAX_UNANSWERED = 3;

export class AddressWatch {
  #oddInRow = 0;
  readonly #refused = new Set<string>();
  #quietLeft = 0;
  #quietNext = QUIET_PAGES;
  #unanswered = 0;

  /**
   * Takes the judgement of a product's page.
   * @param known.canAsk a canary page is available
   * @param known.held number of results that wait for a proof
   * @param isSlow the page was right, but the site has become slow
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
        // The same page again is no evidence about other pages.
        this.#refused.add(judgement.evidence?.url ?? '');
        if (known.canAsk) return 'ask';
        return this.#refused.size >= REFUSALS_BEFORE_BAN ? 'ban' : 'hold';
      case 'odd':
        return this.#odd(known.canAsk, 'hold');
      case 'gone':
      case 'unchanged':
        return known.canAsk && known.held >= MAX_UNPROVED ? 'ask' : 'hold';
      case 'failed':
      case 'wait':
      case 'hop':
        return 'accept';
    }
  }

  /** Takes the judgement of the canary page. `ask`: it gave no answer, fetch again. */
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
      case 'unchanged':
        return 'suspect';
      case 'failed':
      case 'wait':
      case 'hop':
        return ++this.#unanswered < MAX_UNANSWERED ? 'ask' : 'suspect';
    }
  }

  /** The address is served again: a cool-down is over, or the main server has decided so. */
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
