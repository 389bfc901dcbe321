/** Exit codes by cause. Scripts rely on them, so a number never changes its meaning. */

export const EXIT = {
  complete: 0,
  internal: 1,
  usage: 2,
  config: 4,
  interrupted: 11,
  failedProducts: 12,
  held: 13,
  budget: 14,
  deadline: 15,
  infeasible: 16,
  siteDown: 17,
  banned: 18,
  capacity: 19,
  locked: 20,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export interface ExitMeaning {
  /** What happened, for the middle of a sentence. */
  words: string;
  meaning: string;
  /** Whether to repeat the same command unchanged. */
  retry: 'no' | 'yes' | 'later' | 'after a change' | '-';
  todo: string;
}

/**
 * What each exit code means, in order of precedence: where several causes apply, the first determines the code.
 * docs/exit-codes.md is generated from this.
 */
export const EXIT_MEANINGS = {
  usage: {
    words: 'wrong usage',
    meaning: 'The command line is wrong, or names a run that does not exist or is not in the required state.',
    retry: 'no',
    todo: 'Read the message; `orchestrator COMMAND --help` lists the flags, `orchestrator status` the runs.',
  },
  config: {
    words: 'configuration or permissions do not fit',
    meaning:
      'Configuration, mapping, database, schema, permissions or machine do not fit. Almost always before anything was launched; also when AWS refuses every launch for a permission or a parameter, when the disk of a run fills up, and when a run stalls because its load balancer cannot be reached or its bucket is lost.',
    retry: 'no',
    todo: 'The message names each fault with its line or its call: fix that, then repeat the command.',
  },
  locked: {
    words: 'another run is at work',
    meaning:
      'Another main server is crawling this site or writing to this result table, or an earlier run of either is unfinished.',
    retry: 'later',
    todo: 'Nothing was changed. Wait, continue the run (`resume`) or abandon it (`cancel`).',
  },
  infeasible: {
    words: 'not feasible by the deadline',
    meaning: 'The products cannot be crawled by the deadline within the given limits. Nothing was launched.',
    retry: 'after a change',
    todo: 'The plan shows the earliest end and what would help: a later deadline, more instances, a higher rate.',
  },
  capacity: {
    words: 'no capacity at AWS',
    meaning:
      'EC2 launched no instance at all, the vCPU quota is below the plan, the account may have no further load balancer, or AWS did not answer the queries before a launch.',
    retry: 'later',
    todo: 'Allow more types or subnets (`aws.instance_types`, `aws.subnets`), request a higher quota from AWS, or try later.',
  },
  budget: {
    words: 'the cost limit is reached',
    meaning:
      '`run.max_cost` is below the plan, or kept a lost instance from being replaced. The stored results are published.',
    retry: 'after a change',
    todo: 'Raise `run.max_cost` or give more time; after a run: `orchestrator retry`.',
  },
  banned: {
    words: 'banned by the site',
    meaning:
      'The site refuses every address. The stored results are published. Of `probe`: no interval can be recommended.',
    retry: 'later',
    todo: 'Check the evidence in report.json; make `site.interval` longer or contact the site; then `orchestrator retry`.',
  },
  siteDown: {
    words: 'the site is down',
    meaning:
      'The site is down: it could not be reached before the run, for `run.site_wait`, and nothing was launched; or it failed for every address during the run. The stored results are published.',
    retry: 'later',
    todo: 'Check whether the site answers elsewhere. Repeat the command later, or after a run use `orchestrator retry`. If instances can reach the site and this machine cannot: `site.check: off`.',
  },
  held: {
    words: 'held back',
    meaning:
      'The rows look suspicious and are not published, `verify` fails, or products.query yields too few products: then nothing was launched.',
    retry: 'no',
    todo: 'Compare the mapping with a page (`orchestrator extract`), then `orchestrator publish` or `orchestrator cancel`; once a later run has published, `publish --force` or `cancel`. After `verify`: read which check failed. Too few products: check `products.query`; if the list is right, use `run --accept-drop`.',
  },
  interrupted: {
    words: 'interrupted',
    meaning:
      'Stopped or cancelled by a person, or left. After SIGTERM the instances continue to crawl until the deadline; after Ctrl-C twice they upload what they have and end.',
    retry: 'yes',
    todo: '`orchestrator resume` if it was left: it loads what the instances have uploaded; `orchestrator retry` for what was not crawled.',
  },
  deadline: {
    words: 'deadline missed',
    meaning:
      'Not everything was crawled and uploaded by the deadline, or it was published late. The stored results are published.',
    retry: 'yes',
    todo: 'Where products are left, `orchestrator retry` crawls them. If it happens every night, use a later deadline or more instances.',
  },
  failedProducts: {
    words: 'too many products failed',
    meaning:
      'More products failed than `run.max_failed` allows, nothing was stored, the site has changed, or no instance crawled anything. The stored results are published.',
    retry: 'yes',
    todo: '`orchestrator explain RUN` says for each reason what to do, and where `orchestrator retry` helps; `orchestrator status RUN --failed` lists the products.',
  },
  internal: {
    words: 'internal error',
    meaning:
      'A fault in crawlfleet, or in something it depends on: database, bucket, AWS. Of `exec`: the command or the update failed on an instance.',
    retry: 'yes',
    todo: '`orchestrator logs` shows the error. Continue a started run with `orchestrator resume`.',
  },
  complete: {
    words: 'complete',
    meaning: 'Done; of a run: every product has an outcome and the rows are published in time.',
    retry: '-',
    todo: '',
  },
} as const satisfies Record<keyof typeof EXIT, ExitMeaning>;

const WORDS = new Map<number, string>(
  (Object.keys(EXIT) as (keyof typeof EXIT)[]).map((name) => [EXIT[name], EXIT_MEANINGS[name].words]),
);

/** The exit code in a few words. */
export const exitWords = (exitCode: ExitCode): string => WORDS.get(exitCode) ?? `exit code ${exitCode}`;

/** What to do about an exit code; `runId` null: no run is there yet. */
export function hintOf(exitCode: ExitCode, runId: string | null): string {
  const cause = (Object.keys(EXIT) as (keyof typeof EXIT)[]).find((name) => EXIT[name] === exitCode);
  return EXIT_MEANINGS[cause ?? 'internal'].todo.replaceAll('`', '').replaceAll('RUN', runId ?? 'RUN');
}
