/** The folder of an instance's objects: asked of STS once, kept for the next process. */
import { afterEach, describe, expect, it } from 'vitest';
import { StateFolder } from '../../../crawl-api/process/state-folder.ts';
import { roleSessionOf } from '../../../crawl-api/upload/role-session.ts';
import { seededRandom } from '../../../shared/adapters/random.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { silentLog } from './fakes.ts';

const folder = tempDir();
afterEach(() => folder.remove());

const SESSION = 'AROASANDBOX0000000001:i-00123456789abcdef';

/** What two processes on one instance use, and how often each has asked. */
async function twice(answers: (string | Error)[], wanted = true) {
  const asked: number[] = [];
  const used: (string | null)[] = [];
  for (const process of [0, 1]) {
    const clock = new VirtualClock();
    asked[process] = 0;
    const session = roleSessionOf({
      wanted,
      folder: new StateFolder(folder.path, { run: 'r', slot: 0, epoch: 1 }, 0),
      readUserId: async () => {
        asked[process]!++;
        const answer = answers.shift() ?? new Error('nothing more');
        if (answer instanceof Error) throw answer;
        return answer;
      },
      clock,
      random: seededRandom(1),
      log: silentLog,
    });
    const both = Promise.all([session, session].map((ask) => ask(new AbortController().signal)));
    for (let i = 0; i < 60; i++) await clock.advance(1_000);
    const [first, second] = await both;
    expect(second).toBe(first);
    used.push(first!);
  }
  return { asked, used };
}

describe('The role session of an instance', () => {
  it.each<[string, (string | Error)[], boolean, { asked: number[]; used: (string | null)[] }]>([
    ['is asked once', [SESSION], true, { asked: [1, 0], used: [SESSION, SESSION] }],
    ['is asked again after a fault', [new Error('reset'), SESSION], true, { asked: [2, 0], used: [SESSION, SESSION] }],
    ['is none for all processes without an answer', [], true, { asked: [4, 0], used: [null, null] }],
    [
      'is none if it cannot be the name of a folder',
      Array(4).fill('../x'),
      true,
      { asked: [4, 0], used: [null, null] },
    ],
    ['is not asked in a run of an earlier version', [SESSION], false, { asked: [0, 0], used: [null, null] }],
  ])('%s', async (_what, answers, wanted, expected) => {
    expect(await twice(answers, wanted)).toEqual(expected);
  });
});
