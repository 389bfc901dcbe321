/** A run's folders that cannot be made, on the real file system. No missing rights: root would not notice those. */
import { readConfig } from '../../../support/features.ts';
import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { withUnknownBucket } from '../../../../orchestrator/core/cloud-access/run-bucket.ts';
import { readRunDescription } from '../../../../orchestrator/core/act/results/run-description.ts';
import { makeStateFolder, whyUnwritable } from '../../../../orchestrator/core/config/state-folder.ts';
import { AppError } from '../../../../shared/domain/errors.ts';
import { tempDir } from '../../../support/temp-dir.ts';

it('a file in the way is named, wherever it is, and the check creates nothing', () => {
  using folder = tempDir();
  const state = folder.file('.crawlfleet');
  expect(whyUnwritable(`${state}/runs/one`)).toBeNull();
  expect(existsSync(state)).toBe(false);
  mkdirSync(state);
  writeFileSync(`${state}/runs`, '');
  for (const path of [`${state}/runs`, `${state}/runs/one`, `${state}/runs/one/more`]) {
    expect(whyUnwritable(path)).toBe(`${state}/runs is not a folder`);
    expect(() => makeStateFolder(path)).toThrow(
      expect.objectContaining({ code: 'folder-unwritable', message: `${state}/runs is not a folder` }) as AppError,
    );
  }
  makeStateFolder(`${state}/sandbox/one`);
  expect(whyUnwritable(`${state}/sandbox/one`)).toBeNull();
});

const CONFIG =
  'site: { product_url: "http://127.0.0.1:9/{id}", mapping: { fields: { title: { css: h1 } } } }\n' +
  'products: { query: select id from products }\ndatabase: { url: "sqlite:./fleet.db" }\n';

it('a load of a run without a folder reads the bucket at an endpoint on this machine', async () => {
  using folder = tempDir();
  const file = folder.file('fleet.yaml');
  const asked: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url);
    response.writeHead(404).end();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  try {
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    writeFileSync(file, `${CONFIG}aws: { endpoint: "${endpoint}" }\n`);
    const found = await withUnknownBucket(readConfig(file, {}), 'lost', {}, (objects) =>
      readRunDescription(objects, 'lost'),
    );
    expect(found).toBeNull();
    expect(asked[0]).toMatch(/^\/crawlfleet\/runs\/lost\/run\.json/);
  } finally {
    server.close();
  }
});

it('a load of a run that has left nothing suggests no flag that load lacks', async () => {
  using folder = tempDir();
  const file = folder.file('fleet.yaml');
  writeFileSync(file, CONFIG);
  const loading = withUnknownBucket(readConfig(file, {}), 'nonsense', {}, () => Promise.resolve(null));
  const error = (await loading.catch((thrown: unknown) => thrown)) as AppError;
  expect(error).toBeInstanceOf(AppError);
  expect(error.hint).toContain(`${folder.file('.crawlfleet')}/sandbox/nonsense is not there`);
  expect(error.hint).not.toContain('--dry-run');
});
