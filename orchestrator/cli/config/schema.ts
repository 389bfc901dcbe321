/**
 * Every key of fleet.yaml: its form, default and meaning. docs/configuration.md and the JSON Schema are made
 * from this file. Values leave here as numbers with their unit in the name; text forms such as `4h` stay outside.
 */
import { z } from 'zod';
import { parseDuration, parseRate, parseShare, parseSize } from '../../../shared/domain/quantity.ts';

/** A text form read by `parse`; null means the text is not of that form. */
function quantity(parse: (text: string) => number | null, expected: string) {
  return z.union([z.string(), z.number()], { error: `must be ${expected}` }).transform((value, context) => {
    const parsed = parse(String(value));
    if (parsed === null)
      context.addIssue({ code: 'custom', message: `must be ${expected}, not ${JSON.stringify(value)}` });
    return parsed ?? 0;
  });
}

const duration = () => quantity(parseDuration, 'a duration such as 200ms, 10s, 4h or 1h30m');
const positiveDuration = () => duration().refine((ms) => ms > 0, { error: 'must be longer than zero', abort: true });
const size = () => quantity(parseSize, 'a size such as 500KB or 5MB');
const rate = () => quantity(parseRate, 'a rate such as 5/s or 30/m');
const share = () => quantity(parseShare, 'a share such as 5% or 0.05');
const text = () => z.string().min(1, 'must not be empty');
const listenAddress = () =>
  z.string().regex(/^(\[[0-9a-fA-F:]+\]|[^:\s]+):\d{1,5}$/, 'must be an address and a port such as 127.0.0.1:8700');

const productUrl = z.string().superRefine((value, context) => {
  const fault = findUrlFault(value);
  if (fault) context.addIssue({ code: 'custom', message: fault });
});

function findUrlFault(template: string): string | null {
  if (!template.includes('{id}')) return 'must contain {id}, where the product ID goes';
  if (/\{(?!id\})/.test(template)) return 'may contain no other placeholder than {id}';
  if (!URL.canParse(template.replaceAll('{id}', 'x'))) return 'is not a URL';
  const url = new URL(template.replaceAll('{id}', 'x'));
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'must begin with http:// or https://';
  if (url.username || url.password) return 'must not contain a user or a password';
  // An ID in the host would let a row of the product table choose the site.
  if (template.split('/')[2]?.includes('{id}')) return 'must have {id} in the path or the query, not in the host';
  return null;
}

const site = z.strictObject({
  product_url: productUrl.describe('URL of a product page; `{id}` stands for the percent-encoded product ID.'),
  interval: positiveDuration().prefault('10s').describe('Start to start of two requests from one address.'),
  max_rate: rate()
    .nullable()
    .default(null)
    .describe('Ceiling for the whole fleet, in requests per second; none by default.'),
  render: z
    .enum(['http', 'browser', 'auto'])
    .default('http')
    .describe('How pages are fetched. Only `http` is available in this version.'),
  user_agent: text()
    .nullable()
    .default(null)
    .describe('Who you are, with a link to a page that says what the crawler does.'),
  robots: z
    .enum(['respect', 'ignore'])
    .default('respect')
    .describe('robots.txt. This version does not read it yet and says so in the plan.'),
  timeout: positiveDuration().prefault('30s').describe('Longest time for one page, from connect to last byte.'),
  max_page_bytes: size().prefault('5MB').describe('Largest page, decoded; a longer one fails as `too-large`.'),
  on_ban: z
    .enum(['cool-down', 'replace', 'stop'])
    .default('cool-down')
    .describe('What a banned address does. Not acted on in this version.'),
  ban: z
    .strictObject({
      statuses: z.array(z.int().min(100).max(999)).default([]),
      redirects: z.array(text()).default([]),
      patterns: z.array(text()).default([]),
      cool_down: positiveDuration().prefault('30m'),
    })
    .optional()
    .describe('Rules of this site beside the built-in ones. Not available in this version.'),
  canaries: z
    .array(z.strictObject({ id: text(), fields: z.record(z.string(), z.union([z.string(), z.number()])) }))
    .default([])
    .describe('Known products with known values. Not available in this version.'),
  allow_private: z.boolean().default(false).describe('Allow names that resolve to private addresses.'),
  mapping: z
    .union([text(), z.record(z.string(), z.unknown())], { error: 'must be the path of a mapping file or a mapping' })
    .describe('Fields to take from a page: the path of a YAML file (relative to this one), or in place.'),
});

