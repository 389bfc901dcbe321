/**
 * Client tokens. If a launch names a zone or subnet, a token applies only in that zone, so the same token in another
 * zone launches again; that is AWS's rule, and why a token should also be derived from the subnet.
 */
import { AwsError } from '../aws-error.ts';

/** Parameters that two requests with the same client token may differ in. */
export const NOT_COMPARED = ['Action', 'Version', 'ClientToken', 'DryRun'];

/** The requests of one call, and what each has made. */
export class TokenLedger<T> {
  readonly #requests = new Map<string, { fingerprint: string; made: T }>();

  /**
   * What the request with this token made; null when there was none.
   * @param scope zone, or the region's name when the request names no zone
   * @param fingerprint of all other parameters: a different one under the same token is an error
   */
  find(token: string, scope: string, fingerprint: string): T | null {
    const request = this.#requests.get(`${scope}/${token}`);
    if (!request) return null;
    if (request.fingerprint !== fingerprint)
      throw new AwsError(
        'IdempotentParameterMismatch',
        'Arguments on this idempotent request are inconsistent with arguments used in previous request(s).',
      );
    return request.made;
  }

  record(token: string, scope: string, fingerprint: string, made: T): void {
    this.#requests.set(`${scope}/${token}`, { fingerprint, made });
  }
}
