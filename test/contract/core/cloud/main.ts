/**
 * `npm run contract -- --endpoint URL [--region R]`: the contracts of EC2, ELBv2 and S3 at any AWS-compatible endpoint.
 * With `--aws --yes` instead of the endpoint: at AWS itself, in your own account; whatever it makes there is removed.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';

const USAGE = 'usage: npm run contract -- --endpoint URL [--region R] | --aws --yes [--region R]';
const COST = `--aws launches about twenty t4g.nano instances and ten load balancers in your account, for a few minutes each, one of
both in us-east-1 (in us-west-2 if --region is us-east-1), and removes them again: less than one dollar. Your own
credentials are used. Say --yes to go on.`;

process.exitCode = await main();

async function main(): Promise<number> {
  const flags = readFlags();
  if (typeof flags === 'string') {
    process.stderr.write(`${flags}\n`);
    return 2;
  }
  const child = spawn('npx', ['vitest', 'run', '--config', 'test/contract/core/cloud/any-endpoint.config.ts'], {
    stdio: 'inherit',
    env: {
      ...process.env,
      CRAWLFLEET_CONTRACT_ENDPOINT: flags.endpoint,
      ...(flags.region === undefined ? {} : { CRAWLFLEET_CONTRACT_REGION: flags.region }),
    },
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code ?? 1;
}

/** The flags, or the message to print instead. */
function readFlags(): { endpoint: string; region: string | undefined } | string {
  try {
    const { endpoint, region, aws, yes } = parseArgs({
      options: {
        endpoint: { type: 'string' },
        region: { type: 'string' },
        aws: { type: 'boolean' },
        yes: { type: 'boolean' },
      },
    }).values;
    if ((endpoint === undefined) === (aws !== true)) return USAGE;
    if (aws === true) return yes === true ? { endpoint: 'aws', region } : COST;
    return URL.canParse(endpoint!) ? { endpoint: endpoint!, region } : `'${endpoint}' is no URL\n${USAGE}`;
  } catch (error) {
    return `${error instanceof Error ? error.message : String(error)}\n${USAGE}`;
  }
}
