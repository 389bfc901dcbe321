/**
 * Where endpoints other than AWS deviate from the adapters' contracts. Every known deviation is listed here and nowhere
 * else; the code tolerates each of these (docs/decisions/0017-endpoints.md explains how).
 */
export interface Divergence {
  /** The name by which orchestrator/core/cloud/endpoint-profile.ts recognizes the endpoint. */
  endpoint: 'moto' | 'localstack' | 'unknown';
  contract: 'Compute' | 'LoadBalancer' | 'ObjectStore' | 'Regions';
  /** The case of the contract that fails there. */
  title: string;
  why: string;
}

/** LocalStack 4.14.0 and moto 5.2.1 launch again for a token that they have seen. */
const TOKEN_CASES = [
  'returns the same instance for a repeated request, and launches no second one',
  'reports an unknown outcome for a token that is reused for another request',
  'refuses the token of a terminated instance',
];

export const DIVERGENCES: readonly Divergence[] = [
  ...(['moto', 'localstack'] as const).flatMap((endpoint) =>
    TOKEN_CASES.map((title) => ({
      endpoint,
      contract: 'Compute' as const,
      title,
      why: `${endpoint} ignores ClientToken`,
    })),
  ),
  {
    endpoint: 'moto',
    contract: 'LoadBalancer',
    title: 'reports not-running for an instance that cannot be a target',
    why: 'moto registers any target',
  },
];
