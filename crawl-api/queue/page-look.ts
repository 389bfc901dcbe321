/** Fetches one page, through redirects within its site and with the browser where needed, and judges it. */
import { MAX_REDIRECTS } from '../../shared/domain/same-site.ts';
import { hasValues } from '../extract/has-values.ts';
import type { PageResult } from '../fetch/page-result.ts';
import { judge } from '../politeness/ban-rules.ts';
import type { PageBaseline } from '../politeness/page-baseline.ts';
import type { Judgement, SeenPage } from '../politeness/judgement.ts';
import { accused } from '../politeness/judgement.ts';
import type { RenderChoice } from '../politeness/render-choice.ts';
import type { SiteRules } from '../politeness/site-rules.ts';
import type { Answer, PacedRequests, PageRequest } from './paced-requests.ts';

export type LookedAt = Exclude<PageResult, { kind: 'stopped' }>;

export type Look =
  /**
   * `url` is the final URL, after redirects. `doubtful`: every page that was judged is right, but a part of the product
   * was missing, for a reason that may be a ban.
   */
  | { kind: 'seen'; page: LookedAt; url: string; judgement: Judgement; doubtful?: true }
  | { kind: 'disallowed'; url: string }
  | { kind: 'not-now' };

export interface LookParts {
  requests: PacedRequests;
  rules: SiteRules;
  render: RenderChoice;
  habit: PageBaseline;
}

/**
 * `n` as in PageRequest; `site`: the product's own URL, which decides whether a hop may be followed. With
 * `interruptible`, the first request gives up its turn when something changes.
 */
export async function lookAt(
  parts: LookParts,
  target: { n: number; url: string; site: string; interruptible: boolean },
  work: AbortSignal,
): Promise<Look> {
  const via = parts.render.first();
  const seen = new Set<string>();
  let { url, interruptible } = target;
  for (;;) {
    seen.add(url);
    const look = await lookOnce(parts, { n: target.n, url, via, interruptible }, work);
    if (look.kind !== 'seen' || look.judgement.kind !== 'hop' || look.page.kind !== 'redirect') return look;
    const { to, reply } = look.page;
    if (seen.has(to) || seen.size > MAX_REDIRECTS)
      return { ...look, judgement: accused('refusal', 'redirect-loop', url, reply) };
    // Checking each hop against the previous one would let sub-domains lead from one tenant of a host to any other.
    if (!parts.requests.mayFollow(target.site, to))
      return { ...look, judgement: accused('refusal', 'redirect-elsewhere', url, reply) };
    url = to;
    interruptible = false;
  }
}

async function lookOnce(
  { requests, rules, render }: LookParts,
  request: PageRequest,
  work: AbortSignal,
): Promise<Look> {
  const { url } = request;
  const toLook = (answer: Answer): Look => {
    if (answer.kind === 'disallowed') return { kind: 'disallowed', url };
    if (answer.kind !== 'page') return answer;
    const judgement = judge(toSeenPage(answer.page), url, rules);
    requests.noteJudgement(judgement.kind);
    return { kind: 'seen', page: answer.page, url, judgement };
  };
  const first = toLook(await requests.send(request, work));
  if (request.via === 'browser' || first.kind !== 'seen') return first;
  if (first.judgement.kind === 'right') render.httpSufficed();
  if (!render.mayRender || first.judgement.kind !== 'odd' || first.judgement.rule === 'mapping-missing') return first;
  const rendered = toLook(await requests.send({ ...request, via: 'browser', interruptible: false }, work));
  if (rendered.kind === 'seen' && rendered.judgement.kind === 'right') render.browserNeeded();
  return rendered;
}

/** The part of a page that the ban rules need. */
function toSeenPage(page: LookedAt): SeenPage {
  switch (page.kind) {
    case 'page': {
      const { reply, extraction } = page;
      return { kind: 'page', reply, missing: extraction.missing, hasValues: hasValues(extraction) };
    }
    case 'gone':
      return { kind: 'gone', reply: page.reply };
    case 'redirect':
      return { kind: 'redirect', reply: page.reply, to: page.to };
    case 'failed':
      return { kind: 'failed', reply: page.reply, retryAfterMs: page.retryAfterMs };
  }
}
