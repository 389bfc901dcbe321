/** Whole dry runs whose instances do not learn the session of their role, with the policy as it is and as it was. */
import { describe, expect, it } from 'vitest';
import { useStage } from './stage.ts';

describe('instances to which STS does not answer', { tags: ['nightly'] }, () => {
  const { fleet, sandbox, startSandbox, open } = useStage({ seed: 5, products: 12 });

  const dryRun = async (instanceRole: 'own-folder' | 'all-runs') => {
    await startSandbox();
    await open();
    await sandbox.control('PATCH', 'conditions', { instanceRole });
    const rule = { what: 'error', action: 'GetCallerIdentity', code: 'AccessDenied', count: 100_000 };
    await sandbox.control('POST', 'faults', [rule]);
    return fleet.dryRun();
  };

  it('put their objects without that folder, and the run is complete with the policy of earlier versions', async () => {
    const { report, exitCode, stderr } = await dryRun('all-runs');
    expect(report, stderr).toMatchObject({ state: 'completed', products: { stored: 12 } });
    expect(exitCode).toBe(0);
    const keys = await fleet.query('select slot, epoch, manifest_key from crawlfleet_instances');
    for (const { slot, epoch, manifest_key: key } of keys)
      expect(key).toBe(`runs/${report.run}/${String(slot)}/${String(epoch)}/manifest.json`);
    expect(JSON.parse((await fleet.run('verify', '--json')).stdout)).toMatchObject({ holds: true, differences: [] });
  });

  it('are refused by name with the policy that binds them to it', async () => {
    const { report, exitCode } = await dryRun('own-folder');
    expect(exitCode).toBe(4);
    expect(report.reason).toContain("the instances' role may not store results in the bucket");
    expect(report.reason).toContain('is not authorized to perform: s3:PutObject');
  });
});
