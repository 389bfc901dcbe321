/** A dry run pointed at an endpoint that refuses unknown keys as AWS does; and the command as a process. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EXIT } from '../../../shared/domain/exit-codes.ts';
import { runCommand } from '../../../orchestrator/cli/commands/run.ts';
import { startScriptedEndpoint } from '../cloud/scripted-endpoint.ts';
import { type DoctorStage, openDoctorStage } from './doctor-stage.ts';

const MAIN = fileURLToPath(new URL('../../../orchestrator/main.ts', import.meta.url));

/** EC2's answer to a key that belongs to no account. */
const AUTH_FAILURE = `<?xml version="1.0" encoding="UTF-8"?><Response><Errors><Error><Code>AuthFailure</Code><Message>AWS was not able to validate the provided access credentials</Message></Error></Errors><RequestID>x</RequestID></Response>`;

let stage: DoctorStage;
beforeAll(async () => {
  stage = await openDoctorStage();
});
afterAll(() => stage.close());

describe('a dry run at an endpoint on this machine that refuses its keys', () => {
  it('is refused by doctor and run, because it may be a real account', async () => {
    const tunnel = await startScriptedEndpoint(() => ({ status: 401, body: AUTH_FAILURE }));
    try {
      const changes = { aws: `endpoint: "${tunnel.endpoint}"`, server: '' };
      const found = await stage.doctor(changes, { dryRun: true });
      expect(found.failed).toEqual(['endpoint']);
      expect(found.of('endpoint')[0]!.text).toContain('may lead to a real account');
      expect(found.exitCode).toBe(EXIT.config);
      const output = { json: true, line: () => undefined, document: () => undefined };
      const run = runCommand({ configPath: stage.file, flags: [], dryRun: true, yes: true, environment: {} }, output);
      await expect(run).rejects.toMatchObject({ code: 'endpoint-refused' });
    } finally {
      await tunnel.stop();
    }
  });
});

describe('orchestrator doctor as a process', () => {
  const doctor = (...flags: string[]) =>
    new Promise<{ code: number; stdout: string }>((resolve) => {
      const environment = { ...process.env, AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' };
      execFile(
        process.execPath,
        [MAIN, 'doctor', '--config', stage.file, ...flags],
        { env: environment, timeout: 60_000 },
        (error, stdout) => resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout }),
      );
    });

  it(
    'prints one document and exits on its own, with 0 when a run could start and else with the code of the cause',
    { timeout: 150_000 },
    async () => {
      stage.configure();
      const good = await doctor('--json');
      expect(JSON.parse(good.stdout)).toMatchObject({ ready: true, exitCode: 0 });
      expect(good.code).toBe(EXIT.complete);
      await stage.be({ vcpuQuota: 1 });
      const bad = await doctor();
      await stage.calm();
      expect(bad.code).toBe(EXIT.capacity);
      expect(bad.stdout).toMatch(
        /^failed {3}plan against deadline, quota and cost: .*\n {9}-> What would make it feasible/m,
      );
      expect(bad.stdout).toContain('1 failed: a run would be refused.');
    },
  );
});
