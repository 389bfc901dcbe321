import { describe, expect, it } from 'vitest';
import { AppError, describeError } from '../../../shared/domain/errors.ts';

describe('describeError', () => {
  it('lists the chain of causes, outermost first', () => {
    const error = new AppError('aws-failed', 'the bucket', { cause: new Error('socket', { cause: 'closed' }) });
    expect(describeError(error)).toBe('the bucket: socket: closed');
  });

  it('omits a message that a wrapper already contains', () => {
    const cause = new Error('InvalidAMIID.Malformed: Invalid id: "foo"');
    expect(describeError(new Error(`DescribeImages failed: ${cause.message}`, { cause }))).toBe(
      'DescribeImages failed: InvalidAMIID.Malformed: Invalid id: "foo"',
    );
  });
});
