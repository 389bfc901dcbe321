/** What the program knows of a command, and of a folder of `features/`, whose `index.ts` declares it. */
import type { ConfigSource, Feature, Features } from '../../core/feature.ts';
import type { Option } from 'commander';
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import type { FlagValue } from '../../core/config/load-config.ts';
import type { Output } from '../output.ts';

/** What every command is given, beside its own flags under commander's names; `--x` without a value may be missing. */
export interface Given extends ConfigSource {
  /** Its argument: nearly always the name of a run. */
  runId: string | undefined;
  /** The words after it; empty for a command that takes none. */
  rest: string[];
  /** Flags that stand for settings, in the form the configuration takes: a flag wins over the file. */
  flags: FlagValue[];
  deadline?: string;
  maxCost?: number;
  dryRun: boolean;
  yes: boolean;
  acceptDrop: boolean;
}

export interface CommandDeclaration {
  name: string;
  description: string;
  /** A page with more, relative to the package, and examples, as they are typed after `orchestrator`. */
  help: readonly [page: string, ...examples: string[]];
  /** Name, description and default of its argument. */
  argument?: readonly [name: string, description: string, byDefault?: string];
  /** Name and description of the words after its argument. */
  rest?: readonly [name: string, description: string];
  /** The options in the order of its help; --json comes last. */
  options: readonly Option[];
  /** `shows`: it only prints, so it ends when its output cannot be written; `works`, the default: it goes on. */
  kind?: 'works' | 'shows';
  /** Loads its code when it is called, to keep start-up fast. What it calls must take `Given` and these flags. */
  load: () => Promise<(given: never, output: Output) => Promise<ExitCode> | ExitCode>;
}

export interface FeatureDeclaration {
  commands?: readonly CommandDeclaration[];
  /** What it adds to the core; loaded with the first command, to keep the help fast. */
  load?: () => Promise<Feature>;
}

export const loadFeatures = (declared: readonly FeatureDeclaration[]): Promise<Features> =>
  Promise.all(declared.flatMap(({ load }) => load?.() ?? []));
