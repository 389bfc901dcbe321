/** What must hold after a round, whatever faults it had. Returns one line for each violation. */
import { isDeepStrictEqual } from 'node:util';
import { EXIT, type ExitCode } from '../../shared/domain/exit-codes.ts';
import type { RunReport } from '../../orchestrator/core/model/report.ts';
import { findLeftovers } from '../support/processes.ts';
import { expectedRow } from '../support/shop/product.ts';
import { countSlowBoots } from '../support/slow-boots.ts';
import type { Allowance } from './faults.ts';
import type { ServerEnd } from './main-servers.ts';
import { INTERVAL_MS, type Stage } from './stage.ts';

/** The run ended, its proof holds, the site was crawled politely, the rows are correct, and nothing is left. */
export async function checkRound(
  stage: Stage,
  ends: readonly ServerEnd[],
  allowed: Required<Allowance>,
  shopSeed: number,
): Promise<string[]> {
  const report = await readReport(stage);
  if (!report) return ['the run has no report'];
  return [
    ...checkEnds(ends),
    ...checkReport(report, allowed),
    ...(await checkProof(stage)),
    ...(await checkSite(stage, report, allowed)),
    ...(await checkRows(stage, report, shopSeed)),
    ...(await checkLeftovers(stage)),
  ];
}

/** The report in the run's row; null before the run has ended. */
export async function readReport(stage: Stage): Promise<RunReport | null> {
  const [row] = await stage.query('select report from crawlfleet_runs');
  return typeof row?.report === 'string' ? (JSON.parse(row.report) as RunReport) : null;
}

/** Exit codes allowed for a main server that received this fault. */
const EXITS_OF: Record<string, (number | string)[]> = {
  SIGKILL: ['SIGKILL'],
  // The run may have been over when the signal came.
  SIGTERM: [EXIT.interrupted, EXIT.complete],
  SIGINT: [EXIT.interrupted, EXIT.complete],
  'frozen past its lease': [EXIT.locked],
};

function checkEnds(ends: readonly ServerEnd[]): string[] {
  return ends.flatMap(({ command, hurtBy, exit }, at) => {
    if (hurtBy !== null) {
      const may = EXITS_OF[hurtBy]!;
      return exit !== null && may.includes(exit)
        ? []
        : [`${command} (${hurtBy}) ended with ${exit}, not ${may.join(' or ')}`];
    }
    // The last main server ends the run, which is checked below; no other one may have given up.
    return at === ends.length - 1
      ? []
      : [`${command} gave up with exit ${exit} although no fault was injected into it`];
  });
}

function checkReport(report: RunReport, allowed: Required<Allowance>): string[] {
  const { exitCode } = report;
  const { planned, stored, gone, failed, reasons } = report.products;
  const { launched, terminated, replaced } = report.instances;
  const mayEnd: ExitCode[] = [EXIT.complete, ...allowed.exits];
  const faults: string[] = [];
  if (!mayEnd.includes(exitCode)) faults.push(`exit ${exitCode} (${report.reason}), not ${mayEnd.join(' or ')}`);
  if (stored + gone + failed !== planned) faults.push(`${planned} planned, but ${stored} + ${gone} + ${failed} ended`);
  if (exitCode === EXIT.complete && stored !== planned)
    faults.push(`complete, but ${stored} of ${planned} stored: ${JSON.stringify(reasons)}`);
  if (terminated !== launched) faults.push(`${launched} instances launched, ${terminated} terminated`);
  const charged = replaced - countSlowBoots(report);
  if (charged > allowed.replacements)
    faults.push(`${charged} instances replaced, not at most ${allowed.replacements}: ${report.notes.join('; ')}`);
  return faults;
}

export async function checkProof(stage: Stage): Promise<string[]> {
  const { exitCode, stdout, stderr } = await stage.start('verify', '--json').finished;
  return exitCode === 0 ? [] : [`verify ended with ${exitCode}:\n${stdout}\n${stderr}`];
}

/** By the shop's own clock and request log, over the whole round. */
async function checkSite(stage: Stage, report: RunReport, allowed: Required<Allowance>): Promise<string[]> {
  const { addresses, paths } = await stage.shop.stats();
  const hasty = Object.entries(addresses).filter(([, { minGapMs }]) => (minGapMs ?? Infinity) < INTERVAL_MS);
  const faults = hasty.map(([address, { minGapMs }]) => `${address} asked again after ${minGapMs} ms`);
  const repeated = Object.entries(paths).filter(([, count]) => count > 1);
  const repeats = repeated.reduce((sum, [, count]) => sum + count - 1, 0);
  // What an instance had not reported when it was given up, other instances crawl again.
  if (report.instances.replaced === 0 && repeats > allowed.repeats)
    faults.push(`asked again: ${JSON.stringify(Object.fromEntries(repeated))}, allowed ${allowed.repeats}`);
  const most = 1 + allowed.repeats + report.instances.replaced;
  faults.push(...repeated.filter(([, count]) => count > most).map(([path, count]) => `${path} asked ${count} times`));
  return faults;
}

export async function checkRows(stage: Stage, report: RunReport, shopSeed: number): Promise<string[]> {
  const rows = await stage.query('select * from product_snapshots');
  const faults = rows.flatMap((row) => {
    const id = String(row.product_id);
    const expected: object = expectedRow(shopSeed, id);
    const crumbs: unknown = typeof row.crumbs === 'string' ? JSON.parse(row.crumbs) : row.crumbs;
    const found = Object.fromEntries(Object.keys(expected).map((name) => [name, { ...row, crumbs }[name]]));
    return isDeepStrictEqual(found, expected) ? [] : [`the row of ${id} is ${JSON.stringify(found)}`];
  });
  const ids = new Set(rows.map((row) => String(row.product_id)));
  const foreign = [...ids].filter((id) => !stage.ids.includes(id));
  const { stored } = report.products;
  if (rows.length !== stored || ids.size !== rows.length || foreign.length > 0)
    faults.push(`${rows.length} rows of ${ids.size} products, not ${stored}; foreign: ${foreign.join(', ')}`);
  return faults;
}

async function checkLeftovers(stage: Stage): Promise<string[]> {
  const alive = (await stage.instances()).filter(({ state, pid }) => state !== 'terminated' || pid !== null);
  const mains = findLeftovers(stage.dir).filter(({ command }) => command.includes('orchestrator'));
  return [
    ...alive.map(({ id, state, pid }) => `instance ${id} is still ${state} (process ${pid})`),
    ...mains.map(({ pid, command }) => `process ${pid} is still there: ${command}`),
  ];
}
