/** What a heartbeat says of the sender's trouble, into the database. */
import type { Evidence } from '../../shared/domain/verdict.ts';
import type { Heartbeat, Trouble } from '../../shared/wire/callbacks.ts';
import { openTrouble } from './ban-policy.ts';
import type { Core } from './core.ts';
import type { InstanceRecord, TroubleReport } from './stores.ts';

const MAX_URL = 2_000;
const MAX_HEADERS = 40;
const MAX_HEADER = 500;

/** What of the record the heartbeat has changed. Writes only when the trouble began, turned into a ban, or ended. */
export async function noteTrouble(
  core: Core,
  record: InstanceRecord,
  heartbeat: Heartbeat,
): Promise<Partial<InstanceRecord>> {
  const nowMs = core.clock.now();
  const heard = { progress: heartbeat.progress, lastHeartbeatAtMs: nowMs };
  const open = openTrouble(record);
  const { trouble } = heartbeat;
  if ((open?.verdict ?? null) === (trouble?.verdict ?? null)) return heard;
  await core.fleet.noteTrouble(
    core.runId,
    record.slot,
    record.epoch,
    trouble === null ? null : toReport(trouble, nowMs),
    core.fence,
    nowMs,
  );
  if (trouble?.verdict === 'suspect')
    await core.alarm(
      `slot ${record.slot}: a known page is unreadable from ${record.address ?? 'its address'} (${trouble.evidence.rule}); ` +
        'whether it is banned or the site has changed, the other addresses tell',
      record,
    );
  const after = await core.fleet.get(core.runId, record.slot, record.epoch);
  return { ...heard, trouble: after?.trouble ?? null };
}

function toReport(trouble: Trouble, nowMs: number): TroubleReport {
  return {
    verdict: trouble.verdict,
    atMs: nowMs - Math.round(trouble.sinceMs),
    untilMs: trouble.leftMs === null ? null : nowMs + Math.round(trouble.leftMs),
    evidence: trim(trouble.evidence),
  };
}

/** An instance may send as much as a call-back holds; a proof needs less. */
function trim(evidence: Evidence): Evidence {
  const headers = Object.entries(evidence.headers)
    .slice(0, MAX_HEADERS)
    .map(([name, value]) => [name.slice(0, 100), value.slice(0, MAX_HEADER)] as const);
  return { ...evidence, url: evidence.url.slice(0, MAX_URL), headers: Object.fromEntries(headers) };
}
