/**
 * The names that `site.headers` may not have, each with the reason: the one list of them. Every other name may be sent.
 * Names count without case, and with `_` as `-`: many servers hand both to their programs as one.
 */

interface Refusal {
  /** Completes "is refused: ". */
  why: string;
  names: string;
  /** Beginnings and parts of names, where a family has too many to list. */
  patterns?: readonly RegExp[];
}

const REFUSALS: readonly Refusal[] = [
  {
    why: 'it belongs to the connection, which crawlfleet makes',
    names:
      'host connection keep-alive te trailer transfer-encoding upgrade http2-settings expect early-data max-forwards alt-used upgrade-insecure-requests',
    patterns: [/^proxy-/, /^sec-websocket-/],
  },
  { why: 'it frames a body, and a page is requested without one', names: 'content-length content-encoding' },
  {
    why: 'crawlfleet sets it for conditional requests (site.conditional)',
    names: 'if-match if-none-match if-modified-since if-unmodified-since',
  },
  { why: 'pages are read whole', names: 'range if-range content-range request-range' },
  { why: 'it decides in which encoding a page comes, and crawlfleet decodes it', names: 'accept-encoding a-im' },
  {
    why: 'it states where a request comes from, and sites would take it for another sender',
    names:
      'forwarded via origin referer referrer x-referer real-ip x-host x-backend-host x-proxy-host x-originating-url x-azure-socketip x-envoy-external-address x-akamai-edgescape x-appengine-user-ip',
    patterns: [
      /forwarded/,
      /^sec-fetch-/,
      /(^|-)(client|real|remote|connecting|source|src|origin|originating|user|proxyuser|viewer|cluster|peer)-?(ip|addr|address)(v?\d)?$/,
      /clientip$/,
      /^(cf|cloudfront|fastly|x-appengine|fly|x-nf|x-vercel)-(client|connecting|viewer|ip|country|region|city|pseudo|proxied)/,
    ],
  },
  {
    why: 'it says that the request is another one than robots.txt was asked about',
    names: 'x-original-url x-rewrite-url x-http-method-override x-http-method x-method-override',
  },
  {
    why: 'it signs a request that crawlfleet makes',
    names: 'signature signature-input signature-agent',
    patterns: [/^x-crawlfleet-/],
  },
  { why: 'site.cookies sends cookies', names: 'cookie cookie2' },
  { why: 'site.user_agent says who you are', names: 'user-agent', patterns: [/^sec-ch-ua/] },
];

const BY_NAME = new Map(REFUSALS.flatMap(({ names, why }) => names.split(' ').map((name) => [name, why] as const)));

/** Why a header of this name may not be sent; null for any other name. */
export function whyRefused(name: string): string | null {
  const plain = name.toLowerCase().replaceAll('_', '-');
  const known = BY_NAME.get(plain);
  if (known !== undefined) return known;
  return REFUSALS.find(({ patterns = [] }) => patterns.some((pattern) => pattern.test(plain)))?.why ?? null;
}
