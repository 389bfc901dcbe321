/** I2, I5, I7, I11: nothing is left running, nothing is launched twice, no wait is without an end. */
import { EXIT } from '../../../shared/domain/exit-codes.ts';
import { INSTANCE_PHASE_FACTS } from '../../../shared/domain/phases.ts';
import { type InstancePhase, isRunEnd } from '../../../shared/domain/states.ts';
import { hourlyPrice, IPV4_HOUR } from '../../../orchestrator/core/plan/price-table.ts';
import { LOSS_REASON } from '../../../orchestrator/core/model/loss-reason.ts';
import type { InstanceRecord } from '../../../orchestrator/core/model/stores.ts';
import { limitsOf, powerOffAtMs } from '../../../orchestrator/core/model/run-deadlines.ts';
import { type History, placeOf, type SeenMachine, type Violation, violationsOf } from './history.ts';

/** Maximum machines of a slot, apart from address rotations. */
const MOST_OF_A_SLOT = 3;

/**
 * I2: no machine outlives min(end, deadline) + grace, and no foreign machine is touched. A machine is ended by its main
 * server, its own timer, or gc. Where the first two are missing, gc must have ended it, or the run says that it is left
 * behind.
 */
export function checkLeftovers(history: History): Violation[] {
  const { run, machines, instances, nowMs, outageMs, abandoned, gcUntilMs } = history;
  const found: string[] = [];
  const left = history.events.flatMap(({ kind, detail }) => (kind === 'left-behind' ? (detail ?? []) : [])).join('\n');
  const endMs = abandoned ? run.deadlineAtMs : Math.min(run.finishedAtMs ?? Infinity, run.deadlineAtMs + outageMs);
  const ownLastMs = endMs + run.settings.run.graceMs + (abandoned ? 0 : limitsOf(run).terminateMs);
  for (const machine of machines ?? []) {
    if (machine.slot === null) {
      if (machine.terminated) found.push(`${machine.id} does not belong to this run, but was terminated`);
      continue;
    }
    if (machine.timer === false && run.exitCode === EXIT.config && left.includes(machine.id)) continue;
    const lastMs = machine.timer === false ? Math.max(ownLastMs, gcUntilMs ?? 0) : ownLastMs;
    if (machine.toMs === null && nowMs > lastMs) found.push(`${machine.id} (${placeOf(machine)}) still runs`);
    if (machine.toMs !== null && machine.toMs > lastMs)
      found.push(`${machine.id} (${placeOf(machine)}) ran ${machine.toMs - lastMs} ms too long`);
  }
  if (machines === null && isRunEnd(run.phase))
    for (const record of instances.filter((i) => i.phase !== 'terminated'))
      found.push(`${placeOf(record)} is ${record.phase} after the end of the run`);
  return violationsOf('I2', found);
}

/** I5: what the machines cost stays under the cap. */
export function checkSpend({ run, machines, nowMs }: History): Violation[] {
  const { maxCost } = run.settings.run;
  if (maxCost === null || machines === null) return [];
  const own = machines.filter((m) => m.slot !== null);
  const hours = own.map((m) => Math.max(60, Math.ceil(((m.toMs ?? nowMs) - m.fromMs) / 1_000)) / 3_600);
  const each = hourlyPrice(run.settings.aws.region, run.plan.instanceType).usd + IPV4_HOUR;
  const spent = hours.reduce((sum, h) => sum + h * each, 0);
  return violationsOf(
    'I5',
    spent > maxCost ? [`$${spent.toFixed(4)} were spent on machines, the cap is $${maxCost}`] : [],
  );
}

/** I7: one machine for each (slot, epoch), never more at once than planned, and no slot filled without limit. */
export function checkLaunches({ run, machines, instances, events }: History): Violation[] {
  const found: string[] = [];
  const own = (machines ?? []).filter((m) => m.slot !== null);
  for (const [place, same] of Map.groupBy(own, placeOf))
    if (same.length > 1) found.push(`${place} has ${same.length} machines: ${same.map((m) => m.id).join(', ')}`);
  for (const [slot, same] of Map.groupBy(own, (m) => m.slot))
    if (same.length > MOST_OF_A_SLOT + renewedIn(instances, slot))
      found.push(`slot ${slot} was filled ${same.length} times`);
  const slots = new Set([...instances.map((i) => i.slot), ...Array(run.plan.instances).keys()]).size;
  const bySlot = Map.groupBy(own, (m) => m.slot);
  // One replacement may start while the old machine of the slot is ending, never two.
  for (const [slot, same] of bySlot) {
    const most = mostAtOnce(same);
    if (most > 2) found.push(`slot ${slot} had ${most} machines at once`);
  }
  for (const { slot, epoch, detail, atMs } of events.filter((e) => e.kind === 'instance' && e.to === 'lost')) {
    if (!detail?.startsWith('ec2-')) continue;
    const machine = own.find((m) => m.slot === slot && m.epoch === epoch);
    if (machine?.goneMs !== undefined && (machine.goneMs ?? Infinity) > atMs)
      found.push(`${machine.id} was given up as gone (${detail}) while it ran`);
  }
  if (bySlot.size > slots) found.push(`${bySlot.size} slots have machines, ${slots} are claimed`);
  return violationsOf('I7', found);
}

/** Epochs that ended by an address rotation: each is followed by one more machine, as intended. */
const renewedIn = (instances: readonly InstanceRecord[], slot: number | null): number =>
  instances.filter((i) => i.slot === slot && i.reason === LOSS_REASON.rotated).length;

function mostAtOnce(machines: readonly SeenMachine[]): number {
  return Math.max(
    0,
    ...machines.map((m) => machines.filter((o) => o.fromMs <= m.fromMs && (o.toMs ?? Infinity) > m.fromMs).length),
  );
}

/** I11: every phase but the last has a limit after which the instance leaves it, whatever happens. */
export function checkWaits({ run, events, nowMs, outageMs, abandoned }: History): Violation[] {
  if (abandoned) return [];
  const found: string[] = [];
  const limits = limitsOf(run);
  const untilEndMs = powerOffAtMs(run) - run.startedAtMs + limits.terminateMs;
  const patience = outageMs + limits.lostMs + limits.heartbeatMs;
  const waitMs = { boot: limits.bootMs + patience, 'power-off': untilEndMs, person: Infinity };
  const mostOf = (phase: InstancePhase): number => {
    const { last } = INSTANCE_PHASE_FACTS[phase];
    return last === null ? Infinity : waitMs[last];
  };
  const entered = new Map<string, { phase: InstancePhase; atMs: number }>();
  const leave = (place: string, atMs: number): void => {
    const last = entered.get(place);
    if (last && atMs - last.atMs > mostOf(last.phase) + outageMs)
      found.push(`${place} was ${last.phase} for ${atMs - last.atMs} ms`);
  };
  for (const event of events) {
    if (event.kind !== 'instance' || event.to === null) continue;
    leave(placeOf(event), event.atMs);
    entered.set(placeOf(event), { phase: event.to as InstancePhase, atMs: event.atMs });
  }
  for (const place of entered.keys()) leave(place, nowMs);
  if (!isRunEnd(run.phase) && nowMs > powerOffAtMs(run) + limits.uploadMs + limits.terminateMs + outageMs)
    found.push(`the run is still ${run.phase}`);
  return violationsOf('I11', found);
}
