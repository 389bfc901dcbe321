/** The cases of a contract at one endpoint. Where a divergence is listed the case has to fail: one that no longer does is taken out of the list. */
import { expect, it } from 'vitest';
import type { Divergence } from './divergences.ts';
import { DIVERGENCES } from './divergences.ts';

export interface ContractCases {
  it: (title: string, run: () => Promise<void>) => void;
  /** To be called last: a listed divergence that is no case of the contract is a slip of the pen. */
  end: () => void;
}

/** @param endpoint as divergences.ts names it; 'none' where none is allowed */
export function contractCases(contract: Divergence['contract'], endpoint: string): ContractCases {
  const listed = DIVERGENCES.filter((d) => d.contract === contract && d.endpoint === endpoint);
  const titles = new Set<string>();
  return {
    it(title, run) {
      titles.add(title);
      const divergence = listed.find((d) => d.title === title);
      if (divergence === undefined) it(title, run);
      else it(`differs from AWS: ${title} (${divergence.why})`, () => expectToFail(run, endpoint));
    },
    end() {
      it('has only divergences that are cases of it', () => {
        expect(listed.map((d) => d.title).filter((title) => !titles.has(title))).toEqual([]);
      });
    },
  };
}

async function expectToFail(run: () => Promise<void>, endpoint: string): Promise<void> {
  const failed = await run().then(
    () => false,
    () => true,
  );
  if (!failed) throw new Error(`this holds at ${endpoint} now: take it out of test/contract/cloud/divergences.ts`);
}
