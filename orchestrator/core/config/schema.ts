/**
 * Every key of fleet.yaml, but for the sections of features: its form, default and meaning. docs/configuration.md and
 * the JSON Schema are generated from both. Values leave here as numbers with their unit in the name; text forms such as
 * `4h` stay outside.
 */
import { z } from 'zod';
import { DEFAULT_INSTANCE_TYPES } from '../plan/defaults.ts';
import { createTimetable } from './timetable.ts';
import { checked, duration, httpUrl, orNull, positiveDuration, share, text } from './forms.ts';
import { siteSection } from './site-section.ts';

const listenAddress = () =>
  z.string().regex(/^(\[[0-9a-fA-F:]+\]|[^:\s]+):\d{1,5}$/, 'must be an address and a port such as 127.0.0.1:8700');

/** The name of a table that rows go to. */
export const resultTable = () =>
  z
    .string()
    .regex(
      /^[A-Za-z_][A-Za-z0-9_$]{0,63}(\.[A-Za-z_][A-Za-z0-9_$]{0,63})?$/,
      'must be a table name of letters, digits and underscores',
    );

const results = z.strictObject({
  table: resultTable()
    .default('product_snapshots')
    .describe('Where stored products go; made when it is missing, checked when it exists.'),
  on_gone: z.enum(['keep', 'delete']).default('keep').describe("What happens to a gone product's row."),
  history: orNull(z.literal('changes')).describe(
    '`changes`: a table `<table>_history` gets a row for each change of a field: product, field, old value, new value, when, run; and when a product vanishes or comes back.',
  ),
  guard: z
    .strictObject({ min_fill: share().prefault('50%') })
    .nullable()
    .prefault({})
    .describe(
      'Hold a crawl (exit code 13) when fewer products are stored, or a field is filled less often, than `min_fill` (50% unless it is set) of the mean of the last 5 completed runs, or when the values of a field are not those of the last nights: all zero, all the same, tenfold, another currency; `null` publishes every crawl.',
    ),
});

const run = z.strictObject({
  deadline: orNull(
    positiveDuration().refine((ms) => ms <= 30 * 86_400_000, { error: 'must be at most 720h' }),
  ).describe('From the start of the run to the rows in the result table. `--deadline` wins.'),
  max_cost: orNull(z.number().positive()).describe('Maximum cost of a run, in USD; no cap by default.'),
  grace: duration().prefault('10m').describe('After the deadline plus this, every instance powers itself off.'),
  min_instances: z.int().min(1).default(1).describe('Fewest instances.'),
  max_instances: z
    .int()
    .min(1)
    .default(100)
    .describe('Maximum number of instances; at most 1,000 in each region, the targets of a target group.'),
  site_wait: duration()
    .prefault('10m')
    .describe(
      'How long a run waits, before anything is launched, for a site whose robots.txt cannot be read; in a dry run at most a quarter of its deadline.',
    ),
  max_failed: share().prefault('5%').describe('Share of failed products above which the exit code is 12.'),
});

/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html */
export const BUCKET = {
  form: /^(?!.*\.\.)(?!\d+\.\d+\.\d+\.\d+$)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/,
  must: 'must be the name of a bucket, without s3://, path or ARN: 3 to 63 small letters, digits, dots and hyphens',
};

/** ARN of a KMS key. */
export const KMS_KEY = /^arn:[\w-]+:kms:[\w-]+:\d+:key\/[\w-]+$/;

/**
 * Characters that EC2, ELBv2, IAM and S3 all take.
 * https://docs.aws.amazon.com/tag-editor/latest/userguide/best-practices-and-strats.html
 */
const TAG_TEXT = /^[\p{L}\p{N} _.:/=+@-]*$/u;
/** AWS takes 50 of the user's; ours are among them. */
const MAX_TAGS = 40;

