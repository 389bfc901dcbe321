/** No ban rule matches an ordinary page, whatever its size; and large ban pages are still detected. */
import { beforeAll, describe, expect, it } from 'vitest';
import { hasValues, PageExtractor } from '../../../crawl-api/extract/page-extractor.ts';
import { type CompiledMapping, compileMapping } from '../../../crawl-api/extract/compile-mapping.ts';
import { PageBody } from '../../../crawl-api/fetch/page-body.ts';
import { PageBudget } from '../../../crawl-api/fetch/page-budget.ts';
import type { Finding } from '../../../crawl-api/fetch/reply-head.ts';
import { judge } from '../../../crawl-api/politeness/ban-rules.ts';
import type { Judgement, SeenReply } from '../../../crawl-api/politeness/judgement.ts';
import { compileSiteRules, type SiteRules } from '../../../crawl-api/politeness/site-rules.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { ordinaryPages } from '../../support/pages/ordinary-pages.ts';
import { cssField, pageMapping } from '../crawl-api/extract-page.ts';
import { ASKED, reply, URL_ASKED } from './replies.ts';

/** Like the instance: passes the bytes through decoder, parser and extractor, and returns the input of the rules. */
function seen(html: string, status: number, mapping: CompiledMapping): SeenReply & { finding: Finding | null } {
  let finding: Finding | null = null;
  const body = new PageBody({
    contentType: 'text/html; charset=utf-8',
    encoding: '',
    content: 'html',
    maxBytes: 5_000_000,
    budget: new PageBudget(systemClock),
    openExtractor: status === 200 ? (kind) => new PageExtractor(mapping, kind, URL_ASKED) : null,
    onDrain: () => undefined,
    onDone: (found) => (finding = found),
  });
  const bytes = Buffer.from(html);
  for (let at = 0; at < bytes.length; at += 16_384) body.push(bytes.subarray(at, at + 16_384));
  body.end();
  return { ...reply({ status, body: body.kept, shape: () => body.shape() }), finding };
}

describe('the ban rules on ordinary pages', () => {
  let rules: { required: SiteRules; optional: SiteRules };
  let mappings: { required: CompiledMapping; optional: CompiledMapping };
  beforeAll(async () => {
    const none = { statuses: [], redirects: [], patterns: [] };
    rules = { required: await compileSiteRules(none, true), optional: await compileSiteRules(none, false) };
    const mappingOf = (required: boolean) =>
      compileMapping({ pages: [pageMapping({ fields: [cssField('.price', { name: 'price', required })] })] });
    mappings = { required: await mappingOf(true), optional: await mappingOf(false) };
  });

  const judged = (html: string, status: number, which: 'required' | 'optional'): Judgement => {
    const { finding, ...page } = seen(html, status, mappings[which]);
    if (status === 404) return judge({ kind: 'gone', reply: page }, ASKED, rules[which]);
    if (finding?.kind !== 'page') throw new Error(`no page: ${JSON.stringify(finding)}`);
    const { extraction } = finding;
    const values = { missing: extraction.missing, hasValues: hasValues(extraction) };
    return judge({ kind: 'page', reply: page, ...values }, ASKED, rules[which]);
  };

  it.each([
    ['with a price, which is required', '¥1,200', { status: 200, which: 'required' }, ['right']],
    ['with a price, where no field is required', '¥1,200', { status: 200, which: 'optional' }, ['right']],
    ['without the required price', undefined, { status: 200, which: 'required' }, ['odd']],
    ['without any value', undefined, { status: 200, which: 'optional' }, ['odd']],
    ['with status 404', undefined, { status: 404, which: 'required' }, ['gone']],
  ] as const)('match none of the pages %s', (_what, price, { status, which }, kinds) => {
    const wrong = ordinaryPages(price === undefined ? {} : { price }).flatMap(({ style, headChars, html }) => {
      const { kind, rule } = judged(html, status, which);
      return (kinds as readonly string[]).includes(kind) ? [] : [`${style}, head of ${headChars}: ${kind} by ${rule}`];
    });
    expect(wrong).toEqual([]);
  });

  const code = 'var a="\\x61\\x62";'.repeat(8_000);
  const style = (kilobytes: number): string => `<style>${'a{b:c}'.repeat((kilobytes * 1_000) / 6)}</style>`;
  const large: Record<string, Record<string, string>> = {
    'script-shell': {
      'a script of 150 KB that redirects elsewhere': `<html><head><script>location.href="/check";${code}</script></head></html>`,
      'only an obfuscated script of 150 KB': `<html><script>${code}</script><body></body></html>`,
      'a refresh after 120 KB of style': `<html><head>${style(120)}<meta http-equiv=refresh content="0;url=/check"></head><body>Wait…</body></html>`,
    },
    'log-in-page': {
      'a login form after 120 KB of style': `${style(120)}<h1>Sign in</h1><form><input name=u><input type=password></form>`,
    },
    captcha: {
      'a captcha before 120 KB of script': `<h1>Are you human?</h1><div class="g-recaptcha"></div><script>${code}</script>`,
      'a captcha after 200 KB of style': `${style(198)}<form><div class="g-recaptcha"></div></form>`,
    },
    'challenge-datadome': {
      "a vendor's challenge after 200 KB of style": `${style(198)}<script src="https://ct.captcha-delivery.com/c.js"></script>`,
    },
  };
  it.each(
    Object.entries(large).flatMap(([rule, pages]) =>
      Object.entries(pages).map(([what, html]) => ({ what, html, rule })),
    ),
  )('detect $what', ({ html, rule }) => {
    expect(judged(html, 200, 'required')).toMatchObject({ kind: 'refusal', verdict: 'suspect', rule });
  });

  it('find no script shell in a page that was not read to its end', () => {
    const cut = reply({ body: '<html><head><script>location.href="/check"</script>', shape: () => null });
    const page = { kind: 'page', reply: cut, missing: 'price', hasValues: false } as const;
    expect(judge(page, ASKED, rules.required).kind).toBe('odd');
  });
});
