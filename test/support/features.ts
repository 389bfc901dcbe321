/** The features of the program, as its commands get them, and a configuration read with them. */
import { loadFeatures } from '../../orchestrator/cli/program/feature.ts';
import {
  type Config,
  type Environment,
  type FlagValue,
  loadConfig,
} from '../../orchestrator/core/config/load-config.ts';
import { FEATURES } from '../../orchestrator/features.ts';

export const features = await loadFeatures(FEATURES);

export const readConfig = (
  configPath: string,
  environment: Environment = {},
  flags: readonly FlagValue[] = [],
): Config => loadConfig({ configPath, environment, flags, features });
