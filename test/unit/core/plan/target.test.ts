import { expect, it } from 'vitest';
import type { Config } from '../../../../orchestrator/core/config/load-config.ts';
import { regionOf } from '../../../../orchestrator/core/config/target.ts';

const config = { values: { aws: { region: null, regions: null } } } as Config;

it('takes an empty variable for a region as unset', () => {
  expect(regionOf(config, { AWS_REGION: '', AWS_DEFAULT_REGION: 'eu-central-1' })).toBe('eu-central-1');
  expect(regionOf(config, { AWS_REGION: '', AWS_DEFAULT_REGION: '' })).toBeNull();
});
