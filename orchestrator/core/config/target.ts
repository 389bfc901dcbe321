/**
 * The target of a run (AWS, an endpoint that speaks its API, or the sandbox on this machine), and our name at the site.
 */
import { AppError } from '../../../shared/domain/errors.ts';
import { countryOf, regionsOutside } from '../plan/countries.ts';
import type { EndpointKind } from '../plan/defaults.ts';
import type { Config, Environment } from './load-config.ts';
import { siteSettingsOf } from './site-section.ts';

export interface Target {
  dryRun: boolean;
  kind: EndpointKind;
  region: string;
  bucket: string;
  /** The endpoint; null for AWS itself; for a sandbox it is filled in after its start. */
  endpoint: string | null;
}

/** Where a run of this configuration goes. */
export interface RunInputs {
  config: Config;
  target: Target;
  environment: Environment;
}

/**
 * The main region of the configuration, else that of the environment, as the AWS SDK does it; null when neither has
 * one.
 */
export const regionOf = (config: Config, environment: Environment): string | null =>
  config.values.aws.region ??
  config.values.aws.regions?.[0]?.region ??
  (environment.AWS_REGION || environment.AWS_DEFAULT_REGION || null);

/** The target as far as it is known, for checks that need no more. A missing bucket is an empty name. */
export function assumedTarget(config: Config, dryRun: boolean, environment: Environment): Target {
  try {
    return chooseTarget(config, dryRun, environment);
  } catch {
    const { aws } = config.values;
    const region = regionOf(config, environment) ?? 'us-east-1';
    const place = { dryRun, region, bucket: aws.bucket ?? '' };
    // A dry run with a refused endpoint makes no call there.
    return dryRun ? { ...place, kind: 'sandbox', endpoint: null } : { ...place, kind: 'aws', endpoint: aws.endpoint };
  }
}

/** Throws when a real run lacks a setting (`hint` says what to do), and when a dry run would leave this machine. */
export function chooseTarget(
  config: Config,
  dryRun: boolean,
  environment: Environment,
  hint = 'To try everything on this machine first, add --dry-run.',
): Target {
  const { aws } = config.values;
  const region = regionOf(config, environment);
  if (!dryRun) {
    const missing = [
      ...(region === null ? ['aws.region'] : []),
      ...(aws.bucket === null ? ['aws.bucket'] : []),
      // Without a role an instance could not put its results into the bucket.
      ...(aws.instance_profile === null ? ['aws.instance_profile'] : []),
      ...(config.values.server.url === null ? ['server.url'] : []),
    ];
    const nameless = !hasLink(config.values.site.user_agent);
    if (region === null || aws.bucket === null || missing.length > 0 || nameless) {
      const needed = [
        ...(missing.length > 0 ? [`${missing.join(', ')} in ${config.file}`] : []),
        ...(nameless ? [`a site.user_agent with a link in ${config.file}: ${WHO_TO_SAY}`] : []),
      ];
      throw new AppError(
        'config-invalid',
        `a run on AWS needs ${needed.join('; and ')}`,
        missing.length > 0 ? { hint } : {},
      );
    }
    checkCountries(config, region);
    // Whatever answers at aws.endpoint, a paid run treats it as AWS.
    return { dryRun, kind: 'aws', region, bucket: aws.bucket, endpoint: aws.endpoint };
  }
  if (aws.endpoint !== null && namesKeys(new URL(aws.endpoint))) {
    throw new AppError('endpoint-refused', 'aws.endpoint has keys in it, and a dry run takes none', {
      hint: 'Take them out of the URL: a dry run signs with keys of its own, which open nothing.',
    });
  }
  if (aws.endpoint !== null && !isLocal(aws.endpoint)) {
    throw new AppError(
      'endpoint-refused',
      `a dry run may only use an endpoint on this machine, not aws.endpoint ${aws.endpoint}`,
      { hint: 'Leave aws.endpoint out to use the built-in sandbox.' },
    );
  }
  return {
    dryRun,
    kind: aws.endpoint === null ? 'sandbox' : 'emulator',
    region: region ?? 'ap-northeast-1',
    bucket: aws.bucket ?? 'crawlfleet',
    endpoint: aws.endpoint,
  };
}

/** Throws when an instance could be launched outside of `site.countries`. */
function checkCountries({ file, values: { site, aws } }: Config, region: string): void {
  const regions = aws.regions?.map((each) => each.region) ?? [region];
  if (site.countries === null) return;
  const outside = regionsOutside(regions, site.countries);
  if (outside.length === 0) return;
  const where = outside.map((each) => `${each} (${countryOf(each) ?? 'in a country that this version does not know'})`);
  throw new AppError(
    'config-invalid',
    `${file}: site.countries allows ${site.countries.join(', ')}, but not ${where.join(', ')}`,
    { hint: 'Crawl from a region there, or add the country or the region to site.countries.' },
  );
}

/** A user and a password, or what looks like an AWS access key, anywhere in the URL. */
const namesKeys = (url: URL): boolean =>
  url.username !== '' || url.password !== '' || /\b(AKIA|ASIA)[A-Z0-9]{12,}\b/.test(url.href);

/** True for an endpoint on this machine: it never gets the user's own keys. */
export const isLocal = (endpoint: string | null): boolean =>
  endpoint !== null && isLoopback(new URL(endpoint).hostname);

/** True for a host that is this machine. */
export const isLoopback = (hostname: string): boolean =>
  hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname);

/** The link to the page about the crawler, in the form every crawler uses. */
const LINK = /\+https?:\/\/[^\s)]+/;

/** True when the site's operators can find out who we are. */
export const hasLink = (userAgent: string | null): boolean => userAgent !== null && LINK.test(userAgent);

export const userAgentOf = (config: Config): string => siteSettingsOf(config.values.site).userAgent;

export const WHO_TO_SAY =
  'say who you are, with a link to a page about the crawler, such as "examplebot/1.0 (+https://example.com/bot)"';
