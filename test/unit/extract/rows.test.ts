import { describe, expect, it } from 'vitest';
import type { Field, Mapping, Rows, SelectStep } from '../../../shared/domain/mapping.ts';
import { MAX_NESTED_RECORDS, MAX_ROWS, PageLimitError } from '../../../crawl-api/extract/page-limits.ts';
import {
  css,
  cssField,
  extractBy,
  field,
  jsonField,
  jsonpath,
  pageMapping,
  regex,
  step,
  xpath,
} from '../crawl-api/extract-page.ts';

const PAGE = `<body><h1>Shop</h1><ul class="reviews">
<li class="review" data-id="7"><b class="user">Ann</b><i>5</i><ul><li>good</li></ul></li>
<li class="review" data-id="8"><b class="user">Bob</b></li>
<li class="ad">Buy</li>
<li class="review" data-id="9"><b class="user">Ann</b><i>1</i></li>
</ul></body>`;

function byRows(fields: Field[], rows: Partial<Rows> = {}): Mapping {
  return { pages: [pageMapping({ fields, rows: { each: css('.review'), key: 'id', empty: null, ...rows } })] };
}

const id = cssField(':scope', { name: 'id', attribute: 'data-id', required: true });
const user = cssField('.user', { name: 'user', required: true });
const stars = cssField('i', { name: 'stars', process: [step.integer] });

const EXPECTED = [
  { key: '7', row: { id: '7', user: 'Ann', stars: 5 } },
  { key: '8', row: { id: '8', user: 'Bob', stars: null } },
  { key: '9', row: { id: '9', user: 'Ann', stars: 1 } },
];

