/** What another run of the same products would need, judged by this one. Pure. */
import { adviceOf, type ReasonRow } from '../../../shared/domain/reason-row.ts';
import { epochKey } from '../../../shared/domain/epoch-id.ts';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import { banRemedy } from '../../core/decide/ban-policy.ts';
import { deathAtLaunch } from '../../core/model/launch-history.ts';
import { extractCommandOf } from '../../core/model/extract-command.ts';
import { LOSS_REASON } from '../../core/model/loss-reason.ts';
import { ownPaceMs } from '../../core/decide/shares/workers.ts';
import { adviceFor } from '../../core/model/try-again.ts';
import { rightsRemedy } from '../../core/decide/launches/rights.ts';
import { isStallCause, stallKind } from '../../core/model/stall-causes.ts';
import { stateReasonRemedy, stateReasonText } from '../../core/decide/launches/state-reason.ts';
import type { InstanceRecord, RunEvent, RunRecord, IncidentRecord } from '../../core/model/stores.ts';
import { slowedByOperator } from '../../core/decide/operator-pace.ts';
import { operatorPaceOf } from '../../core/model/operator-pace.ts';
import { slowerPaceInWords } from '../../core/decide/site-cap.ts';
import { drainAtMs, tailMs } from '../../core/model/run-deadlines.ts';

export interface AdviceInput {
  run: RunRecord;
  instances: readonly InstanceRecord[];
  events: readonly RunEvent[];
  incidents: readonly IncidentRecord[];
  /** Why products have no row, and what to do about each: the table says it, so it is not repeated here. */
  reasons: readonly ReasonRow[];
  /** Products that were not crawled, or whose results never arrived. */
  left: number;
  nowMs: number;
}

/** One sentence each, the most important first; never empty. */
export function nextRunAdvice(input: AdviceInput): string[] {
  const { run, instances: records, incidents, reasons, left } = input;
  // Neither more time nor more instances would read the pages.
  if (run.request === 'site-changed') {
    const row = reasons.find(({ reason }) => reason === 'site-changed');
    const advice = row
      ? adviceOf(row)
      : `${extractCommandOf(run.settings)} shows what a page has now: correct the mapping`;
    return [`the site or its mapping has changed: ${advice}`];
  }
  // No number of instances would have helped.
  if (isStallCause(run.request)) {
    const { because, remedy } = stallKind(run.request);
    return [`${because}: ${adviceFor(remedy, run)}`];
  }
  const advice: string[] = [];
  const banned = incidents.filter((t) => t.verdict === 'banned');
  const bans = new Set(banned.map((t) => epochKey(t))).size;
  if (bans > 0)
    advice.push(
      `${bans} ${bans === 1 ? 'address was' : 'addresses were'} banned: ${banRemedy(banned, run.settings.site)}; the evidence is under \`bans\` in the report`,
    );
  const launched = records.filter((r) => r.instanceId !== null);
  const needed = neededInstances(input);
  const wasLate = left > 0 || (run.finishedAtMs ?? input.nowMs) > run.deadlineAtMs;
  const slowed = wasLate ? slowerPaceInWords(run, left, drainAtMs(run)) : null;
  const paced = wasLate ? slowedByOperator(run, left, drainAtMs(run)) : null;
  // More instances are not what the site has asked for.
  if (slowed !== null)
    advice.push(
      `${left} products were not crawled, ${slowed}. The next plan keeps that pace and no more addresses than were at work; ` +
        'set a later deadline, or with the permission of the site a site.max_rate',
    );
  else if (paced !== null)
    advice.push(
      `${left} products were not crawled, ${paced}. ` +
        (operatorPaceOf(run)?.isForNextPlan === true
          ? `orchestrator pace ${run.id} --reset forgets it; otherwise set a later deadline`
          : 'The next plan is made from the configuration: if the site goes on asking for less, set site.interval'),
    );
  else if (wasLate && needed !== null)
    advice.push(
      needed > run.plan.instances
        ? `at the pace and the boots of this run it takes ${instances(needed)} for ${run.planned} products in ${formatDuration(run.deadlineAtMs - run.startedAtMs)}, not ${run.plan.instances}: ` +
            `set run.min_instances: ${needed}, or a later deadline`
        : `${instances(run.plan.instances)} at the pace of this run would do: losses on the way made it late`,
    );
  else if (wasLate) advice.push('no instance has crawled long enough for an estimate: look at the losses above first');
  advice.push(...refusals(records), ...deaths(launched));
  const lost = launched.filter(
    (r) =>
      r.reason !== null &&
      deathAtLaunch(r) === null &&
      !([LOSS_REASON.notNeeded, LOSS_REASON.banned, LOSS_REASON.rotated] as string[]).includes(r.reason),
  ).length;
  if (lost > 0)
    advice.push(
      `${lost} of ${instances(launched.length)} ${lost === 1 ? 'was' : 'were'} lost: plan a reserve with run.min_instances`,
    );
  const same = `the same plan (${instances(run.plan.instances)}) will do`;
  if (advice.length === 0)
    advice.push(reasons.length === 0 ? `nothing: ${same}` : `${same} once the reasons above are dealt with`);
  return advice;
}

