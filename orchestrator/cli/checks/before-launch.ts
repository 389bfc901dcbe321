/** The checks that `run` and `retry` make before anything is launched: the same as doctor's, all failures told at once. */
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import { EXIT } from '../../../shared/domain/exit-codes.ts';
import type { Database } from '../../db/connect.ts';
import type { Plan } from '../../plan/plan.ts';
import { awsOptions } from '../cloud-access.ts';
import type { Config } from '../config/load-config.ts';
import type { ProductList } from '../products.ts';
import type { Target } from '../target.ts';
import { ALL_CHECKS } from './all-checks.ts';
import type { Check, CheckContext } from './check.ts';
import type { FactsOptions } from './facts.ts';
import { createFacts } from './facts.ts';
import { refusalOf } from './refuse.ts';
import type { CheckResult } from './run-checks.ts';
import { runChecks } from './run-checks.ts';

export interface BeforeLaunch {
  config: Config;
  target: Target;
  environment: Readonly<Record<string, string | undefined>>;
}

/** What `run` and `retry` make before a launch can be waited for longer than by somebody who only asks. */
const PATIENCE_OF_A_RUN = 3;

/**
 * Throws one AppError with everything that stands against launching this plan. Resolves with what the checks warn of, as lines:
 * a run can start, and somebody should know.
 */
export async function checkBeforeLaunch(
  options: BeforeLaunch & { database: Database; plan: Plan; products: ProductList },
): Promise<string[]> {
  const { database, plan, products } = options;
  const checks = checksFor(options.target).filter((check) => check.beforeLaunch === true);
  // A run of no products launches nothing, so nothing at AWS can stand in its way.
  const wanted = products.ids.length === 0 ? checks.filter((check) => check.id === 'plan') : checks;
  const results = await look(wanted, options, { database, plan, products });
  const refusal = refusalOf(results);
  if (refusal !== null) throw refusal;
  return warningsOf(results);
}

/** What is met on the way of a run because of its settings, its database, its site or AWS; the rest has nothing to do with the checks. */
const MENDABLE: readonly ExitCode[] = [EXIT.config, EXIT.infeasible, EXIT.capacity, EXIT.budget];

/**
 * An error that stopped a run before its checks, together with everything else that stands against it, so that all of it is mended
 * at once. `known` is what had been found out by then; `isQuery` is false when the products are not those of products.query.
 */
export async function withOtherFailures(
  error: unknown,
  options: BeforeLaunch & { isQuery: boolean },
  known: NonNullable<FactsOptions['known']> = {},
): Promise<unknown> {
  if (!(error instanceof AppError) || !MENDABLE.includes(error.exitCode)) return error;
  const checks = checksFor(options.target).filter((check) => check.beforeLaunch === true || check.alongside === true);
  // A database that has just been waited for in vain is not waited for once more.
  const pointless =
    error.code === 'database-unreachable' ? 'database' : hasProducts(options, known) ? null : 'products';
  const wanted = checks.filter((check) => pointless === null || !standsOn(check, pointless));
  return refusalOf(await look(wanted, options, known), error) ?? error;
}

/** Where they come from elsewhere, the query would say something about other products. */
const hasProducts = ({ isQuery }: { isQuery: boolean }, known: NonNullable<FactsOptions['known']>): boolean =>
  isQuery || known.products !== undefined;

const checksFor = ({ dryRun }: Target): Check[] =>
  ALL_CHECKS.filter((check) => check.kinds.includes(dryRun ? 'dry' : 'aws'));

const standsOn = (check: Check, id: string): boolean =>
  check.id === id ||
  (check.needs ?? []).some((needed) => ALL_CHECKS.some((other) => other.id === needed && standsOn(other, id)));

async function look(
  checks: readonly Check[],
  { config, target, environment }: BeforeLaunch,
  known: NonNullable<FactsOptions['known']>,
): Promise<CheckResult[]> {
  const context = openContext({ config, target, environment, known });
  try {
    return await runChecks(checks, context, { clock: systemClock, patience: PATIENCE_OF_A_RUN });
  } finally {
    await context.facts.close();
  }
}

/** Without those of the plan, which shows its own, and those that are true of every run. */
const warningsOf = (results: readonly CheckResult[]): string[] =>
  results
    .filter(({ isSkipped }) => isSkipped !== true)
    .flatMap(({ check, findings }) =>
      findings.flatMap((f) => (f.level === 'warning' && f.standing !== true ? [`${check.title}: ${f.text}`] : [])),
    );

/** Few, short attempts: a person waits, and a check that fails can be made again. */
const PATIENCE = { timeoutMs: 6_000, maxAttempts: 2 };

/** For `known` see FactsOptions. The facts must be closed. */
export function openContext(options: BeforeLaunch & Pick<FactsOptions, 'known'>): CheckContext {
  const { config, target, environment, known } = options;
  const isUnborn = target.dryRun && target.endpoint === null;
  const aws = isUnborn ? null : { ...awsOptions(target, target.dryRun), ...PATIENCE };
  const facts = createFacts({ config, target, environment, aws, ...(known ? { known } : {}) });
  return { config, target, environment, aws, facts };
}
