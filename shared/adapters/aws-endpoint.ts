/** Where the SDK's clients send their calls: the part of their settings that all of them share. */

export interface AwsEndpoint {
  region: string;
  /** The base URL that every call goes to; null for AWS itself. */
  endpoint: string | null;
}

/**
 * Settings of a client that the environment and `~/.aws/config` cannot change: AWS_ENDPOINT_URL and its relatives must
 * not send a dry run elsewhere, and the SDK refuses an endpoint where AWS_USE_FIPS_ENDPOINT or
 * AWS_USE_DUALSTACK_ENDPOINT asks for another.
 */
export const clientSettings = ({ region, endpoint }: AwsEndpoint) => ({
  region,
  // The other one, sigv4a, needs a package that we do not ship.
  authSchemePreference: ['sigv4'],
  ...(endpoint === null ? {} : { endpoint, useFipsEndpoint: false, useDualstackEndpoint: false }),
});