function findTagFault(key: string, value: string): string | null {
  if (key === '' || key.length > 128 || value.length > 256)
    return 'must be 1 to 128 characters long, its value up to 256';
  if (/^(aws:|crawlfleet:|Name$)/i.test(key)) return 'is set by AWS or by crawlfleet';
  return TAG_TEXT.test(key + value) ? null : 'may have letters, digits, blanks and _ . : / = + @ - only, as its value';
}

const tags = () =>
  z
    .record(z.string(), z.string({ error: 'must be a text, in quotes' }))
    .superRefine((all, context) => {
      const fault = (path: string[], message: string): void => context.addIssue({ code: 'custom', path, message });
      for (const [key, value] of Object.entries(all)) {
        const found = findTagFault(key, value);
        if (found !== null) fault([key], found);
      }
      if (Object.keys(all).length > MAX_TAGS) fault([], `has more than ${MAX_TAGS} tags`);
    })
    .default({});

/** A target group takes no more targets. */
export const MAX_IN_REGION = 1_000;

/** What a region may have of its own. */
const region = z.strictObject({
  region: text().describe('Such as `eu-west-1`.'),
  max_instances: z
    .int()
    .min(1)
    .max(MAX_IN_REGION)
    .default(MAX_IN_REGION)
    .describe('Maximum number of instances there.'),
  weight: orNull(z.number().positive()).describe(
    'Share of the fleet, in proportion to the other weights. Without any weight the plan fills the cheapest region first.',
  ),
  vcpu_quota: orNull(z.int().positive()).describe('As `aws.vcpu_quota`, for this region.'),
  subnets: z.array(text()).default([]).describe('As `aws.subnets`.'),
  security_groups: z.array(text()).default([]).describe('As `aws.security_groups`.'),
  image: orNull(text()).describe('As `aws.image`: an image exists in one region.'),
  load_balancer: orNull(
    text().refine((name) => name !== 'none', 'cannot be none: the main server is in one region only'),
  ).describe('As `aws.load_balancer`, but for `none`.'),
});

