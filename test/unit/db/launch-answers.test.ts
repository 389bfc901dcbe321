/** What EC2 answered, from rows of this version and of those before it. */
import { describe, expect, it } from 'vitest';
import { readAnswer } from '../../../orchestrator/db/fleet-store.ts';

const row = (last_error: string | null, instance_id: string | null = null) => ({
  instance_id,
  last_error,
  answer: null,
});

describe('readAnswer', () => {
  it.each([
    ['refused pool: Insufficient: no room', { kind: 'refused', cause: 'pool', message: 'Insufficient: no room' }],
    ['waiting throttled: slow', { kind: 'refused', cause: 'throttled', message: 'slow' }],
    ['used: IdempotentParameterMismatch', { kind: 'unknown', message: 'IdempotentParameterMismatch', tokenUsed: true }],
    ['unknown: socket\nhang up', { kind: 'unknown', message: 'socket\nhang up' }],
  ])('reads %j of an earlier version', (text, answer) => {
    expect(readAnswer(row(text))).toEqual({ answer, lastError: null });
  });

  it('leaves other words alone, and those about an instance that is there', () => {
    expect(readAnswer(row('Target.Timeout'))).toEqual({ answer: null, lastError: 'Target.Timeout' });
    expect(readAnswer(row('refused pool: none', 'i-1'))).toEqual({ answer: null, lastError: 'refused pool: none' });
  });

  it('takes the column where there is one', () => {
    const answer = { kind: 'refused', cause: 'type', message: 'not eligible' } as const;
    expect(readAnswer({ ...row('Target.Timeout'), answer: JSON.stringify(answer) })).toEqual({
      answer,
      lastError: 'Target.Timeout',
    });
  });
});
