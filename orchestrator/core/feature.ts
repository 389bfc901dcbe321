/** What a feature adds to the core: each part is no wider than what the features there are use. */
import type { Environment } from './config/load-config.ts';
import type { DataFeature } from './db/data-feature.ts';
import type { Section } from './config/section.ts';
import type { RunEvents } from './run-events.ts';

export interface Feature extends DataFeature {
  /** Its top-level keys of fleet.yaml. */
  sections?: readonly Section<unknown>[];
  /** Told of what runs and the schedule do. */
  runEvents?: RunEvents;
}

export type Features = readonly Feature[];

/** Where a command reads its configuration, and the features that this program has. */
export interface ConfigPlace {
  configPath: string;
  environment: Environment;
  features: Features;
}
