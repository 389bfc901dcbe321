import { describe, expect, it } from 'vitest';
import { classifyAwsError, launchFailure, toAppError } from '../../../../orchestrator/core/cloud/aws-errors.ts';

/** An error as the SDK throws it. */
function sdkError(code: string | null, status?: number, message = 'what AWS says'): Error {
  const error = new Error(message);
  error.name = code ?? 'Unknown';
  return Object.assign(error, code === null ? {} : { Code: code }, { $metadata: { httpStatusCode: status } });
}

describe('classifyAwsError', () => {
  it.each([
    ['RequestLimitExceeded', 503, 'throttled'],
    ['Throttling', 400, 'throttled'],
    ['UnauthorizedOperation', 403, 'denied'],
    ['AuthFailure', 401, 'credentials'],
    ['ExpiredToken', 400, 'credentials'],
    ['RequestExpired', 400, 'credentials'],
    ['UnrecognizedClient', 400, 'credentials'],
    ['CredentialsProviderError', 0, 'credentials'],
    ['InsufficientInstanceCapacity', 500, 'pool'],
    ['Unsupported', 400, 'zone'],
    ['InsufficientAddressCapacity', 500, 'pool'],
    ['InsufficientVolumeCapacity', 500, 'pool'],
    ['VcpuLimitExceeded', 400, 'quota'],
    ['InvalidInstanceID.NotFound', 400, 'not-found'],
    ['LoadBalancerNotFound', 400, 'not-found'],
    ['NoSuchBucket', 404, 'not-found'],
    ['InvalidTarget', 400, 'invalid-target'],
    ['ResourceInUse', 400, 'in-use'],
    ['DuplicateTargetGroupName', 400, 'exists'],
    ['InvalidParameterValue', 400, 'invalid'],
    ['InternalError', 500, 'failed'],
    ['InvalidAction', 400, 'capability-missing'],
    ['InternalFailure', 501, 'capability-missing'],
    ['SomethingNew', 500, 'failed'],
  ])('classifies %s (%i) as %s', (code, status, kind) => {
    expect(classifyAwsError(sdkError(code, status))).toMatchObject({ kind, code });
  });

  it.each([
    [500, 'capability-missing'],
    [405, 'capability-missing'],
    [501, 'capability-missing'],
    [403, 'denied'],
    [404, 'not-found'],
    [503, 'throttled'],
    [502, 'failed'],
  ])('uses the status %i where the reply has no code', (status, kind) => {
    expect(classifyAwsError(sdkError(null, status))).toMatchObject({ kind, code: '', status });
  });

  it('takes a page in place of JSON for a call that the endpoint lacks', () => {
    expect(classifyAwsError(sdkError('SyntaxError', 500)).kind).toBe('capability-missing');
  });

  it('recognizes the error names of the ELBv2 SDK', () => {
    const error = Object.assign(new Error('gone'), { name: 'TargetGroupNotFoundException' });
    expect(classifyAwsError(error)).toMatchObject({ kind: 'not-found', code: 'TargetGroupNotFound' });
  });

  it.each([[null], [undefined], ['text'], [new TypeError('odd')], [{}]])('accepts any thrown value: %s', (thrown) => {
    expect(classifyAwsError(thrown).kind).toBe('failed');
  });
});

describe('launchFailure', () => {
  it.each([
    [
      'InvalidParameterCombination',
      "The specified instance type is not eligible for Free Tier. For a list of Free Tier instance types, run 'describe-instance-types' with the filter 'free-tier-eligible=true'.",
      'type',
    ],
    ['InvalidParameterCombination', 'The parameter groupName may not be used in combination with groupId', 'invalid'],
    [
      'InvalidParameterValue',
      'Value (x) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name',
      'denied',
    ],
    ['InvalidParameterValue', 'Invalid availability zone', 'invalid'],
  ])('tells the causes of %s apart by the message: %s', (code, message, cause) => {
    expect(launchFailure(sdkError(code, 400, message))).toMatchObject({ kind: 'refused', cause });
  });

  it.each([
    ['InsufficientInstanceCapacity', 500, 'pool'],
    ['InsufficientFreeAddressesInSubnet', 400, 'pool'],
    ['VcpuLimitExceeded', 400, 'quota'],
    ['RequestLimitExceeded', 503, 'throttled'],
    ['UnauthorizedOperation', 403, 'denied'],
    ['InvalidAMIID.NotFound', 400, 'invalid'],
    ['InvalidParameterCombination', 400, 'invalid'],
    ['InvalidAction', 400, 'invalid'],
    ['IdempotentInstanceTerminated', 400, 'spent'],
  ])('treats %s as refused: %s %s', (code, status, cause) => {
    expect(launchFailure(sdkError(code, status))).toMatchObject({ kind: 'refused', cause });
  });

  it.each([
    ['a reset connection', Object.assign(new Error('socket hang up'), { name: 'TimeoutError', code: 'ECONNRESET' })],
    ['a timeout', Object.assign(new Error('too long'), { name: 'TimeoutError' })],
    ['an internal error', sdkError('InternalError', 500)],
    ['a service that is unavailable', sdkError('ServiceUnavailable', 503)],
    ['a 500 without a code', sdkError(null, 500)],
    ['a 502 without a code', sdkError(null, 502)],
    ['a token used for another request', sdkError('IdempotentParameterMismatch', 400)],
  ])('treats the launch as unknown after %s', (_, error) => {
    expect(launchFailure(error).kind).toBe('unknown');
  });

  it('F9: marks a token used for another request, so that the launch is not retried', () => {
    expect(launchFailure(sdkError('IdempotentParameterMismatch', 400))).toMatchObject({ tokenUsed: true });
    expect(launchFailure(sdkError('InternalError', 500))).not.toHaveProperty('tokenUsed');
  });
});

describe('toAppError', () => {
  it('names the call, the place and the message of AWS in one line', () => {
    const error = toAppError(
      sdkError('UnauthorizedOperation', 403, 'You are not authorized\n  Deserialization error: …'),
      'DescribeImages',
      'http://127.0.0.1:1',
    );
    expect(error).toMatchObject({ code: 'aws-denied' });
    expect(error.message).toBe(
      'DescribeImages at http://127.0.0.1:1 failed: UnauthorizedOperation: You are not authorized',
    );
    expect(error.hint).toContain('credentials');
  });

  it.each([
    ['InvalidAction', 400, 'aws-capability-missing'],
    ['VcpuLimitExceeded', 400, 'capacity'],
    ['Throttling', 400, 'aws-throttled'],
    ['InvalidInstanceID.NotFound', 400, 'aws-not-found'],
  ])('maps %s (%i) to the code %s', (code, status, expected) => {
    expect(toAppError(sdkError(code, status), 'Call', null).code).toBe(expected);
  });

  it('leaves our own errors unchanged', () => {
    const own = toAppError(sdkError('Throttling', 400), 'Call', null);
    expect(toAppError(own, 'Other', null)).toBe(own);
  });
});
