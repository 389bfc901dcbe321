/** A private moto server: an independent AWS emulator with mock instances and no data plane. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { findProgram } from '../find-program.ts';
import { waitFor } from '../processes.ts';
import { freePort, QUIET_ADDRESS } from '../free-port.ts';
import { clientsFor } from '../sandbox/clients.ts';

export interface MotoServer {
  endpoint: string;
  pid: number;
  stop: () => Promise<void>;
}

/** Null when it is not installed; `sayMotoIsMissing` prints how to get it. */
export const findMotoServer = (): Promise<string | null> => findProgram('moto_server');

/** Makes it visible that a suite was skipped, not passed. */
export function sayMotoIsMissing(what: string): void {
  console.warn(
    `\n*** LEFT OUT: ${what}: moto_server is not on PATH. Get it with: pip install 'moto[server]' (or pipx install 'moto[server]')\n`,
  );
}

/** Starts moto on a free port and waits until it answers for EC2, ELBv2 and S3. */
export async function startMotoServer(program: string): Promise<MotoServer> {
  const port = await freePort(QUIET_ADDRESS);
  const child = spawn(program, ['-H', QUIET_ADDRESS, '-p', String(port)], { stdio: ['ignore', 'ignore', 'pipe'] });
  const exited = once(child, 'exit');
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => (errors = (errors + chunk.toString()).slice(-4_000)));
  const endpoint = `http://${QUIET_ADDRESS}:${port}`;
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    await exited;
  };
  try {
    await waitFor(
      async () => {
        if (child.exitCode !== null) throw new Error(`moto_server ended: ${errors}`);
        return (await fetch(`${endpoint}/moto-api/`)).ok;
      },
      { what: `moto_server to answer (${errors})`, timeoutMs: 60_000, everyMs: 100 },
    );
    await warmUp(endpoint);
  } catch (error) {
    await stop();
    throw error;
  }
  return { endpoint, pid: child.pid!, stop };
}

/** moto loads each service at its first call, which on a busy machine takes longer than our call timeout. */
async function warmUp(endpoint: string): Promise<void> {
  const clients = clientsFor({ endpoint, region: 'us-east-1' });
  try {
    await clients.ec2.describeInstances({});
    await clients.elb.describeLoadBalancers({});
    await clients.s3.listBuckets({});
  } finally {
    clients.destroy();
  }
}
