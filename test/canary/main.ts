/**
 * `npm run canary`: a whole run of 2 instances and 20 products, on AWS or an AWS-compatible endpoint, for less than
 * $0.20, checked by the checkers of the fault tests. Exit code 0 only if everything holds.
 */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { parseArgs } from 'node:util';
import { renderTable } from '../../shared/domain/text-table.ts';
import { Canary, type CanaryResult, removeFolder, startOwnSandbox } from './play.ts';
import { type CanarySettings, canarySettings, INSTANCES, MAX_COST } from './settings.ts';

const HELP = `npm run canary -- --config fleet.yaml      on AWS, with the aws and server sections of this configuration
npm run canary -- --sandbox                on this machine, nothing is paid
npm run canary -- --endpoint URL           any endpoint that speaks AWS; on this machine a dry run

  --region --bucket --profile --server-url   instead of, or over, the configuration
  --site-listen HOST:PORT   where its pages are served (0.0.0.0:8780), at the host of server.url; instances must reach it
  --ids FILE                crawl these IDs (20 at most) of the configured site instead of pages of its own
  --as-aws                  take an endpoint on this machine for AWS itself: no dry run, your own keys
  --yes                     do not ask before anything is paid
  --json                    one document on stdout
`;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      config: { type: 'string', short: 'c' },
      endpoint: { type: 'string' },
      sandbox: { type: 'boolean', default: false },
      'as-aws': { type: 'boolean', default: false },
      region: { type: 'string' },
      bucket: { type: 'string' },
      profile: { type: 'string' },
      'server-url': { type: 'string' },
      'site-listen': { type: 'string' },
      ids: { type: 'string' },
      yes: { type: 'boolean', short: 'y', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const say = (text: string): void => void process.stderr.write(`${text}\n`);
  const folder = mkdtempSync(join(tmpdir(), 'crawlfleet-canary-'));
  const sandbox = values.sandbox ? await startOwnSandbox(folder) : null;
  let proved = false;
  try {
    const { 'server-url': serverUrl, 'site-listen': siteListen, 'as-aws': asAws, ...flags } = values;
    const endpoint = sandbox?.endpoint ?? values.endpoint;
    const settings = canarySettings({ ...flags, endpoint, serverUrl, siteListen, asAws });
    say(announce(settings));
    if (!settings.dryRun && !values.yes && !(await agreed())) return 2;
    const result = await playWithSignals(settings, folder, say);
    process.stdout.write(values.json ? `${JSON.stringify(result, null, 2)}\n` : `${render(result)}\n`);
    proved = result.failure === null && result.proofs.length > 0 && result.proofs.every((p) => p.holds);
    return proved ? 0 : 1;
  } catch (error) {
    say(`canary: ${error instanceof Error ? error.message : String(error)}`);
    return 2;
  } finally {
    await sandbox?.stop();
    if (proved) removeFolder(folder);
    else say(`Database, configuration and logs are kept in ${folder}`);
  }
}

async function playWithSignals(
  settings: CanarySettings,
  folder: string,
  say: (text: string) => void,
): Promise<CanaryResult> {
  const canary = new Canary(settings, folder, say);
  const interrupt = (): void => canary.interrupt();
  process.on('SIGINT', interrupt);
  process.on('SIGTERM', interrupt);
  try {
    return await canary.play();
  } finally {
    process.off('SIGINT', interrupt);
    process.off('SIGTERM', interrupt);
  }
}

function announce({ dryRun, ids, region, worstUsd, deadlineMs }: CanarySettings): string {
  const what = `${INSTANCES} instances, ${ids.length} products, at most ${deadlineMs / 60_000} minutes`;
  if (dryRun) return `A canary on this machine: ${what}. Nothing is paid; prices are those of ${region}.`;
  return `A canary on AWS in ${region}: ${what}, at its worst $${worstUsd.toFixed(3)} (refused above $${MAX_COST.toFixed(2)}).`;
}

async function agreed(): Promise<boolean> {
  if (!process.stdin.isTTY) {
    process.stderr.write('canary: it costs money: say --yes\n');
    return false;
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question('Go on? [y/N] ');
  terminal.close();
  return /^y(es)?$/i.test(answer.trim());
}

function render({ run, proofs, cost, worstUsd, failure }: CanaryResult): string {
  const table = renderTable(
    ['', 'proved', 'by'],
    proofs.map((p) => [p.holds ? 'ok' : 'FAILED', p.what, p.detail]),
  );
  return [
    ...(proofs.length > 0 ? [table] : []),
    ...(failure === null ? [] : [`FAILED: ${failure}`]),
    `run ${run ?? '-'}; cost $${cost?.actual.toFixed(4) ?? '-'} of at most $${worstUsd.toFixed(3)}`,
  ].join('\n');
}

// As the commands of the product: its database and configuration are the user's alone.
process.umask(0o077);
process.exitCode = await main();
