/** The Node that the bundle of a run on AWS brings: whether it is on this machine, or has to be fetched first. */
import type { RuntimePlatform } from '../../../userdata/node-release.ts';
import { hasRuntime } from '../../../userdata/node-runtime.ts';
import { architectureOf } from '../../plan/instance-types.ts';
import { PLATFORM_OF } from '../cloud/launch-template.ts';
import { stateDirOf } from '../run/run-session.ts';
import type { CheckContext } from './check.ts';

/** Null if it is here, or none is needed: instances of a dry run are processes of this machine. */
export async function nodeToFetch({
  config,
  target,
  facts,
}: Pick<CheckContext, 'config' | 'target' | 'facts'>): Promise<RuntimePlatform | null> {
  if (target.kind !== 'aws') return null;
  const platform = PLATFORM_OF[architectureOf(facts.instanceType())];
  return (await hasRuntime(platform, { cacheDir: stateDirOf(config.file).cache })) ? null : platform;
}
