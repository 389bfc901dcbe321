/** Reads the instance metadata (IMDSv2): ID, address, and the user data that holds all settings. */
import { Agent } from 'undici';
import { backoffMs } from '../../shared/domain/backoff.ts';
import { AppError, describeError } from '../../shared/domain/errors.ts';
import type { Clock } from '../../shared/ports/clock.ts';

export const AWS_METADATA = 'http://169.254.169.254';

export interface InstanceMetadata {
  instanceId: string;
  address: string;
  userData: string;
}

const TIMEOUT_MS = 5_000;
/** The metadata service may become reachable only after the process has started. */
const TRIES = 10;

/** Throws `platform` when the service does not answer within TRIES tries. */
export async function readMetadata(endpoint: string, clock: Clock): Promise<InstanceMetadata> {
  const agent = new Agent({ connections: 1 });
  const call = (path: string, method: 'GET' | 'PUT', headers: Record<string, string>): Promise<string> =>
    callService(agent, { origin: new URL(endpoint).origin, path, method, headers });
  for (let tries = 1; ; tries++) {
    try {
      const token = await call('/latest/api/token', 'PUT', { 'x-aws-ec2-metadata-token-ttl-seconds': '300' });
      const get = (path: string): Promise<string> =>
        call(`/latest/${path}`, 'GET', { 'x-aws-ec2-metadata-token': token });
      const instanceId = (await get('meta-data/instance-id')).trim();
      const address = (await get('meta-data/local-ipv4')).trim();
      const userData = await get('user-data');
      await agent.close();
      return { instanceId, address, userData };
    } catch (cause) {
      if (tries >= TRIES)
        throw new AppError('platform', `the metadata service at ${endpoint} does not answer: ${describeError(cause)}`, {
          cause,
        });
      await clock.sleep(backoffMs(tries, { firstMs: 100, maxMs: 2_000 }));
    }
  }
}

async function callService(
  agent: Agent,
  request: { origin: string; path: string; method: 'GET' | 'PUT'; headers: Record<string, string> },
): Promise<string> {
  const response = await agent.request({ ...request, signal: AbortSignal.timeout(TIMEOUT_MS) });
  const text = await response.body.text();
  if (response.statusCode !== 200) throw new Error(`${request.method} ${request.path} answered ${response.statusCode}`);
  return text;
}
