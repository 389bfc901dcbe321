import { describe, expect, it } from 'vitest';
import type { Column, FieldType } from '../../../../shared/domain/mapping.ts';
import { chunkId, parseChunkId } from '../../../../orchestrator/core/db/chunk-rows.ts';
import { UnfitValue, toCrawledAt, toRowKey, toSqlValue } from '../../../../orchestrator/core/db/column-values.ts';
import { byteCollationOf } from '../../../../orchestrator/core/db/connect.ts';
import { findIdColumn } from '../../../../orchestrator/core/db/product-source.ts';
import { stagingName } from '../../../../orchestrator/core/db/staging.ts';
import { affinity, type ColumnInfo } from '../../../../orchestrator/core/db/table-info.ts';

const column = (type: FieldType): Column => ({ name: 'f', type });

describe('toSqlValue', () => {
  it.each([
    ['text', 'a', 'a'],
    ['text', 7, '7'],
    ['text', '', ''],
    ['text', '\ud83d', '\ufffd'],
    ['text', null, null],
    ['number', 1.5, 1.5],
    ['number', undefined, null],
    ['integer', -3, -3],
    ['integer', 2 ** 53 - 1, 2 ** 53 - 1],
    ['json', ['a', 1], '["a",1]'],
    ['json', 'a', '"a"'],
    ['json', [], '[]'],
    ['text', true, 'true'],
    ['boolean', true, 1],
    ['boolean', false, 0],
    ['date', '2026-11-21', '2026-11-21'],
    ['date', '2024-02-29', '2024-02-29'],
    ['datetime', '2026-11-21T09:30:00', '2026-11-21T09:30:00'],
    ['datetime', '9999-12-31 23:59:59.999', '9999-12-31 23:59:59.999'],
  ] as const)('binds %s %j as %j', (type, value, expected) => {
    expect(toSqlValue(column(type), value as never)).toBe(expected);
  });

  it.each([
    ['text', ['a']],
    ['number', '1.5'],
    ['number', NaN],
    ['number', Infinity],
    ['integer', 1.5],
    ['integer', '7'],
    ['integer', 2 ** 53],
    ['boolean', 1],
    ['boolean', 'true'],
    ['date', '2026-02-29'],
    ['date', '2026-13-01'],
    ['date', '2026-00-10'],
    ['date', '0999-12-31'],
    ['date', '10000-01-01'],
    ['date', '2026-11-21T09:30:00'],
    ['date', '21.11.2026'],
    ['date', 20261121],
    ['datetime', '2026-11-21'],
    ['datetime', '2026-11-31T09:30:00'],
    ['datetime', '2026-11-21T24:00:00'],
    ['datetime', '2026-11-21T09:60:00'],
    ['datetime', '2026-11-21T09:30:00Z'],
    ['datetime', '2026-11-21T09:30:00.1234'],
  ] as const)('refuses %s %j instead of letting the database bend it', (type, value) => {
    expect(toSqlValue(column(type), value as never)).toBeInstanceOf(UnfitValue);
  });
});

describe('toRowKey', () => {
  it('accepts up to 255 characters, as counted by the database', () => {
    expect(toRowKey('anna ', 'exact')).toBe('anna ');
    expect(toRowKey('😀'.repeat(255), 'exact')).toHaveLength(510);
    expect(toRowKey('😀'.repeat(256), 'exact')).toBeInstanceOf(UnfitValue);
    expect(toRowKey('x'.repeat(256), 'exact')).toBeInstanceOf(UnfitValue);
    expect(toRowKey(null, 'exact')).toBeInstanceOf(UnfitValue);
    expect(toRowKey('', 'exact')).toBeInstanceOf(UnfitValue);
  });

  it('accepts only plain whole numbers for an integer column', () => {
    for (const key of ['0', '7', '-12', '123456789012345678']) expect(toRowKey(key, 'integer')).toBe(key);
    for (const key of ['007', '7.0', ' 7', '+7', '-0', '1234567890123456789', 'a'])
      expect(toRowKey(key, 'integer'), key).toBeInstanceOf(UnfitValue);
  });
});

describe('toCrawledAt', () => {
  it('writes DATETIME columns in UTC without a zone, and text columns as ISO', () => {
    const column = (type: string) => ({ type }) as ColumnInfo;
    expect(toCrawledAt('2026-11-21T02:15:30.5Z', column('datetime'))).toBe('2026-11-21 02:15:30.500');
    expect(toCrawledAt('2026-11-21T02:15:30.5Z', column('text'))).toBe('2026-11-21T02:15:30.500Z');
  });
});

describe('chunk ids', () => {
  it('are parsed into index and generation', () => {
    expect(parseChunkId(chunkId({ idx: 12, generation: 3 }))).toEqual({ index: 12, generation: 3 });
  });

  it.each(['', '1', '0-1', '1-0', '1-1-1', '-1-1', '1e3-1', ' 1-1', '1-1;drop', '99999999999-1'])(
    'are not %j',
    (id) => {
      expect(parseChunkId(id)).toBeNull();
    },
  );
});

describe('byteCollationOf', () => {
  it.each([
    ['10.11.19-MariaDB-0+deb12u1', 'utf8mb4_nopad_bin'],
    ['5.5.5-10.6.4-MariaDB', 'utf8mb4_nopad_bin'],
    ['11.4.2-MariaDB-log', 'utf8mb4_nopad_bin'],
    ['8.0.36', 'utf8mb4_0900_bin'],
    ['8.4.1-cluster', 'utf8mb4_0900_bin'],
    ['9.0.0', 'utf8mb4_0900_bin'],
  ])('returns the collation of %s', (version, collation) => {
    expect(byteCollationOf(version)).toBe(collation);
  });

  it.each(['5.7.44', '8.0.16', '10.5.9-MariaDB', 'something else'])('refuses %s', (version) => {
    expect(() => byteCollationOf(version)).toThrow(expect.objectContaining({ code: 'database-schema' }) as Error);
  });
});

describe('findIdColumn', () => {
  it('prefers id in lower case over other cases', () => {
    expect(findIdColumn(['ID', 'id', 'name'])).toBe(1);
    expect(findIdColumn(['name', 'Id'])).toBe(1);
  });

  it.each([[['name']], [[]], [['id', 'id']], [['ID', 'Id']]])('refuses %j', (names) => {
    expect(() => findIdColumn(names)).toThrow(expect.objectContaining({ code: 'products-query' }) as Error);
  });
});

describe('affinity', () => {
  it.each([
    ['BIGINT UNSIGNED', 'integer'],
    ['varchar(20)', 'text'],
    ['', 'blob'],
    ['DOUBLE PRECISION', 'real'],
    ['DATETIME', 'numeric'],
    ['CHARINT', 'integer'],
  ])('of %j is %s', (declared, expected) => {
    expect(affinity(declared)).toBe(expected);
  });
});

describe('stagingName', () => {
  it('accepts only run IDs', () => {
    expect(stagingName('20261121-021500-k3f9')).toBe('crawlfleet_staging_20261121-021500-k3f9');
    for (const id of ['', 'a b', 'x`y', 'x'.repeat(41)])
      expect(() => stagingName(id)).toThrow(expect.objectContaining({ code: 'internal' }) as Error);
  });
});
