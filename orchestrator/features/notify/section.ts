/** `notify` and `ping` of fleet.yaml, and the keys of `schedule` that were one more target of `notify`. */
import { z } from 'zod';
import { sectionShape } from '../../core/config/environment.ts';
import { isRecord, plainIssue } from '../../core/config/faults.ts';
import { httpUrl, orNull, text } from '../../core/config/forms.ts';
import { type OldKeys, Section } from '../../core/config/section.ts';
import { NOTICE_KINDS } from './notice.ts';

const webhookSecret = () => orNull(text());

const email = z.strictObject({
  to: z.union([text(), z.array(text()).min(1)]).describe('Who gets it.'),
  from: text().describe('The sender.'),
  smtp: z
    .url({ protocol: /^smtps?$/, error: 'must be a URL that begins with smtp:// or smtps://' })
    .describe('The mail server, with user and password: `smtp://user:secret@mail.example.com:587`.'),
});

const dryRuns = () =>
  z.boolean().default(false).describe('Whether dry runs are reported, too: by default only real runs are.');

const TARGETS = ['webhook', 'slack', 'email', 'command'] as const;

const notifyTarget = z
  .strictObject({
    webhook: httpUrl().optional().describe('Gets a POST with JSON. Its field `text` is a whole message.'),
    secret: webhookSecret().describe(
      'Signs the body of a webhook: header `x-crawlfleet-signature: sha256=` with its HMAC-SHA256 in hex.',
    ),
    slack: httpUrl().optional().describe('URL of an incoming webhook of Slack.'),
    email: email.optional().describe('A mail: `{ to, from, smtp: "smtp://user:secret@mail.example.com:587" }`.'),
    command: z.array(text()).min(1).optional().describe('A program and its arguments; it gets the JSON on stdin.'),
    on: z
      .array(z.enum(NOTICE_KINDS))
      .min(1)
      .default([...NOTICE_KINDS])
      .describe(
        'What is sent. Ends of runs: `ended` (any), `finished` (exit code 0), `failed` (another one), `held`, `fewer` (fewer products or values than usual). Of a run at work, and of its end: `banned`, `site-down`, `late`, `cost` (near or at `run.max_cost`), `no-progress`. Of `orchestrator schedule`: `missed`, `skipped`, `stuck`. All by default.',
      ),
    dry_runs: dryRuns(),
  })
  .superRefine((target, context) => {
    if (TARGETS.filter((kind) => target[kind] !== undefined).length !== 1)
      context.addIssue({ code: 'custom', message: 'must have exactly one of webhook, slack, email and command' });
    if (target.secret !== null && target.webhook === undefined)
      context.addIssue({ code: 'custom', path: ['secret'], message: 'goes with webhook only' });
  });

type NotifyTarget = z.output<typeof notifyTarget>;

/** Keys of earlier versions; version 0.2 no longer reads them. */
const oldKeys = z.object({
  schedule: z
    .object({
      webhook: orNull(httpUrl()),
      webhook_on: z.enum(['all', 'problems']).default('all'),
      webhook_secret: webhookSecret(),
    })
    .prefault({}),
});

const OLD_NAMES = Object.keys(sectionShape(oldKeys.shape.schedule));

const takeOldKeys: OldKeys<NotifyTarget[]>['take'] = (tree) => {
  const entries = isRecord(tree.schedule) ? Object.entries(tree.schedule) : [];
  const old = entries.filter(([key]) => OLD_NAMES.includes(key));
  const [first] = old;
  if (first === undefined) return null;
  tree.schedule = Object.fromEntries(entries.filter(([key]) => !OLD_NAMES.includes(key)));
  const { data, error } = oldKeys.safeParse({ schedule: Object.fromEntries(old) }, { error: plainIssue });
  return {
    path: ['schedule', first[0]],
    note: 'is read as one more target of notify, but not from version 0.2 on: write notify: [{ webhook: … }] instead',
    issues: error?.issues ?? [],
    addTo: (targets) => (data === undefined ? targets : [...targets, ...targetsOf(data.schedule)]),
  };
};

function targetsOf(old: z.infer<typeof oldKeys>['schedule']): NotifyTarget[] {
  const { webhook, webhook_on: when, webhook_secret: secret } = old;
  if (webhook === null) return [];
  const on = NOTICE_KINDS.filter((kind) => when === 'all' || (kind !== 'finished' && kind !== 'ended'));
  return [{ webhook, secret, on, dry_runs: false }];
}

export const NOTIFY_SECTION = new Section(
  'notify',
  z
    .array(notifyTarget)
    .max(20)
    .default([])
    .describe(
      'Where notices about runs and due times go, however a run was started: `notify: [{ slack: "${SLACK_URL}", on: [failed, held, banned, site-down, late, missed] }]`. `orchestrator notify --test` tries all of them. See [notify.md](notify.md).',
    ),
  { old: { schema: oldKeys, take: takeOldKeys } },
);

/** The section `ping`; null: none. */
export const PING_SECTION = new Section(
  'ping',
  orNull(
    z.union(
      [
        httpUrl().transform((url) => ({ url, dry_runs: false })),
        z.strictObject({ url: httpUrl(), dry_runs: dryRuns() }),
      ],
      { error: 'must be a URL that begins with http:// or https://, or { url, dry_runs: true }' },
    ),
  ).describe(
    "URL of a dead man's switch, such as a check of healthchecks.io: a GET to `URL/start` when a run begins, to `URL` when it is complete, to `URL/fail` when it ended otherwise. The service raises the alarm when the main server is dead. Dry runs ping only with `{ url, dry_runs: true }`.",
  ),
);
