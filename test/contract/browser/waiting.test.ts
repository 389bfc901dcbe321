/** When a page is read, and what of it. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type CompiledMapping, compileMapping } from '../../../crawl-api/extract/compile-mapping.ts';
import { PageExtractor } from '../../../crawl-api/extract/page-extractor.ts';
import { expectBy, type Expected } from '../../../crawl-api/fetch/browser/expected-elements.ts';
import type { FetchHooks } from '../../../crawl-api/fetch/page-result.ts';
import { readMapping } from '../../../orchestrator/core/config/read-mapping.ts';
import { neverAborted, NO_HOOKS, openStage, Site, type Stage } from './stage.ts';

/** Shorter than a crawl's, so that the tests are quick. */
const PATIENCE_MS = 700;
/** So long that a page that took it was surely waited for. */
const LONG_MS = 15_000;

const { mapping } = readMapping({
  fields: {
    title: { css: 'h1', required: true },
    price: { css: '.price', price: true },
    color: { xpath: '//*[@id="color"]', required: false },
  },
});

let site: Site;
let other: Site;
let stage: Stage;
let compiled: CompiledMapping;
let expected: (url: string) => Expected;

beforeAll(async () => {
  site = await Site.start('127.0.7.30');
  other = await Site.start('127.0.7.31');
  compiled = await compileMapping(mapping);
});
afterAll(async () => {
  await site.stop();
  await other.stop();
});

function useStage(patienceMs: number): void {
  beforeAll(async () => {
    stage = await openStage(site, {
      openExtractor: (kind, url) => new PageExtractor(compiled, kind, url),
      expect: (url) => expected(url),
      patienceMs,
    });
  });
  afterAll(() => stage.close());
  beforeEach(() => {
    expected = expectBy(compiled);
  });
}

let pages = 0;

/** The values of the page, and how long it took. */
async function read(html: string, hooks: FetchHooks = NO_HOOKS): Promise<{ row: unknown; ms: number }> {
  const path = `/p/${++pages}`;
  site.pages.set(path, html);
  const startMs = performance.now();
  const result = await stage.source.fetch(site.url + path, hooks, neverAborted());
  const ms = performance.now() - startMs;
  return { row: result.kind === 'page' ? result.extraction.rows?.[0]?.row : result, ms };
}

const TEAPOT = expect.objectContaining({ title: 'Teapot', price: 12.5 });
/** The fields of a page that needs nothing more. */
const WHOLE = '<h1>Teapot</h1><b class=price>€ 12,50</b><i id=color>red</i>';
const after = (ms: number, script: string): string => `<script>setTimeout(() => { ${script} }, ${ms})</script>`;
const element = (tag: string, inside: string): string =>
  `<script>customElements.define('${tag}', class extends HTMLElement {
    connectedCallback() { this.attachShadow({ mode: 'open' }).innerHTML = '${inside}' } })</script>`;

