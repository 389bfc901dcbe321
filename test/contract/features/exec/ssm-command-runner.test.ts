/**
 * Commands on instances by SSM: at the sandbox, which runs them; at moto, which only records them; and when AWS
 * refuses.
 */
import { readFileSync } from 'node:fs';
import { SSM } from '@aws-sdk/client-ssm';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { SsmCommandRunner } from '../../../../orchestrator/features/exec/ssm-command-runner.ts';
import { systemRandom } from '../../../../shared/adapters/random.ts';
import { systemClock } from '../../../../shared/adapters/system-clock.ts';
import { findMotoServer, sayMotoIsMissing, startMotoServer } from '../../../support/endpoints/moto-server.ts';
import { boot, inState, launch } from '../../../support/sandbox/boot.ts';
import { clientsFor, refusal, type SandboxClients } from '../../../support/sandbox/clients.ts';
import type { TestSandbox } from '../../../support/sandbox/start-sandbox.ts';
import { userDataFor } from '../../../support/sandbox/test-bundle.ts';
import { waitFor } from '../../../support/processes.ts';
import { useSandbox } from '../../sandbox/use-sandbox.ts';
import { type ScriptedEndpoint, startScriptedEndpoint } from '../../core/cloud/scripted-endpoint.ts';

const region = 'ap-northeast-1';
const keys = (accessKeyId: string) => ({ accessKeyId, secretAccessKey: 'secret' });
/** False for a zombie too: no process here may be there to reap it. */
function isRunning(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`).length > 0;
  } catch {
    return false;
  }
}
const NEVER = new AbortController().signal;

function runnerAt(endpoint: string, accessKeyId = 'test'): SsmCommandRunner {
  const options = { region, endpoint, credentials: keys(accessKeyId), maxAttempts: 1 };
  return new SsmCommandRunner({ ...options, clock: systemClock, random: systemRandom });
}

describe('at the sandbox', () => {
  let sandbox: TestSandbox;
  let clients: SandboxClients;
  let runner: SsmCommandRunner;
  let bundleUrl: string;
  let hosts: string[];

  useSandbox((made) => ({ sandbox, clients, bundleUrl } = made));
  beforeAll(async () => {
    runner = runnerAt(sandbox.endpoint, sandbox.controlToken);
    const UserData = userDataFor({ bundleUrl, commands: true });
    const booted = await Promise.all([0, 1].map(() => boot(clients, bundleUrl, { UserData })));
    hosts = booted.map(({ id }) => id);
    return () => runner[Symbol.dispose]();
  });

  const run = (command: string, timeoutMs = 30_000, instanceIds = hosts, signal = NEVER) =>
    runner.run({ instanceIds, command, timeoutMs }, signal);

  it('runs the command on every instance in its own folder, and returns exit codes and outputs in order', async () => {
    const results = await run('pwd; echo "to stderr" >&2\nexit 3');
    const folders = new Map((await sandbox.instances()).map(({ id, folder }) => [id, folder]));
    expect(results).toEqual(
      hosts.map((instanceId) => ({
        instanceId,
        status: 'ended',
        exitCode: 3,
        stdout: `${folders.get(instanceId)}\n`,
        stderr: 'to stderr\n',
        truncated: false,
      })),
    );
  });

  it('kills a command at its time limit, with everything that it has started', async () => {
    const results = await run('sleep 600 & echo $!; wait', 1_000);
    expect(results.map(({ status, exitCode }) => [status, exitCode])).toEqual(hosts.map(() => ['timed-out', null]));
    const areGone = async () => results.every(({ stdout }) => !isRunning(Number(stdout)));
    await waitFor(areGone, { what: 'the background processes to end', timeoutMs: 10_000 });
  });

  it('returns the first 24,000 characters of a long output, and says that there was more', async () => {
    const [result] = await run('head -c 100000 /dev/zero | tr "\\\\0" x', 30_000, hosts.slice(0, 1));
    expect(result).toMatchObject({ status: 'ended', exitCode: 0, truncated: true });
    expect(result!.stdout).toHaveLength(24_000);
  });

  it('cancels what still runs when the signal aborts', async () => {
    const cancel = new AbortController();
    const running = run('touch begun; sleep 600', 60_000, hosts, cancel.signal);
    const begun = async () => (await run('test -e begun')).every(({ exitCode }) => exitCode === 0);
    await waitFor(begun, { what: 'the command to run', timeoutMs: 20_000 });
    cancel.abort();
    expect((await running).map(({ status }) => status)).toEqual(['cancelled', 'cancelled']);
  });

  it('reports an instance without the agent, and an unknown one, as unreachable, and runs on the others', async () => {
    const { InstanceId } = await launch(clients, { UserData: userDataFor({ bundleUrl }) });
    await inState(clients, InstanceId!, 'running');
    const results = await run('true', 10_000, [InstanceId!, hosts[0]!, 'i-00000000000000000']);
    expect(results.map(({ status }) => status)).toEqual(['unreachable', 'ended', 'unreachable']);
  });

  it('sends to each alone when an instance has ended since the agents were listed', async () => {
    await sandbox.control('POST', 'faults', [
      { what: 'error', action: 'SendCommand', code: 'InvalidInstanceId', count: 2 },
    ]);
    // The call for both is refused, then the call for one of them.
    const results = await run('true');
    expect(results.map(({ status }) => status).toSorted()).toEqual(['ended', 'unreachable']);
  });

  it('waits out throttling and lost replies while the command runs', async () => {
    await sandbox.control('POST', 'faults', [
      { what: 'error', action: 'ListCommandInvocations', code: 'ThrottlingException', count: 2 },
      { what: 'lost-reply', action: 'ListCommandInvocations', count: 1 },
    ]);
    expect((await run('true')).map(({ exitCode }) => exitCode)).toEqual([0, 0]);
  });

  it('gives the command the means to end the program, which starts again', async () => {
    const host = hosts.slice(0, 1);
    const pid = async () => (await sandbox.instances()).find(({ id }) => id === host[0])?.pid ?? null;
    const before = await pid();
    const [result] = await run('systemctl kill --signal=SIGKILL crawlfleet.service', 10_000, host);
    expect(result).toMatchObject({ exitCode: 0, stderr: '' });
    const restarted = async () => ![before, null].includes(await pid());
    await waitFor(restarted, { what: 'the program to start again', timeoutMs: 20_000 });
  });

  describe('without the control token', () => {
    const calls: [string, (ssm: SSM) => Promise<unknown>][] = [
      [
        'SendCommand',
        (ssm) =>
          ssm.sendCommand({
            DocumentName: 'AWS-RunShellScript',
            InstanceIds: hosts,
            Parameters: { commands: ['touch owned'] },
          }),
      ],
      ['GetCommandInvocation', (ssm) => ssm.getCommandInvocation({ CommandId: '0'.repeat(36), InstanceId: hosts[0] })],
      ['ListCommandInvocations', (ssm) => ssm.listCommandInvocations({})],
      ['CancelCommand', (ssm) => ssm.cancelCommand({ CommandId: '0'.repeat(36) })],
      ['DescribeInstanceInformation', (ssm) => ssm.describeInstanceInformation({})],
    ];

    it.each(calls)('refuses %s, also with a token that only begins like it', async (_call, send) => {
      for (const accessKeyId of ['test', sandbox.controlToken.slice(0, -1), `${sandbox.controlToken}0`]) {
        const ssm = new SSM({ region, endpoint: sandbox.endpoint, credentials: keys(accessKeyId), maxAttempts: 1 });
        expect(await refusal(send(ssm))).toMatchObject({ code: 'AccessDeniedException' });
        ssm.destroy();
      }
      expect((await run('test -e owned'))[0]).toMatchObject({ exitCode: 1 });
    });

    it('explains the refusal by the policy that is missing', async () => {
      const denied = runnerAt(sandbox.endpoint);
      await expect(denied.run({ instanceIds: hosts, command: 'true', timeoutMs: 1_000 }, NEVER)).rejects.toMatchObject({
        code: 'aws-denied',
        hint: expect.stringContaining('setup --commands') as string,
      });
      denied[Symbol.dispose]();
    });
  });
});

const MOTO = await findMotoServer();
if (MOTO === null) sayMotoIsMissing('commands by SSM at moto');

describe.skipIf(MOTO === null)('at moto', () => {
  // moto alone may take a minute to start on a busy machine.
  it(
    'sends a command, follows it and reads its result, though nothing runs there',
    { timeout: 180_000, tags: ['nightly'] },
    async () => {
      const { endpoint, stop } = await startMotoServer(MOTO!);
      const clients = clientsFor({ endpoint, region });
      const runner = runnerAt(endpoint);
      try {
        const images = await clients.ec2.describeImages({ Owners: ['amazon'], MaxResults: 5 });
        const launched = await clients.ec2.runInstances({
          ImageId: images.Images![0]!.ImageId,
          MinCount: 2,
          MaxCount: 2,
        });
        const instanceIds = launched.Instances!.map(({ InstanceId }) => InstanceId!);
        const results = await runner.run({ instanceIds, command: 'uptime', timeoutMs: 10_000 }, NEVER);
        expect(results.map(({ instanceId, status }) => ({ instanceId, status }))).toEqual(
          instanceIds.map((instanceId) => ({ instanceId, status: 'ended' })),
        );
      } finally {
        runner[Symbol.dispose]();
        clients.destroy();
        await stop();
      }
    },
  );
});

describe('at an endpoint that fails', () => {
  let server: ScriptedEndpoint | null = null;
  afterEach(() => server?.stop());

  it.each([
    ['AccessDeniedException', 'aws-denied'],
    ['ThrottlingException', 'aws-throttled'],
    ['InternalServerError', 'aws-failed'],
  ])('throws for %s', async (__type, code) => {
    server = await startScriptedEndpoint(() => ({
      status: __type === 'InternalServerError' ? 500 : 400,
      contentType: 'application/x-amz-json-1.1',
      body: JSON.stringify({ __type, message: `message of ${__type}` }),
    }));
    const runner = runnerAt(server.endpoint);
    await expect(runner.run({ instanceIds: ['i-1'], command: 'true', timeoutMs: 1_000 }, NEVER)).rejects.toMatchObject({
      code,
    });
    runner[Symbol.dispose]();
  });
});
