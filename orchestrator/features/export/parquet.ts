/** Rows as a Parquet file. Memory is bounded by a group of rows. */
import { fileWriter, parquetWriteRows } from 'hyparquet-writer';
import { AppError } from '../../../shared/domain/errors.ts';
import type { Column } from '../../../shared/domain/mapping.ts';
import { textOf, valueOf } from '../../core/read/row-lines.ts';

type Row = Record<string, unknown>;

const PARQUET_TYPES = { number: 'DOUBLE', integer: 'INT64', boolean: 'BOOLEAN', json: 'JSON' } as const;
/** Rows held in memory at a time. */
const ROW_GROUP = 20_000;

/** Writes into an open file, which need not be a plain one. */
export async function exportParquet(rows: AsyncIterable<Row>, columns: readonly Column[], fd: number): Promise<void> {
  const values = async function* (): AsyncGenerator<Row> {
    for await (const row of rows)
      yield Object.fromEntries(columns.map((column) => [column.name, parquetValue(valueOf(row, column), column)]));
  };
  await parquetWriteRows({
    // It only calls `writeFileSync`, which takes a descriptor for a name; a pipe could not be opened again and again.
    writer: fileWriter(fd as unknown as string),
    rows: values(),
    rowGroupSize: ROW_GROUP,
    columns: columns.map(({ name, type }) => ({
      name,
      type: PARQUET_TYPES[type as keyof typeof PARQUET_TYPES] ?? 'STRING',
      nullable: true,
    })),
  });
}

function parquetValue(value: unknown, { name, type }: Column): unknown {
  if (value === null) return null;
  if (type !== 'integer') return type in PARQUET_TYPES ? value : textOf(value);
  // A wider column type than the one that is made by default may hold it.
  const text = textOf(value);
  const whole = /^-?\d+$/.test(text) ? BigInt(text) : null;
  if (whole !== null && BigInt.asIntN(64, whole) === whole) return whole;
  throw new AppError('usage', `${name} has the value ${text}, which is no whole number of 64 bits`, {
    hint: 'Export as csv or jsonl instead.',
  });
}
