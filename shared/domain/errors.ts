/** One error type for all user-visible errors: a stable code, a hint and an exit code. */
import { textBefore } from './text-before.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';

interface ErrorKind {
  exit: ExitCode;
  /** One line for docs/errors.md. */
  doc: string;
}

/** Every error code. docs/errors.md lists exactly these; a test ensures it. */
export const ERROR_KINDS = {
  usage: { exit: EXIT.usage, doc: 'The command line is wrong: an unknown command, flag or value.' },
  'config-invalid': {
    exit: EXIT.config,
    doc: 'fleet.yaml, a FLEET_ variable or the mapping has faults; all are listed with their lines.',
  },
  'config-missing': { exit: EXIT.config, doc: 'The configuration file does not exist or cannot be read.' },
  'folder-unwritable': {
    exit: EXIT.config,
    doc: 'A folder or file that the command writes to cannot be created or written.',
  },
  'database-unreachable': { exit: EXIT.config, doc: 'The database refuses the connection, the user or the password.' },
  'database-rights': { exit: EXIT.config, doc: 'The database user lacks a privilege a run needs.' },
  'database-busy': {
    exit: EXIT.internal,
    doc: 'The database was locked, deadlocked or slow for longer than the retries last.',
  },
  'database-failed': { exit: EXIT.internal, doc: 'A database statement failed.' },
  'products-query': {
    exit: EXIT.config,
    doc: 'products.query fails, lacks a column, or gives too many products no URL.',
  },
  'too-few-products': {
    exit: EXIT.held,
    doc: 'products.query yields fewer rows than products.min_rows, or far fewer than in the last runs (products.max_drop).',
  },
  'product-id-invalid': { exit: EXIT.config, doc: 'A product ID is null, empty, too long or not valid text.' },
  'database-schema': {
    exit: EXIT.config,
    doc: 'The database server is too old or refuses what a run needs, or its crawlfleet tables are newer than this program.',
  },
  'results-schema': { exit: EXIT.config, doc: 'results.table exists but does not fit the mapping.' },
  'not-available': {
    exit: EXIT.config,
    doc: 'The configuration requires something that this version does not support yet.',
  },
  'lock-held': { exit: EXIT.locked, doc: 'Another main server is crawling this site or writing to this result table.' },
  'run-unknown': { exit: EXIT.usage, doc: 'The database has no run with that name, or no run at all.' },
  'run-ended': { exit: EXIT.usage, doc: 'The run has already ended, so there is nothing to resume.' },
  'pace-too-fast': {
    exit: EXIT.config,
    doc: 'orchestrator pace was asked for an interval that is not longer than the one of the run.',
  },
  'run-not-held': { exit: EXIT.usage, doc: 'The results of the run are not held, so there is nothing to release.' },
  'run-overtaken': {
    exit: EXIT.held,
    doc: 'A run that began later has already published; its rows are newer than the held ones.',
  },
  'run-unfinished': {
    exit: EXIT.locked,
    doc: 'An earlier run has lost its main server, but its deadline is still ahead and its instances are still working.',
  },
  infeasible: { exit: EXIT.infeasible, doc: 'The products cannot be crawled by the deadline within the given limits.' },
  'site-down': {
    exit: EXIT.siteDown,
    doc: 'robots.txt of the site could not be read for as long as run.site_wait allows.',
  },
  budget: { exit: EXIT.budget, doc: 'The run would cost more than run.max_cost.' },
  capacity: { exit: EXIT.capacity, doc: 'EC2 has no instances of the allowed types, or the quota is too small.' },
  'aws-denied': { exit: EXIT.config, doc: 'AWS refuses the call: credentials or a permission are missing.' },
  'aws-throttled': { exit: EXIT.capacity, doc: 'AWS throttles the calls.' },
  'aws-capability-missing': { exit: EXIT.config, doc: 'The AWS endpoint does not support this call.' },
  'aws-not-found': {
    exit: EXIT.internal,
    doc: 'AWS does not know the resource; just after a launch it may only not be visible yet.',
  },
  'aws-invalid': { exit: EXIT.config, doc: 'AWS refuses a parameter of the call.' },
  'aws-failed': { exit: EXIT.internal, doc: 'An AWS call failed, timed out or lost its reply.' },
  'aws-unanswered': {
    exit: EXIT.capacity,
    doc: 'The prerequisites of a run could not be checked: AWS was slow, throttled the calls or failed.',
  },
  'endpoint-unreachable': { exit: EXIT.config, doc: 'Nothing answers at aws.endpoint.' },
  'endpoint-refused': { exit: EXIT.config, doc: 'A dry run was pointed at another machine.' },
  'object-missing': { exit: EXIT.internal, doc: 'An object that the ledger names is not in the bucket.' },
  'object-corrupt': { exit: EXIT.internal, doc: 'An object in the bucket does not have the hash it was written with.' },
  'port-taken': { exit: EXIT.config, doc: 'Another program uses a port that the configuration names.' },
  'sandbox-failed': { exit: EXIT.internal, doc: 'The sandbox did not start or has ended.' },
  platform: {
    exit: EXIT.config,
    doc: 'This machine lacks something that is needed, such as a newer Node or 127.x addresses.',
  },
  'runtime-unavailable': {
    exit: EXIT.config,
    doc: 'The Node for the instances is not available from npm, or is not the expected one.',
  },
  interrupted: { exit: EXIT.interrupted, doc: 'The run was interrupted; it can be resumed.' },
  internal: { exit: EXIT.internal, doc: 'A fault in crawlfleet itself.' },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof ERROR_KINDS;

/**
 * An error with a stable code. `message` says what happened and where; `hint` says what to do. Throw it only for what
 * the caller cannot handle; expected results are return values.
 */
export class AppError extends Error {
  readonly code: ErrorCode;
  readonly hint: string | undefined;

  constructor(code: ErrorCode, message: string, options: { hint?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'AppError';
    this.code = code;
    this.hint = options.hint;
  }

  get exitCode(): ExitCode {
    return ERROR_KINDS[this.code].exit;
  }
}

/** The message of anything thrown, with its causes. */
export function describeError(error: unknown): string {
  const parts: string[] = [];
  for (let e: unknown = error, depth = 0; e !== undefined && e !== null && depth < 5; depth++) {
    if (e instanceof AggregateError && e.errors.length > 0 && e.message === '') {
      e = e.errors[0];
      continue;
    }
    const part = e instanceof Error ? e.message || e.name : typeof e === 'string' ? e : JSON.stringify(e);
    // The wrapping error may already include the message of its cause.
    if (!parts.some((before) => before.includes(part))) parts.push(part);
    e = e instanceof Error ? e.cause : undefined;
  }
  return parts.join(': ');
}

/** The first line of `describeError`: Playwright, for one, adds lines for developers. */
export const firstLineOf = (error: unknown): string => textBefore(describeError(error), '\n');