const results = z.strictObject({
  table: z
    .string()
    .regex(
      /^[A-Za-z_][A-Za-z0-9_$]{0,63}(\.[A-Za-z_][A-Za-z0-9_$]{0,63})?$/,
      'must be a table name of letters, digits and underscores',
    )
    .default('product_snapshots')
    .describe('Where stored products go; made when it is missing, checked when it exists.'),
  on_gone: z.enum(['keep', 'delete']).default('keep').describe("What happens to a gone product's row."),
  guard: z
    .strictObject({ min_fill: share() })
    .optional()
    .describe('Hold a crawl whose fields are emptier than before. Not available in this version.'),
});

const run = z.strictObject({
  deadline: positiveDuration()
    .nullable()
    .default(null)
    .describe('From the start of the run to the rows in the result table. `--deadline` wins.'),
  max_cost: z
    .number()
    .positive()
    .nullable()
    .default(null)
    .describe('Most that a run may cost, in USD; no cap by default.'),
  grace: duration().prefault('10m').describe('After the deadline plus this, every instance powers itself off.'),
  min_instances: z.int().min(1).default(1).describe('Fewest instances.'),
  max_instances: z.int().min(1).max(1_000).default(100).describe('Most instances; a target group takes 1,000.'),
  max_failed: share().prefault('5%').describe('Share of failed products above which the exit code is 12.'),
});

const aws = z.strictObject({
  region: text().nullable().default(null).describe('AWS region. Without it AWS_REGION counts; a dry run needs none.'),
  endpoint: z.url('must be a URL').nullable().default(null).describe('An AWS-compatible endpoint in place of AWS.'),
  instance_types: z
    .array(text())
    .min(1)
    .default(['t4g.nano', 't3.nano', 't4g.small', 't3.small'])
    .describe('Allowed types; the cheapest that holds an instance is taken.'),
  subnets: z
    .array(text())
    .default([])
    .describe('Subnets to launch in; the default VPC without it. The balancer needs two, in two zones.'),
  security_groups: z.array(text()).default([]).describe('Security groups of the instances.'),
  bucket: text().nullable().default(null).describe('Bucket for bundles, parts and manifests; a dry run makes its own.'),
  instance_profile: text().nullable().default(null).describe('Instance profile that may put objects into the bucket.'),
  image: text().nullable().default(null).describe('Image to boot; in this version it must bring Node 22.19 or newer.'),
  load_balancer: text()
    .nullable()
    .default(null)
    .describe('Use this balancer. Not available in this version: one is made for each run.'),
  vcpu_quota: z.int().positive().nullable().default(null).describe('Your vCPU quota (L-1216C47A); unknown without it.'),
  recycle_every: positiveDuration()
    .nullable()
    .default(null)
    .describe('Renew addresses this often. Not available in this version.'),
});

const server = z.strictObject({
  listen: listenAddress()
    .nullable()
    .default(null)
    .describe('Call-back listener; 0.0.0.0:8700, in dry runs a free port on 127.0.0.1.'),
  url: z.url('must be a URL').nullable().default(null).describe('How instances reach the call-back listener.'),
  operator: listenAddress().default('127.0.0.1:8701').describe("Operator's listener. Not served in this version."),
});

const schedule = z.strictObject({
  cron: text().default('0 2 * * *'),
  timezone: text().default('UTC'),
  if_running: z.enum(['skip', 'queue']).default('skip'),
});

export const configSchema = z.strictObject({
  site: site.describe('The site and how it is crawled.'),
  products: z
    .strictObject({
      query: text().describe(
        'SQL that yields a column `id`, one row a product. An ID has at most 768 characters and 2,000 bytes; a list with a worse one is refused.',
      ),
    })
    .describe('What to crawl.'),
  database: z
    .strictObject({
      url: z
        .string()
        .regex(/^(mysql|mariadb|sqlite):/, 'must begin with mysql://, mariadb:// or sqlite:')
        .describe('`mysql://user:secret@host/db` or `sqlite:./fleet.db` (relative to this file).'),
    })
    .describe('Products, results and our own crawlfleet_ tables.'),
  results: results.prefault({}).describe('Where rows go.'),
  run: run.prefault({}).describe('Limits of a run.'),
  aws: aws.prefault({}).describe('Where instances run.'),
  server: server.prefault({}).describe('The main server.'),
  schedule: schedule.prefault({}).describe('For `orchestrator schedule`, which is not available in this version.'),
});

export type ConfigValues = z.output<typeof configSchema>;
