/** Exit code per cause. Scripts rely on them, so a number never changes its meaning. */

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

export interface ExitFacts {
  meaning: string;
  /** Whether the same command may be given again as it is. */
  retry: 'no' | 'yes' | 'later' | 'after a change' | '-';
  todo: string;
}

/** In the order of precedence: where several causes apply, the first one gives the code. docs/exit-codes.md is made from this. */
export const EXIT_FACTS = {
  usage: {
    meaning: 'The command line is wrong, or names a run that is not there or not in that state.',
    retry: 'no',
    todo: 'Read the message; `orchestrator COMMAND --help` lists the flags, `orchestrator status` the runs.',
  },
  config: {
    meaning:
      'Configuration, mapping, database, schema, rights or machine do not fit. Almost always before anything was launched; also when AWS refuses every launch for a right or a parameter, when the disk of a run fills up, and when a run stands still because its load balancer cannot be reached or its bucket is lost.',
    retry: 'no',
    todo: 'Each fault is named with its line or its call: change that, then give the command again.',
  },
  locked: {
    meaning: 'Another main server works on a run in this database, or an earlier run is not over.',
    retry: 'later',
    todo: 'Nothing was touched. Wait, or take the run up (`resume`) or give it up (`cancel`).',
  },
  infeasible: {
    meaning: 'The products cannot be crawled by the deadline within the limits given. Nothing was launched.',
    retry: 'after a change',
    todo: 'The plan names the earliest end and what would make it possible: a later deadline, more instances, a higher rate.',
  },
  capacity: {
    meaning:
      'EC2 gave no instance at all, the vCPU quota is below the plan, or AWS did not answer what is asked before a launch.',
    retry: 'later',
    todo: 'Allow more types or subnets (`aws.instance_types`, `aws.subnets`), ask AWS for a higher quota, or try later.',
  },
  budget: {
    meaning:
      '`run.max_cost` is below the plan, or kept a lost instance from being replaced. What there is is published.',
    retry: 'after a change',
    todo: 'Raise `run.max_cost` or give more time; after a run: `orchestrator retry`.',
  },
  banned: {
    meaning: 'The site refuses every address. What was stored is published.',
    retry: 'later',
    todo: 'Look at the evidence in report.json; make `site.interval` longer or ask the site; then `orchestrator retry`.',
  },
  siteDown: {
    meaning:
      'The site is down: it could not be reached before the run, for `run.site_wait`, and nothing was launched; or it failed for every address during the run. What there is is published.',
    retry: 'later',
    todo: 'Look whether the site answers elsewhere. Later the same command again, or `orchestrator retry` after a run. Where this machine cannot reach the site and instances can: `site.check: off`.',
  },
  held: {
    meaning:
      'The rows look suspicious and are not published, `verify` does not hold, or products.query yields too few products: then nothing was launched.',
    retry: 'no',
    todo: 'Compare the mapping with a page (`orchestrator extract`), then `orchestrator publish` or `orchestrator cancel`; once a later run has published, `publish --force` or `cancel`. After `verify`: read which check failed. Too few products: look at `products.query`; a list that is right goes on with `run --accept-drop`.',
  },
  interrupted: {
    meaning:
      'Stopped or cancelled by a person, or left. After SIGTERM the instances crawl on until the deadline; after Ctrl-C twice they upload what they have and end.',
    retry: 'yes',
    todo: '`orchestrator resume` if it was left: it brings in what the instances have uploaded; `orchestrator retry` for what was not crawled.',
  },
  deadline: {
    meaning:
      'Not everything was crawled and uploaded by the deadline, or it was published late. What there is is published.',
    retry: 'yes',
    todo: '`orchestrator retry` crawls the rest. Each night? Then a longer deadline or more instances.',
  },
  failedProducts: {
    meaning:
      'More products failed than `run.max_failed` allows, the site has changed, or no instance crawled anything. What there is is published.',
    retry: 'yes',
    todo: '`orchestrator status RUN --failed` lists them with their reasons; `orchestrator retry` tries them again.',
  },
  internal: {
    meaning: 'A fault in crawlfleet, or something broke that it depends on: database, bucket, AWS.',
    retry: 'yes',
    todo: '`orchestrator logs` has the error. A run that had begun goes on with `orchestrator resume`.',
  },
  complete: {
    meaning: 'Done; of a run: every product has an outcome and the rows are published in time.',
    retry: '-',
    todo: '',
  },
} as const satisfies Record<keyof typeof EXIT, ExitFacts>;
