/** `site.follow`: which links a crawl follows; the same rules for further pages and for a discovery. */
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { findPatternFault } from '../../../shared/adapters/steps/regex.ts';
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import type { ProductUrl } from '../../../shared/domain/domains.ts';
import { siteOrigins } from '../../../shared/domain/product.ts';
import { sharesRobots } from '../../../shared/domain/same-site.ts';
import { oneLine } from '../../../shared/domain/terminal-text.ts';
import type { SiteSettings } from '../../../shared/wire/site-settings.ts';
import { denyPrefixes, idleDenyLines } from './deny-lines.ts';
import type { MappingFault } from './faults.ts';
import { checked, orNull, text } from './forms.ts';
import { readTextFile } from './text-file.ts';

export const pattern = () => checked(text(), (value) => findPatternFault(value));

/** The keys that a discovery has, too; earlier versions had them in `discover`. */
export const FOLLOW_KEYS = {
  depth: orNull(z.int().min(0).max(1_000)).describe(
    "Maximum links to a page: from a product's page to a further one, by default any number; in a discovery from where it begins, by default 2.",
  ),
  allow: z.array(pattern()).max(1_000).default([]).describe('RE2 patterns of paths to follow; any path without it.'),
  deny: orNull(
    z.union([text(), z.array(text()).max(20_000)], { error: 'must be a file of lines, or a list of them' }),
  ).describe(
    'What is not followed, neither by a link nor by a redirect: a list, or a file with one a line (relative to this one), each a domain, a URL or the beginning of a path.',
  ),
};

const originOf = (url: string): string => URL.parse(url)?.origin ?? url;

/** The section, with its defaults. */
export const followSection = () =>
  z
    .strictObject({
      hosts: z
        .union(
          [
            z.literal('own').transform((): string[] => []),
            z
              .array(z.url({ protocol: /^https?$/, error: 'must begin with http:// or https://' }).overwrite(originOf))
              .max(10),
          ],
          { error: 'must be own, or a list of further hosts such as ["https://reviews.shop.example"]' },
        )
        .prefault('own')
        .describe(
          'Where links may lead beside the site: `own` nowhere, and with `site.hosts: any` to other pages of the record\'s host. Else further hosts that links may lead to, such as `["https://reviews.shop.example"]`: each by its own robots.txt, all in the pace of the site, with the longest Crawl-delay. Not with several domains, and not in a discovery.',
        ),
      ...FOLLOW_KEYS,
      nofollow: z
        .enum(['ignore', 'obey'])
        .default('ignore')
        .describe(
          'What a page means by `nofollow` in its meta tag for robots, or in X-Robots-Tag: `obey`, its links are not followed.',
        ),
    })
    .prefault({})
    .describe(
      'Which links are followed, to further pages of a product and in a discovery: `{ depth: 3, allow: ["^/item/"], deny: deny.txt }`. See [follow.md](follow.md).',
    );

export type FollowSection = z.output<ReturnType<typeof followSection>>;

/** What instances follow by; nothing where all is at its default. */
export function followSettingsOf({ hosts, depth, allow, nofollow }: FollowSection): Pick<SiteSettings, 'follow'> {
  const follow: SiteSettings['follow'] = {
    ...(hosts.length === 0 ? {} : { hosts }),
    ...(depth === null ? {} : { depth }),
    ...(allow.length === 0 ? {} : { allow }),
    ...(nofollow === 'obey' ? { nofollow } : {}),
  };
  return Object.keys(follow).length === 0 ? {} : { follow };
}

/** The lines of `deny`. Throws `config-invalid` for a file that cannot be read. @param key of the configuration */
export const denyLinesOf = (deny: FollowSection['deny'], file: string, key: string): string[] =>
  deny === null ? [] : typeof deny === 'string' ? readLines(file, key, deny) : usedLines(deny);

/**
 * The lines of a file that a key names, without blank ones and comments. Throws `config-invalid`.
 *
 * @param config path of the configuration, to which the file is relative
 */
export function readLines(config: string, key: string, file: string): string[] {
  try {
    return usedLines(readTextFile(resolve(dirname(config), file)).split(/\r?\n/));
  } catch (error) {
    throw new AppError('config-invalid', `cannot read ${key}, ${file}: ${describeError(error)}`, {
      hint: 'The file is relative to the configuration.',
    });
  }
}

const usedLines = (lines: readonly string[]): string[] =>
  lines.map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'));

/** What is needed of a configuration. */
interface Denying {
  denyLines?: readonly string[];
  values: { site: { product_url: ProductUrl; follow: Pick<FollowSection, 'hosts'> } };
}

const originsOf = ({ site: { product_url: url, follow } }: Denying['values']): string[] => [
  ...siteOrigins(url),
  ...follow.hosts,
];

/** Faults that show only beside the site. */
export function findFollowFaults(url: ProductUrl, { hosts }: FollowSection): MappingFault[] {
  const origins = siteOrigins(url);
  const findFault = (host: string, i: number): string | null => {
    if (origins.length > 1) return 'goes with one domain in site.product_url: each has a pace of its own';
    if ([...origins, ...hosts.slice(0, i)].some((known) => sharesRobots(known, host)))
      return 'is the site itself, or named before';
    return null;
  };
  return hosts.flatMap((host, i) => {
    const message = findFault(host, i);
    return message === null ? [] : [{ path: ['site', 'follow', 'hosts', i], message }];
  });
}

/** What the instances of a run do not follow, as `DenyList` takes it. */
export const denyOf = ({ denyLines = [], values }: Denying): string[] => denyPrefixes(denyLines, originsOf(values));

/** Warns of lines that deny nothing. */
export function denyWarnings({ denyLines = [], values }: Denying): string[] {
  const idle = idleDenyLines(denyLines, originsOf(values));
  const [example] = idle;
  return example === undefined
    ? []
    : [
        `site.follow.deny: ${idle.length} ${idle.length === 1 ? 'line' : 'lines'} can match no link, such as ${oneLine(example)}: write a path with its leading /, a domain, or a URL of the site without tracking parameters`,
      ];
}