const aws = z.strictObject({
  region: orNull(text()).describe(
    'AWS region of the bucket, and of the instances unless `aws.regions` names others. Without it the first of `aws.regions` or AWS_REGION counts; a dry run needs none.',
  ),
  regions: orNull(z.array(region).min(1).max(20)).describe(
    'Regions in which one run launches instances, each with a load balancer of its own: `[{ region: eu-west-1, max_instances: 20 }, { region: eu-central-1 }]`. See [regions.md](regions.md).',
  ),
  endpoint: orNull(z.url('must be a URL')).describe('An AWS-compatible endpoint in place of AWS.'),
  instance_types: z
    .array(text())
    .min(1)
    .default([...DEFAULT_INSTANCE_TYPES])
    .describe('Allowed types; the plan takes the cheapest that fits an instance.'),
  subnets: z
    .array(text())
    .default([])
    .describe(
      'Subnets to launch in: ids, or `tag:KEY=VALUE`; without it those of the default VPC. The balancer needs two, in two zones.',
    ),
  security_groups: z
    .array(text())
    .default([])
    .describe(
      'Security groups of the instances: ids, or `tag:KEY=VALUE`. Without it those of the VPC with the tag `crawlfleet:role=instance` (as `orchestrator setup` makes them), else its default group. The balancer is in those with `crawlfleet:role=balancer`.',
    ),
  bucket: orNull(z.string().regex(BUCKET.form, BUCKET.must)).describe(
    'Bucket for bundles, parts and manifests; a dry run makes its own.',
  ),
  volume: orNull(
    z.strictObject({
      size: orNull(z.int().min(8).max(16_384)).describe("GiB; the image's size without it, 8 on Amazon Linux."),
      type: orNull(z.enum(['gp3', 'gp2'])).describe("The image's type without it. Plans use the price of gp3."),
      encrypted: z.boolean().default(false).describe("Encrypt it with the account's default key for EBS."),
      kms_key: orNull(z.string().regex(KMS_KEY, 'must be the ARN of a KMS key')).describe(
        'ARN of a KMS key to encrypt it with. `orchestrator setup` prints the rights that this needs.',
      ),
    }),
  ).describe(
    "Settings of the instances' root volume, which is the image's without them: `{ size: 16, encrypted: true }`.",
  ),
  sse: orNull(
    z.string().refine((sse) => sse === 'AES256' || sse === 'aws:kms' || KMS_KEY.test(sse), {
      error: 'must be AES256, aws:kms or the ARN of a KMS key',
    }),
  ).describe(
    "Encryption that every object is put with, for buckets whose policy demands the header: `AES256`, `aws:kms` (AWS's own key) or the ARN of a KMS key of yours, whose rights `orchestrator setup` prints. Without it the bucket's default.",
  ),
  instance_profile: orNull(text()).describe('Instance profile that may put objects into the bucket.'),
  image: orNull(text()).describe(
    'Image to boot. Left out: Amazon Linux 2023, or for pages by a browser the newest image of orchestrator image, else Debian 13.',
  ),
  load_balancer: orNull(text().transform((name) => (name === 'auto' ? null : name))).describe(
    'What hands the products out. `auto`, also when left out: the main server itself where it is in the VPC of up to 10 instances, else a load balancer that is made for the run and removed after it. `none`: the main server itself. Otherwise name or ARN of an application load balancer of yours: the run adds a listener (from port 8800 on) and a target group and removes them again, the balancer itself stays unchanged.',
  ),
  balancer_scheme: z
    .enum(['auto', 'internal', 'internet-facing'])
    .default('auto')
    .describe(
      'Scheme of the balancer that a run makes. `auto`: internal when the main server is an EC2 instance in the same VPC, else internet-facing; set `internal` where it reaches the VPC by a VPN.',
    ),
  certificate: orNull(
    z.strictObject({
      arn: z
        .string()
        .regex(
          /^arn:[\w-]+:(acm:[\w-]+:\d+:certificate|iam::\d+:server-certificate)\/\S+$/,
          'must be the ARN of a certificate',
        )
        .describe('ARN of a certificate in ACM, in the region of the run, or in IAM.'),
      name: z
        .string()
        .regex(/^[a-z0-9-]+(\.[a-z0-9-]+)+$/i, 'must be a host name')
        .describe('A host name that it is valid for. The main server expects it; it need not be in DNS.'),
    }),
  ).describe(
    'Lets the listener of the balancer speak HTTPS: `{ arn: "arn:aws:acm:…", name: crawl.example.com }`. A small run then gets a balancer, too. Dry runs ignore it.',
  ),
  vcpu_quota: orNull(z.int().positive()).describe(
    'vCPUs that a run may use. Without it this is the quota that AWS reports, minus what runs in the region; set it only if the main server may not query the quota, or as a lower limit.',
  ),
  tags: tags().describe(
    'Tags of your own on everything that runs and `orchestrator image` make, and in what `orchestrator setup` prints: `{ CostCenter: "4711" }`. For organisations whose policies refuse resources without them.',
  ),
  owner: orNull(
    z.string().regex(/^[A-Za-z0-9._:/@+=-]{1,128}$/, 'must be 1 to 128 letters, digits or . _ : / @ + = -'),
  ).describe(
    "Owner of the instances and balancers (tag `crawlfleet:owner`): `gc` ends only those of this owner. Without it this machine's host name; set it when the main server may move to another host, and give each main server of an account its own.",
  ),
  recycle_every: orNull(positiveDuration()).describe(
    'How often each slot gets a fresh address: the instance uploads its results and ends, another one replaces it; at most a fifth of the fleet at a time. At least five times what a boot and an upload take (15m on EC2, 30m where instances install a browser at their boot).',
  ),
  commands: z
    .boolean()
    .default(false)
    .describe(
      'Whether instances take commands by `orchestrator exec`: they run the SSM agent of AWS, installed where the image lacks it, and need the rights of `orchestrator setup --commands`.',
    ),
});

