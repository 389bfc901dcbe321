/** Launch answers of EC2, from rows of this version and of earlier ones. */
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

  it('ignores other texts, and texts about an instance that exists', () => {
    expect(readAnswer(row('Target.Timeout'))).toEqual({ answer: null, lastError: 'Target.Timeout' });
    expect(readAnswer(row('refused pool: none', 'i-1'))).toEqual({ answer: null, lastError: 'refused pool: none' });
  });

  it('prefers the column where it has a value', () => {
    const answer = { kind: 'refused', cause: 'type', message: 'not eligible' } as const;
    expect(readAnswer({ ...row('Target.Timeout'), answer: JSON.stringify(answer) })).toEqual({
      answer,
      lastError: 'Target.Timeout',
    });
  });
});
