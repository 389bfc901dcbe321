/** Values that are not those of the last nights hold a run; calm nights never do. */
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../shared/adapters/random.ts';
import type { Column } from '../../../shared/domain/mapping.ts';
import type { FillRates, ValueProfile } from '../../../orchestrator/core/model/report.ts';
import type { ValueSample } from '../../../orchestrator/core/model/stores.ts';
import { BAND_RUNS, findSuspicion } from '../../../orchestrator/core/decide/end/guard.ts';
import { judgeValues, profileOf } from '../../../orchestrator/core/decide/end/value-profile.ts';

const COLUMNS: Column[] = [
  { name: 'title', type: 'text' },
  { name: 'price', type: 'number' },
  { name: 'price_currency', type: 'currency' },
  { name: 'old_price', type: 'number' },
  { name: 'discount', type: 'integer' },
  { name: 'stock', type: 'integer' },
  { name: 'in_stock', type: 'boolean' },
  { name: 'on_sale', type: 'boolean' },
  { name: 'delivery', type: 'text' },
  { name: 'brand', type: 'text' },
  { name: 'rating', type: 'number' },
  { name: 'reviews', type: 'integer' },
  { name: 'images', type: 'json' },
  { name: 'price_until', type: 'date' },
  { name: 'changed', type: 'datetime' },
];
const DELIVERIES = ['today', '1-3 days', '1-2 weeks', 'on request'];

type Row = Record<string, string | null>;

interface Product {
  id: string;
  price: number;
  stock: number;
  reviews: number;
  delivery: number;
  row: Row;
}

/** A shop whose assortment, prices, stock and sales change as those of shops do. */
class Shop {
  readonly products: Product[] = [];
  night = 0;
  readonly #random: () => number;
  #saleUntil = 0;
  #made = 0;

  constructor(seed: number, products: number) {
    const random = seededRandom(seed);
    this.#random = () => random.next();
    for (let i = 0; i < products; i++) this.#add();
  }

