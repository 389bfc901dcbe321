/** The end of a run: every product gets an outcome, the rows are published, the report is written. */
import { isAnyHost } from '../../../../shared/domain/domains.ts';
import { mapAll } from '../../../../shared/domain/non-empty.ts';
import { EXIT } from '../../../../shared/domain/exit-codes.ts';
import { banNotes, bansOf, numberNotes } from '../../decide/end/report.ts';
import { type Core, storedRun } from '../../model/core.ts';
import { launchEndOf } from '../../decide/launches/launch-end.ts';
import { regionsOf } from '../../model/run-settings.ts';
import { slowedByOperator } from '../../decide/operator-pace.ts';
import { slowerPaceInWords } from '../../decide/site-cap.ts';
import { isStallCause } from '../../model/stall-causes.ts';
import { LOSS } from '../../decide/slot-attempts.ts';
import { drainAtMs } from '../../model/run-deadlines.ts';
import { stateReasonText } from '../../decide/launches/state-reason.ts';
import { endOf, productsOf, type RunEnd } from '../../decide/end/exit-code.ts';
import { dropOf } from '../../decide/end/product-list.ts';
import { type AssertVerdict, judgeAsserts } from '../../model/assertions.ts';
import { BAND_RUNS, findSuspicion, mayStoreNothing, storedShare } from '../../decide/end/guard.ts';
import { finalReasons, MAX_LEDGER_MISSES } from '../../decide/end/reasons.ts';
import { failRefused, holdForRefused, LISTED } from './refused-rows.ts';
import { commonFrom, failureOf, judgeShared, type SharedVerdict } from '../../decide/end/shared-results.ts';
import { judgeValues, profileOf } from '../../decide/end/value-profile.ts';
import type { HostCounts } from '../../model/run-hosts.ts';
import type { FurtherPagesReport, RunReport, ShardReport } from '../../model/report.ts';
import { endedSiteDown, openReason, uncrawledReason } from '../../decide/uncrawled-reason.ts';
import { intervalOf } from '../../model/operator-pace.ts';
import { intervalUnder } from '../../model/robots-pace.ts';
import { REBUILT } from './run-description.ts';
import { leftBehind } from './left-behind.ts';
import { costOfRun } from '../../decide/end/cost-of-run.ts';
import type {
  InstanceRecord,
  LoadTotals,
  Refusal,
  RunEvent,
  RunReader,
  RunRecord,
  RunStores,
} from '../../model/stores.ts';

/** Maximum number of alarms copied into a report. */
const MAX_ALARMS = 200;

/** What ending a run needs: no EC2, no balancer, no callbacks. */
export type FinishCore = RunStores & Pick<Core, 'clock' | 'log' | 'processState'>;

/**
 * Settles open products, publishes, and moves the run to its end, in that order; a replay changes nothing. Suspicious
 * rows stay in staging, and the run is `held`.
 */
