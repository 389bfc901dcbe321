import { describe, expect, it } from 'vitest';
import {
  type EndpointProfile,
  needsStandIn,
  renderParts,
} from '../../../../orchestrator/core/cloud/endpoint-profile.ts';

const endpoint = 'http://127.0.0.1:4566';
const profile = (change: Partial<EndpointProfile>): EndpointProfile => ({
  endpoint,
  name: 'moto',
  version: null,
  instances: 'mock',
  balancer: 'mock',
  ...change,
});

describe('which endpoint serves which part', () => {
  it('names the sandbox for every part', () => {
    const sandbox = profile({ name: 'sandbox', instances: 'real', balancer: 'real' });
    expect(renderParts(sandbox)).toEqual([`The sandbox at ${endpoint} provides EC2, ELBv2 and S3.`]);
    expect(needsStandIn(sandbox)).toBe(false);
  });

  it('names the endpoint for EC2 and S3, and the sandbox for machines and balancer', () => {
    expect(renderParts(profile({}))).toEqual([
      `EC2 and S3: moto at ${endpoint}.`,
      "Instances: those of moto are mock, so the sandbox's host boots each of them here.",
      "ELBv2: the sandbox's balancer; that of moto forwards nothing.",
    ]);
    expect(needsStandIn(profile({}))).toBe(true);
  });

  it('says that an endpoint has no balancer', () => {
    const lines = renderParts(profile({ name: 'localstack', version: '4.14.0', balancer: 'missing' }));
    expect(lines[0]).toBe(`EC2 and S3: LocalStack 4.14.0 at ${endpoint}.`);
    expect(lines[2]).toBe("ELBv2: the sandbox's balancer; LocalStack has none.");
  });
});
