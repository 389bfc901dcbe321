/**
 * Client tokens. If the request names a zone or subnet, a token applies only in that zone, so the same token in another
 * zone launches again; that is AWS's rule, and why a token should also be derived from the subnet.
 */
import { AwsError } from '../aws-error.ts';
import type { Instance } from './instance.ts';

interface Launch {
  fingerprint: string;
  instances: readonly Instance[];
}

export class LaunchLedger {
  readonly #launches = new Map<string, Launch>();

  /**
   * The instances of the launch with this token; null when there was none.
   * @param scope zone, or the region's name when the request names no zone
   * @param fingerprint of all other parameters: a different one under the same token is an error
   */
  find(token: string, scope: string, fingerprint: string): readonly Instance[] | null {
    const launch = this.#launches.get(`${scope}/${token}`);
    if (!launch) return null;
    if (launch.fingerprint !== fingerprint)
      throw new AwsError(
        'IdempotentParameterMismatch',
        'Arguments on this idempotent request are inconsistent with arguments used in previous request(s).',
      );
    if (launch.instances.some(({ state }) => state === 'terminated' || state === 'shutting-down'))
      throw new AwsError(
        'IdempotentInstanceTerminated',
        'The instance launched by an earlier request with this client token has been terminated.',
      );
    return launch.instances;
  }

  record(token: string, scope: string, fingerprint: string, instances: readonly Instance[]): void {
    this.#launches.set(`${scope}/${token}`, { fingerprint, instances });
  }
}
