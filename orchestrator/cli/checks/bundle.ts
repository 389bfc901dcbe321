/** What instances fetch can be built: the program, and on AWS the Node that runs it. */
import { NODE_RELEASES, NODE_VERSION } from '../../../userdata/node-release.ts';
import { askRegistry } from '../../../userdata/npm-package.ts';
import { buildProgram } from '../../../userdata/program.ts';
import type { Check } from './check.ts';
import { ok } from './check.ts';
import { nodeToFetch } from './node-for-instances.ts';

export const bundle: Check = {
  id: 'bundle',
  title: 'program of the instances',
  kinds: ['aws', 'dry'],
  limitMs: 40_000,
  isSlow: true,
  async run(context) {
    const { bytes, sha256 } = await buildProgram({ browser: context.config.values.site.render !== 'http' });
    const made = ok(`${(bytes.length / 1_000_000).toFixed(1)} MB, SHA-256 ${sha256.slice(0, 12)}…`);
    const platform = await nodeToFetch(context);
    if (platform === null) return [made];
    const { packageName, integrity } = NODE_RELEASES[platform];
    // Throws `runtime-unavailable`, as the run would after its plan was accepted.
    await askRegistry({ name: packageName, version: NODE_VERSION, integrity });
    return [made, ok(`the first run fetches Node ${NODE_VERSION} for ${platform} with npm: 50 MB, once`)];
  },
};