/** Keys of `aws` that name something of one region, and that each of `aws.regions` has too. */
const REGIONAL = ['vcpu_quota', 'subnets', 'security_groups', 'image', 'load_balancer'] as const;

function checkPlaces(values: z.output<typeof aws>, context: z.core.$RefinementCtx): void {
  const { regions, certificate, volume } = values;
  const fault = (path: (string | number)[], message: string): void =>
    context.addIssue({ code: 'custom', path, message });
  if (certificate !== null && values.load_balancer === 'none')
    fault(['certificate'], 'is for a load balancer, and aws.load_balancer is none');
  if (regions === null) return;
  regions.forEach(({ region: name }, i) => {
    if (regions.findIndex((other) => other.region === name) < i) fault(['regions', i, 'region'], 'is listed twice');
  });
  for (const key of REGIONAL) {
    const value = values[key];
    if (Array.isArray(value) ? value.length > 0 : value !== null) fault([key], 'goes into the entries of aws.regions');
  }
  if (certificate !== null) fault(['certificate'], 'is of one region, and does not go together with aws.regions');
  if (volume?.kms_key) fault(['volume', 'kms_key'], 'is of one region, and does not go together with aws.regions');
}

const server = z.strictObject({
  listen: orNull(listenAddress()).describe('Callback listener; 0.0.0.0:8700, in dry runs a free port on 127.0.0.1.'),
  url: orNull(z.url('must be a URL')).describe('How instances reach the callback listener.'),
  operator: listenAddress()
    .default('127.0.0.1:8701')
    .describe("Operator's listener: the page of `orchestrator serve`, `/healthz` of `orchestrator schedule`."),
  page_url: orNull(httpUrl()).describe(
    'Address at which you open the page of `orchestrator serve`; notices link to it: `https://crawl.example.com`.',
  ),
  operator_token: orNull(text().min(16, 'must have at least 16 characters')).describe(
    'Lets the page of `orchestrator serve` change runs (stop, cancel, publish, retry). Without it the page only shows.',
  ),
  operator_tls: orNull(
    z.union([z.literal('proxy'), z.strictObject({ cert: text(), key: text() })], {
      error: 'must be proxy or { cert: FILE, key: FILE }',
    }),
  ).describe(
    "TLS of the operator's listener: the files of a certificate and its key (relative to this file), or `proxy` where a proxy before it has TLS. An address other than loopback needs it, and `operator_token`.",
  ),
});

function findCronFault(cron: string): string | null {
  try {
    // A single date that is past makes no other command fail: the file that names it stays readable.
    return createTimetable(cron, 'UTC').next(0) === null ? `is never due: ${cron}` : null;
  } catch (error) {
    const said = error instanceof Error ? error.message.replace(/^CronPattern: /, '') : String(error);
    return `must be a cron expression such as 0 2 * * * (minute, hour, day, month, weekday): ${said}`;
  }
}

function findTimezoneFault(timezone: string): string | null {
  try {
    Intl.DateTimeFormat('en', { timeZone: timezone });
    return null;
  } catch {
    return `must be a time zone such as Asia/Tokyo or UTC, not ${JSON.stringify(timezone)}`;
  }
}

const schedule = z.strictObject({
  cron: checked(text(), findCronFault)
    .default('0 2 * * *')
    .describe(
      'When runs start: minute, hour, day, month, weekday. With six fields the first one is the second; `@daily` and the like, `L`, `W` and `#` are understood.',
    ),
  timezone: checked(text(), findTimezoneFault).default('UTC').describe('Time zone in which `cron` is read.'),
  if_running: z
    .enum(['skip', 'queue'])
    .default('skip')
    .describe('When a run is due during another one: skip it, or start it after that one. At most one waits.'),
  catch_up: duration()
    .prefault('1h')
    .describe(
      'A due time that no daemon handled is made up for if it is no older than this; `0s`: never. Only the newest one.',
    ),
  name: orNull(z.string().min(1, 'must not be empty').max(150, 'is longer than 150 characters')).describe(
    'Tells schedules apart that share a database; the result table without it.',
  ),
});

