/** The checks of a run over several regions: those of a region are made in each, as if it were the only one. */
import { features } from '../../../support/features.ts';
import { writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { examine } from '../../../../orchestrator/core/run/before-launch.ts';
import { type Check, failed, ok } from '../../../../orchestrator/core/checks/check.ts';
import { tempDir } from '../../../support/temp-dir.ts';

const CONFIG = `site: { product_url: "https://shop.example/{id}", mapping: { fields: { title: h1 } } }
products: { query: "select id from p" }
database: { url: "sqlite:./x.db" }
aws: { region: eu-west-1, bucket: b-1, regions: [{ region: us-east-1, subnets: [s-1] }, { region: eu-west-3, image: ami-3 }] }
`;

async function made(change: (check: Check) => Partial<Check> = () => ({})) {
  using folder = tempDir();
  writeFileSync(folder.file('fleet.yaml'), CONFIG);
  const say = (id: string): Check => ({
    id,
    title: id,
    run: ({ aws, config, target }) => {
      const { subnets, image, regions } = config.values.aws;
      return ok([target.region, aws?.region, ...subnets, image ?? '', regions?.length ?? 'short'].join(' '));
    },
  });
  const checks = [say('credentials'), { ...say('subnets'), regional: true as const }].map((c) => ({
    ...c,
    ...change(c),
  }));
  const results = await examine({
    configPath: folder.file('fleet.yaml'),
    environment: {},
    features,
    flags: [],
    dryRun: false,
    checks,
  });
  return results.slice(1).map(({ check, findings }) => `${check.title}: ${findings[0]!.text}`);
}

it('makes the checks of a region in each of them, with its own settings', async () => {
  expect(await made()).toEqual([
    'credentials: eu-west-1 eu-west-1  2',
    'subnets (us-east-1): us-east-1 us-east-1 s-1  short',
    'subnets (eu-west-3): eu-west-3 eu-west-3 ami-3 short',
  ]);
});

it('warns of what is wrong in one region, and fails where none is usable', async () => {
  const wrongIn =
    (...wrong: string[]) =>
    (check: Check): Partial<Check> =>
      check.id === 'credentials'
        ? {}
        : { run: ({ target: { region } }) => (wrong.includes(region) ? failed('aws-invalid', 'bad') : ok('good')) };
  expect((await made(wrongIn('eu-west-3'))).slice(1)).toEqual([
    'subnets (us-east-1): good',
    'subnets (eu-west-3): not usable for a run: bad',
  ]);
  expect((await made(wrongIn('us-east-1', 'eu-west-3'))).slice(1)).toEqual([
    'subnets (us-east-1): bad',
    'subnets (eu-west-3): bad',
  ]);
});

it('does not repeat in each region that the keys are refused', async () => {
  const refused = (check: Check): Partial<Check> =>
    check.id === 'credentials' ? { run: () => failed('aws-denied', 'no keys') } : {};
  expect(await made(refused)).toEqual(['credentials: no keys']);
});
