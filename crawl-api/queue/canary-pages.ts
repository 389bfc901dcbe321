/**
 * Canary pages: pages with known values, fetched when it is in doubt whether a domain of the site still serves this
 * address. All are fetched at the domain in doubt: a page of another one would prove nothing.
 */
import type { ChainValue, FieldValue, Row } from '../../shared/domain/mapping.ts';
import { domainOf, hasOwnUrls, type ProductUrl, templateAt } from '../../shared/domain/domains.ts';
import { productUrl } from '../../shared/domain/product.ts';
import { policyAt, type RobotsPolicy } from '../../shared/domain/robots-matcher.ts';
import { isAmbiguous, readingsOf } from '../../shared/domain/ambiguous-number.ts';
import type { Canary } from '../../shared/domain/verdict.ts';
import { accused, type Judgement, named, unremarkable } from '../politeness/judgement.ts';
import type { JudgedFetch } from './pages.ts';
import { fetchProduct, type ProductParts } from './product.ts';
import type { QueueState } from './queue-state.ts';
import { CANARY_PAGE } from './records.ts';

const DIFFERS = 'canary-differs';

export class CanaryPages {
  readonly #canaries: readonly Canary[];
  readonly #template: string;
  readonly #domain: number;
  readonly #state: QueueState;
  #next = 0;
  /** How a canary's page differed from the configuration, by id. Skipped while another page is available. */
  readonly #doubted = new Map<string, string>();
  /** The canary that has just differed: the product stored last decides whether it is out of date. */
  #inDoubt: string | null = null;
  /** Pages that robots.txt forbade, by id, with the policy that did: another policy may allow them. */
  readonly #forbidden = new Map<string, RobotsPolicy | null>();

  constructor(canaries: readonly Canary[], templates: ProductUrl, domain: number, state: QueueState) {
    // Of pages with URLs of their own, those of this domain.
    this.#canaries = hasOwnUrls(templates) ? canaries.filter(({ id }) => domainOf(templates, id) === domain) : canaries;
    this.#template = templateAt(templates, domain);
    this.#domain = domain;
    this.#state = state;
  }

  /** True when robots.txt is not known to forbid every configured canary and the page stored last. */
  get canAsk(): boolean {
    return this.#canaries.some(({ id }) => !this.#isForbidden(id)) || this.#lastStored() !== null;
  }

  /** True when a page was right here, but robots.txt forbids fetching it. */
  get isLastForbidden(): boolean {
    const id = this.#idOfLast();
    return id !== null && this.#isForbidden(id);
  }

  /** Describes canaries that differed while the site served the address; null when there are none. */
  get problem(): string | null {
    return this.#doubted.size === 0 ? null : [...this.#doubted.values()].join('; ');
  }

  /**
   * Fetches the next canary page that robots.txt allows; `none`: it allows none. A page whose values differ from the
   * canary's is odd. But the canary may be out of date, so the product stored last is fetched before that counts.
   */
  async ask(
    parts: ProductParts,
    work: AbortSignal,
  ): Promise<{ judgement: Judgement; retryAfterMs: number | null } | 'not-now' | 'none'> {
    const canary = this.#nextCanary();
    const id = canary?.id ?? this.#lastStored();
    if (id === null) return 'none';
    const url = productUrl(this.#template, id);
    const policy = this.#policy;
    const target = { n: CANARY_PAGE, product: { id, url }, interruptible: false, extent: 'needed' } as const;
    const fetched = await fetchProduct(parts, target, work);
    if (fetched.kind === 'not-now') return 'not-now';
    if (fetched.kind === 'disallowed') {
      // Proves nothing about the address: try the next one.
      this.#forbidden.set(id, policy);
      if (canary === null) this.#settleDoubt(unremarkable('failed'));
      return this.ask(parts, work);
    }
    const judgement = compare(fetched, canary);
    if (canary === null) this.#settleDoubt(judgement);
    else if (judgement.rule === DIFFERS && this.#lastStored() !== null) {
      this.#inDoubt = canary.id;
      this.#doubted.set(canary.id, describeDifference(fetched, canary));
      return { judgement: unremarkable('failed'), retryAfterMs: null };
    }
    return {
      judgement,
      retryAfterMs: fetched.page.kind === 'failed' ? fetched.page.retryAfterMs : null,
    };
  }

  #nextCanary(): Canary | null {
    if (this.#inDoubt !== null && this.#lastStored() !== null) return null;
    const allowed = this.#canaries.filter(({ id }) => !this.#isForbidden(id));
    const usable = this.#lastStored() === null ? allowed : allowed.filter(({ id }) => !this.#doubted.has(id));
    return usable[this.#next++ % usable.length] ?? null;
  }

  /** A canary is out of date only when the other page was right. */
  #settleDoubt({ kind }: Judgement): void {
    if (this.#inDoubt !== null && kind !== 'right') this.#doubted.delete(this.#inDoubt);
    this.#inDoubt = null;
  }

  #isForbidden(id: string): boolean {
    return this.#forbidden.get(id) === this.#policy;
  }

  get #policy(): RobotsPolicy | null {
    return policyAt(this.#state.robots, this.#domain);
  }

  /** The page stored last; null also while robots.txt is known to forbid it. */
  #lastStored(): string | null {
    const id = this.#idOfLast();
    return id === null || this.#isForbidden(id) ? null : id;
  }

  /** The ID of the last right page: before this instance's first, the one that another instance has stored. */
  #idOfLast(): string | null {
    return this.#state.rightPageAt(this.#domain);
  }
}

function compare(fetched: Extract<JudgedFetch, { kind: 'judged' }>, canary: Canary | null): Judgement {
  const { page, judgement, url, request } = fetched;
  if (judgement.kind !== 'right' || page.kind !== 'page' || canary === null) return judgement;
  return (page.extraction.rows ?? []).some(({ row }) => differences(row, canary.fields).length === 0)
    ? judgement
    : named(accused('odd', DIFFERS, url, page.reply), request);
}

/** `the canary P3 is out of date: price is 3, not 999`, for the user who configured it. */
function describeDifference({ page }: Extract<JudgedFetch, { kind: 'judged' }>, { id, fields }: Canary): string {
  const row = (page.kind === 'page' && page.extraction.rows?.[0]?.row) || {};
  return `the canary ${id} is out of date: ${differences(row, fields).join(', ')}`.slice(0, 400);
}

/** Compares as text: a configuration file has 1200 where the mapping yields '1200'. */
function differences(row: Row, fields: Canary['fields']): string[] {
  return Object.entries(fields).flatMap(([name, expected]) => {
    const actual = Object.hasOwn(row, name) ? row[name]! : null;
    return hasValue(actual, expected) ? [] : [`${name} is ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`];
  });
}

function hasValue(actual: FieldValue, expected: unknown): boolean {
  const values = Array.isArray(actual) ? actual : [actual];
  return values.flatMap(spellings).includes(String(expected));
}

/** The texts that a value may equal: both readings of an ambiguous number. */
function spellings(value: ChainValue | null): string[] {
  if (value === null) return [];
  return isAmbiguous(value) ? [value.text, ...readingsOf(value).map(String)] : [String(value)];
}
