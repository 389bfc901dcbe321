/**
 * AWS keys from the SDK's provider chain, read again while the program runs: many keys expire within a night, and the
 * user may put new ones into the credentials file during the run. The SDK alone reads that file once.
 */
import type { S3ClientConfig } from '@aws-sdk/client-s3';
import { behindProxy, type ProxySettings } from '../../../shared/adapters/proxy.ts';

/** Keys as returned by a provider. */
export interface Keys {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
  /** Left out for keys without an expiry time. */
  expiration?: Date;
}

type Provider = Extract<NonNullable<S3ClientConfig['credentials']>, (...args: never[]) => unknown>;
type ProviderInput = Parameters<Provider>[0];

/** How long keys without an expiry time are used before they are read again. */
const READ_AGAIN_MS = 60_000;
/** The SDK refreshes keys that expire within this time. */
const SDK_AHEAD_MS = 300_000;

/**
 * Runs the whole chain (environment, profile, SSO, role) once; files are read again. Throws `CredentialsProviderError`.
 */
export async function readKeys(input?: ProviderInput, proxy?: ProxySettings): Promise<Keys> {
  const { defaultProvider } = await import('@aws-sdk/credential-provider-node');
  // The clients of the chain itself, for SSO and assumed roles. Instance metadata are never behind a proxy.
  const clientConfig = proxy === undefined ? {} : { clientConfig: { requestHandler: behindProxy(proxy) } };
  return defaultProvider({ ignoreCache: true, ...clientConfig })(input);
}

/**
 * A provider for the SDK's clients. Keys without an expiry time get one, so that the SDK refreshes them a minute later.
 * When a refresh fails while the current keys are still valid, they stay in use.
 */
export function keysReadAgain(
  read: (input?: ProviderInput) => Promise<Keys> = readKeys,
  now: () => number = Date.now,
): Provider {
  let known: Keys | null = null;
  return async (input) => {
    try {
      known = await read(input);
    } catch (error) {
      // Without an expiry time it is unknown whether they are still valid: their source was removed.
      if (known?.expiration === undefined || known.expiration.getTime() <= now()) throw error;
    }
    return { ...known, expiration: known.expiration ?? new Date(now() + SDK_AHEAD_MS + READ_AGAIN_MS) };
  };
}
