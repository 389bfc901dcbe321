/**
 * The bucket as a second channel from an instance: when its callbacks do not arrive, its parts and its manifest still
 * do. A lost callback then costs time, not results.
 */
import { epochKey } from '../../../shared/domain/epoch-id.ts';
import { describeError } from '../../../shared/domain/errors.ts';
import { parseManifestKey, parsePartKey, runPrefix, shardPrefix } from '../../../shared/domain/keys.ts';
import type { RunLimits } from '../../../shared/domain/limits.ts';
import { isServing } from '../../../shared/domain/states.ts';
import type { PartRef } from '../../../shared/wire/callbacks.ts';
import type { Core } from '../model/core.ts';
import { isForeignObject, sortManifests } from '../act/results/close-epoch.ts';
import { countProducts, isDamaged, type PartName } from '../act/results/load-parts.ts';
import { isFromInstance, UNSIGNED } from '../act/results/part-origin.ts';
import { alarmOnce } from '../act/run-notes.ts';
import type { InstanceRecord, RunRecord } from '../model/stores.ts';
import type { World } from '../model/world.ts';

export class ManifestPoll {
  readonly #core: Core;
  readonly #startedAtMs: number;
  /** Time of the last part of each polled instance, by `<slot>.<epoch>`. */
  readonly uploads = new Map<string, number>();
  readonly #polledAtMs = new Map<string, number>();
  /** Epochs whose manifest was found, so that a refused one is not recorded again and again. */
  readonly #found = new Set<string>();
  /** Keys of parts that cannot be read, and of foreign manifests: they are read once. */
  readonly #ignored = new Set<string>();
  #busy = false;
  #askedAtMs = -Infinity;

  constructor(core: Core) {
    this.#core = core;
    this.#startedAtMs = core.clock.now();
  }

  /**
   * Polls the bucket for overdue instances, in the background: silent for half of `lostMs`, or uploading for that long
   * without a completion. At most once in a third of `lostMs` for each instance.
   */
  look(instances: readonly InstanceRecord[], limits: RunLimits): void {
    if (this.#busy) return;
    const now = this.#core.clock.now();
    const due = instances.filter((record) => this.#isDue(record, limits, now));
    if (due.length === 0) return;
    this.#inBackground(this.#poll(due));
  }

  /** When an instance has a problem or nothing comes in: does the bucket answer at all? The object store reports it. */
  ask({ nowMs, limits, fleet, stall }: Pick<World, 'nowMs' | 'limits' | 'fleet' | 'stall'>): void {
    const isWorth = (stall?.ms ?? 0) > limits.lostMs || fleet.all.some((r) => isServing(r.phase) && r.problem !== null);
    if (this.#busy || !isWorth || Math.abs(nowMs - this.#askedAtMs) < limits.lostMs / 3) return;
    this.#askedAtMs = nowMs;
    this.#inBackground(this.#touch());
  }

  #inBackground(work: Promise<void>): void {
    this.#busy = true;
    void work.finally(() => (this.#busy = false));
  }

  async #touch(): Promise<void> {
    const { objects, runId, log } = this.#core;
    try {
      for await (const _ of objects.list(runPrefix(runId))) return;
    } catch (error) {
      log.warn({ error: describeError(error) }, 'the bucket does not answer');
    }
  }

  #isDue(record: InstanceRecord, limits: RunLimits, now: number): boolean {
    if (!isServing(record.phase) || record.manifestKey !== null || record.publicKey === null) return false;
    const heardMs = record.phase === 'uploading' ? record.phaseAtMs : (record.lastHeartbeatAtMs ?? record.phaseAtMs);
    if (now - Math.max(heardMs, this.#startedAtMs) < limits.lostMs / 2) return false;
    return now - (this.#polledAtMs.get(epochKey(record)) ?? 0) >= limits.lostMs / 3;
  }

  async #poll(due: readonly InstanceRecord[]): Promise<void> {
    const { results, run: row, log } = this.#core;
    try {
      const run = await row.get();
      if (run === null) return;
      const known = new Set((await results.parts()).map((p) => p.key));
      for (const record of due) await this.#pollOne(run, record, known);
    } catch (error) {
      log.warn({ error: describeError(error) }, 'the bucket cannot be polled for silent instances');
    }
  }

  async #pollOne(run: RunRecord, record: InstanceRecord, known: ReadonlySet<string>): Promise<void> {
    const core = this.#core;
    const { slot, epoch } = record;
    const name = epochKey(record);
    this.#polledAtMs.set(name, core.clock.now());
    const parts: PartRef[] = [];
    const manifests: string[] = [];
    for await (const object of core.objects.list(shardPrefix(core.runId, slot, epoch))) {
      if (parseManifestKey(core.runId, object.key) && !this.#ignored.has(object.key)) manifests.push(object.key);
      // Clocks differ: nothing was put into the bucket later than now.
      const atMs = Math.min(object.modifiedAtMs ?? 0, core.clock.now());
      if (atMs > (this.uploads.get(name) ?? 0)) this.uploads.set(name, atMs);
      const isKnown = known.has(object.key) || this.#ignored.has(object.key);
      const part = isKnown ? null : parsePartKey(core.runId, object.key);
      if (!part) continue;
      const { key: partKey, sizeBytes } = object;
      if (!(await this.#isOwn(run, record, { seq: part.seq, key: partKey, sizeBytes }))) continue;
      const products = await this.#countProducts({ key: partKey, sha256: part.sha256, sizeBytes });
      if (products !== null) parts.push({ seq: part.seq, key: partKey, sha256: part.sha256, sizeBytes, products });
    }
    await core.results.register({ slot, epoch }, parts);
    if (parts.length > 0) core.log.info({ slot, epoch, parts: parts.length }, 'parts of a silent instance are found');
    if (manifests.length === 0 || this.#found.has(name)) return;
    const { proven, foreign } = await sortManifests(core.objects, run, record, manifests);
    for (const key of foreign) {
      this.#ignored.add(key);
      await core.alarm(isForeignObject(key, record), { slot, epoch });
    }
    if (proven[0] === undefined) return;
    const { key } = proven[0];
    this.#found.add(name);
    // It may have been given up since the bucket was listed: then `close` looks for the manifest itself.
    if (await core.fleet.noteManifest({ slot, epoch }, { manifestKey: key, manifestSha256: null }))
      core.log.info({ slot, epoch }, 'the manifest of a silent instance is found');
  }

  /** An alarm names any other, once. */
  async #isOwn(
    run: RunRecord,
    record: InstanceRecord,
    part: Pick<PartRef, 'seq' | 'key' | 'sizeBytes'>,
  ): Promise<boolean> {
    const core = this.#core;
    const { slot, epoch } = record;
    if (await isFromInstance(core, run, record, part)) return true;
    await alarmOnce(core, `unsigned ${part.key}`, `part ${part.key} is ignored: ${UNSIGNED}`, { slot, epoch });
    return false;
  }

  /**
   * The products of a part; null for an unreadable one: the manifest, or the closing of the epoch, decides what becomes
   * of it.
   */
  async #countProducts(part: PartName): Promise<number | null> {
    try {
      return await countProducts(this.#core.objects, part);
    } catch (error) {
      if (!isDamaged(error)) throw error;
      this.#ignored.add(part.key);
      return null;
    }
  }
}
