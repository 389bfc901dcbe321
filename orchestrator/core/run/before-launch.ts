/**
 * The checks of `doctor`, and those that `run` and `retry` make before anything is launched, with all failures at once.
 */
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import type { Database } from '../db/connect.ts';
import type { Plan } from '../plan/plan.ts';
import { awsOptions } from '../cloud-access/cloud-access.ts';
import { type Config, type Environment, type FlagValue, loadConfig, refuseMisspelt } from '../config/load-config.ts';
import type { ConfigSource } from '../feature.ts';
import type { ProductList } from '../prepare/products.ts';
import { assumedTarget, type RunInputs } from '../config/target.ts';
import { ALL_CHECKS } from '../checks/all-checks.ts';
import { type Check, type Finding, findingOf, ok, warning } from '../checks/check.ts';
import { createFacts, type FactsOptions } from '../checks/facts.ts';
import { type CheckResult, refusalOf, runChecks } from '../checks/run-checks.ts';

/** Checks before a launch may take this many times longer than doctor's, whose user waits for the answer. */
const PATIENCE_OF_A_RUN = 3;

/** Throws one AppError with everything that blocks this launch; resolves with the warnings, as lines. */
export async function checkBeforeLaunch(
  options: RunInputs & { database: Database; plan: Plan; products: ProductList },
): Promise<string[]> {
  const { database, plan, products } = options;
  const checks = checksFor(options.target.dryRun).filter((check) => check.beforeLaunch === true);
  // A run without products launches nothing, so nothing at AWS can block it.
  const wanted = products.ids.length === 0 ? checks.filter((check) => check.id === 'plan') : checks;
  const results = await look(wanted, options, { database, plan, products });
  const refusal = refusalOf(results);
  if (refusal !== null) throw refusal;
  return warningsOf(results);
}

/** Exit codes caused by settings, database, site or AWS during a run's preparation; the checks explain no others. */
const MENDABLE: readonly ExitCode[] = [EXIT.config, EXIT.infeasible, EXIT.capacity, EXIT.budget];

/** What is to be started, before anything is known of its target. */
export interface StartPlace {
  config: Config;
  environment: Environment;
  dryRun: boolean;
  /** False when the products are not those of products.query. */
  isQuery: boolean;
}

/**
 * The result of a step before the launch. Its error is combined with everything else that blocks the run, so that the
 * user can fix all of it at once. `known` is what has been found out by then.
 */
export async function allAtOnce<T>(
  step: () => T | Promise<T>,
  place: StartPlace,
  known: NonNullable<FactsOptions['known']> = {},
): Promise<T> {
  try {
    return await step();
  } catch (error) {
    if (!(error instanceof AppError) || !MENDABLE.includes(error.exitCode)) throw error;
    const { config, environment, dryRun, isQuery } = place;
    const checks = checksFor(dryRun).filter((check) => check.beforeLaunch === true || check.alongside === true);
    // If the products come from elsewhere, the query would report on other products.
    const hasProducts = isQuery || known.products !== undefined;
    // A database that has just not answered in time is not waited for again.
    const pointless = error.code === 'database-unreachable' ? 'database' : hasProducts ? null : 'products';
    const wanted = checks.filter((check) => pointless === null || !standsOn(check, pointless));
    const target = assumedTarget(config, dryRun, environment);
    throw refusalOf(await look(wanted, { config, target, environment }, known), error) ?? error;
  }
}

const checksFor = (dryRun: boolean, checks = ALL_CHECKS): Check[] =>
  checks.filter((check) => check.only === undefined || (check.only === 'dry') === dryRun);

const standsOn = (check: Check, id: string): boolean =>
  check.id === id ||
  (check.needs ?? []).some((needed) => ALL_CHECKS.some((other) => other.id === needed && standsOn(other, id)));