/** The refusals grouped by remedy, the most frequent first: more types do not help where keys have expired. */
function refusals(records: readonly InstanceRecord[]): string[] {
  const refused = records.filter((r) => r.reason === LOSS_REASON.refused || r.reason === LOSS_REASON.poolDry);
  return byRemedy(refused, ({ answer }) => {
    if (answer?.kind !== 'refused') return MORE_POOLS;
    const { cause, message } = answer;
    if (cause === 'credentials' || cause === 'denied')
      return { remedy: rightsRemedy({ cause, message }), said: message };
    if (cause === 'invalid') return { remedy: 'correct that parameter', said: message };
    return MORE_POOLS;
  }).map(({ count, words }) => `${count} ${count === 1 ? 'launch was' : 'launches were'} refused${words}`);
}

const MORE_POOLS = {
  remedy: 'name more types in aws.instance_types and subnets of more zones in aws.subnets',
  said: null,
};

/** Instances that EC2 ended at launch: a reserve would have died as well. */
function deaths(launched: readonly InstanceRecord[]): string[] {
  const dead = launched.filter((r) => deathAtLaunch(r) !== null);
  return byRemedy(dead, (r) => {
    const death = deathAtLaunch(r)!;
    return { remedy: stateReasonRemedy(death), said: stateReasonText(death) };
  }).map(({ count, words }) => `${instances(count)} ${count === 1 ? 'was' : 'were'} ended by EC2 at launch${words}`);
}

/** Number of records per remedy, with AWS's last message. */
function byRemedy(
  records: readonly InstanceRecord[],
  judge: (record: InstanceRecord) => { remedy: string; said: string | null },
): { count: number; words: string }[] {
  const groups = new Map<string, { count: number; words: string }>();
  for (const record of records) {
    const { remedy, said } = judge(record);
    const count = (groups.get(remedy)?.count ?? 0) + 1;
    groups.set(remedy, { count, words: `${said === null ? '' : ` (${said})`}: ${remedy}` });
  }
  return [...groups.values()].sort((a, b) => b.count - a.count);
}

const instances = (n: number): string => `${n} ${n === 1 ? 'instance' : 'instances'}`;

/**
 * The instances that the run would have needed, from their median pace and their slow (p95) boots; null when none has
 * crawled.
 */
function neededInstances({ run, instances, events }: AdviceInput): number | null {
  const paces = instances
    .filter((r) => (r.progress?.requests ?? 0) > 0)
    .map((r) => ownPaceMs(run, r.progress))
    .sort((a, b) => a - b);
  if (paces.length === 0) return null;
  const boots = events
    .filter((e) => e.kind === 'instance' && e.to === 'ready' && e.from !== 'banned')
    .map((e) => e.atMs - claimedAtMs(instances, e))
    .sort((a, b) => a - b);
  const bootMs = boots[Math.floor(boots.length * 0.95)] ?? 0;
  const windowMs = run.deadlineAtMs - run.startedAtMs;
  const each = Math.floor((windowMs - bootMs - tailMs(windowMs)) / paces[Math.floor(paces.length / 2)]!);
  return each <= 0 ? null : Math.ceil(run.planned / each);
}

function claimedAtMs(instances: readonly InstanceRecord[], { slot, epoch, atMs }: RunEvent): number {
  return instances.find((r) => r.slot === slot && r.epoch === epoch)?.claimedAtMs ?? atMs;
}
