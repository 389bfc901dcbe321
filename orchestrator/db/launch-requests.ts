/**
 * Caches each instance's launch request, read and parsed once: it contains the user data (some KB per instance) and
 * never changes, while the loop reads every instance of the run each round.
 */
import type { Knex } from 'knex';
import type { LaunchRequest } from '../cloud/compute.ts';
import { inPieces, rowsOf } from './rows.ts';
import { type EpochId, epochKey } from '../../shared/domain/epoch-id.ts';

const LAUNCHES = 'crawlfleet_launches';
/** Claims per statement. */
const LIST = 200;

interface Known {
  /** Random, created with the claim: another token means another claim. */
  token: string;
  request: LaunchRequest;
}

export class LaunchRequests {
  readonly #known = new Map<string, Known>();

  /** The requests of these claims by epochKey, without deleted claims. Callers share them and must not change them. */
  async read(
    knex: Knex,
    runId: string,
    claims: readonly (EpochId & { token: string })[],
  ): Promise<ReadonlyMap<string, LaunchRequest>> {
    const known = this.#known;
    const missing = claims.filter((claim) => known.get(epochKey(claim))?.token !== claim.token);
    for (const piece of inPieces(missing, LIST)) {
      const rows = await rowsOf<EpochId & { request: string; token: string }>(
        knex(LAUNCHES)
          .where({ run_id: runId })
          .whereIn(
            ['slot', 'epoch'],
            piece.map((place) => [place.slot, place.epoch]),
          )
          .select('slot', 'epoch', 'request', 'token'),
      );
      for (const row of rows)
        known.set(epochKey(row), { token: row.token, request: JSON.parse(row.request) as LaunchRequest });
    }
    return new Map(
      claims.flatMap((claim) => {
        const found = known.get(epochKey(claim));
        return found ? [[epochKey(claim), found.request] as const] : [];
      }),
    );
  }
}
