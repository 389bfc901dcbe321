/**
 * The contracts at the endpoint that `npm run contract` names: LocalStack, Floci, AWS Emulator, moto, or AWS itself.
 */
import { describe } from 'vitest';
import { profileEndpoint } from '../../../../orchestrator/core/cloud/endpoint-profile.ts';
import { describeEndpointContracts } from './endpoint-contracts.ts';

const { CRAWLFLEET_CONTRACT_ENDPOINT: chosen = '', CRAWLFLEET_CONTRACT_REGION: region = 'ap-northeast-1' } =
  process.env;
const AWS = 'aws';
const AWS_PATIENCE_MS = 10 * 60_000;
const nothing = () => Promise.resolve();

if (chosen === AWS) describeAws();
else await describeEndpoint(chosen);

function describeAws(): void {
  describeEndpointContracts({
    title: `AWS in ${region}`,
    name: 'none',
    start: () => Promise.resolve({ options: { region, endpoint: null }, stop: nothing }),
    listenPort: () => 80,
    patienceMs: AWS_PATIENCE_MS,
  });
}

async function describeEndpoint(endpoint: string): Promise<void> {
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  const options = { region, endpoint, credentials };
  const { name, balancer } = await profileEndpoint(options);
  describeEndpointContracts({
    title: `${name === 'unknown' ? 'an unknown endpoint' : name}, ${endpoint}`,
    // No divergence of the sandbox is known.
    name: name === 'sandbox' ? 'none' : name,
    start: () => Promise.resolve({ options, stop: nothing }),
    // The sandbox needs an unprivileged port; the other endpoints accept any number.
    listenPort: (n) => 18_100 + n,
    ...(balancer === 'missing' ? { without: ['LoadBalancer'] as const } : {}),
  });
  if (balancer === 'missing') describe.todo('this endpoint has no ELBv2: its contract was left out');
}
