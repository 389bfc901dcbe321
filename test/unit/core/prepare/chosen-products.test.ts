import { writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { idsFrom } from '../../../../orchestrator/core/prepare/chosen-products.ts';
import { type TempDir, tempDir } from '../../../support/temp-dir.ts';

let folder: TempDir;
beforeEach(() => (folder = tempDir('crawlfleet-ids-')));
afterEach(() => folder.remove());

const idsIn = async (contents: string | Buffer) => {
  writeFileSync(folder.file('ids.txt'), contents);
  return (await idsFrom(folder.file('ids.txt')).choose(null as never, null))!.products.ids;
};

describe('a list of product IDs', () => {
  it('has no byte order mark in an ID, also where files were joined', async () => {
    expect(await idsIn('\uFEFFP1\r\nP2\n\uFEFFP3\n\uFEFF\n')).toEqual(['P1', 'P2', 'P3']);
  });

  it('is refused in another encoding than UTF-8, which would change its IDs', async () => {
    const latin1 = Buffer.from('größe\n', 'latin1');
    await expect(async () => await idsIn(latin1)).rejects.toThrow(/ids\.txt is not a text file in UTF-8/);
  });
});