export async function publishRun(core: FinishCore): Promise<void> {
  const startedMs = core.clock.now();
  const run = await core.run.get();
  // Requested again by an observation from before the end.
  if (run?.phase !== 'loading') return;
  core.processState.crawlEndMs ??= startedMs;
  const rest = uncrawledReason(run);
  const isCancelled = run.request === 'cancel';
  const asserts = judgeAsserts(isCancelled ? {} : await core.results.assertDecided());
  const shared = await refuseShared(core, run);
  const instances = await core.fleet.instances();
  const before = await core.work.outcomes();
  const { open } = before;
  const loaded = open > 0 ? await core.results.parts({ state: 'loaded' }) : [];
  const reason = openReason(rest, open, instances, loaded);
  const failed = await core.work.failRest(reason);
  // An outcome never changes, and each count reads every product of the run.
  const outcomes = open === 0 && failed === 0 ? before : await core.work.outcomes();
  const products = productsOf(outcomes);
  const end = endOf({
    ...outcomes,
    request: run.request,
    uncrawledReason: rest,
    onTime: core.clock.now() <= run.deadlineAtMs,
    maxFailed: run.settings.run.maxFailed,
    leftAlone: await leftAloneOf(core.work, run),
    siteDown: endedSiteDown(run),
    stallDetail: isStallCause(run.request) ? core.processState.stallCauses.get(run.request)?.detail : undefined,
    slowedBy: (left) => slowerPaceInWords(run, left, drainAtMs(run)) ?? slowedByOperator(run, left, drainAtMs(run)),
    mayStoreNothing: mayStoreNothing(run, products),
    noInstances: launchEndOf(
      run,
      instances,
      mapAll(regionsOf(run.settings.aws), ({ region }) => core.processState.region(region)),
    ),
    suspicion: await judge(core, run, products, { shared, asserts }),
  });
  if (end.state === 'held') return hold(core, end);
  const most = Math.floor(run.settings.run.maxFailed * products.planned);
  const published = await core.results.publish(end.state, {
    exitCode: end.exitCode,
    reason: end.reason,
    most: Math.max(most, LISTED),
  });
  if ('refused' in published) {
    const reason = await holdForRefused(core, published.refused, most);
    if (reason !== null) return hold(core, { exitCode: EXIT.held, reason });
    await failRefused(core, published.refused);
    return publishRun(core);
  }
  core.processState.publishMs = core.clock.now() - startedMs;
  core.log.info({ rows: published.rows }, 'the run has ended, with these rows in the result table');
  // Staging is a second copy of every row; the parts in the bucket remain the source.
  await core.results.dropStaging();
}

/** Of one site nothing is left alone, and a ledger of millions is not read for it. */
export const leftAloneOf = async (work: RunReader['work'], { settings: { site } }: RunRecord): Promise<number> =>
  isAnyHost(site.productUrl) ? work.leftAlone() : 0;

async function hold(core: FinishCore, { exitCode, reason }: Omit<RunEnd, 'state'>): Promise<void> {
  await core.results.noteNumbers();
  const held = await core.run.move('loading', 'held', { exitCode, ...(reason === null ? {} : { reason }) });
  if (held) core.log.warn({ reason }, 'the rows are held');
  // A cancel request arrived after the run was read: end the run by it.
  else await publishRun(core);
}

/** Refuses products whose requests ended on a page that is not theirs. Returns what else they share. */
async function refuseShared(core: FinishCore, run: RunRecord): Promise<Omit<SharedVerdict, 'fails'>> {
  if (run.request === 'cancel') return { holds: null, notes: [] };
  const least = commonFrom(run.planned, isAnyHost(run.settings.site.productUrl));
  const shared = await core.results.sharedResults(least);
  const known = (await core.feed?.aliases()) ?? [];
  const policy = run.settings.site.samePage ?? 'fail';
  const { fails, ...verdict } = judgeShared(shared, least, policy);
  for (const page of fails) {
    const detail = failureOf(page);
    const ids = await core.results.productsOn(page.page);
    const failed = ids.map((id): Refusal => ({ id, outcome: 'failed', reason: 'redirect', detail }));
    await core.results.refuse(failed, `${detail}, so they failed (redirect), for example ${page.examples.join(', ')}`);
    core.log.warn({ page: page.page, products: page.products }, 'products that ended on one page have failed');
  }
  for (const { page, products, ids } of policy === 'fail' ? await core.results.movedTogether() : []) {
    const detail = `${products} products lead to ${page}`;
    const failed = ids.map((id): Refusal => ({ id, outcome: 'failed', reason: 'redirect', detail }));
    await core.results.refuse(failed, `${detail}, so they failed (redirect)`);
  }
  const aliases = known.map(({ id, of }): Refusal => {
    return { id, outcome: 'gone', reason: null, detail: `the same page as ${of}` };
  });
  await core.results.refuse(
    aliases,
    `${aliases.length} links lead to pages of products that are known by another address`,
  );
  return verdict;
}

