import { describe, expect, it } from 'vitest';
import { surveyPage } from '../../../crawl-api/trial/survey-page.ts';

const page = (body: string, head = '<title>Blue teapot, 1 l - Acme</title>'): string =>
  `<!doctype html><html><head>${head}</head><body>${body}</body></html>`;
const first = (body: string, head?: string): (string | undefined)[] => {
  const { heading, price } = surveyPage(page(body, head));
  return [heading[0], price[0]];
};
const CART = '<header><a class=cart>Cart <span class=price>€ 0,00</span></a></header>';
const RELATED = '<div class="related-products"><h3>Cup</h3><b class=price>€ 3,00</b></div>';
const CARD = '<b class=price>€ 3,00</b>';

describe('the heading of a page', () => {
  it.each([
    ['the only one', '<h1>Blue teapot</h1>', 'h1'],
    ['not that of the shop', '<h1 class=logo>Acme</h1><h1 class=title>Blue teapot</h1>', '.title'],
    ['not that of a message', '<h1 class=note>Added to cart</h1><main><h1>Blue teapot 1 l</h1></main>', 'main h1'],
    ['by its id', '<h1>Reviews of a teapot we like</h1><h1 id=product-name>Blue teapot</h1>', '#product-name'],
    ['inside the nearest named part', '<h1>News</h1><div class=details><h1>Blue teapot</h1></div>', '.details h1'],
    ['none for a sentence that shares a word', '<h1>A teapot for everyone who likes tea</h1>', undefined],
    ['none where the page has none', '<h2>Blue teapot</h2>', undefined],
  ])('is %s', (_, body, selector) => {
    expect(first(body)[0]).toBe(selector);
  });

  it('shares words with the title for link previews, too, and of Japanese its characters', () => {
    const shared = '<title>Acme</title><meta property="og:title" content="Blue teapot">';
    expect(first('<h1>Blue teapot</h1>', shared)[0]).toBe('h1');
    const body = '<h1 class=a>お知らせ</h1><h1 class=b>青い急須</h1>';
    expect(first(body, '<title>青い急須を買うなら</title>')[0]).toBe('.b');
  });

  it('is not selected by names that a program has made', () => {
    for (const name of ['css-1x2y3z', 'title___3hsaL', 'item-48213', 'sc-bdVaJa'])
      expect(first(`<h1>Acme</h1><div><h1 class=${name}>Blue teapot</h1></div>`)[0] ?? '').not.toContain(name);
  });
});

describe('the price of a page', () => {
  const h1 = '<h1>Blue teapot</h1>';

  it.each([
    ['beside the heading, not the cart', `${CART}<main>${h1}<p class=price>€ 19,90</p></main>`, 'main .price'],
    ['not that of another product', `<div>${h1}<p class=amount><b class=price>€ 5</b></p></div>${RELATED}`, '.price'],
    ['the new one of two', `<div>${h1}<del class=price>€ 99</del><b class="price now">€ 79</b></div>`, '.price.now'],
    [
      'not the old one by its name',
      `<div>${h1}<s class=old-price>$9</s><b class=sale-price>$7</b></div>`,
      '.sale-price',
    ],
    ['by its id', `<div>${h1}<span id=our_price>$19.90</span></div>`, '#our_price'],
    ['by its mark', `<div>${h1}<span data-testid=product-price>£4</span></div>`, '[data-testid="product-price"]'],
    ['the whole one', `<div>${h1}<p class=price><b>19</b><sup>,90</sup> €</p></div>`, '.price'],
    ['in another language', `<div>${h1}<p class=preis>1.299,00 €</p><p>inkl. MwSt.</p></div>`, '.preis'],
    ['under a heading that is its label', `<div>${h1}<h3>Price:</h3><b class=price>€ 5</b></div>`, '.price'],
    ['in a heading of its own', `<div>${h1}<h2 class=price><b>€ 5</b></h2></div>`, '.price'],
    ['before other headings', `<div>${h1}<b class=price>€ 5</b><h2>Details</h2></div>`, '.price'],
    ['also before the heading', `<div><b class=price>¥1200</b>${h1}</div>`, '.price'],
    ['also below the name of the shop', `<h1>Acme</h1><div><b class=price>¥1200</b>${h1}</div>`, '.price'],
  ])('is %s', (_, body, selector) => {
    expect(first(body)[1]).toBe(selector);
  });

  it.each([
    ['two prices that belong together', `<div>${h1}<b class=price>€ 20</b> <b class=price>€ 15</b></div>`],
    ['one of them without a name', `<div>${h1}<b class=price>€ 20</b> <strong>€ 15</strong></div>`],
    ['a price of 0', `<div>${h1}<b class=price>€ 0,00</b></div>`],
    ['a price per unit alone', `<div>${h1}<b class=unit-price>€ 2,00</b></div>`],
    ['a range', `<div>${h1}<b class=price>€ 10 - € 20</b></div>`],
    ['words around it', `<div>${h1}<b class=price>3 used from € 7</b></div>`],
    ['an amount that nothing calls a price', `<div>${h1}<b class=x>€ 7</b><i class=y>€ 9</i></div>`],
    ['an instalment', `<div>${h1}<p class=financing><b class=price>€ 7</b></p></div>`],
    ['only other products', `<main>${h1}<p>Sold out</p></main>${RELATED}`],
    ['only one under another heading', `<main>${h1}<p>Sold out</p></main><h2>You may like</h2>${CARD}`],
    ['only one of a card with a heading', `<main>${h1}<p>Sold out</p><i class=card><h3>Cup</h3>${CARD}</i></main>`],
    ['only one of a card before it', `<i class=card><h3>Cup</h3>${CARD}</i><main>${h1}<p>Sold out</p></main>`],
    ['only one in the heading of a card', `<main>${h1}<p>Sold out</p></main><h3>Cup ${CARD}</h3>`],
    ['only a cart', `${CART}${h1}`],
    ['a hidden one', `<div>${h1}<b class=price style="display: none">€ 7</b><b class=price hidden>€ 7</b></div>`],
    ['a number that is none', `<div>${h1}<b class=reviews>123</b><i>4.5</i></div>`],
    ['no heading', '<b class=price>€ 7</b>'],
  ])('is none for %s', (_, body) => {
    expect(first(body)[1]).toBeUndefined();
  });

  it('is none on a page beyond the limits', () => {
    expect(surveyPage(page('<br>'.repeat(200_001) + h1))).toEqual({ heading: [], price: [] });
  });
});
