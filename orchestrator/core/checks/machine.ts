/** Checks of this machine: Node, disk, files of runs, browser, configuration. */
import { knowsProxies, proxyOf } from '../../../shared/adapters/proxy.ts';
import packageFile from '../../../package.json' with { type: 'json' };
import { type Check, type CheckContext, failed, type Finding, ok, warning } from './check.ts';
import { existsSync, statSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { stateDirOf } from '../config/state-dir.ts';
import { STATE_FOLDER_REMEDY, whyUnwritable } from '../config/state-folder.ts';
import { parseDatabaseUrl } from '../db/database-url.ts';
import { provideBrowser } from '../prepare/browser-boot.ts';
import { chooseTarget } from '../config/target.ts';
import type { RuntimePlatform } from '../../../userdata/node-release.ts';
import { hasRuntime } from '../../../userdata/node-runtime.ts';
import { architectureOf } from '../plan/instance-types.ts';
import { PLATFORM_OF } from '../cloud-access/launch-template.ts';

const NEEDED = packageFile.engines.node.replace('>=', '');

export function isOlder(version: string, than: string): boolean {
  const [a, b] = [version, than].map((text) => text.split('.').map(Number)) as [number[], number[]];
  const at = [0, 1, 2].find((i) => (a[i] ?? 0) !== (b[i] ?? 0));
  return at !== undefined && (a[at] ?? 0) < (b[at] ?? 0);
}

export const nodeVersion: Check = {
  id: 'node',
  title: 'Node of this machine',
  run({ environment }) {
    const { node } = process.versions;
    const text = `Node ${node} on ${process.platform}-${process.arch}`;
    if (isOlder(node, NEEDED))
      return failed('platform', `${text}: ${NEEDED} or newer is needed`, 'Install a newer Node');
    if (proxyOf(environment) !== undefined && !knowsProxies())
      return warning(
        `${text} cannot use HTTPS_PROXY for calls to AWS`,
        'Install Node 24.5 or newer, or 22.21 or a newer 22',
      );
    return ok(text);
  },
};

const MB = 1_000_000;
/** A log line is about 200 bytes and a product of a dry run about 2 KB: 30,000 products fit with room to spare. */
const COMFORTABLE = 500 * MB;
/** Below this the log of a single night may not fit. */
const LEAST = 50 * MB;
/** The Node package and the bundle built from it, which exist together for a moment. */
const FETCHED = 100 * MB;

export const diskSpace: Check = {
  id: 'disk',
  title: 'disk space of the state folder',
  beforeLaunch: true,
  async run(context) {
    const { config } = context;
    const state = stateDirOf(config.file);
    const folder = state.root;
    const places = [state.run('next'), state.sandbox('next'), state.cache];
    const unwritable = new Set(places.map(whyUnwritable).filter((why) => why !== null));
    if (unwritable.size > 0) return [...unwritable].map((why) => failed('folder-unwritable', why, STATE_FOLDER_REMEDY));
    // The first run creates it; until then its disk is that of the parent folder.
    const { bavail, bsize } = await statfs(existsSync(folder) ? folder : dirname(folder));
    const free = bavail * bsize;
    const least = LEAST + ((await nodeToFetch(context)) === null ? 0 : FETCHED);
    const text = `${Math.floor(free / MB).toLocaleString('en')} MB free for ${folder}`;
    const remedy = 'Make room, or remove folders of old runs below .crawlfleet/runs and .crawlfleet/sandbox';
    if (free < least) return failed('platform', `${text}; a run takes ${least / MB} MB`, remedy);
    return free < COMFORTABLE ? warning(text, remedy) : ok(text);
  },
};

/** Permission bits of the group and of others. */
const OTHERS = 0o077;

export const privateFiles: Check = {
  id: 'files',
  title: 'files of runs',
  async run({ config }) {
    const address = parseDatabaseUrl(config.values.database.url);
    return judgeFiles([
      { path: stateDirOf(config.file).root, holds: 'logs and reports' },
      ...(address.engine === 'sqlite'
        ? [{ path: address.file, holds: "the results and every run's private key" }]
        : []),
    ]);
  },
};

/** Files that do not exist yet are created readable for their owner alone. */
export function judgeFiles(files: readonly { path: string; holds: string }[]): Finding[] {
  const open = files.flatMap(({ path, holds }) => {
    const found = statSync(path, { throwIfNoEntry: false });
    if (found === undefined || (found.mode & OTHERS) === 0) return [];
    const mode = (found.mode & 0o777).toString(8);
    const text = `${path} is open to other users of this machine (mode ${mode}): it holds ${holds}`;
    return [warning(text, `chmod ${found.isDirectory() ? '700' : '600'} ${path}`)];
  });
  return open.length > 0 ? open : [ok('only their owner can read them')];
}

export const browser: Check = {
  id: 'browser',
  title: 'browser of this machine',
  only: 'dry',
  async run({ config, environment }) {
    const { render } = config.values.site;
    if (render === 'http') return ok('not needed: site.render is http');
    // It sets the path it finds in the environment it is given; ours stays unchanged.
    const found: NodeJS.ProcessEnv = { ...process.env, ...environment };
    await provideBrowser(render, found);
    return ok(`Chromium at ${found.CRAWLFLEET_CHROMIUM}`);
  },
};

export const settings: Check = {
  id: 'settings',
  title: 'settings for where a run goes',
  alongside: true,
  run({ config, target, environment }) {
    const { region, bucket, endpoint } = chooseTarget(config, target.dryRun, environment);
    const where = target.dryRun && endpoint === null ? 'this machine, in the built-in sandbox' : (endpoint ?? 'AWS');
    return ok(`${where}, region ${region}, bucket ${bucket}`);
  },
};

/**
 * The Node that must be fetched; null if it is here, or none is needed: instances of a dry run are processes of this
 * machine.
 */
export async function nodeToFetch({
  config,
  target,
  facts,
}: Pick<CheckContext, 'config' | 'target' | 'facts'>): Promise<RuntimePlatform | null> {
  if (target.kind !== 'aws') return null;
  const platform = PLATFORM_OF[architectureOf(facts.instanceType())];
  return (await hasRuntime(platform, { cacheDir: stateDirOf(config.file).cache })) ? null : platform;
}
