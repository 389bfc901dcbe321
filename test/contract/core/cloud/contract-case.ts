/** The cases of a contract at one endpoint. A case with a listed divergence must fail; delist it once it passes. */
import { expect, it } from 'vitest';
import { type Divergence, DIVERGENCES } from './divergences.ts';

export interface ContractCases {
  it: (title: string, run: () => Promise<void>) => void;
  /** Call it last: a listed divergence that matches no case of the contract is a typo. */
  end: () => void;
}

/** @param endpoint as named in divergences.ts; 'none' where none is allowed */
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
      it('has only divergences that match a case', () => {
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
  if (!failed) throw new Error(`this holds at ${endpoint} now: take it out of test/contract/core/cloud/divergences.ts`);
}
