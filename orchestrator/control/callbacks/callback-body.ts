/** Parses and classifies the bodies of callbacks. */
import { describeError } from '../../../shared/domain/errors.ts';
import type { Heartbeat } from '../../../shared/wire/callbacks.ts';
import { openIncident } from '../decide/ban-policy.ts';
import type { InstanceRecord } from '../model/stores.ts';

/**
 * True when a heartbeat only reports that the instance goes on crawling, as most do. Then the last observed world is
 * good enough for the reply, and the loop need not wake up; a large fleet sends hundreds of heartbeats a second.
 */
export function isRoutine(heartbeat: Heartbeat, record: Pick<InstanceRecord, 'phase' | 'incident'>): boolean {
  const { progress, offered, transferred, parts, incident, problem } = heartbeat;
  const news = offered.length + transferred.length + parts.length > 0 || incident !== null || problem !== null;
  return record.phase === 'crawling' && progress.pending > 0 && !news && openIncident(record) === null;
}

/** The body parsed by its schema, or what is wrong with it. */
export function parseBody<T>(
  schema: { parse(value: unknown): T },
  body: Uint8Array,
): { ok: true; value: T } | { ok: false; error: string } {
  try {
    return { ok: true, value: schema.parse(JSON.parse(Buffer.from(body).toString('utf8'))) };
  } catch (error) {
    return { ok: false, error: describeError(error).slice(0, 500) };
  }
}
