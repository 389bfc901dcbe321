/** Keys of earlier versions: `schedule.webhook` is one more target of `notify`. Version 0.2 no longer reads them. */
import type { z } from 'zod';
import { NOTICE_KINDS } from '../../features/notify/notice.ts';
import { sectionShape } from './environment.ts';
import { isRecord, plainIssue } from './faults.ts';
import { type ConfigValues, oldKeysSchema } from './schema.ts';

const KEYS = Object.keys(sectionShape(oldKeysSchema.shape.schedule));

interface OldKeys {
  /** Of the first of them. */
  path: readonly string[];
  issues: readonly z.core.$ZodIssue[];
  /** What they mean; empty where nothing is notified, or there are issues. */
  targets: ConfigValues['notify'];
}

/** Takes the old keys out of a configuration as it was read; null where it has none. */
export function takeOldKeys(tree: Record<string, unknown>): OldKeys | null {
  const entries = isRecord(tree.schedule) ? Object.entries(tree.schedule) : [];
  const old = entries.filter(([key]) => KEYS.includes(key));
  if (old.length === 0) return null;
  tree.schedule = Object.fromEntries(entries.filter(([key]) => !KEYS.includes(key)));
  const { data, error } = oldKeysSchema.safeParse({ schedule: Object.fromEntries(old) }, { error: plainIssue });
  return {
    path: ['schedule', old[0]![0]],
    issues: error?.issues ?? [],
    targets: data === undefined ? [] : targetsOf(data.schedule),
  };
}

function targetsOf(old: z.infer<typeof oldKeysSchema>['schedule']): ConfigValues['notify'] {
  const { webhook, webhook_on: when, webhook_secret: secret } = old;
  if (webhook === null) return [];
  const on = NOTICE_KINDS.filter((kind) => when === 'all' || (kind !== 'finished' && kind !== 'ended'));
  return [{ webhook, secret, on, dry_runs: false }];
}
