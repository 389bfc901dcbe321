/** What a plan assumes of times it has not measured yet, by where the run goes. Earlier runs replace these figures. */
import type { PlanInput } from './plan.ts';

/** AWS itself, our own sandbox, or somebody else's AWS endpoint. */
export type EndpointKind = 'aws' | 'sandbox' | 'emulator';

export type PlanDefaults = Pick<PlanInput, 'bootP50Ms' | 'bootP95Ms' | 'tailMs' | 'pageP50Ms' | 'balancerMs'>;

const DEFAULTS: Record<EndpointKind, PlanDefaults> = {
  // A balancer takes two to three minutes on AWS; an instance with cloud-init and a bundle from S3 about one.
  aws: { bootP50Ms: 60_000, bootP95Ms: 120_000, tailMs: 60_000, pageP50Ms: 500, balancerMs: 180_000 },
  sandbox: { bootP50Ms: 1_500, bootP95Ms: 3_000, tailMs: 2_000, pageP50Ms: 50, balancerMs: 500 },
  emulator: { bootP50Ms: 5_000, bootP95Ms: 10_000, tailMs: 2_000, pageP50Ms: 50, balancerMs: 500 },
};

export const defaultsFor = (kind: EndpointKind): PlanDefaults => ({ ...DEFAULTS[kind] });
