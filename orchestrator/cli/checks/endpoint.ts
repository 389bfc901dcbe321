/** What answers at the endpoint of a dry run. It must not be AWS by another name. */
import { renderParts } from '../../cloud/probe.ts';
import { recognizeEndpoint } from '../recognize-endpoint.ts';
import type { Check } from './check.ts';
import { ok } from './check.ts';

export const endpoint: Check = {
  id: 'endpoint',
  title: 'endpoint of the dry run',
  kinds: ['dry'],
  needs: ['settings'],
  limitMs: 15_000,
  async run({ target }) {
    const { profile } = await recognizeEndpoint(target);
    if (profile === null) return [ok('none: EC2, ELBv2 and S3 are played by a sandbox that the run starts')];
    return renderParts(profile).map((text) => ok(text));
  },
};
