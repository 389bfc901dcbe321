/** I9, I12: unauthorized callers change nothing, and no secret is written where people read. */
import type { History, Violation } from './history.ts';
import { violationsOf } from './history.ts';

/** I9: forged, replayed and foreign callbacks are refused, and a main server without the lock writes nothing. */
export function checkIntruders({ intruders, writes }: History): Violation[] {
  const found: string[] = [];
  for (const { what, status, accepted } of intruders ?? [])
    if (accepted) found.push(`${what} was answered with ${status}`);
  for (const { method, fenced } of writes ?? []) if (!fenced) found.push(`${method} was written under an old fence`);
  return violationsOf('I9', found.slice(0, 5));
}

/** I12: no secret in logs, alarms and reports. */
export function checkSecrets({ texts, secrets }: History): Violation[] {
  const leaked = (secrets ?? []).filter((secret) => (texts ?? []).some((text) => text.includes(secret)));
  return violationsOf('I12', leaked.length > 0 ? [`${leaked.length} secrets are in logs, alarms or the report`] : []);
}
