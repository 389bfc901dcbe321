/** Products that are requested by POST: pace, redirects, conditions, further pages, evidence, canary pages. */
import { describe, expect, it } from 'vitest';
import { identityOf, type PostBody } from '../../../shared/adapters/requests/page-requests.ts';
import type { RequestTemplate } from '../../../shared/domain/request-template.ts';
import { MAX_UNPROVED } from '../../../shared/domain/validators.ts';
import type { PageResult } from '../../../crawl-api/fetch/page-result.ts';
import {
  crawl,
  createScene,
  fine,
  gaps,
  notFound,
  odd,
  outcomes,
  refused,
  reply,
  results,
  setting,
  SHOP,
} from './crawl-scene.ts';
import { createQueue, orders } from './fakes.ts';

const request: RequestTemplate = { method: 'POST', body: '{"id":"{id}"}', contentType: 'application/json' };
const productUrl = `${SHOP}/api`;
const posted = { request, productUrl };
const identityFor = (id: string): string => identityOf({ url: productUrl, post: { body: JSON.stringify({ id }) } });
const redirect = (status: number, to = '/other'): PageResult => ({
  kind: 'redirect',
  reply: reply('/api', status),
  to: SHOP + to,
});

describe('products that are requested by POST', () => {
  it('are one request each at the pace, each with its own body', async () => {
    const { starts, journal } = await crawl(4, undefined, posted);
    expect(starts.map(({ url, body }) => [url, body])).toEqual(
      ['p1', 'p2', 'p3', 'p4'].map((id) => ['api', JSON.stringify({ id })]),
    );
    expect(Math.min(...gaps(starts))).toBeGreaterThanOrEqual(1_000);
    expect(outcomes(journal)).toEqual(['p1 stored', 'p2 stored', 'p3 stored', 'p4 stored']);
  });

  it.each([301, 302, 303])('do not follow a %i, which would be another request', async (status) => {
    const { starts, journal } = await crawl(2, (path) => (path === '/api' ? redirect(status) : fine(path)), posted);
    expect(starts.every(({ url, body }) => url === 'api' && body !== undefined)).toBe(true);
    expect(outcomes(journal)).not.toContain('p1 stored');
  });

  it('name the redirect that was not followed', async () => {
    const site = (path: string, tries: number): PageResult => (tries === 2 || tries > 3 ? redirect(302) : fine(path));
    const { journal } = await crawl(2, (path, tries) => site(path, tries), posted);
    expect(results(journal)[1]).toMatchObject({
      outcome: 'failed',
      reason: 'redirect',
      detail: `302 to ${SHOP}/other (redirect-post)`,
      evidence: { rule: 'redirect-post', request: { identity: identityFor('p2'), body: '{"id":"p2"}' } },
    });
  });

  it.each([307, 308])('keep method and body through a %i, and end on no common page', async (status) => {
    const { starts, journal } = await crawl(2, (path) => (path === '/api' ? redirect(status) : fine(path)), posted);
    expect(starts.map(({ url, body }) => `${url} ${body}`)).toEqual(
      ['p1', 'p2'].flatMap((id) => ['api', 'other'].map((path) => `${path} ${JSON.stringify({ id })}`)),
    );
    expect(results(journal).map((result) => 'finalUrl' in result)).toEqual([false, false]);
  });

  it('name the page on which they end, where only the URL names the product', async () => {
    const { journal } = await crawl(1, (path) => (path === '/other' ? fine(path) : redirect(307)), {
      productUrl: `${SHOP}/api/{id}`,
      request: { method: 'POST', body: '{}', contentType: 'application/json' },
    });
    expect(results(journal)[0]).toMatchObject({ outcome: 'stored', url: `${SHOP}/api/p1`, finalUrl: `${SHOP}/other` });
  });

  it('are asked once more with the cookies of a redirect, as pages are', async () => {
    const site = (_path: string, _tries: number, _via: string, { cookie }: { cookie: string }) =>
      cookie === '' ? setting(redirect(302, '/consent'), 'consent=1') : fine('/api');
    const { starts, journal } = await crawl(1, site, posted);
    expect(starts.map(({ url }) => url)).toEqual(['api', 'api']);
    expect(outcomes(journal)).toEqual(['p1 stored']);
  });

  it('are never conditional, and their pages have no name', async () => {
    const validators = { etag: '"1"' };
    const world = createQueue({ productUrl });
    await world.queue.offer({ chunk: '1-1', share: 100, products: [{ n: 1, id: 'p1', validators }] });
    await world.queue.follow(orders({ grants: ['1-1'], sealed: true }));
    const sent: unknown[] = [];
    const scene = await createScene(
      world,
      (path, _tries, _via, parts) => {
        sent.push(parts.validators);
        const page = fine(path);
        return { ...page, reply: { ...page.reply!, headers: { etag: '"2"' }, bytes: 10 } };
      },
      posted,
    );
    await scene.run(60_000);
    expect(sent).toEqual([undefined]);
    expect(results(world.journal)[0]).toMatchObject({ outcome: 'stored' });
    expect(results(world.journal)[0]).not.toHaveProperty('page');
  });

  it('are repeated once on a closed connection, like pages', async () => {
    const unread = { ...refused(), reason: 'network', reply: null, unread: true } as PageResult;
    const { starts, journal } = await crawl(1, (path, tries) => (tries === 1 ? unread : fine(path)), posted);
    expect(starts.map(({ body }) => body)).toEqual(['{"id":"p1"}', '{"id":"p1"}']);
    expect(outcomes(journal)).toEqual(['p1 stored']);
  });

  it('take their canary pages by POST', async () => {
    const canaries = [{ id: 'good', fields: { t: 'x' } }];
    const isOdd = (body: string | undefined): boolean => body === '{"id":"p2"}';
    const { starts } = await crawl(3, (path, _tries, _via, { post }) => (isOdd(post?.body) ? odd() : fine(path)), {
      ...posted,
      canaries,
    });
    expect(starts.map(({ body }) => body)).toContain('{"id":"good"}');
  });
});

