/** What a run could not remove from AWS: listed once nothing else is left to do, with its price a month. */
import { EXIT } from '../../../../shared/domain/exit-codes.ts';
import { balancerPerMonth, instancePerMonth } from '../../plan/prices.ts';
import { balancerName } from '../../model/balancer-name.ts';
import { type Core, storedRun } from '../../model/core.ts';
import type { BalancerLeft } from '../../model/process-state.ts';
import { regionNamed } from '../../model/regions.ts';
import { isLasting } from '../../decide/launches/rights.ts';
import { isRepeated, neededRefused } from '../../model/rights.ts';
import { billingTerms } from '../../model/run-settings.ts';
import { eventOf } from '../../model/run-event.ts';
import type { InstanceRecord, RunReader, RunRecord } from '../../model/stores.ts';
import type { World } from '../../model/world.ts';

/** The kind of its events, one for each thing. */
const LEFT_BEHIND = 'left-behind';
/** Things that the reason of the run names; the report has all. */
const NAMED = 3;

interface Left {
  /** What is left, with its name and its price: `the load balancer cf-… ($18 a month)`. */
  text: string;
  /** The line of the report. */
  line: string;
}

/** What is left of the balancer, in words; `parts` null: whatever was made of it. */
export function describeBalancerLeft(run: RunRecord, region: string, { parts, words }: BalancerLeft): Left {
  const usd = parts === null || parts.includes('load balancer') ? balancerPerMonth(...termsOf(run, region)) : 0;
  const what = `the ${(parts ?? ['load balancer']).join(' and the ')} ${balancerName(run.id)}`;
  return leftOf(what, {
    region,
    usd,
    words,
    remedy: `${parts === null ? 'if it was made, ' : ''}orchestrator gc removes it when it may`,
  });
}

function describeInstance(world: World, record: InstanceRecord): Left {
  const { name, rights } = regionNamed(world.regions, record.request.region);
  const usd = instancePerMonth(...termsOf(world.run, name), record.request.instanceType);
  const what =
    record.instanceId === null
      ? `the instance of slot ${record.slot}, if it was launched,`
      : `the instance ${record.instanceId}`;
  const words =
    rights.look !== null
      ? `EC2 refuses to show whether it has ended: ${rights.look.message}`
      : rights.terminate !== null
        ? `EC2 refuses to end it: ${rights.terminate.message}`
        : 'EC2 does not show that it has ended';
  return leftOf(what, {
    region: name,
    usd,
    words,
    remedy: 'it was asked to terminate, and powers itself off after the deadline',
  });
}

const leftOf = (
  what: string,
  { region, usd, words, remedy }: { region: string; usd: number; words: string; remedy: string },
): Left => {
  const price = usd === 0 ? 'no cost' : `$${Math.max(1, Math.round(usd))} a month`;
  return { text: `${what} (${price})`, line: `${what} in ${region}, ${price}: ${words}; ${remedy}` };
};

const termsOf = (run: RunRecord, region: string) =>
  [region, billingTerms(run.settings), run.plan.prices ?? null] as const;

/** Nothing is left to do about it: it has ended, or EC2 refuses to end it, or to show whether it has ended. */
export function isSettled(world: World, record: InstanceRecord): boolean {
  if (record.phase === 'terminated') return true;
  const { look, terminate } = regionNamed(world.regions, record.request.region).rights;
  if (record.phase === 'terminating' && isLasting(terminate, world.run)) return true;
  if (look === null || !isRepeated(look, world.limits)) return false;
  return record.phase === 'terminating' || (record.phase === 'lost' && record.instanceId === null);
}

/**
 * Stores what a run that is over has left at AWS and forgets the balancer, which gc finds by its tags. That, or a call
 * that was refused to the end, makes its exit code 4. A replay changes nothing. Regions where AWS does not answer have
 * had their own alarm.
 */
export async function leaveBehind({ run: row, processState, clock }: Core, world: World): Promise<void> {
  const run = await storedRun({ run: row });
  const answering = world.regions.filter(({ isOut }) => !isOut);
  const balancers = answering.filter(
    ({ name, balancer }) => balancer !== null || processState.region(name).balancerLeft,
  );
  const left = [
    ...balancers.map(({ name }) => {
      const known = processState.region(name).balancerLeft;
      return describeBalancerLeft(run, name, known ?? { parts: null, words: 'it could not be removed in time' });
    }),
    ...world.fleet.all
      .filter((i) => i.phase !== 'terminated' && answering.includes(regionNamed(world.regions, i.request.region)))
      .map((record) => describeInstance(world, record)),
  ];
  const lost = world.regions
    .flatMap(({ rights }) => neededRefused(rights))
    .find((refused) => isRepeated(refused, world.limits));
  if (left.length === 0 && lost === undefined) return;
  const known = await leftBehind({ run: row });
  for (const { line } of left) if (!known.includes(line)) await row.addEvent(eventOf(LEFT_BEHIND, clock.now(), line));
  const shown = left.slice(0, NAMED).map(({ text }) => text);
  const more = left.length > NAMED ? ` and ${left.length - NAMED} more` : '';
  const parts = [
    ...(lost === undefined ? [] : [`AWS has refused a call that the run needs: ${lost.message}`]),
    ...(left.length === 0 ? [] : [`left behind: ${shown.join(', ')}${more}`]),
  ].filter((part) => run.reason?.includes(part) !== true);
  // What was cancelled keeps its own code.
  const exitCode = run.request === 'cancel' && run.exitCode !== null ? run.exitCode : EXIT.config;
  if (parts.length > 0) await row.setEnd(exitCode, [run.reason ?? [], ...parts].flat().join('; '));
  for (const { name, balancer } of balancers) if (balancer !== null) await row.setBalancer(name, null);
}

/** The lines of what the run has left behind, in the order in which they were stored. */
export async function leftBehind({ run }: Pick<RunReader, 'run'>): Promise<string[]> {
  const events = await run.events(MAX_LEFT, LEFT_BEHIND);
  return events.toReversed().flatMap(({ detail }) => detail ?? []);
}

/** The most of what is left that is listed: more than a fleet has instances. */
const MAX_LEFT = 10_000;