describe('a page is read with', () => {
  useStage(PATIENCE_MS);

  it.each([
    [
      'what replaces a placeholder',
      `<b class=price>€ 0,00</b>${after(400, 'document.querySelector(".price").textContent = "€ 12,50"')}`,
    ],
    [
      'an element that replaces another',
      `<p><b class=price>€ 0,00</b></p>${after(400, 'document.querySelector("p").innerHTML = "<b class=price>€ 12,50</b>"')}`,
    ],
    [
      'an optional field that is filled later',
      `<p></p>${after(400, 'document.querySelector("p").innerHTML = "<b class=price>€ 12,50</b>"')}`,
    ],
    [
      'what the last of its own requests brings',
      `<b class=price>€ 0,00</b><script>fetch("/slow").then((r) => r.text()).then((t) => { document.querySelector(".price").textContent = t })</script>`,
    ],
    [
      'an element that a class reveals',
      `<b class=hidden>€ 12,50</b>${after(400, 'document.querySelector("b").className = "price"')}`,
    ],
    [
      'what an open shadow root shows',
      `<shop-price></shop-price>${element('shop-price', '<b class="price">€ 12,50</b>')}`,
    ],
    [
      'what nested shadow roots show',
      `<shop-box></shop-box>${element('shop-price', '<b class="price">€ 12,50</b>')}${element('shop-box', '<div><shop-price></shop-price></div>')}`,
    ],
    [
      'a declarative shadow root',
      '<div><template shadowrootmode=open><b class=price>€ <slot></slot></b></template>12,50</div>',
    ],
    [
      'the content of slots, in the order shown',
      `<shop-price>.50<b slot=whole>12</b></shop-price>${element('shop-price', '<b class="price">€ <slot name="whole"></slot><slot></slot></b>')}`,
    ],
    [
      'a shadow root that is filled later',
      `<shop-price></shop-price>${element('shop-price', '<b class="price">€ 0,00</b>')}${after(400, 'document.querySelector("shop-price").shadowRoot.innerHTML = "<b class=price>€ 12,50</b>"')}`,
    ],
  ])('%s', async (_name, html) => {
    site.pages.set('/slow', (_request, response) => void setTimeout(() => response.end('€ 12,50'), 400));
    expect((await read(`<h1>Teapot</h1>${html}`)).row).toEqual(TEAPOT);
  });

  it('a price that never stands still, at the limit, or at the next turn if that is later', async () => {
    const tick =
      '<script>let n = 0; setInterval(() => { document.querySelector(".price").textContent = "€ " + n++ }, 20)</script>';
    const page = `<h1>Teapot</h1><i id=color>red</i><b class=price>€ 0</b>${tick}`;
    const { ms, row } = await read(page);
    expect(row).toMatchObject({ title: 'Teapot', price: expect.any(Number) });
    expect(ms).toBeGreaterThanOrEqual(PATIENCE_MS - 50);
    const turnMs = performance.now() + 1_500;
    await read(page, { ...NO_HOOKS, turnMs: () => turnMs });
    expect(performance.now()).toBeGreaterThan(turnMs - 350);
  });

  it('nothing of templates and closed shadow roots', async () => {
    const closed = 'document.querySelector("p").attachShadow({ mode: "closed" }).innerHTML = "<b class=price>€ 1</b>"';
    const { row } = await read(`<h1>Teapot</h1><p><i class=price>€ 12,50</i></p><script>${closed}</script>`);
    expect(row).toEqual(TEAPOT);
  });
});

describe('a page costs no more time than its values need', () => {
  useStage(LONG_MS);

  /** Pages of the site are known: all are whole from the start. */
  const learn = (): void => {
    for (let i = 0; i < 10; i++)
      expected(site.url).habits.note([{ key: null, row: { title: 'a', price: 1, color: 'b' } }], 0);
  };

  it.each([
    ['nothing that could change it', ''],
    ['a script that is done', '<script>document.title = "x"</script>'],
    [
      'a spinner elsewhere',
      '<u></u><script>setInterval(() => { document.querySelector("u").textContent += "." }, 5)</script>',
    ],
  ])('with %s', async (_name, html) => {
    learn();
    await read(WHOLE);
    expect((await read(WHOLE + html)).ms).toBeLessThan(LONG_MS / 2);
  });

  it('while it keeps asking another site', async () => {
    learn();
    const poll = `<script>setInterval(() => { fetch("${other.url}/x").catch(() => {}) }, 20)</script>`;
    expect((await read(WHOLE + poll)).ms).toBeLessThan(LONG_MS / 2);
  });

  it('and waits for a field that pages usually have', async () => {
    learn();
    const fill = 'document.body.insertAdjacentHTML("beforeend", "<b class=price>€ 12,50</b>")';
    const { row } = await read(`<body><h1>Teapot</h1><i id=color>red</i>${after(500, fill)}`);
    expect(row).toEqual(TEAPOT);
  });
});