/** Stores what the staged rows look like for later runs, and compares it with earlier runs. */
async function judge(
  core: FinishCore,
  run: RunRecord,
  products: ReturnType<typeof productsOf>,
  { shared, asserts }: { shared: Omit<SharedVerdict, 'fails'>; asserts: AssertVerdict },
): Promise<string | null> {
  const stored = storedShare(products);
  if (stored === null || run.request === 'cancel') return null;
  const notes = [...shared.notes, ...asserts.notes];
  const fill = { stored, fields: await core.results.fillOfFields(), ...(notes.length === 0 ? {} : { notes }) };
  const { guard } = run.settings.results;
  const sample = await core.results.valueSample();
  const values = profileOf(sample);
  const earlier = await core.results.earlierValues(values.fingerprint, BAND_RUNS);
  const { holds, note } = judgeValues(sample, values, { earlier, minFill: guard?.minFill ?? 0 });
  const isEmpty = sample.rows.length === 0;
  await core.results.setFill(fill, isEmpty ? null : { ...values, ...(note === null ? {} : { note }) });
  if (!guard) return asserts.holds;
  const onlyFields = mayStoreNothing(run, products);
  const emptier = findSuspicion(fill, await core.results.earlierFills(BAND_RUNS), guard.minFill, onlyFields);
  const others = holds.length === 0 ? null : `values are not those of the last nights: ${holds.join('; ')}`;
  return [asserts.holds, shared.holds, emptier, others].filter((why) => why !== null).join('; ') || null;
}

