/**
 * A shop whose pages link to each other, for crawls that discover products: front page, categories and a search, with
 * the traps of real shops. Months, list parameters and paths without end are linked from every footer.
 */
import { escapeHtml, type PageFrame } from '../page.ts';
import { expectedProduct, numberOfProduct, productId } from '../product.ts';
import { Catalogue } from './catalogue.ts';
import { linkedPage, PROSE } from './page-frame.ts';

const MONTHS = 'January February March April May June July August September October November December'.split(' ');
const CALENDAR = /^\/calendar\/(\d{1,6})\/(\d|0\d|1[0-2])$/;
const CATEGORY = /^\/category\/(0|[1-9]\d*)$/;
const DEEP = /^(?:\/a\/b)+$/;
const SORTS = ['name', 'price', 'newest'] as const;
const VIEWS = ['grid', 'table'] as const;

const HEADER =
  '<a class="logo" href="/">Demo Shop</a> <form action="/search"><input name="q"></form> <a rel="nofollow" href="/cart">Basket</a>';

/** Besides the traps: the same list with its parameters in another order, and what is no page of this shop. */
const FOOTER = `<p>${[
  link('/calendar/2026/11', 'Opening hours'),
  link('/list?sort=name&filter=1&view=grid', 'All products'),
  link('/list?view=grid&filter=1&sort=name#top', 'Back to the list'),
  link('/a/b', 'Ideas'),
  link('https://partner.example/item/P00001', 'Our partner'),
  link('mailto:help@shop.example', 'Write to us'),
  link('javascript:void(0)', 'Cookies'),
].join(' · ')}</p><p>&copy; Demo Shop. All prices in yen.</p>`;

export class LinkedShop {
  readonly catalogue: Catalogue;
  readonly #seed: number;

  constructor({ seed, products }: { seed: number; products: number }) {
    this.catalogue = new Catalogue(products, seed);
    this.#seed = seed;
  }

  /** The HTML of any page that is not a product's; null: there is no such page. */
  render(path: string, query: URLSearchParams): string | null {
    if (path === '/') return this.#front();
    if (path === '/search') return this.#search(query);
    if (path === '/list') return this.#list(query);
    if (DEEP.test(path)) return shopPage('More ideas', link(`${path}/a/b`, 'More like this'));
    const category = CATEGORY.exec(path);
    if (category) return this.#category(Number(category[1]), pageNumber(query));
    const month = CALENDAR.exec(path);
    return month ? calendar(Number(month[1]), Number(month[2])) : null;
  }

  /** What surrounds a numbered product; undefined for any other ID. */
  frameOf(id: string): PageFrame | undefined {
    const number = numberOfProduct(id, this.catalogue.count);
    if (number === null) return undefined;
    const [tracked, marked, relative, plain] = this.catalogue.related(number).map(productId);
    const related = [
      link(`/item/${tracked}?utm_source=related&utm_medium=card`, 'Others also looked at this'),
      link(`/item/${marked}#reviews`, 'Well reviewed'),
      link(relative!, 'Goes well with it'),
      link(`/item/${plain}`, 'From the same maker'),
    ];
    return {
      head: '<meta name="viewport" content="width=device-width">\n</head>\n',
      bodyStart: `<body>\n<header>${HEADER}</header>\n`,
      catalogue: `/category/${this.catalogue.categoryOf(number)}`,
      below: `<section class="related">${related.join(' ')}</section>\n<section class="about"><p>${PROSE}</p></section>\n`,
      footer: FOOTER,
    };
  }

