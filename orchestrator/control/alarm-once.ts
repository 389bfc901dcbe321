/** Alarms about what goes on for a while: said once, not at every try. */
import type { Core } from './core.ts';

/** Raises the alarm if this main server has not raised one under this key before. */
export async function alarmOnce(
  core: Pick<Core, 'alarm' | 'marks'>,
  key: string,
  detail: string,
  at?: { slot: number; epoch: number },
): Promise<void> {
  if (core.marks.told.has(key)) return;
  core.marks.told.add(key);
  await core.alarm(detail, at);
}