/** The document of `run --json`, from the database. */
export async function buildReport(
  core: RunReader & Pick<Core, 'processState' | 'clock'> & Partial<Pick<Core, 'robots'>>,
): Promise<RunReport> {
  const run = await storedRun(core);
  const [instances, outcomes, misses, bySlot, counts, alarms, handedOver, incidents, totals] = await Promise.all([
    core.fleet.instances(),
    core.work.outcomes(),
    core.work.misses(MAX_LEDGER_MISSES),
    core.work.outcomesBySlot(),
    core.work.counts(),
    core.run.events(MAX_ALARMS + 1, 'alarm'),
    core.run.events(1, 'chunk'),
    core.fleet.incidents(),
    core.results.totals(),
  ]);
  const left = await leftBehind(core);
  const furtherPages = await furtherPagesOf(core.results, totals);
  const { stored, gone, failed, reasons } = productsOf(outcomes);
  const { linkPages } = outcomes;
  const finishedAtMs = run.finishedAtMs ?? core.clock.now();
  const shards = instances.map((record): ShardReport => {
    const own = bySlot.find((s) => s.slot === record.slot && s.epoch === record.epoch);
    const granted = counts.bySlot.find((s) => s.slot === record.slot && s.epoch === record.epoch);
    return {
      slot: record.slot,
      epoch: record.epoch,
      ...(run.settings.aws.regions && record.request.region ? { region: record.request.region } : {}),
      instanceId: record.instanceId,
      address: record.address,
      assigned: record.progress?.assigned ?? granted?.products ?? 0,
      stored: own?.stored ?? 0,
      gone: own?.gone ?? 0,
      failed: own?.failed ?? 0,
      minGapMs: record.progress?.minGapMs ?? null,
      requests: record.progress?.requests ?? 0,
    };
  });
  const gaps = shards.flatMap((s) => (s.minGapMs === null ? [] : [s.minGapMs]));
  const { processState } = core;
  const robots = core.robots?.policy ?? null;
  const bans = bansOf(incidents);
  const sum = (of: 'requests' | 'canaries' | 'rendered'): number =>
    instances.reduce((total, i) => total + (i.progress?.[of] ?? 0), 0);
  return {
    run: run.id,
    parent: run.parentId,
    state: run.phase,
    reason: run.reason,
    exitCode: run.exitCode ?? EXIT.internal,
    deadline: new Date(run.deadlineAtMs).toISOString(),
    startedAt: new Date(run.startedAtMs).toISOString(),
    finishedAt: run.finishedAtMs === null ? null : new Date(run.finishedAtMs).toISOString(),
    onTime: run.phase !== 'held' && run.finishedAtMs !== null && run.finishedAtMs <= run.deadlineAtMs,
    products: {
      planned: run.planned - (linkPages?.planned ?? 0),
      usual: run.settings.list?.usual ?? null,
      duplicates: run.duplicates,
      stored,
      gone,
      failed,
      reasons,
    },
    ...(isAnyHost(run.settings.site.productUrl) ? { hosts: await hostsOf(core.work, run) } : {}),
    reasons: finalReasons(run, instances, misses, outcomes),
    instances: {
      planned: run.plan.instances,
      launched: instances.filter((i) => i.instanceId !== null).length,
      replaced: instances.filter((i) => i.epoch > 1 && i.instanceId !== null).length,
      terminated: instances.filter((i) => i.instanceId !== null && i.phase === 'terminated').length,
    },
    shards,
    politeness: {
      intervalMs: intervalUnder(robots, intervalOf(run)),
      minGapMs: gaps.length > 0 ? Math.min(...gaps) : null,
      requests: sum('requests'),
      canaries: sum('canaries'),
      robots: robots && { access: robots.access, crawlDelayMs: robots.crawlDelayMs, source: robots.source },
    },
    bans,
    rendered: sum('rendered'),
    ...(run.discovery && core.feed
      ? {
          discovery: {
            ...run.discovery,
            waiting: await core.feed.waiting(),
            linkPages: {
              planned: linkPages?.planned ?? 0,
              stored: linkPages?.stored ?? 0,
              gone: linkPages?.gone ?? 0,
              failed: linkPages?.failed ?? 0,
            },
          },
        }
      : {}),
    ...(totals.unchanged && { unchanged: totals.unchanged }),
    ...(furtherPages && { furtherPages }),
    cost: {
      estimated: run.plan.cost.total,
      actual: costOfRun(run, instances, stored, finishedAtMs).actual.total,
      currency: 'USD',
    },
    timings: {
      launchMs: span(processState.firstLaunchMs, processState.lastLaunchMs),
      dispatchMs: span(processState.firstOfferMs, processState.lastGrantMs),
      crawlMs: span(processState.firstReadyMs, processState.crawlEndMs),
      loadMs: processState.loadMs,
      publishMs: processState.publishMs,
    },
    ...(run.values ? { values: run.values } : {}),
    numbers: (run.numbers ?? []).filter(({ decided, empty }) => decided + empty > 0),
    ...(left.length === 0 ? {} : { leftBehind: left }),
    notes: [
      ...heldNotes(run),
      ...(run.fill?.notes ?? []),
      ...numberNotes(run.numbers ?? []),
      ...listNotes(run),
      ...originNotes(run),
      ...evenness(run, shards, instances, handedOver.length > 0),
      ...banNotes(bans, run.settings),
      ...rotationNotes(instances),
      ...lossNotes(instances),
      ...alarmNotes(alarms),
    ],
  };
}

async function hostsOf(work: RunReader['work'], run: RunRecord): Promise<HostCounts> {
  const { done, givenUp, open } = await work.hosts({ nowMs: 0, intervalMs: intervalOf(run), most: 0 });
  return { done, givenUp, open };
}

/** Partial products named in a report. */
const PARTIAL_EXAMPLES = 5;

async function furtherPagesOf(
  results: RunReader['results'],
  { partial: products = 0 }: LoadTotals,
): Promise<FurtherPagesReport | null> {
  const leftOut = await results.leftOut();
  if (Object.keys(leftOut).length === 0) return null;
  const examples = products === 0 ? [] : await results.partialProducts(PARTIAL_EXAMPLES);
  return { leftOut, partial: { products, examples } };
}

/** What cannot be proved of where the results come from. */
function originNotes({ settings }: RunRecord): string[] {
  if (settings.partsSigned === true && settings.grantsKept === true) return [];
  if (settings.partsSigned === true)
    return [
      'this run was rebuilt from the bucket: which products each instance was granted was lost with the database, so a compromised one may have written rows of others',
    ];
  return [
    'the parts of this run are unsigned: an earlier version began it, whose instances sign none, so any instance may have written them',
  ];
}

