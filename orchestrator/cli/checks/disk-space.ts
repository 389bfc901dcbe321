/**
 * A writable state folder, and room for logs, reports and, in a dry run, the sandbox's objects, beside the
 * configuration.
 */
import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { stateDirOf } from '../run-session.ts';
import { STATE_FOLDER_REMEDY, whyUnwritable } from '../state-folder.ts';
import type { Check } from './check.ts';
import { failed, ok, warning } from './check.ts';
import { nodeToFetch } from './node-for-instances.ts';

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
  kinds: ['aws', 'dry'],
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
    if (free < least) return [failed('platform', `${text}; a run takes ${least / MB} MB`, remedy)];
    return [free < COMFORTABLE ? warning(text, remedy) : ok(text)];
  },
};
