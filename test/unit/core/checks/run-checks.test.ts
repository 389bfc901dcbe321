/** How checks run and how their failures become one refusal. */
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { AppError } from '../../../../shared/domain/errors.ts';
import { EXIT } from '../../../../shared/domain/exit-codes.ts';
import {
  type Check,
  type CheckContext,
  failed,
  type Finding,
  ok,
  warning,
} from '../../../../orchestrator/core/checks/check.ts';
import { exitCodeOf, refusalOf, runChecks } from '../../../../orchestrator/core/checks/run-checks.ts';

const CONTEXT = {} as CheckContext;
const check = (id: string, run: () => Promise<Finding[]>, more: Partial<Check> = {}): Check => ({
  id,
  title: `title of ${id}`,
  only: 'aws',
  run,
  ...more,
});
const says =
  (...findings: Finding[]) =>
  () =>
    Promise.resolve(findings);
const make = (...checks: Check[]) => runChecks(checks, CONTEXT, { clock: new VirtualClock() });

describe('runChecks', () => {
  it('skips checks that depend on a failed check, directly or indirectly', async () => {
    const results = await make(
      check('c', says(ok('never')), { needs: ['b'] }),
      check('b', says(ok('never')), { needs: ['a'] }),
      check('a', says(failed('aws-denied', 'no'))),
      check('d', says(ok('yes'))),
    );
    expect(results.map((r) => r.findings[0]!.text)).toEqual([
      'not checked, because of "title of b"',
      'not checked, because of "title of a"',
      'no',
      'yes',
    ]);
  });

  it('continues after a warning', async () => {
    const [, second] = await make(check('a', says(warning('hm'))), check('b', says(ok('yes')), { needs: ['a'] }));
    expect(second!.findings).toEqual([ok('yes')]);
  });

  it('turns a thrown error into a failure, and a call that the endpoint lacks into a warning', async () => {
    const error = new AppError('aws-invalid', 'bad', { hint: 'mend it' });
    const [a, b, c] = await make(
      check('a', () => Promise.reject(error)),
      check('b', () => Promise.reject(new AppError('aws-capability-missing', 'none here'))),
      check('c', () => Promise.reject(new TypeError('a bug'))),
    );
    expect(a!.findings).toEqual([{ level: 'failed', code: 'aws-invalid', text: 'bad', remedy: 'mend it', error }]);
    expect(b!.findings[0]!.level).toBe('warning');
    expect(c!.findings[0]).toMatchObject({ level: 'failed', code: 'internal' });
  });

  it('waits for no check longer than its limit', async () => {
    const clock = new VirtualClock();
    const never = () => new Promise<Finding[]>(() => undefined);
    const checks = [
      check('a', never, { limitMs: 3_000 }),
      check('b', never, { isSlow: true }),
      check('c', says(ok('yes'))),
    ];
    const results = runChecks(checks, CONTEXT, { clock });
    await clock.advance(30_000);
    expect((await results).map((r) => r.findings[0]!.level)).toEqual(['failed', 'warning', 'ok']);
  });
});

