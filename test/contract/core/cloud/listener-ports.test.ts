/** Checks before a launch that a user's load balancer has room for the run's listener. */
import { afterEach, describe, expect, it } from 'vitest';
import { assertFreePort } from '../../../../orchestrator/core/cloud/listener-ports.ts';
import { SHARED_PORTS } from '../../../../orchestrator/core/cloud/load-balancer.ts';
import { type Answer, elbError, type ScriptedEndpoint, startScriptedEndpoint } from './scripted-endpoint.ts';

const page = (ports: readonly number[], next?: string): Answer => ({
  status: 200,
  body: `<DescribeListenersResponse><DescribeListenersResult><Listeners>${ports
    .map((port) => `<member><ListenerArn>arn:l-${port}</ListenerArn><Port>${port}</Port></member>`)
    .join(
      '',
    )}</Listeners>${next ? `<NextMarker>${next}</NextMarker>` : ''}</DescribeListenersResult></DescribeListenersResponse>`,
});

const ALL = Array.from({ length: SHARED_PORTS.last - SHARED_PORTS.first + 1 }, (_, i) => SHARED_PORTS.first + i);

describe('assertFreePort', () => {
  let endpoint: ScriptedEndpoint | null = null;
  afterEach(async () => {
    await endpoint?.stop();
    endpoint = null;
  });

  async function look(answer: (marker: string | null) => Answer): Promise<void> {
    endpoint = await startScriptedEndpoint((call) => answer(call.get('Marker')));
    const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
    const options = { region: 'eu-west-1', endpoint: endpoint.endpoint, credentials, timeoutMs: 2_000, maxAttempts: 1 };
    return assertFreePort(options, 'arn:b');
  }

  it('refuses a load balancer on which every port has a listener, whatever page lists it', async () => {
    const pages = (marker: string | null): Answer =>
      marker === null ? page(ALL.slice(0, 60), 'm') : page(ALL.slice(60));
    await expect(look(pages)).rejects.toMatchObject({
      code: 'aws-invalid',
      message: expect.stringContaining('no free port from 8800 to 8899'),
      hint: expect.stringContaining('orchestrator gc'),
    });
  });

  it('accepts one with a free port', async () => {
    await expect(look(() => page([80, 443, ...ALL.slice(1)]))).resolves.toBeUndefined();
  });

  it('reports that it may not check', async () => {
    await expect(look(() => elbError('AccessDenied'))).rejects.toMatchObject({ code: 'aws-denied' });
  });
});
