/**
 * The place of a new run: its target, its database, and the lock, under which what earlier runs have left is ended
 * first.
 */
import { isAnyHost } from '../../../shared/domain/domains.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import type { Caller } from '../caller.ts';
import type { EndpointProfile } from '../cloud/endpoint-profile.ts';
import { recognizeEndpoint } from '../cloud-access/recognize-endpoint.ts';
import { chooseTarget, hasLink, type Target, WHO_TO_SAY } from '../config/target.ts';
import { lockNamesOfConfig, takeLock } from '../lookup/run-lock.ts';
import { type Preflight, preflight } from '../prepare/preflight.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { allAtOnce, type StartPlace } from './before-launch.ts';
import { collectGarbageQuietly } from './collect-garbage.ts';
import { endUnfinished, namesToLock, unfinishedToEnd } from './end-unfinished.ts';
import type { RunContext } from './run-context.ts';
import { waitForHosts } from './wait-for-hosts.ts';
import { OpenResources } from '../open-resources.ts';

/** Disposal releases the lock and closes the database. */
export interface StartContext extends RunContext, StartPlace, AsyncDisposable {
  target: Target;
  /** What answers at the endpoint of a dry run; null without an endpoint, and on AWS. */
  profile: EndpointProfile | null;
  checked: Preflight;
}

/** Before anything is opened: a dry run over any hosts asks foreign hosts, too. A run on AWS needs a link anyway. */
function checkAnyHost({ values: { site }, file }: StartPlace['config'], dryRun: boolean): void {
  if (!dryRun || !isAnyHost(site.product_url) || hasLink(site.user_agent)) return;
  throw new AppError('config-invalid', `a run over any hosts needs a site.user_agent with a link in ${file}`, {
    hint: `A dry run sends the same requests: ${WHO_TO_SAY}`,
  });
}

/**
 * Throws `lock-held` and `run-unfinished`, and what preflight throws together with everything else that blocks the run.
 */
export async function openStart(
  place: StartPlace & Pick<RunContext, 'features'>,
  caller: Caller,
): Promise<StartContext> {
  const { config, environment, dryRun } = place;
  const { output } = caller;
  checkAnyHost(config, dryRun);
  await using opened = new OpenResources();
  const chosen = await allAtOnce(() => chooseTarget(config, dryRun, environment), place);
  const { target, profile } = await recognizeEndpoint(chosen);
  const checked = opened.use(
    await allAtOnce(() => preflight(config, target, { migrate: true, environment, output }), place),
  );
  const { database, stores } = checked;
  const { runs } = stores;
  const names = await namesToLock(runs, lockNamesOfConfig(config));
  const lock = opened.use(
    await takeLock({ runs, names, clock: systemClock, check: () => unfinishedToEnd(runs, config) }),
  );
  await waitForHosts({ ...caller, runs, lock }, { runId: null, intervalMs: config.values.site.interval });
  const shared = { ...caller, ...place, database, stores, lock };
  await endUnfinished(shared);
  // The sandbox of a dry run ends on its own; everything else may be left over from a dead main server.
  const cloud = target.kind !== 'sandbox';
  const garbage = { config, environment, database, runs, dryRun: false, cloud };
  for (const line of await collectGarbageQuietly(garbage)) output.line(`! ${line}`);
  const held = opened.move();
  return Object.assign(shared, { target, profile, checked, [Symbol.asyncDispose]: () => held[Symbol.asyncDispose]() });
}
