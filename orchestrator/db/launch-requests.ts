/**
 * Caches each instance's launch request, read and parsed once: it contains the user data (some KB per instance) and
 * never changes, while the loop reads every instance of the run each round.
 */
import type { Knex } from 'knex';
import type { LaunchRequest } from '../cloud/compute.ts';
import type { SqlNumber } from './rows.ts';
import { inPieces, rowsOf, toNumber } from './rows.ts';
import { epochKey } from '../../shared/domain/epoch-id.ts';

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

  /**
   * The requests of these claims by epochKey; deleted claims are left out. Callers share them and must not change them.
   */
  async read(
    knex: Knex,
    runId: string,
    claims: readonly { slot: SqlNumber; epoch: SqlNumber; token: string }[],
  ): Promise<ReadonlyMap<string, LaunchRequest>> {
    const known = this.#known;
    const places = claims.map(({ slot, epoch, token }) => ({ slot: toNumber(slot), epoch: toNumber(epoch), token }));
    const missing = places.filter((place) => known.get(epochKey(place))?.token !== place.token);
    for (const piece of inPieces(missing, LIST)) {
      const rows = await rowsOf<{ slot: SqlNumber; epoch: SqlNumber; request: string; token: string }>(
        knex(LAUNCHES)
          .where({ run_id: runId })
          .whereIn(
            ['slot', 'epoch'],
            piece.map((place) => [place.slot, place.epoch]),
          )
          .select('slot', 'epoch', 'request', 'token'),
      );
      for (const { slot, epoch, request, token } of rows)
        known.set(epochKey({ slot: toNumber(slot), epoch: toNumber(epoch) }), {
          token,
          request: JSON.parse(request) as LaunchRequest,
        });
    }
    return new Map(
      places.flatMap((place) => {
        const found = known.get(epochKey(place));
        return found ? [[epochKey(place), found.request] as const] : [];
      }),
    );
  }
}
