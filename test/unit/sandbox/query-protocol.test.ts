import { describe, expect, it } from 'vitest';
import { AwsError } from '../../../sandbox/aws-error.ts';
import { Params, queryError, queryReply, serviceOf } from '../../../sandbox/query-protocol.ts';

const params = (form: string, service: 'ec2' | 'elbv2' = 'ec2'): Params =>
  new Params(new Map(new URLSearchParams(form)), service);

describe('parameters', () => {
  it('reads lists in EC2 form and in ELBv2 form', () => {
    expect(params('InstanceId.1=a&InstanceId.2=b').texts('InstanceId')).toEqual(['a', 'b']);
    expect(params('Names.member.1=a&Names.member.2=b', 'elbv2').texts('Names')).toEqual(['a', 'b']);
  });

  it('reads lists of structures by number, not by order, beyond ten', () => {
    const form = Array.from({ length: 11 }, (_, i) => `Tag.${11 - i}.Key=k${11 - i}`).join('&');
    expect(
      params(form)
        .groups('Tag')
        .map((tag) => tag.text('Key')),
    ).toEqual(Array.from({ length: 11 }, (_, i) => `k${i + 1}`));
  });

  it('does not match a longer name with a shorter one', () => {
    expect(params('FilterX.1.Name=a').groups('Filter')).toEqual([]);
  });

  it.each([
    ['ec2', 'MissingParameter'],
    ['elbv2', 'ValidationError'],
  ] as const)('names a missing parameter in the way of %s', (service, code) => {
    expect(() => params('', service).need('Name')).toThrow(expect.objectContaining({ code }) as Error);
  });

  it('refuses invalid numbers', () => {
    expect(() => params('MaxResults=many').int('MaxResults')).toThrow(AwsError);
  });

  it('have the same fingerprint in another order, and a different one for another value', () => {
    const one = params('a=1&b=2&ClientToken=x').fingerprint(['ClientToken']);
    expect(params('b=2&a=1&ClientToken=y').fingerprint(['ClientToken'])).toBe(one);
    expect(params('a=1&b=3&ClientToken=x').fingerprint(['ClientToken'])).not.toBe(one);
  });
});

describe('frames', () => {
  it('differ by service', () => {
    expect(queryReply('ec2', 'X', { a: '<&>' }, 'id')).toContain(
      '<XResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>id</requestId><a>&lt;&amp;&gt;</a></XResponse>',
    );
    expect(queryReply('elbv2', 'X', {}, 'id')).toContain(
      '<XResult></XResult><ResponseMetadata><RequestId>id</RequestId>',
    );
    const error = new AwsError('Code', 'Text');
    expect(queryError('ec2', error, 'id')).toContain(
      '<Response><Errors><Error><Code>Code</Code><Message>Text</Message></Error></Errors><RequestID>id',
    );
    expect(queryError('elbv2', error, 'id')).toContain('<Error><Type>Sender</Type><Code>Code</Code>');
  });

  it.each([
    ['AWS4-HMAC-SHA256 Credential=A/20260101/eu-west-1/ec2/aws4_request', undefined, 'ec2'],
    ['AWS4-HMAC-SHA256 Credential=A/20260101/eu-west-1/elasticloadbalancing/aws4_request', '2016-11-15', 'elbv2'],
    ['AWS4-HMAC-SHA256 Credential=A/20260101/eu-west-1/sts/aws4_request', '2011-06-15', 'sts'],
    ['AWS4-HMAC-SHA256 Credential=A/20260101/us-east-1/iam/aws4_request', '2010-05-08', null],
    [undefined, '2015-12-01', 'elbv2'],
    [undefined, '2016-11-15', 'ec2'],
    [undefined, '1999-01-01', null],
  ])('are selected by %s and version %s', (authorization, version, service) => {
    expect(serviceOf(authorization, version)).toBe(service);
  });
});
