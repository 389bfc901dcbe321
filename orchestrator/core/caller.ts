/** What a use case needs of its caller: the command line today, a web server tomorrow. */
import type { World } from './model/world.ts';
import type { Plan } from './plan/plan.ts';

export interface Output {
  /** One or several lines for the user. */
  line(text?: string): void;
  /** What has become of the run, in one line; omitted where the caller does not show it. */
  verdict?: (text: string, isGood: boolean) => void;
  /** The outcome as one document, such as a run's report. */
  document(value: unknown): void;
  /** Gets each line of a run's log, as JSON; omitted where the caller does not show it. */
  log?: (line: string) => void;
  /** Calls `listener` once nothing can be written any more; returns a function that unsubscribes it. */
  onLost?: (listener: (text: string) => void) => () => void;
}

export interface Interrupts {
  /** Aborts when the use case must leave its run as it is, at once. */
  readonly leave: AbortSignal;
  /** What the user's first interrupt does; before a run exists it leaves. */
  onFirst(handler: () => void): void;
}

export interface Progress {
  show(world: World): void;
  end(): void;
}

export interface Caller {
  output: Output;
  interrupts: Interrupts;
  /** Shows what the fleet does during a run of this plan. */
  progress: (plan: Pick<Plan, 'deadlineMs'>) => Progress;
  /** The environment of this process, which the instances of a dry run inherit. */
  env: NodeJS.ProcessEnv;
}