describe('a page of many records', () => {
  it.each<[string, Field[], Partial<Rows>]>([
    ['by css', [id, user, stars], {}],
    ['by a selector that needs the tree', [id, user, stars], { each: css('li:has(.user)') }],
    ['by xpath', [id, user, stars], { each: xpath('//li[b]') }],
    [
      'with xpath fields',
      [field([xpath('@data-id')], { name: 'id' }), user, field([xpath('//i'), step.integer], { name: 'stars' })],
      {},
    ],
  ])('%s', async (_name, fields, rows) => {
    for (const options of [{}, { piece: 1 }, { allByTree: true }])
      expect((await extractBy(byRows(fields, rows), PAGE, options)).rows).toEqual(EXPECTED);
  });

  it('matches selectors against the whole page, and takes the matches inside the record', async () => {
    const fields = [id, cssField('.reviews li', { name: 'inner' }), cssField(':scope > b', { name: 'child' })];
    const { rows } = await extractBy(byRows([...fields, cssField('h1', { name: 'outside' })]), PAGE);
    expect(rows?.[0]?.row).toEqual({ id: '7', inner: 'good', child: 'Ann', outside: null });
    expect(rows?.[1]?.row).toEqual({ id: '8', inner: null, child: 'Bob', outside: null });
  });

  it('reads the page as a whole for json_ld and regex', async () => {
    const page = `<script type="application/ld+json">{"name":"N"}</script>${PAGE}`;
    const fields = [
      id,
      field([{ type: 'json_ld', path: 'name' }], { name: 'n' }),
      field([regex('S(h)op', 1)], { name: 'r' }),
    ];
    const { rows } = await extractBy(byRows(fields), page);
    expect(rows?.map(({ row }) => [row.n, row.r])).toEqual([
      ['N', 'h'],
      ['N', 'h'],
      ['N', 'h'],
    ]);
  });

  it('drops records without key or required field, and duplicates of a key', async () => {
    const strict = { ...stars, required: true };
    expect((await extractBy(byRows([id, strict]), PAGE)).rows?.map(({ key }) => key)).toEqual(['7', '9']);
    const { rows } = await extractBy(byRows([user, stars], { key: 'user' }), PAGE);
    expect(rows).toEqual([
      { key: 'Ann', row: { user: 'Ann', stars: 5 } },
      { key: 'Bob', row: { user: 'Bob', stars: null } },
    ]);
  });

  it('reports the missing field when no record is complete', async () => {
    expect(await extractBy(byRows([id, cssField('.none', { name: 'none', required: true })]), PAGE)).toMatchObject({
      rows: null,
      missing: 'none',
    });
  });

  it.each<[string, SelectStep, string, unknown]>([
    ['found', css('.none'), '<p class="none"></p>', []],
    ['found by xpath', xpath('//p[. = "No reviews"]'), '<p>No reviews</p>', []],
    ['a false xpath', xpath('count(//p) > 3'), '<p></p>', null],
    ['not found', css('.none'), '<p>Forbidden</p>', null],
  ])('without records: the sign for none is %s', async (_name, empty, page, rows) => {
    const extraction = await extractBy(byRows([id], { empty }), page);
    expect(extraction).toMatchObject({ rows, missing: rows === null ? 'rows' : null });
  });

  it('nests', async () => {
    const page = '<div class="r" data-id="1"><b>a</b><div class="r" data-id="2"><b>b</b></div></div>';
    const fields = [
      id,
      cssField('b', { name: 'all', process: [step.all] }),
      cssField(':scope > b', { name: 'own', process: [step.all] }),
    ];
    for (const options of [{}, { allByTree: true }]) {
      const { rows } = await extractBy(byRows(fields, { each: css('.r') }), page, options);
      expect(rows?.map(({ row }) => row)).toEqual([
        { id: '1', all: ['a', 'b'], own: ['a'] },
        { id: '2', all: ['b'], own: ['b'] },
      ]);
    }
    const tooDeep = '<div class="r" data-id="1">'.repeat(MAX_NESTED_RECORDS + 1);
    await expect(extractBy(byRows([id], { each: css('.r') }), tooDeep)).rejects.toThrow(PageLimitError);
  });

  it.each<[string, SelectStep]>([
    ['while streaming', css('.review')],
    ['in the tree', xpath('//p')],
  ])(
    'abandons a page with too many records, found %s: the rows beyond the limit would be deleted',
    async (_how, each) => {
      const page = (count: number) => Array.from({ length: count }, (_, i) => `<p class=review data-id=${i}>`).join('');
      expect((await extractBy(byRows([id], { each }), page(MAX_ROWS))).rows).toHaveLength(MAX_ROWS);
      await expect(extractBy(byRows([id], { each }), page(MAX_ROWS + 1))).rejects.toThrow(PageLimitError);
    },
  );

  it('abandons a JSON page with too many records', async () => {
    const page = JSON.stringify(Array.from({ length: MAX_ROWS + 1 }, (_, i) => ({ id: i })));
    const mapping = byRows([field([jsonpath('$.id')], { name: 'id' })], { each: jsonpath('$[*]') });
    await expect(extractBy(mapping, page, { kind: 'json' })).rejects.toThrow(PageLimitError);
  });

  it('counts the size of a page value in each record', async () => {
    const about = jsonField('about', { name: 'about' });
    const page = (chars: number) =>
      `<script type="application/ld+json">{"about":"${'é'.repeat(chars)}"}</script>${Array.from({ length: 1_000 }, (_, i) => `<p class=review data-id=${i}>`).join('')}`;
    const { rows } = await extractBy(byRows([id, about]), page(3_000));
    expect(rows).toHaveLength(1_000);
    await expect(extractBy(byRows([id, about]), page(6_000))).rejects.toThrow(PageLimitError);
  });

  it('runs a chain that reads the page as a whole once, not for each record', async () => {
    const page = `<script>{"a":"${'x'.repeat(900_000)}","b":1}</script>${Array.from({ length: 2_000 }, (_, i) => `<p class=review data-id=${i}>`).join('')}`;
    const ofPage = field([regex('\\{.*\\}', 0), jsonpath('$.b')], { name: 'b' });
    const { rows } = await extractBy(byRows([id, ofPage]), page);
    expect(rows?.at(-1)).toEqual({ key: '1999', row: { id: '1999', b: '1' } });
  });

  it('reads records of a JSON page', async () => {
    const page = JSON.stringify({ reviews: [{ id: 1, user: { name: 'Ann' } }, { id: 2, user: null }, { user: {} }] });
    const fields = [field([jsonpath('$.id')], { name: 'id' }), field([jsonpath('$.user.name')], { name: 'user' })];
    const mapping = byRows(fields, { each: jsonpath('$.reviews[*]'), empty: jsonpath('$.reviews') });
    expect((await extractBy(mapping, page, { kind: 'json' })).rows).toEqual([
      { key: '1', row: { id: '1', user: 'Ann' } },
      { key: '2', row: { id: '2', user: null } },
    ]);
    expect((await extractBy(mapping, '{"reviews":[]}', { kind: 'json' })).rows).toEqual([]);
    expect((await extractBy(mapping, '<p>Forbidden</p>')).missing).toBe('rows');
  });
});