describe('a temporary failure of AWS', () => {
  const throttled = () => Promise.reject(new AppError('aws-throttled', 'RequestLimitExceeded'));

  it('is retried once, and not mentioned when the retry succeeds', async () => {
    const clock = new VirtualClock();
    let asked = 0;
    const once = check('a', () => (++asked === 1 ? throttled() : Promise.resolve([ok('yes')])));
    const results = runChecks([once], CONTEXT, { clock });
    await clock.advance(5_000);
    expect((await results)[0]!.findings).toEqual([ok('yes')]);
  });

  it('refuses the run for now, and never as an internal error', async () => {
    const clock = new VirtualClock();
    const inside = () => Promise.resolve([failed('aws-failed', 'ec2:RunInstances: 500')]);
    const results = runChecks([check('a', throttled), check('b', inside)], CONTEXT, { clock });
    await clock.advance(5_000);
    const made = await results;
    expect(made.flatMap((r) => r.findings)).toEqual([
      expect.objectContaining({ level: 'failed', code: 'aws-unanswered' }),
      expect.objectContaining({ level: 'failed', code: 'aws-unanswered' }),
    ]);
    expect(refusalOf(made)).toMatchObject({ exitCode: EXIT.capacity });
    expect(exitCodeOf(made)).toBe(EXIT.capacity);
  });

  it('also refuses when the reply is only late, and a run waits longer for it than doctor', async () => {
    const clock = new VirtualClock();
    const slow = check('a', () => clock.sleep(20_000).then(() => [ok('yes')]));
    const [short, patient] = [
      runChecks([slow], CONTEXT, { clock }),
      runChecks([slow], CONTEXT, { clock, patience: 3 }),
    ];
    await clock.advance(60_000);
    expect((await short)[0]!.findings[0]).toMatchObject({ level: 'failed', code: 'aws-unanswered' });
    expect((await patient)[0]!.findings).toEqual([ok('yes')]);
  });
});

describe('checks that depend on each other', () => {
  it('run after a bad answer where any answer will do, and are skipped without an answer', async () => {
    const [, after, , none] = await make(
      check('a', says(failed('aws-invalid', 'behind a NAT'))),
      check('b', says(failed('aws-denied', 'RunInstances')), { after: ['a'] }),
      check('c', () => Promise.reject(new AppError('aws-denied', 'DescribeSubnets'))),
      check('d', says(ok('never')), { after: ['c'] }),
    );
    expect(after!.findings[0]!.text).toBe('RunInstances');
    expect(none!.findings[0]!.text).toBe('not checked, because of "title of c"');
  });

  it('report the same failure once', async () => {
    const error = new AppError('aws-invalid', 'no such group');
    const same = () => Promise.reject(error);
    const [a, b] = await make(check('a', same), check('b', same));
    expect(a!.findings[0]).toMatchObject({ level: 'failed', text: 'no such group' });
    expect(b!.findings).toEqual([warning('not checked, because of "title of a"')]);
  });

  it('are skipped where a setting is missing, which another check reports', async () => {
    const [a] = await make(check('a', says(ok('never')), { lacks: () => 'aws.bucket is not set' }));
    expect(a!.findings).toEqual([warning('not checked: aws.bucket is not set')]);
  });
});

describe('a refusal', () => {
  const result = (...findings: Finding[]) => ({ check: { id: 'x', title: 'x' }, findings });

  it('is none when nothing failed', () => {
    expect(refusalOf([result(ok('a'), warning('b'))])).toBeNull();
    expect(exitCodeOf([result(ok('a'))])).toBe(EXIT.complete);
  });

  it('with one cause is the original error', () => {
    const error = new AppError('capacity', 'too few', { hint: 'ask' });
    expect(refusalOf([result({ level: 'failed', code: 'capacity', text: 'too few', remedy: 'ask', error })])).toBe(
      error,
    );
  });

  it('with several causes lists them with their remedies, under the code that takes precedence', () => {
    const results = [
      result(failed('capacity', 'too few', 'ask AWS')),
      result(failed('aws-denied', 'not allowed', 'a policy')),
    ];
    const refusal = refusalOf(results)!;
    expect(refusal.exitCode).toBe(EXIT.config);
    expect(exitCodeOf(results)).toBe(EXIT.config);
    expect(refusal.message).toBe(
      'nothing was launched, for 2 reasons:\n  - too few\n      ask AWS\n  - not allowed\n      a policy',
    );
  });

  it('lists the same cause once', () => {
    const refusal = refusalOf([
      result(failed('capacity', 'a'), failed('budget', 'b')),
      result(failed('capacity', 'a')),
    ])!;
    expect(refusal.message).toContain('for 2 reasons');
  });
});
