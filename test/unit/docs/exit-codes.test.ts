import { readFileSync, readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { exitCodesPage } from '../../../docs/generate-exit-codes.ts';
import { type EndInput, endOf } from '../../../orchestrator/core/decide/end/exit-code.ts';
import { EXIT, EXIT_MEANINGS } from '../../../shared/domain/exit-codes.ts';

const ROOT = new URL('../../../', import.meta.url);
const ORDER = Object.keys(EXIT_MEANINGS) as (keyof typeof EXIT)[];
const page = readFileSync(new URL('docs/exit-codes.md', ROOT), 'utf8');

const fine: EndInput = {
  planned: 100,
  stored: 90,
  gone: 0,
  failed: 0,
  reasons: {},
  request: null,
  uncrawledReason: 'lost-instance',
  onTime: true,
  maxFailed: 0.05,
  siteDown: false,
  noInstances: null,
};

/** An input that ends a run with each code. Two of them are combined unless they set the same field. */
const CAUSES: Partial<Record<keyof typeof EXIT, Partial<EndInput>>> = {
  config: { noInstances: { cause: 'rights', reason: 'AWS refuses to launch' }, reasons: { 'lost-instance': 100 } },
  capacity: { noInstances: { cause: 'capacity', reason: 'EC2 gave no instance' }, reasons: { 'lost-instance': 100 } },
  budget: { uncrawledReason: 'budget', reasons: { budget: 10 } },
  banned: { request: 'banned', uncrawledReason: 'banned', reasons: { banned: 10 } },
  held: { suspicion: 'blank' },
  interrupted: { request: 'stop' },
  deadline: { onTime: false },
  failedProducts: { failed: 10 },
  complete: {},
};

const pairs = Object.entries(CAUSES).flatMap(([a, causeA], i) =>
  Object.entries(CAUSES)
    .slice(i + 1)
    .filter(([, causeB]) => Object.keys(causeA).every((key) => !(key in causeB)))
    // A stop request ends the run before the budget or EC2 could.
    .filter(([b]) => !(b === 'interrupted' && ['config', 'capacity', 'budget'].includes(a)))
    // Nothing was crawled, so nothing can be suspicious.
    .filter(([b]) => !(b === 'failedProducts' && ['config', 'capacity'].includes(a)))
    .map(([b, causeB]) => [a, b, { ...fine, ...causeA, ...causeB }] as const),
);

describe('docs/exit-codes.md', () => {
  it('matches the code and has every exit code once', () => {
    expect(page).toBe(exitCodesPage());
    const codes = [...page.matchAll(/^\| (\d+) \|/gm)].map((m) => Number(m[1]));
    expect(codes.toSorted((a, b) => a - b)).toEqual(Object.values(EXIT).toSorted((a, b) => a - b));
  });

  it('has every code that the program can exit with: the source contains no other number as an exit code', () => {
    const known = new Set<number>(Object.values(EXIT));
    for (const folder of ['orchestrator', 'shared', 'bin']) {
      for (const file of readdirSync(new URL(`${folder}/`, ROOT), { recursive: true, encoding: 'utf8' })) {
        if (!/\.(ts|js)$/.test(file)) continue;
        const source = readFileSync(new URL(`${folder}/${file}`, ROOT), 'utf8');
        for (const [, code] of source.matchAll(/(?:\bexit\(|exitCode\s*[=:]\s*)(\d+)/g))
          expect(known.has(Number(code)), `${folder}/${file} exits with ${code}`).toBe(true);
      }
    }
  });

  it.each(pairs)('of %s and %s, a run exits with the one that comes first in the table', (a, b, input) => {
    const first = ORDER.indexOf(a as keyof typeof EXIT) < ORDER.indexOf(b as keyof typeof EXIT) ? a : b;
    expect(endOf(input).exitCode).toBe(EXIT[first as keyof typeof EXIT]);
  });

  it.each(Object.entries(CAUSES))('%s alone has its own code', (name, cause) => {
    expect(endOf({ ...fine, ...cause }).exitCode).toBe(EXIT[name as keyof typeof EXIT]);
  });
});
