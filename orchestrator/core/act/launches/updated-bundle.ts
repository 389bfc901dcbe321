/** Bundles that `orchestrator exec --update` has put onto the instances of a run, as its events record them. */
import { bundleKey } from '../../../../shared/domain/keys.ts';
import type { LaunchTemplate } from '../../model/core.ts';
import type { RunEvent } from '../../model/stores.ts';

/** The kind of an event whose `detail` is the SHA-256 of the bundle that an instance runs since then. */
export const INSTANCE_BUNDLE = 'bundle';
/**
 * The same for all later launches of the run; the newest counts. The number is that of the user data: those that
 * earlier versions recorded as `launch-bundle` name programs that cannot read it.
 */
export const LAUNCH_BUNDLE = 'launch-bundle-2';

/** @param events those of the kind LAUNCH_BUNDLE, newest first */
export function withUpdatedBundle(template: LaunchTemplate, [newest]: readonly RunEvent[]): LaunchTemplate {
  const sha256 = newest?.detail ?? null;
  return sha256 === null ? template : { ...template, bundle: { key: bundleKey(sha256), sha256 } };
}
