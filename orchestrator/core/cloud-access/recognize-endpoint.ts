/** What answers at the endpoint of a dry run, probed before anything else. */
import { isIPv6 } from 'node:net';
import { AppError } from '../../../shared/domain/errors.ts';
import { bareHostOf } from '../../../shared/domain/same-site.ts';
import { type EndpointProfile, profileEndpoint } from '../cloud/endpoint-profile.ts';
import { awsOptions } from './cloud-access.ts';
import type { Target } from '../config/target.ts';

/**
 * The target to use, with what answers there. Nothing is probed on AWS, without an endpoint, or in a paid run, which
 * treats the configured endpoint as AWS. Throws `endpoint-refused` for [::1], `endpoint-unreachable` and
 * `aws-capability-missing`.
 */
export async function recognizeEndpoint(target: Target): Promise<{ target: Target; profile: EndpointProfile | null }> {
  if (!target.dryRun || target.endpoint === null) return { target, profile: null };
  const asked = target.endpoint;
  if (isIPv6(bareHostOf(new URL(asked))))
    throw new AppError('endpoint-refused', `aws.endpoint ${asked} cannot be reached by the machines of a dry run`, {
      hint: 'They have IPv4 addresses of their own. Let the endpoint listen on 127.0.0.1, and name that.',
    });
  const profile = await profileEndpoint({ ...awsOptions(target, true), endpoint: asked }).catch((error: unknown) => {
    throw refusedAsReal(error, asked);
  });
  if (profile.name === 'sandbox') return { target, profile };
  // Machines bind their own IPv4 addresses and cannot reach ::1 from them, which localhost may resolve to.
  const url = new URL(target.endpoint);
  if (url.hostname === 'localhost') url.hostname = '127.0.0.1';
  const endpoint = url.href.replace(/\/$/, '');
  return { target: { ...target, endpoint }, profile: { ...profile, endpoint } };
}

/** An endpoint that refuses keys valid nowhere may lead to a real account. Other errors pass unchanged. */
function refusedAsReal(error: unknown, url: string): unknown {
  if (!(error instanceof AppError) || error.code !== 'aws-denied') return error;
  return new AppError(
    'endpoint-refused',
    `aws.endpoint ${url} refuses the keys of a dry run, as AWS itself would: it may lead to a real account`,
    {
      cause: error,
      hint: 'A dry run never sends keys of yours. Point aws.endpoint at an emulator that takes any keys, or leave it out to use the built-in sandbox.',
    },
  );
}