  #front(): string {
    const searches = ['lamp', 'kettle'].map((term) => link(searchPath(term, 1), `Search for ${term}`));
    return shopPage('Welcome', [...this.#categoryLinks(), ...searches].join(' '));
  }

  #category(category: number, page: number): string | null {
    const pages = this.catalogue.categoryPages(category);
    if (category >= this.catalogue.categories || !isWithin(page, pages)) return null;
    const next = page < pages ? [link(`/category/${category}?page=${page + 1}`, 'Next page')] : [];
    return shopPage(
      `Department ${category}, page ${page}`,
      [this.#cards(this.catalogue.inCategory(category, page)), ...next, ...this.#categoryLinks()].join(' '),
    );
  }

  #categoryLinks(): string[] {
    return Array.from({ length: this.catalogue.categories }, (_, i) => link(`/category/${i}`, `Department ${i}`));
  }

  #search(query: URLSearchParams): string | null {
    const term = query.get('q')?.trim() ?? '';
    if (term === '') return shopPage('Search', '<p>What are you looking for?</p>');
    const page = pageNumber(query);
    const pages = this.catalogue.searchPages;
    if (!isWithin(page, pages)) return null;
    return shopPage(
      `Results for ${term}, page ${page} of ${pages}`,
      [
        this.#cards(this.catalogue.found(term, page)),
        ...(page > 1 ? [link(searchPath(term, page - 1), 'Previous page')] : []),
        ...(page < pages ? [link(searchPath(term, page + 1), 'Next page')] : []),
        // In the other order of parameters than the link to the next page.
        ...(page < pages ? [link(`/search?page=${pages}&q=${encodeURIComponent(term)}`, 'Last page')] : []),
      ].join(' '),
    );
  }

  /** Each filter leads to two further ones; sort and view change nothing but the URL. */
  #list(query: URLSearchParams): string {
    const { sort = SORTS[0], view = VIEWS[0], filter = '1' } = Object.fromEntries(query);
    const number = /^\d{1,15}$/.test(filter) ? Number(filter) : 1;
    const links = [
      ...SORTS.map((other) =>
        link(`/list?${String(new URLSearchParams({ sort: other, filter, view }))}`, `By ${other}`),
      ),
      ...VIEWS.map((other) =>
        link(`/list?${String(new URLSearchParams({ view: other, sort, filter }))}`, `As a ${other}`),
      ),
      ...[number * 2, number * 2 + 1].map((other) =>
        link(`/list?${String(new URLSearchParams({ sort, filter: String(other), view }))}`, `Filter ${other}`),
      ),
    ];
    const few = Array.from({ length: Math.min(5, this.catalogue.count) }, (_, i) => i + 1);
    return shopPage('All products', `${this.#cards(few)} ${links.join(' ')}`);
  }

  #cards(numbers: readonly number[]): string {
    const cards = numbers.map((number) => {
      const { id, title, price } = expectedProduct(this.#seed, productId(number));
      return `<li class="card">${link(`/item/${id}`, title)} <b>¥${price}</b></li>`;
    });
    return `<ul>\n${cards.join('\n')}\n</ul>`;
  }
}

/** Links to the months before and after, and to nothing else. */
function calendar(year: number, month: number): string {
  const months = year * 12 + month - 1;
  const links = [months - 1, months + 1].map((other) => {
    const [toYear, toMonth] = [Math.floor(other / 12), (other % 12) + 1];
    return link(`/calendar/${toYear}/${toMonth}`, `${MONTHS[toMonth - 1]} ${toYear}`);
  });
  return linkedPage(`Opening hours in ${MONTHS[month - 1]} ${year}`, links.join(' '), {
    header: 'Demo Shop',
    footer: 'Closed on Sundays and Mondays.',
  });
}

function shopPage(title: string, main: string): string {
  return linkedPage(title, main, { header: HEADER, footer: FOOTER });
}

function searchPath(term: string, page: number): string {
  return `/search?q=${encodeURIComponent(term)}${page === 1 ? '' : `&page=${page}`}`;
}

function link(href: string, text: string): string {
  return `<a href="${escapeHtml(href)}">${escapeHtml(text)}</a>`;
}

const pageNumber = (query: URLSearchParams): number => Number(query.get('page') ?? 1);

const isWithin = (page: number, pages: number): boolean => Number.isInteger(page) && page >= 1 && page <= pages;
