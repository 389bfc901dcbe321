/** Distinguishes an endpoint that checks keys, as AWS does, from an emulator that accepts any. */
import { AppError } from '../../../shared/domain/errors.ts';

/**
 * A dry run signs with its own keys, which are valid nowhere. An endpoint that refuses them checks keys as AWS does: it
 * may be a tunnel or a proxy to a real account, which must not be taken for an emulator. Returns any other error
 * unchanged.
 */
export function refusedAsReal(error: unknown, url: string): unknown {
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
