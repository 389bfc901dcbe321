/** Who answers at the endpoint of a dry run, asked before anything else is done. */
import { isIPv6 } from 'node:net';
import { AppError } from '../../shared/domain/errors.ts';
import type { EndpointProfile } from '../cloud/probe.ts';
import { probeEndpoint } from '../cloud/probe.ts';
import { refusedAsReal } from './checks/refused-as-real.ts';
import { awsOptions } from './cloud-access.ts';
import type { Target } from './target.ts';

/**
 * The target as it is to be used, with what answers there. On AWS, without an endpoint, and in a real run nobody is asked:
 * a real run takes the endpoint of its configuration for AWS. Throws `endpoint-refused` for [::1], `endpoint-unreachable` and `aws-capability-missing`.
 */
export async function recognizeEndpoint(target: Target): Promise<{ target: Target; profile: EndpointProfile | null }> {
  if (!target.dryRun || target.endpoint === null) return { target, profile: null };
  const asked = target.endpoint;
  if (isIPv6(new URL(asked).hostname.replace(/^\[|\]$/g, '')))
    throw new AppError('endpoint-refused', `aws.endpoint ${asked} cannot be reached by the machines of a dry run`, {
      hint: 'They have IPv4 addresses of their own. Let the endpoint listen on 127.0.0.1, and name that.',
    });
  const profile = await probeEndpoint({ ...awsOptions(target, true), endpoint: asked }).catch((error: unknown) => {
    throw refusedAsReal(error, asked);
  });
  if (profile.name === 'sandbox') return { target, profile };
  // Machines bind an IPv4 address of their own, from which ::1, that localhost may be, cannot be reached.
  const url = new URL(target.endpoint);
  if (url.hostname === 'localhost') url.hostname = '127.0.0.1';
  const endpoint = url.href.replace(/\/$/, '');
  return { target: { ...target, endpoint }, profile: { ...profile, endpoint } };
}
