/**
 * What endpoints that are not AWS do otherwise, of what the adapters' contracts ask. All that is known stands here and
 * nowhere else; the code tolerates each of these (docs/decisions/endpoints.md says how).
 */
export interface Divergence {
  /** As the endpoint is recognized by orchestrator/cloud/probe.ts. */
  endpoint: 'moto' | 'localstack' | 'unknown';
  contract: 'Compute' | 'LoadBalancer' | 'ObjectStore';
  /** The case of the contract that does not hold there. */
  title: string;
  why: string;
}

/** LocalStack 4.14.0 and moto 5.2.1 launch again for a token that they have seen. */
const TOKEN_CASES = [
  'gives the same instance for the same request sent again, and no second one',
  'does not know what to make of a token that is used again for another request',
  'refuses the token of an instance that is dead',
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
    title: 'says not-running for an instance that cannot be a target',
    why: 'moto registers whatever it is given',
  },
];
