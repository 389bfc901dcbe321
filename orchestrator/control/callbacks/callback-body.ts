/** What the body of a callback says. */
import { describeError } from '../../../shared/domain/errors.ts';
import type { Heartbeat } from '../../../shared/wire/callbacks.ts';
import { openIncident } from '../decide/ban-policy.ts';
import type { InstanceRecord } from '../model/stores.ts';

/**
 * True when an instance says no more than that it goes on crawling: most heartbeats of a run. What the loop last saw is good enough for
 * the reply then, and the loop need not look; a large fleet speaks hundreds of times a second.
 */
export function isRoutine(heartbeat: Heartbeat, record: Pick<InstanceRecord, 'phase' | 'incident'>): boolean {
  const { progress, offered, transferred, parts, incident, problem } = heartbeat;
  const news = offered.length + transferred.length + parts.length > 0 || incident !== null || problem !== null;
  return record.phase === 'crawling' && progress.pending > 0 && !news && openIncident(record) === null;
}

/** The body as its schema has it, or what is wrong with it. */
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