/** The keys that every fleet has; those of features are sections of their own. */
export const configSchema = z.strictObject({
  site: siteSection.describe('The site and how it is crawled.'),
  products: z
    .strictObject({
      query: text().describe(
        'SQL that yields a column `id`, one row a product, and with `site.hosts` a column `url`. An ID has at most 768 characters and 2,000 bytes; a list with a worse one is refused.',
      ),
      min_rows: z
        .int('must be a whole number such as 1000')
        .min(0, 'must not be below 0')
        .default(1)
        .describe(
          'Minimum number of products of a run; with fewer it ends with exit code 13 before anything is launched. `0` allows an empty list.',
        ),
      max_drop: z
        .union([z.literal('off').transform(() => null), share()], { error: 'must be a share such as 50%, or off' })
        .prefault('50%')
        .describe(
          'How much shorter the list may be than the mean of the last five whole runs of this query and site. A list that has shrunk by more ends with exit code 13 before anything is launched, unless `--accept-drop` confirms it; `off` for lists whose length changes by nature.',
        ),
      recrawl: orNull(
        z.strictObject({
          base: positiveDuration().prefault('30d').describe('Interval of a product with score 0.'),
          k: z.number().min(0).max(20).default(2).describe('A score shortens the interval to base x exp(-k x score).'),
          score: text()
            .default('score')
            .describe(
              'The column of products.query that says how much a product matters, from 0 to 1; without it all are 0.',
            ),
          every: z
            .record(z.string(), positiveDuration())
            .default({})
            .describe(
              'A base of its own for products of a category: `{ bestseller: 1d }`; `products.query` then yields `category`.',
            ),
          capacity: z
            .union([z.literal('auto').transform(() => null), z.int().min(1)], {
              error: 'must be auto or a number of products',
            })
            .prefault('auto')
            .describe(
              'Most products of a night; `auto`: as many as fit into the deadline with run.max_instances, the quota and run.max_cost.',
            ),
          max_share: share().prefault('100%').describe('Largest share of a night that one category may take.'),
        }),
      ).describe(
        'Crawl a product when it is due instead of all of them each night: `{ base: 30d, k: 2 }`. `products.query` may also yield `changed_at`, `priority` and `category`. See [recrawl.md](recrawl.md).',
      ),
    })
    .describe('What to crawl.'),
  database: z
    .strictObject({
      url: z
        .string()
        .regex(/^(mysql|mariadb|sqlite):/, 'must begin with mysql://, mariadb:// or sqlite:')
        .describe(
          '`mysql://user:secret@host/db`, with `?ssl=true` for [TLS](install.md#tls), or `sqlite:./fleet.db` (relative to this file).',
        ),
    })
    .describe('Products, results and our own crawlfleet_ tables.'),
  results: results.prefault({}).describe('Where rows go.'),
  run: run.prefault({}).describe('Limits of a run.'),
  aws: aws.superRefine(checkPlaces).prefault({}).describe('Where instances run.'),
  server: server.prefault({}).describe('The main server.'),
  schedule: schedule.prefault({}).describe('When `orchestrator schedule` starts runs.'),
  retention: orNull(positiveDuration()).describe(
    'How long products, events, attempts and changes of a run are kept after its end; each run removes what older runs of this configuration have left. Results and reports stay. By default nothing is removed. See `orchestrator prune`.',
  ),
  cloudwatch: orNull(z.literal('emf')).describe(
    "`emf`: a run's log has a line of metrics once a minute in the embedded metric format; the CloudWatch agent that ships the log makes metrics of it.",
  ),
});

export type ConfigValues = z.output<typeof configSchema>;
