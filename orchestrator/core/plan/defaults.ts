/** What a plan assumes of times that have not been measured yet, by target. Figures of earlier runs replace them. */
import type { Architecture } from './instance-types.ts';
import type { PlanInput } from './plan.ts';

/**
 * `aws`: AWS, or the endpoint that a paid run treats as AWS. In dry runs: our own sandbox, or a third-party AWS
 * emulator.
 */
export type EndpointKind = 'aws' | 'sandbox' | 'emulator';

/** `installed`: the machine installs Chromium at boot; `ready`: the image has it, or no browser is needed. */
export type BrowserBoot = 'ready' | 'installed';

/** The machines that `orchestrator image` builds on, whatever types a run may have. */
export const BUILDER_TYPES: Record<Architecture, string> = { arm64: 't4g.small', x86_64: 't3.small' };

/** Default instance types: nano where it is allowed, micro and small where an account is on AWS's free plan. */
export const DEFAULT_INSTANCE_TYPES = [
  't4g.nano',
  't3.nano',
  't4g.micro',
  't3.micro',
  't4g.small',
  't3.small',
] as const;

export type PlanDefaults = Pick<PlanInput, 'bootP50Ms' | 'bootP95Ms' | 'tailMs' | 'pageP50Ms' | 'balancerMs'>;

const DEFAULTS: Record<EndpointKind, PlanDefaults> = {
  // A load balancer takes two to three minutes on AWS; an instance with cloud-init and a bundle from S3 about one.
  aws: { bootP50Ms: 60_000, bootP95Ms: 120_000, tailMs: 60_000, pageP50Ms: 500, balancerMs: 180_000 },
  sandbox: { bootP50Ms: 1_500, bootP95Ms: 3_000, tailMs: 2_000, pageP50Ms: 50, balancerMs: 500 },
  emulator: { bootP50Ms: 5_000, bootP95Ms: 10_000, tailMs: 2_000, pageP50Ms: 50, balancerMs: 500 },
};

/**
 * An estimate, not measured on AWS: 105 packages, 233 MB to fetch and 670 MB to unpack. In a Debian 13 root on this
 * project's machine that took 14 s, nearly all of it CPU time; a burstable type has a third of that speed, and a mirror
 * may be slow.
 */
const INSTALLED: Pick<PlanDefaults, 'bootP50Ms' | 'bootP95Ms'> = { bootP50Ms: 150_000, bootP95Ms: 300_000 };

export const defaultsFor = (kind: EndpointKind, browser: BrowserBoot = 'ready'): PlanDefaults => ({
  ...DEFAULTS[kind],
  ...(kind === 'aws' && browser === 'installed' ? INSTALLED : {}),
});
