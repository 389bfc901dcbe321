/** docs/doctor.md against the code: every check has its row, in order, and is marked when `run` performs it too. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ALL_CHECKS } from '../../../orchestrator/core/checks/all-checks.ts';

const page = readFileSync(new URL('../../../docs/doctor.md', import.meta.url), 'utf8');
const rows = [...page.matchAll(/^\| `([a-z0-9-]+)`( \*\*R\*\*)? \|/gm)].map((m) => ({ id: m[1]!, marked: m[2] !== undefined }));

describe('docs/doctor.md', () => {
  it('explains every check in the order of the output, and marks those that a run performs', () => {
    expect(rows).toEqual(ALL_CHECKS.map((check) => ({ id: check.id, marked: check.beforeLaunch === true })));
  });
});

describe('the checks', () => {
  it('have unique ids and depend only on earlier checks', () => {
    const ids = ALL_CHECKS.map((check) => check.id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const check of ALL_CHECKS)
      for (const needed of check.needs ?? []) expect(ids, `${check.id} needs ${needed}`).toContain(needed);
  });
});
