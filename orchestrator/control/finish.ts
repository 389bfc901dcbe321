/** The end of a run: every product gets an outcome, the rows are published, the report is written. */
import { FAILURE_REASONS } from '../../shared/domain/outcome.ts';
import type { FailureReason } from '../../shared/domain/outcome.ts';
import { EXIT } from '../../shared/domain/exit-codes.ts';
import { actualCost } from '../plan/prices.ts';
import type { Core } from './core.ts';
import { LOSS } from './decide-slot.ts';
import { endOf } from './exit-code.ts';
import type { RunReport, ShardReport } from './report.ts';
import type { InstanceRecord, RunRecord } from './stores.ts';

/** Settles what is open, publishes, and moves the run to its end, in that order; a replay changes nothing. */
export async function publishRun(core: Core, run: RunRecord): Promise<void> {
  const startedMs = core.clock.now();
  core.marks.crawlEndMs ??= startedMs;
  await core.work.failRest(run.id, restReason(run), core.fence, startedMs);
  const outcomes = await core.work.outcomes(run.id);
  const instances = await core.fleet.instances(run.id);
  const end = endOf({
    ...outcomes,
    request: run.request,
    onTime: core.clock.now() <= run.deadlineAtMs,
    maxFailed: run.settings.run.maxFailed,
    noInstances: refusalOf(instances),
  });
  const published = await core.results.publish(
    run.id,
    end.state,
    { exitCode: end.exitCode, reason: end.reason },
    core.fence,
    core.clock.now(),
  );
  core.marks.publishMs = core.clock.now() - startedMs;
  core.log.info({ rows: published.rows, state: end.state }, 'rows are published');
  // A second copy of every row; the parts in the bucket are the source if it is ever needed again.
  await core.results.dropStaging(run.id);
}

function refusalOf(instances: readonly InstanceRecord[]): 'capacity' | 'rights' | null {
  if (instances.length === 0 || instances.some((i) => i.instanceId !== null)) return null;
  return instances.some((i) => /^refused (denied|invalid)/.test(i.lastError ?? '')) ? 'rights' : 'capacity';
}

/** The reason noted when crawling ended, for the products that were left. */
function restReason(run: RunRecord): FailureReason {
  return FAILURE_REASONS.find((r) => r === run.reason) ?? 'lost-instance';
}

/** The document of `run --json`, from the database. */
export async function buildReport(
  core: Pick<Core, 'runs' | 'fleet' | 'work' | 'marks' | 'clock'>,
  runId: string,
): Promise<RunReport> {
  const run = (await core.runs.get(runId))!;
  const [instances, outcomes, bySlot, counts, events] = await Promise.all([
    core.fleet.instances(runId),
    core.work.outcomes(runId),
    core.work.outcomesBySlot(runId),
    core.work.counts(runId),
    core.runs.events(runId, 200),
  ]);
  const finishedAtMs = run.finishedAtMs ?? core.clock.now();
  const shards = instances.map((record): ShardReport => {
    const own = bySlot.find((s) => s.slot === record.slot && s.epoch === record.epoch);
    const granted = counts.bySlot.find((s) => s.slot === record.slot && s.epoch === record.epoch);
    return {
      slot: record.slot,
      epoch: record.epoch,
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
  const { marks } = core;
  return {
    run: run.id,
    state: run.phase,
    reason: run.reason,
    exitCode: run.exitCode ?? EXIT.internal,
    deadline: new Date(run.deadlineAtMs).toISOString(),
    startedAt: new Date(run.startedAtMs).toISOString(),
    finishedAt: run.finishedAtMs === null ? null : new Date(run.finishedAtMs).toISOString(),
    onTime: run.finishedAtMs !== null && run.finishedAtMs <= run.deadlineAtMs,
    products: {
      planned: run.planned,
      duplicates: run.duplicates,
      stored: outcomes.stored,
      gone: outcomes.gone,
      failed: outcomes.failed,
      reasons: outcomes.reasons,
    },
    instances: {
      planned: run.plan.instances,
      launched: instances.filter((i) => i.instanceId !== null).length,
      replaced: instances.filter((i) => i.epoch > 1 && i.instanceId !== null).length,
      terminated: instances.filter((i) => i.instanceId !== null && i.phase === 'terminated').length,
    },
    shards,
    politeness: { intervalMs: run.settings.site.intervalMs, minGapMs: gaps.length > 0 ? Math.min(...gaps) : null },
    cost: {
      estimated: run.plan.cost.total,
      actual: costOf(run, instances, finishedAtMs),
      currency: 'USD',
    },
    timings: {
      launchMs: span(marks.firstLaunchMs, marks.lastLaunchMs),
      dispatchMs: span(marks.firstOfferMs, marks.lastGrantMs),
      crawlMs: span(marks.firstReadyMs, marks.crawlEndMs),
      loadMs: marks.loadMs,
      publishMs: marks.publishMs,
    },
    notes: [
      ...evenness(run, shards),
      ...lossNotes(instances),
      ...events.filter((e) => e.kind === 'alarm').map((e) => e.detail ?? ''),
    ],
  };
}

function span(fromMs: number | null, toMs: number | null): number | null {
  return fromMs === null || toMs === null ? null : Math.max(0, toMs - fromMs);
}

function costOf(run: RunRecord, instances: readonly InstanceRecord[], finishedAtMs: number): number {
  const used = instances
    .filter((i) => i.instanceId !== null)
    .map((i) => ({
      instanceType: i.request.instanceType,
      launchedAtMs: i.launchedAtMs ?? i.claimedAtMs,
      endedAtMs: i.terminatedAtMs ?? finishedAtMs,
    }));
  return actualCost({
    region: run.settings.aws.region,
    instances: used,
    startedAtMs: run.startedAtMs,
    finishedAtMs,
    products: run.planned,
  }).total;
}

/** Shards are even to within one chunk, or the report says why not. */
function evenness(run: RunRecord, shards: readonly ShardReport[]): string[] {
  const bySlot = new Map<number, number>();
  for (const shard of shards) bySlot.set(shard.slot, Math.max(bySlot.get(shard.slot) ?? 0, shard.assigned));
  const sizes = [...bySlot.values()];
  if (sizes.length < 2) return [];
  const spread = Math.max(...sizes) - Math.min(...sizes);
  if (spread <= run.plan.chunkSize) return [];
  return [
    `shards differ by ${spread} products, more than one chunk of ${run.plan.chunkSize}: slots were lost, late or drained`,
  ];
}

function lossNotes(instances: readonly InstanceRecord[]): string[] {
  return instances
    .filter((i) => i.reason !== null && i.reason !== LOSS.notNeeded)
    .map((i) => {
      const console = i.consoleOutput
        ? `; its console ends: ${i.consoleOutput.trim().split('\n').slice(-5).join(' | ')}`
        : '';
      const error = i.lastError ? ` (${i.lastError})` : '';
      return `slot ${i.slot} epoch ${i.epoch} (${i.instanceId ?? 'never launched'}) was given up: ${i.reason}${error}${console}`;
    });
}