  #chance(share: number): boolean {
    return this.#random() < share;
  }

  #add(): void {
    const n = ++this.#made;
    const price = Math.exp(1 + this.#random() * 5);
    const stock = this.#chance(0.15) ? 0 : Math.ceil(this.#random() * 60);
    this.products.push({
      id: `A${n}`,
      price,
      stock,
      reviews: this.#chance(0.4) ? 0 : Math.floor(this.#random() * 40),
      delivery: Math.floor(this.#random() ** 2 * DELIVERIES.length),
      row: {},
    });
  }

  /** The rows of the next night. */
  crawl(): { id: string; row: Row }[] {
    this.night++;
    const season = 1 + 0.2 * Math.sin(this.night / 14);
    // Every other fortnight some sale begins, of any length; the first night has none.
    if (this.night > 3 && this.#saleUntil < this.night && this.#chance(0.08)) {
      this.#saleUntil = this.night + Math.floor(this.#random() * 25);
      for (const product of this.products)
        product.row.sale = this.#chance(0.3) ? String(0.4 + this.#random() * 0.5) : null;
    }
    const isSale = this.night <= this.#saleUntil;
    for (let i = 0; i < this.products.length * 0.01; i++) this.#add();
    for (let i = this.products.length - 1; i >= 0; i--) if (this.#chance(0.005)) this.products.splice(i, 1);
    return this.products.map((product) => {
      if (this.#chance(0.05)) product.price *= 0.9 + this.#random() * 0.2;
      if (this.#chance(0.3)) product.stock = Math.max(0, product.stock - Math.ceil(this.#random() * 8 * season));
      if (product.stock === 0 && this.#chance(0.2)) product.stock = Math.ceil(this.#random() * 60);
      if (this.#chance(0.1)) product.reviews++;
      if (this.#chance(0.05)) product.delivery = Math.floor(this.#random() ** 2 * DELIVERIES.length);
      const cut = isSale && product.row.sale ? Number(product.row.sale) : 1;
      const price = (product.price * cut).toFixed(2);
      return {
        id: product.id,
        row: {
          title: `Product ${product.id}`,
          price,
          price_currency: 'EUR',
          old_price: cut < 1 ? product.price.toFixed(2) : null,
          discount: String(Math.round(100 * (1 - cut))),
          stock: String(product.stock),
          in_stock: product.stock > 0 ? '1' : '0',
          on_sale: cut < 1 ? '1' : '0',
          delivery: DELIVERIES[product.delivery]!,
          brand: `Brand ${Math.floor(Number(product.id.slice(1)) ** 0.5)}`,
          rating: product.reviews === 0 ? null : (3 + (Number(product.id.slice(1)) % 20) / 10).toFixed(1),
          reviews: String(product.reviews),
          images: JSON.stringify([`/img/${product.id}.jpg`]),
          price_until: isSale ? `2026-12-${10 + (this.night % 9)}` : null,
          changed: `2026-11-${10 + (this.night % 9)}T00:00:00.000Z`,
        },
      };
    });
  }
}

/** The guard over many nights: what holds stays unpublished. */
class Nights {
  readonly holds: string[] = [];
  readonly #earlier: ValueProfile[] = [];
  readonly #standing = new Map<string, Row>();

  run(rows: readonly { id: string; row: Row }[], minFill = 0.5): { holds: string[]; note: string | null } {
    const valuesOf = (row: Row): (string | null)[] => COLUMNS.map(({ name }) => row[name] ?? null);
    const sample: ValueSample = {
      fingerprint: 'f',
      columns: COLUMNS,
      rows: rows.map(({ id, row }) => {
        const before = this.#standing.get(id);
        return { id, now: valuesOf(row), before: before ? valuesOf(before) : null };
      }),
    };
    const profile = profileOf(sample);
    const verdict = judgeValues(sample, profile, { earlier: this.#earlier, minFill });
    const emptier = findSuspicion(fillOf(profile), this.#earlier.map(fillOf), minFill);
    this.holds.push(...verdict.holds, ...(emptier === null ? [] : [emptier]));
    if (verdict.holds.length === 0) this.publish(rows, profile);
    return verdict;
  }

  publish(rows: readonly { id: string; row: Row }[], profile: ValueProfile): void {
    for (const { id, row } of rows) this.#standing.set(id, row);
    this.#earlier.unshift(profile);
    this.#earlier.splice(BAND_RUNS);
  }
}

function fillOf({ fields }: ValueProfile): FillRates {
  return { stored: 1, fields: Object.fromEntries(COLUMNS.map(({ name }) => [name, fields[name]?.filled ?? 0])) };
}

const changing = (rows: { id: string; row: Row }[], change: (row: Row, i: number) => Row) =>
  rows.map(({ id, row }, i) => ({ id, row: { ...row, ...change(row, i) } }));

/** After five calm nights. */
function shopWithNights(seed: number, products = 200): { shop: Shop; nights: Nights } {
  const [shop, nights] = [new Shop(seed, products), new Nights()];
  for (let night = 0; night < 5; night++) nights.run(shop.crawl());
  expect(nights.holds).toEqual([]);
  return { shop, nights };
}

describe('calm nights', () => {
  it.each([
    [35, 1],
    [60, 2],
    [200, 3],
    [200, 4],
    [400, 5],
  ])('of %d products hold no run in 90 nights (seed %d)', (products, seed) => {
    const [shop, nights] = [new Shop(seed, products), new Nights()];
    for (let night = 0; night < 90; night++) nights.run(shop.crawl());
    expect(nights.holds).toEqual([]);
  });

  it('of products that are crawled once in a while hold none', () => {
    const [shop, nights] = [new Shop(9, 600), new Nights()];
    for (let night = 0; night < 90; night++) nights.run(shop.crawl().filter((_, i) => i % 10 === night % 10));
    expect(nights.holds).toEqual([]);
  });
});

describe('values that are not those of the last nights', () => {
  const scaled = (factor: number) => (row: Row) => ({ price: (Number(row.price) * factor).toFixed(4) });
  it.each<[string, (row: Row, i: number) => Row, RegExp]>([
    ['all zero', () => ({ price: '0' }), /^price: 100 % zero or empty \(before: 0 %, 0 %, 0 %\), for example A\d+: \d/],
    ['all zero, as text', () => ({ title: ' ' }), /^title: 100 % zero or empty/],
    ['zero for most', (_, i) => (i % 3 === 0 ? {} : { price: '0' }), /^price: 6\d/],
    ['one price', () => ({ price: '9.99' }), /^price: 100 % one and the same value/],
    ['one title', () => ({ title: 'Please enable cookies' }), /^title: 100 % one and the same value .* became Please/],
    ['one delivery', () => ({ delivery: 'today' }), /^delivery: 100 % one and the same value/],
    ['one image', () => ({ images: '["/placeholder.png"]' }), /^images: 100 % one and the same value/],
    ['cents for euros', scaled(100), /^price: 100 % changed tenfold or more \(before: 0 %, 0 %, 0 %\)/],
    ['euros for cents', scaled(0.01), /^price: 100 % changed tenfold or more/],
    [
      'another currency',
      () => ({ price_currency: 'USD' }),
      /^price_currency: 100 % in another currency .*EUR became USD/,
    ],
    ['everything out of stock', () => ({ in_stock: '0', stock: '0' }), /^stock: 100 % zero or empty/],
  ])('hold the run: %s', (_, change, words) => {
    for (const seed of [11, 12, 13]) {
      const { shop, nights } = shopWithNights(seed);
      const { holds } = nights.run(changing(shop.crawl(), change));
      expect(holds[0]).toMatch(words);
      expect(holds[0]!.match(/became/g)).toHaveLength(3);
      // The next night is as before, and is published.
      expect(nights.run(shop.crawl()).holds).toEqual([]);
    }
  });

  it('are usual once a person has published them', () => {
    const { shop, nights } = shopWithNights(21);
    const free = changing(shop.crawl(), () => ({ price: '0' }));
    expect(nights.run(free).holds).toHaveLength(1);
    nights.run(free, 0);
    expect(nights.run(changing(shop.crawl(), () => ({ price: '0' }))).holds).toEqual([]);
    expect(nights.run(shop.crawl()).holds).toEqual([]);
  });

  it('are not usual because they were published once', () => {
    const { shop, nights } = shopWithNights(22);
    nights.run(
      changing(shop.crawl(), () => ({ price: '0' })),
      0,
    );
    expect(nights.run(shop.crawl()).holds).toEqual([]);
    expect(nights.run(changing(shop.crawl(), () => ({ price: '0' }))).holds).toHaveLength(1);
  });

  it('hold nothing without an earlier run, or with too few products that were there before', () => {
    const [shop, nights] = [new Shop(31, 100), new Nights()];
    const first = nights.run(changing(shop.crawl(), () => ({ price: '0' })));
    expect(first).toEqual({ holds: [], note: 'values were not compared: no earlier run has this mapping' });
    const few = shopWithNights(32, 20);
    const second = few.nights.run(changing(few.shop.crawl(), () => ({ price: '0' })));
    expect(second.holds).toEqual([]);
    expect(second.note).toMatch(/^values were not compared: \d+ of the sampled products were crawled before, and 30/);
  });

  it('hold by less where the guard is stricter', () => {
    const third = (_: Row, i: number): Row => (i % 3 === 0 ? { price: '0' } : {});
    const { shop, nights } = shopWithNights(41);
    expect(nights.run(changing(shop.crawl(), third), 0.9).holds[0]).toMatch(/^price: 3\d/);
    expect(nights.run(changing(shop.crawl(), third), 0.5).holds).toEqual([]);
  });
});

describe('a profile', () => {
  it('has shares, the band of numbers, currencies, and what has changed', () => {
    const rows = Array.from({ length: 101 }, (_, i): ValueSample['rows'][number] => {
      const before = [`T${i}`, String(i + 1), 'EUR'];
      return {
        id: `P${i}`,
        now: [i === 0 ? null : `T${i}`, String(i), i < 50 ? 'EUR' : 'USD'],
        before: i < 40 ? before : null,
      };
    });
    const profile = profileOf({ fingerprint: 'f', columns: COLUMNS.slice(0, 3), rows });
    expect(profile).toMatchObject({ fingerprint: 'f', products: 101, common: 40 });
    expect(profile.fields).toMatchObject({
      title: { filled: 0.9901, empty: 0, top: 0.01, changed: 0.025 },
      price: { filled: 1, empty: 0.009901, numbers: { low: 5, median: 50, high: 95 }, changed: 1, sound: { kept: 1 } },
      price_currency: { top: 0.50495, currencies: { USD: 0.50495, EUR: 0.49505 }, changed: 0 },
    });
  });
});
