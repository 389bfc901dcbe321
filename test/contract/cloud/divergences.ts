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

const NO_TOKENS = 'moto takes no notice of ClientToken';

export const DIVERGENCES: readonly Divergence[] = [
  {
    endpoint: 'moto',
    contract: 'Compute',
    title: 'gives the same instance for the same request sent again, and no second one',
    why: NO_TOKENS,
  },
  {
    endpoint: 'moto',
    contract: 'Compute',
    title: 'does not know what to make of a token that is used again for another request',
    why: NO_TOKENS,
  },
  {
    endpoint: 'moto',
    contract: 'Compute',
    title: 'refuses the token of an instance that is dead',
    why: NO_TOKENS,
  },
  {
    endpoint: 'moto',
    contract: 'LoadBalancer',
    title: 'says not-running for an instance that cannot be a target',
    why: 'moto registers whatever it is given',
  },
];
