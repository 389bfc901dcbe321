/** Alarms of a run at work: the first of each kind is sent at once, repetitions are sent together. */
import { adviceOf, namesOf } from '../../../shared/domain/reason-row.ts';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import { plain } from '../../../shared/domain/terminal-text.ts';
import { openIncident } from '../../core/decide/ban-policy.ts';
import { isStalled } from '../../core/decide/watchdog.ts';
import { isGivenUp } from '../../core/model/instance-state.ts';
import { drainAtMs } from '../../core/model/run-deadlines.ts';
import { isDown, type World } from '../../core/model/world.ts';
import { costOfRun } from '../../core/decide/end/cost-of-run.ts';
import { liveReasons } from '../../core/decide/end/reasons.ts';
import type { AlarmKind } from './notice.ts';
import { dollars } from '../../core/plan/wording.ts';

export interface RaisedAlarm {
  kind: AlarmKind;
  text: string;
}

/** Time between two notices of one kind: an eighth of the run, at least ten minutes. */
const quietMs = (windowMs: number): number => Math.max(600_000, windowMs / 8);

const NEAR_CAP = 0.9;
/** The share of its time before which a run that looks late may still be booting. */
const EARLY = 0.1;

interface Kind {
  isSo: boolean;
  sentMs: number;
  /** Times that it began to be so since then. */
  again: number;
  text: string;
}

export class RunAlarms {
  readonly #kinds = new Map<AlarmKind, Kind>();
  readonly #send: (alarms: RaisedAlarm[], world: World) => void;

  constructor(send: (alarms: RaisedAlarm[], world: World) => void) {
    this.#send = send;
  }

  note(world: World): void {
    const now = conditionsOf(world);
    const windowMs = world.run.deadlineAtMs - world.run.startedAtMs;
    const due: RaisedAlarm[] = [];
    for (const kind of new Set([...now.keys(), ...this.#kinds.keys()])) {
      const text = now.get(kind);
      const known = this.#kinds.get(kind) ?? { isSo: false, sentMs: -Infinity, again: 0, text: '' };
      this.#kinds.set(kind, known);
      if (text !== undefined) {
        known.text = text;
        if (!known.isSo) known.again++;
      }
      known.isSo = text !== undefined;
      if (known.again === 0 || world.nowMs - known.sentMs < quietMs(windowMs)) continue;
      due.push({ kind, text: known.again > 1 ? `${known.text} (${known.again} times)` : known.text });
      [known.sentMs, known.again] = [world.nowMs, 0];
    }
    if (due.length > 0) this.#send(due, world);
  }
}

function conditionsOf(world: World): Map<AlarmKind, string> {
  const { run, nowMs, fleet, forecast, site, stall } = world;
  const found = new Map<AlarmKind, string>();
  if (run.phase !== 'launching' && run.phase !== 'crawling') return found;
  const open = [...fleet.latest.values()].flatMap((r) => (isGivenUp(r) ? [] : (openIncident(r) ?? [])));
  const banned = open.filter(({ verdict }) => verdict === 'banned');
  if (banned.length > 0) {
    const rules = [...new Set(banned.map(({ rule }) => rule))].join(', ');
    found.set('banned', `the site bans ${banned.length} of ${fleet.latest.size} addresses (${rules})`);
  }
  if (isDown(site)) found.set('site-down', `the site is down: ${site.detail}`);
  if (stall !== null && isStalled(world)) {
    const reasons = liveReasons(run, fleet.all);
    const [first] = reasons;
    const why = first === undefined ? '' : ` (${plain(namesOf(reasons))}; ${plain(adviceOf(first), 600)})`;
    found.set('no-progress', `no progress for ${formatDuration(stall.ms)}${why}`);
  }
  const passed = (nowMs - run.startedAtMs) / (run.deadlineAtMs - run.startedAtMs);
  const end = forecast?.end.p50Ms ?? null;
  if (passed > EARLY && end !== null && end > drainAtMs(run))
    found.set('late', `it will be late by ${formatDuration(end - drainAtMs(run))}; what is there by then is published`);
  const { maxCost } = run.settings.run;
  const soFar = maxCost === null ? 0 : costOfRun(run, fleet.all, 0, nowMs).actual.total;
  if (maxCost !== null && soFar > maxCost * NEAR_CAP)
    found.set('cost', `it has cost ${dollars(soFar)} of ${dollars(maxCost)}; at the cap it ends with what it has`);
  return found;
}
