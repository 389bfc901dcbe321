/**
 * The keys for AWS as the SDK's chain finds them, read again while the program runs: a night is longer than many keys live,
 * and somebody may put new ones into the credentials file meanwhile. The SDK alone reads that file once.
 */
import type { S3ClientConfig } from '@aws-sdk/client-s3';

/** Keys as a provider gives them. */
export interface Keys {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
  /** Left out for keys that do not run out, or do not say when. */
  expiration?: Date;
}

type Provider = Extract<NonNullable<S3ClientConfig['credentials']>, (...args: never[]) => unknown>;
type ProviderInput = Parameters<Provider>[0];

/** Keys that do not say when they end are read again after so long. */
const READ_AGAIN_MS = 60_000;
/** The SDK asks for others when keys have less than this left. */
const SDK_AHEAD_MS = 300_000;

/** Asks the whole chain (environment, profile, SSO, role) once; files are read anew. Throws `CredentialsProviderError`. */
export async function readKeys(input?: ProviderInput): Promise<Keys> {
  const { defaultProvider } = await import('@aws-sdk/credential-provider-node');
  return defaultProvider({ ignoreCache: true })(input);
}

/**
 * A provider for the SDK's clients. Keys without an end are given one, so that the SDK asks again a minute later; and when others
 * cannot be read while the known ones are still good, those stay in use.
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
      // Without an end nobody knows whether they are good: what takes their place was removed.
      if (known?.expiration === undefined || known.expiration.getTime() <= now()) throw error;
    }
    return { ...known, expiration: known.expiration ?? new Date(now() + SDK_AHEAD_MS + READ_AGAIN_MS) };
  };
}

/** One for the whole program, so that its clients do not ask an identity provider each on their own. */
export const sharedKeys: Provider = keysReadAgain();
