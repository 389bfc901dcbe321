/** Records the incident that a heartbeat reports. */
import type { Evidence } from '../../../shared/domain/verdict.ts';
import type { Heartbeat, Incident } from '../../../shared/wire/callbacks.ts';
import { openIncident } from '../decide/ban-policy.ts';
import type { Core } from '../model/core.ts';
import type { InstanceRecord, IncidentReport } from '../model/stores.ts';

const MAX_URL = 2_000;
const MAX_HEADERS = 40;
const MAX_HEADER = 500;

/** Returns what the heartbeat changes in the record. Writes only when the incident began, became a ban, or ended. */
export async function recordIncident(
  core: Core,
  record: InstanceRecord,
  heartbeat: Heartbeat,
): Promise<Partial<InstanceRecord>> {
  const nowMs = core.clock.now();
  const heard = { progress: heartbeat.progress, lastHeartbeatAtMs: nowMs };
  const open = openIncident(record);
  const { incident } = heartbeat;
  if ((open?.verdict ?? null) === (incident?.verdict ?? null)) return heard;
  await core.fleet.recordIncident(record, incident === null ? null : toReport(incident, nowMs));
  if (incident?.verdict === 'suspect')
    await core.alarm(
      `slot ${record.slot}: a canary page is unreadable from ${record.address ?? 'its address'} (${incident.evidence.rule}); ` +
        'the other addresses will show whether it is banned or the site has changed',
      record,
    );
  const after = await core.fleet.get(record);
  return { ...heard, incident: after?.incident ?? null };
}

function toReport(incident: Incident, nowMs: number): IncidentReport {
  return {
    verdict: incident.verdict,
    atMs: nowMs - Math.round(incident.sinceMs),
    untilMs: incident.leftMs === null ? null : nowMs + Math.round(incident.leftMs),
    evidence: trim(incident.evidence),
  };
}

/** An instance may send as much as a callback holds; evidence needs less. */
function trim(evidence: Evidence): Evidence {
  const headers = Object.entries(evidence.headers)
    .slice(0, MAX_HEADERS)
    .map(([name, value]) => [name.slice(0, 100), value.slice(0, MAX_HEADER)] as const);
  return { ...evidence, url: evidence.url.slice(0, MAX_URL), headers: Object.fromEntries(headers) };
}
