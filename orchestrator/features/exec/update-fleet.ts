/**
 * Puts a bundle onto the instances of a running run, one after another: the use case of `orchestrator exec --update`.
 * The journal of an instance keeps its products and its pace over the restart; what it was fetching is fetched again.
 */
import { epochKey } from '../../../shared/domain/epoch-id.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { bundleKey } from '../../../shared/domain/keys.ts';
import { limitsFor } from '../../../shared/domain/limits.ts';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import type { InstancePhase } from '../../../shared/domain/states.ts';
import { plain } from '../../../shared/domain/terminal-text.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { ObjectStore } from '../../../shared/ports/object-store.ts';
import { ROLL_BACK_SCRIPT, updateScript } from '../../../userdata/update-bundle.ts';
import type { CommandResult, CommandRunner } from './command-runner.ts';
import { INSTANCE_BUNDLE, LAUNCH_BUNDLE } from '../../core/act/launches/updated-bundle.ts';
import { eventOf } from '../../core/model/run-event.ts';
import type { InstanceRecord, RunReader, RunRecord, RunStore } from '../../core/model/stores.ts';
import { bundlesOf } from '../../core/cloud-access/launch-template.ts';
import { getRun } from '../../core/lookup/find-run.ts';
import { holderAtWork } from '../../core/lookup/run-lock.ts';

export interface UpdateParts {
  run: RunRecord;
  runs: RunStore;
  /** The row of the run, for the events that record what runs which bundle. */
  row: Pick<RunReader['run'], 'events' | 'addEvent'>;
  fleet: RunReader['fleet'];
  runner: CommandRunner;
  objects: Pick<ObjectStore, 'presignGet'>;
  clock: Clock;
  /** The SHA-256 of the bundle, which is in the bucket. */
  sha256: string;
  /** Reports each step. */
  say: (text: string) => void;
}

export interface UpdateReport {
  run: string;
  bundle: string;
  updated: UpdatedInstance[];
  /** The instance at which the update stopped, and why; null when it did not. */
  failed: (UpdatedInstance & { reason: string }) | null;
  /** Instances that still run another bundle. */
  left: UpdatedInstance[];
  /** True when later launches of the run get the bundle. */
  launches: boolean;
}

type UpdatedInstance = Pick<InstanceRecord, 'slot' | 'epoch' | 'instanceId'>;

/** Time for fetching, checking and replacing. */
const SCRIPT_MS = 240_000;
const URL_MS = 15 * 60_000;
const ROLL_BACK_MS = 30_000;
const LOOK_EVERY_MS = 250;
const EVENTS = 10_000;

const CRAWLS: ReadonlySet<InstancePhase> = new Set(['ready', 'crawling', 'banned']);
/** The phases of instances that will crawl with the bundle that they were claimed with. */
const BOOTS: ReadonlySet<InstancePhase> = new Set(['claimed', 'pending', 'booting']);

/**
 * Stops at the first instance that does not come back, after putting back what that one ran before. Once the first
 * instance runs the bundle, later launches get it too. `signal` stops it between two instances. Repeating it goes on
 * where it stopped. Throws `usage` when no main server could see the instances come back.
 */
