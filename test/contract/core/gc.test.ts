/** gc through the real SDK against the sandbox, with its marks in a database. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { createAwsAdapters } from '../../../orchestrator/core/cloud/aws-clients.ts';
import { TAG } from '../../../orchestrator/core/cloud/compute.ts';
import { collect } from '../../../orchestrator/core/gc/gc.ts';
import { type Database, openDatabase } from '../../../orchestrator/core/db/connect.ts';
import { createStores } from '../../../orchestrator/core/db/create-stores.ts';
import { migrate } from '../../../orchestrator/core/db/migrate.ts';
import { createGcMarks } from '../../../orchestrator/core/db/garbage.ts';
import { createTestDatabase, type TestDatabase } from '../../support/mariadb/database.ts';
import { startSandbox } from '../../support/sandbox/start-sandbox.ts';
import { features } from '../../support/features.ts';

const HOUR = 3_600_000;

describe('F44 gc at the sandbox', () => {
  let sandbox: Awaited<ReturnType<typeof startSandbox>>;
  let aws: ReturnType<typeof createAwsAdapters>;
  let test: TestDatabase;
  let db: Database;
  let endpointMs: number | null = null;

  beforeAll(async () => {
    sandbox = await startSandbox();
    const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
    const { region, endpoint } = sandbox;
    aws = createAwsAdapters({ region, endpoint, credentials, onTime: (ms) => (endpointMs = ms) });
    test = await createTestDatabase('sqlite');
    db = await openDatabase(test.url);
    await migrate(db);
  });
  afterAll(async () => {
    aws?.close();
    await db?.close();
    await test?.drop();
    await sandbox?.stop();
  });

  /** As if this much time had passed everywhere. */
  const gc = (aheadMs: number, skewMs: number | null = 0) =>
    collect({
      owner: 'me',
      compute: aws.compute,
      balancers: aws.balancers,
      runs: createStores(db, features).runs,
      marks: createGcMarks(db),
      clock: { ...systemClock, now: () => systemClock.now() + aheadMs },
      skewMs: () => skewMs,
      workedOn: new Set(),
      dryRun: false,
    });

  async function launch(owner: string): Promise<string> {
    const [subnet] = await aws.compute.subnets([]);
    const result = await aws.compute.launch({
      clientToken: `gc-${owner}`,
      instanceType: 't4g.nano',
      imageId: await aws.compute.image(null, 'arm64'),
      subnetId: subnet!.id,
      securityGroupIds: await aws.compute.securityGroups([], subnet!.vpcId),
      instanceProfile: null,
      userData: '#!/bin/sh\n',
      tags: tagsOf(owner),
    });
    if (result.kind !== 'launched') throw new Error(JSON.stringify(result));
    return result.instance.id;
  }

  const tagsOf = (owner: string) => ({
    [TAG.owner]: owner,
    [TAG.run]: 'run-1',
    [TAG.expiresAt]: new Date(systemClock.now() + HOUR).toISOString(),
  });

  async function makeBalancer(owner: string): Promise<void> {
    const subnets = await aws.compute.subnets([]);
    await aws.balancers.ensure({
      name: `gc-${owner}`,
      vpcId: subnets[0]!.vpcId,
      subnetIds: subnets.slice(0, 2).map((s) => s.id),
      securityGroupIds: await aws.compute.securityGroups([], subnets[0]!.vpcId),
      listenPort: owner === 'me' ? 18_301 : 18_302,
      targetPort: 8_080,
      healthPath: '/healthz',
      tags: tagsOf(owner),
    });
  }

  const stateOf = async (owner: string) =>
    (await aws.compute.list({ key: TAG.owner, value: owner })).map((i) => i.state)[0];

  it('ends the owner’s instance and load balancer at the second mark, and those of no other owner', async () => {
    for (const owner of ['me', 'other']) {
      await launch(owner);
      await makeBalancer(owner);
    }
    expect(Math.abs(endpointMs! - systemClock.now())).toBeLessThan(5_000);
    expect((await gc(0)).items.map((i) => i.detail)).toEqual(Array(2).fill('it is younger than a minute'));
    expect((await gc(2 * HOUR, -2 * HOUR)).refused).toContain('120 minutes ahead');
    expect((await gc(2 * HOUR)).items.map((i) => i.action)).toEqual(['marked', 'marked']);
    expect((await gc(2 * HOUR + 60_001)).items.map((i) => i.action)).toEqual(['terminated', 'terminated']);
    expect(await stateOf('me')).toMatch(/^(shutting-down|terminated)$/);
    expect(await aws.balancers.list('me')).toEqual([]);
    expect(await stateOf('other')).toMatch(/^(pending|running)$/);
    expect(await aws.balancers.list('other')).toHaveLength(1);
  });
});