describe('further pages', () => {
  it('are requested by GET, also at the URL of the product, each once', async () => {
    const links = [`${SHOP}/api`, `${SHOP}/api?page=2`, `${SHOP}/api`];
    const { starts } = await crawl(1, (path) => fine(path, { t: 'x' }, links), posted);
    expect(starts.map(({ url, body }) => `${url} ${body ?? 'GET'}`)).toEqual([
      'api {"id":"p1"}',
      'api GET',
      'api?page=2 GET',
    ]);
  });

  it('are requested as their section says, for their product', async () => {
    const sections = [{ urlPatterns: ['/reviews'], request: { ...request, body: '{"reviewsOf":"{id}"}' } }];
    const { starts } = await crawl(2, (path) => fine(path, { t: 'x' }, [`${SHOP}/reviews`, `${SHOP}/more`]), {
      productUrl: `${SHOP}/{id}`,
      sections,
    });
    expect(starts.map(({ url, body }) => `${url} ${body ?? 'GET'}`)).toEqual(
      ['p1', 'p2'].flatMap((id) => [`${id} GET`, `reviews {"reviewsOf":"${id}"}`, 'more GET']),
    );
  });

  it('of a section with GET are no POST where the site has one', async () => {
    const { starts } = await crawl(1, undefined, {
      productUrl: `${SHOP}/api/{id}`,
      request,
      sections: [{ urlPatterns: ['/api/'], request: { method: 'GET' } }],
    });
    expect(starts.map(({ url, body }) => [url, body])).toEqual([['api/p1', undefined]]);
  });
});

describe('an incident names the request', () => {
  it('of a ban', async () => {
    const { queue } = await crawl(2, (path, tries) => (tries === 1 ? fine(path) : refused(429)), posted);
    expect(queue.state.incident?.evidence).toMatchObject({
      rule: 'status-429',
      request: { identity: identityFor('p2'), body: '{"id":"p2"}' },
    });
  });

  it('when every product is gone', async () => {
    const { queue } = await crawl(5, () => notFound, posted);
    expect(queue.state.incident?.evidence).toMatchObject({
      rule: 'all-gone',
      request: { identity: identityFor('p1') },
    });
  });

  it('when the site has become slow', async () => {
    const site = (path: string, tries: number): PageResult =>
      tries > 11 ? refused(403) : fine(path, { t: 'x' }, [], tries > 5 ? 5_000 : 50);
    const { queue } = await crawl(20, site, posted);
    expect(queue.state.incident?.evidence).toHaveProperty('request.identity');
  });

  it('when many products in a row are gone', async () => {
    const isFirst = (post: PostBody | undefined): boolean => post?.body === '{"id":"p1"}';
    const { queue } = await crawl(
      MAX_UNPROVED + 10,
      (path, tries, _via, { post }) => (!isFirst(post) ? notFound : tries === 1 ? fine(path) : refused(403)),
      { ...posted, ms: 3_000_000 },
    );
    expect(queue.state.incident?.evidence).toMatchObject({ rule: 'gone-in-row' });
    expect(queue.state.incident?.evidence).toHaveProperty('request.identity');
  });

  it('but not that of the product where a further page by GET is the evidence', async () => {
    const site = (path: string): PageResult =>
      path === '/more' ? refused(429) : fine(path, { t: 'x' }, [`${SHOP}/more`]);
    const { queue } = await crawl(2, site, posted);
    expect(queue.state.incident?.evidence).toMatchObject({ rule: 'status-429', url: `${SHOP}/more` });
    expect(queue.state.incident?.evidence).not.toHaveProperty('request');
  });

  it('of a canary page that differs', async () => {
    const canaries = [{ id: 'good', fields: { t: 'other' } }];
    const { queue } = await crawl(2, (path, _tries, _via, { post }) => (/good/.test(post!.body) ? fine(path) : odd()), {
      ...posted,
      canaries,
    });
    expect(queue.state.incident?.evidence).toHaveProperty('request.identity');
  });

  it('and a GET has none', async () => {
    const { queue } = await crawl(2, (path) => (path === '/p1' ? fine(path) : refused(429)));
    expect(queue.state.incident?.evidence).not.toHaveProperty('request');
  });
});