export async function updateFleet(parts: UpdateParts, signal: AbortSignal): Promise<UpdateReport> {
  const { run, runs, row, clock, sha256, say } = parts;
  if ((await holderAtWork(runs, run)) === null)
    throw new AppError(
      'usage',
      `no main server works on run ${run.id}, so nothing would show that an instance is back`,
      {
        hint: `Take the run up with: orchestrator resume ${run.id}`,
      },
    );
  const updated: UpdatedInstance[] = [];
  let failed: UpdateReport['failed'] = null;
  let launches = (await row.events(1, LAUNCH_BUNDLE))[0]?.detail === sha256;
  while (failed === null && !signal.aborted) {
    const { crawling, booting } = await others(parts);
    const next = crawling[0];
    if (next === undefined) {
      if (booting.length === 0 || (await getRun(runs, run.id)).phase === 'releasing') break;
      await clock.sleep(LOOK_EVERY_MS, signal);
      continue;
    }
    const reason = await updateInstance(parts, next);
    const { slot, epoch, instanceId } = next;
    if (reason !== null) {
      failed = { slot, epoch, instanceId, reason };
      break;
    }
    await row.addEvent(eventOf(INSTANCE_BUNDLE, clock.now(), sha256, next));
    updated.push({ slot, epoch, instanceId });
    say(`slot ${slot}: ${instanceId} runs bundle ${sha256.slice(0, 12)}`);
    if (!launches) await row.addEvent(eventOf(LAUNCH_BUNDLE, clock.now(), sha256));
    launches = true;
  }
  const { crawling, booting } = await others(parts);
  const left = [...crawling, ...booting].map(({ slot, epoch, instanceId }) => ({ slot, epoch, instanceId }));
  return { run: run.id, bundle: sha256, updated, failed, left, launches };
}

/** The instances with another bundle that crawl, or will. */
async function others({ row, fleet, sha256 }: UpdateParts) {
  const events = await row.events(EVENTS, INSTANCE_BUNDLE);
  const bundles = new Map(
    events.toReversed().flatMap(({ slot, epoch, detail }) => {
      return slot === null || epoch === null ? [] : [[epochKey({ slot, epoch }), detail] as const];
    }),
  );
  const all = (await fleet.instances()).filter((i) => (bundles.get(epochKey(i)) ?? bundlesOf([i])[0]) !== sha256);
  return { crawling: all.filter((i) => CRAWLS.has(i.phase)), booting: all.filter((i) => BOOTS.has(i.phase)) };
}

/** Updates an instance. Null when it runs the bundle, else why it does not. */
async function updateInstance(parts: UpdateParts, instance: InstanceRecord): Promise<string | null> {
  const { run, fleet, objects, sha256, clock } = parts;
  // A script that is cut off would leave a mixture: only its own time limit ends it.
  const shell = async (command: string, timeoutMs: number): Promise<CommandResult> =>
    (
      await parts.runner.run({ instanceIds: [instance.instanceId!], command, timeoutMs }, new AbortController().signal)
    )[0]!;
  const url = await objects.presignGet(bundleKey(sha256), URL_MS);
  const result = await shell(updateScript({ url, sha256 }), SCRIPT_MS);
  const rollBack = async (why: string): Promise<string> => {
    const back = await shell(ROLL_BACK_SCRIPT, ROLL_BACK_MS);
    return `${why}; ${isDone(back) ? 'it runs its old bundle' : `its old bundle could not be put back: ${reasonOf(back)}`}`;
  };
  if (result.status === 'unreachable') return 'it cannot be reached: no SSM agent answers there';
  if (!isDone(result)) return rollBack(reasonOf(result));
  // The old process is dead: a heartbeat from now on is of the new one.
  const heardAtMs = (await fleet.get(instance))?.lastHeartbeatAtMs;
  // Half of the silence for the new program, half for the old one after it.
  const patienceMs = Math.round(limitsFor(run.deadlineAtMs - run.startedAtMs).lostMs / 2);
  const untilMs = clock.monotonic() + patienceMs;
  while (clock.monotonic() < untilMs) {
    const now = await fleet.get(instance);
    if (now === null || now.lastHeartbeatAtMs !== heardAtMs) return null;
    if (!CRAWLS.has(now.phase)) return `it is ${now.phase} since its restart`;
    await clock.sleep(LOOK_EVERY_MS);
  }
  return rollBack(`the new program sent no heartbeat within ${formatDuration(patienceMs)}`);
}

const isDone = ({ status, exitCode }: CommandResult): boolean => status === 'ended' && exitCode === 0;

function reasonOf({ status, exitCode, stderr }: CommandResult): string {
  if (status !== 'ended') return `the command is ${status}`;
  const last = stderr.trim().split('\n').at(-1) ?? '';
  return `exit code ${exitCode}${last === '' ? '' : `, ${plain(last)}`}`;
}
