/** Which chunks each instance was granted at any time, returned ones too: only results of their products count. */
import type { Knex } from 'knex';
import { type EpochId, epochKey } from '../../../shared/domain/epoch-id.ts';
import { lastWhere } from '../../../shared/domain/last-where.ts';
import { type ChunkRow, CHUNKS } from './chunk-rows.ts';
import { inPieces, rowsOf } from './rows.ts';

const GRANTS = 'crawlfleet_grants';
/** Rows per INSERT. */
const LIST = 250;

/** Keeps the grants of these chunks, in the transaction that makes them. */
export async function keepGrants(
  trx: Knex.Transaction,
  owner: { run_id: string } & EpochId,
  indexes: readonly number[],
): Promise<void> {
  for (const piece of inPieces(indexes, LIST)) {
    const rows = piece.map((idx) => ({ ...owner, idx }));
    // A chunk that it has returned may be granted to it again.
    await trx(GRANTS).insert(rows).onConflict(['run_id', 'slot', 'epoch', 'idx']).merge(['run_id']);
  }
}

/** Grants new chunks to whom the chunks were granted that they were cut from, in the transaction that cuts them. */
export async function copyGrants(
  trx: Knex.Transaction,
  runId: string,
  copies: readonly { from: number; to: number }[],
): Promise<void> {
  const cut = Map.groupBy(copies, ({ from }) => from);
  for (const piece of inPieces([...cut.keys()], LIST)) {
    const grants = trx(GRANTS).where({ run_id: runId }).whereIn('idx', piece).select('slot', 'epoch', 'idx');
    const rows = (await rowsOf<EpochId & { idx: number }>(grants)).flatMap(({ slot, epoch, idx }) =>
      (cut.get(idx) ?? []).map(({ to }) => ({ run_id: runId, slot, epoch, idx: to })),
    );
    for (const some of inPieces(rows, LIST)) await trx(GRANTS).insert(some);
  }
}

/** The chunks that an instance was granted at any time, as they are now. */
export const grantedChunks = (knex: Knex, { run_id, slot, epoch }: { run_id: string } & EpochId): Promise<ChunkRow[]> =>
  rowsOf<ChunkRow>(
    knex(`${CHUNKS} as c`)
      .join(`${GRANTS} as g`, (on) => on.on('c.run_id', 'g.run_id').andOn('c.idx', 'g.idx'))
      .where({ 'g.run_id': run_id, 'g.slot': slot, 'g.epoch': epoch })
      .orderBy('c.idx')
      .select('c.*'),
  );

type Range = readonly [first: number, last: number];

/** The numbers of the products that instances were granted. */
export class GrantedProducts {
  /** The chunks of each instance in order, by `<slot>.<epoch>`. */
  readonly #ranges: ReadonlyMap<string, readonly Range[]>;

  private constructor(ranges: ReadonlyMap<string, readonly Range[]>) {
    this.#ranges = ranges;
  }

  /** The numbers granted to one instance, or to all. */
  static async read(knex: Knex, runId: string, only?: EpochId): Promise<GrantedProducts> {
    const of = only === undefined ? {} : { 'g.slot': only.slot, 'g.epoch': only.epoch };
    const rows = await rowsOf<EpochId & { first_n: number; last_n: number }>(
      knex(`${GRANTS} as g`)
        .join(`${CHUNKS} as c`, (on) => on.on('c.run_id', 'g.run_id').andOn('c.idx', 'g.idx'))
        .where({ 'g.run_id': runId, ...of })
        .orderBy(['g.slot', 'g.epoch', 'c.first_n'])
        .select('g.slot', 'g.epoch', 'c.first_n', 'c.last_n'),
    );
    const ranges = new Map<string, Range[]>();
    for (const row of rows) {
      const own = ranges.get(epochKey(row)) ?? [];
      ranges.set(epochKey(row), own);
      own.push([row.first_n, row.last_n]);
    }
    return new GrantedProducts(ranges);
  }

  /** True when the product with this number was granted to the instance at some time. */
  has(at: EpochId, n: number): boolean {
    const chunk = lastWhere(this.#ranges.get(epochKey(at)) ?? [], ([first]) => first <= n);
    return chunk !== undefined && n <= chunk[1];
  }
}