/** A run whose shorter list was accepted notes the drop. */
function listNotes({ planned, settings: { list } }: RunRecord): string[] {
  const drop = list?.accepted === true ? dropOf(planned, list.usual) : null;
  return drop === null ? [] : [`products.query yielded ${planned}, ${drop.text}; accepted with --accept-drop`];
}

function span(fromMs: number | null, toMs: number | null): number | null {
  return fromMs === null || toMs === null ? null : Math.max(0, toMs - fromMs);
}

/** What the user can do about held rows. */
function heldNotes(run: RunRecord): string[] {
  if (run.phase !== 'held') return [];
  return [
    `nothing was published: ${run.settings.results.table} is as it was before. Compare the mapping with a page (orchestrator extract); ` +
      `then publish the rows as they are with: orchestrator publish ${run.id}, or discard them with: orchestrator cancel ${run.id}`,
  ];
}

/** The newest alarms first, in a bounded number: a run that alarms for hours must still have a report. */
function alarmNotes(alarms: readonly RunEvent[]): string[] {
  const notes = alarms.slice(0, MAX_ALARMS).map((e) => e.detail ?? '');
  if (alarms.length > MAX_ALARMS) notes.push('and more alarms before these: orchestrator logs has them all');
  return notes;
}

/** Shards are even to within one chunk, or the report explains why not. */
function evenness(
  run: RunRecord,
  shards: readonly ShardReport[],
  instances: readonly InstanceRecord[],
  handedOver: boolean,
): string[] {
  const bySlot = new Map<number, number>();
  for (const shard of shards) bySlot.set(shard.slot, Math.max(bySlot.get(shard.slot) ?? 0, shard.assigned));
  const sizes = [...bySlot.values()];
  if (sizes.length < 2) return [];
  const spread = Math.max(...sizes) - Math.min(...sizes);
  if (spread <= run.plan.chunkSize) return [];
  const causes: string[] = [];
  if (handedOver) causes.push('chunks were transferred to instances that could crawl them sooner');
  if (instances.some((i) => isLoss(i) || i.incident?.verdict === 'banned')) causes.push('slots were lost or banned');
  if (instances.some(wasRotated)) causes.push('addresses were rotated');
  const why = causes.length > 0 ? causes.join(', and ') : 'slots were late, slower or drained';
  return [`shards differ by ${spread} products, more than one chunk of ${run.plan.chunkSize}: ${why}`];
}

const NO_LOSS: readonly string[] = [LOSS.notNeeded, LOSS.rotated, REBUILT];

const isLoss = (i: InstanceRecord): boolean => i.reason !== null && !NO_LOSS.includes(i.reason);

const wasRotated = (i: InstanceRecord): boolean => i.reason === LOSS.rotated;

/** What `aws.recycle_every` has done. */
function rotationNotes(instances: readonly InstanceRecord[]): string[] {
  const count = instances.filter(wasRotated).length;
  return count === 0 ? [] : [`addresses rotated, as aws.recycle_every asks: ${count}`];
}

function lossNotes(instances: readonly InstanceRecord[]): string[] {
  return instances.filter(isLoss).map((i) => {
    const console = i.consoleOutput
      ? `; its console ends: ${i.consoleOutput.trim().split('\n').slice(-5).join(' | ')}`
      : '';
    const why = whyOf(i);
    const error = why === null ? '' : ` (${why})`;
    return `slot ${i.slot} epoch ${i.epoch} (${i.instanceId ?? 'never launched'}) was given up: ${i.reason}${error}${console}`;
  });
}

/** EC2's reason for a failed launch or an ended instance, or ELBv2's for an unhealthy target. */
function whyOf({ answer, stateReason, lastError }: InstanceRecord): string | null {
  if (stateReason !== null) return stateReasonText(stateReason);
  if (answer === null) return lastError;
  return answer.kind === 'refused' ? `${answer.cause}: ${answer.message}` : answer.message;
}