async function look(
  checks: readonly Check[],
  place: RunInputs,
  known: NonNullable<FactsOptions['known']>,
  patience = PATIENCE_OF_A_RUN,
): Promise<CheckResult[]> {
  const { regions } = place.config.values.aws;
  if (regions === null) return lookIn(checks, place, known, patience);
  const [there, once] = [checks.filter((c) => c.regional === true), checks.filter((c) => c.regional !== true)];
  const results = await lookIn(once, place, known, patience);
  if (results.some((r) => r.check.id === 'credentials' && r.findings.some((f) => f.level === 'failed'))) return results;
  const byRegion: CheckResult[][] = [];
  // One after the other: the check of the callback address listens on a port.
  for (const region of regions)
    byRegion.push(await lookIn(there.map(namedFor(region)), inRegion(place, region), known, patience));
  const isUsable = (made: readonly CheckResult[]): boolean =>
    made.every(({ findings }) => findings.every(({ level }) => level !== 'failed'));
  // One region that a run can use is enough: the others are passed over.
  return [...results, ...(byRegion.some(isUsable) ? byRegion.flat().map(withoutFailures) : byRegion.flat())];
}

const withoutFailures = ({ findings, ...result }: CheckResult): CheckResult => ({
  ...result,
  findings: findings.map((f) => (f.level === 'failed' ? warning(`not usable for a run: ${f.text}`, f.remedy) : f)),
});

type ConfiguredRegion = NonNullable<Config['values']['aws']['regions']>[number];

const namedFor =
  ({ region }: ConfiguredRegion) =>
  (check: Check): Check => ({ ...check, title: `${check.title} (${region})` });

/** The configuration in its short form, for this region alone. */
function inRegion({ config, target, environment }: RunInputs, there: ConfiguredRegion): RunInputs {
  const { region, subnets, security_groups, image, load_balancer, vcpu_quota } = there;
  const own = { region, regions: null, subnets, security_groups, image, load_balancer, vcpu_quota };
  const values = { ...config.values, aws: { ...config.values.aws, ...own } };
  return { config: { ...config, values }, target: { ...target, region }, environment };
}

async function lookIn(
  checks: readonly Check[],
  { config, target, environment }: RunInputs,
  known: NonNullable<FactsOptions['known']>,
  patience: number,
): Promise<CheckResult[]> {
  const isUnborn = target.dryRun && target.endpoint === null;
  const aws = isUnborn ? null : { ...awsOptions(target, target.dryRun), ...PATIENCE };
  await using facts = createFacts({ config, target, environment, aws, known });
  return await runChecks(checks, { config, target, environment, aws, facts }, { clock: systemClock, patience });
}

/** Few, short attempts: a person waits, and a failed check can be repeated. */
const PATIENCE = { timeoutMs: 6_000, maxAttempts: 2 };

function mappingFinding(config: Config): Finding {
  try {
    refuseMisspelt(config);
    return ok(config.file);
  } catch (error) {
    return findingOf(error);
  }
}

export interface ExamineOptions extends ConfigSource {
  flags: readonly FlagValue[];
  dryRun: boolean;
  /** The checks to make, for tests. Omitted: all of them. */
  checks?: readonly Check[];
}

/** Every check of doctor. A configuration that cannot be read is the only finding then. */
export async function examine(options: ExamineOptions): Promise<CheckResult[]> {
  const { dryRun, environment } = options;
  const configuration = { id: 'configuration', title: 'configuration' };
  let config: Config;
  try {
    config = loadConfig(options);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return [{ check: configuration, findings: [findingOf(error)] }];
  }
  // If the settings are incomplete, the check of the settings reports what is missing.
  const place = { config, target: assumedTarget(config, dryRun, environment), environment };
  const read: CheckResult = {
    check: configuration,
    findings: [mappingFinding(config), ...(config.notes ?? []).map(ok)],
  };
  return [read, ...(await look(checksFor(dryRun, options.checks), place, {}, 1))];
}

/** The warnings, without those of skipped checks, such as the plan's, and without those that hold for every run. */
const warningsOf = (results: readonly CheckResult[]): string[] =>
  results
    .filter(({ isSkipped }) => isSkipped !== true)
    .flatMap(({ check, findings }) =>
      findings.flatMap((f) => (f.level === 'warning' && f.standing !== true ? [`${check.title}: ${f.text}`] : [])),
    );
