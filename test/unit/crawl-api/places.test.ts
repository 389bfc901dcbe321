import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Places } from '../../../crawl-api/politeness/places.ts';

/** Pages that begin when they have a place and end when the test says so. */
class Visits {
  readonly places: Places;
  readonly underWay = new Map<string, () => void>();
  readonly begun: string[] = [];

  constructor(size: number) {
    this.places = new Places(size);
  }

  visit(name: string, host = name, domain = 0): void {
    void this.places.use({ domain, host }, () => this.#begin(name));
  }

  alone(name: string, domain: number): void {
    void this.places.alone(domain, () => this.places.use({ domain, host: name }, () => this.#begin(name)));
  }

  async end(name: string): Promise<void> {
    this.underWay.get(name)!();
    this.underWay.delete(name);
    await settled();
  }

  #begin(name: string): Promise<void> {
    this.begun.push(name);
    return new Promise((resolve) => this.underWay.set(name, resolve));
  }
}

const settled = async (): Promise<void> => {
  for (let i = 0; i < 20; i++) await Promise.resolve();
};

describe('the places of an instance', () => {
  it('are taken in the order of the calls, one page each', async () => {
    const visits = new Visits(2);
    for (const name of ['a', 'b', 'c', 'd']) visits.visit(name);
    await settled();
    expect([visits.begun, visits.places.used]).toEqual([['a', 'b'], 2]);
    await visits.end('b');
    expect(visits.begun).toEqual(['a', 'b', 'c']);
    await visits.end('c');
    await visits.end('a');
    expect([visits.begun, visits.places.used]).toEqual([['a', 'b', 'c', 'd'], 1]);
  });

  it('never have two pages of one host, and a page that waits for its host does not keep others waiting', async () => {
    const visits = new Visits(3);
    visits.visit('a1', 'a');
    visits.visit('a2', 'a');
    visits.visit('b1', 'b');
    await settled();
    expect(visits.begun).toEqual(['a1', 'b1']);
    await visits.end('a1');
    expect(visits.begun).toEqual(['a1', 'b1', 'a2']);
  });

  it('are free again after a page that failed', async () => {
    const places = new Places(1);
    const broken = (): Promise<never> => Promise.reject(new Error('broken'));
    await expect(places.use({ domain: 0, host: 'a' }, broken)).rejects.toThrow('broken');
    expect(await places.use({ domain: 0, host: 'a' }, () => Promise.resolve('page'))).toBe('page');
  });

  it('are left to one domain once the pages of others have ended; the others go on after it', async () => {
    const visits = new Visits(3);
    visits.visit('a');
    visits.visit('b');
    visits.alone('c', 2);
    visits.visit('d');
    await settled();
    expect(visits.begun).toEqual(['a', 'b']);
    await visits.end('a');
    expect(visits.begun).toEqual(['a', 'b']);
    await visits.end('b');
    expect(visits.begun).toEqual(['a', 'b', 'c']);
    await visits.end('c');
    expect(visits.begun).toEqual(['a', 'b', 'c', 'd']);
  });

  it('are left to several domains one after the other', async () => {
    const visits = new Visits(3);
    visits.alone('a', 0);
    visits.alone('b', 1);
    await settled();
    expect(visits.begun).toEqual(['a']);
    await visits.end('a');
    expect(visits.begun).toEqual(['a', 'b']);
  });

  it('hold what they promise in any order of visits', async () => {
    const step = fc.oneof(
      fc.record({ host: fc.constantFrom('a', 'b', 'c', 'd'), isAlone: fc.boolean() }),
      fc.record({ ends: fc.nat(5) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 4 }), fc.array(step, { maxLength: 40 }), async (size, steps) => {
        const visits = new Visits(size);
        const asked: string[] = [];
        const check = (): void => {
          const names = [...visits.underWay.keys()];
          expect(names.length).toBeLessThanOrEqual(size);
          expect(new Set(names.map((name) => name[0])).size).toBe(names.length);
          if (names.some((name) => name.includes('alone')) && size > 1) expect(names).toHaveLength(1);
        };
        for (const [i, one] of steps.entries()) {
          if ('ends' in one) {
            const name = [...visits.underWay.keys()][one.ends];
            if (name !== undefined) await visits.end(name);
          } else {
            const name = `${one.host}${one.isAlone ? 'alone' : ''}${i}`;
            asked.push(name);
            if (one.isAlone) visits.alone(name, i);
            else visits.visit(name, one.host, i);
            await settled();
          }
          check();
        }
        for (let name; (name = [...visits.underWay.keys()][0]) !== undefined; check()) await visits.end(name);
        expect(visits.begun.toSorted()).toEqual(asked.toSorted());
      }),
    );
  });
});
