/**
 * For any page, valid or broken and split anywhere, the parser emits the same tags and texts as htmlparser2. Implied
 * start and end tags are covered by html-tree.test.ts, because htmlparser2 implements few of these rules.
 */
import fc from 'fast-check';
import { Parser } from 'htmlparser2';
import { describe, expect, it } from 'vitest';
import { HtmlParser } from '../../../crawl-api/extract/markup/html-parser.ts';
import { cpuMs } from '../../support/cpu-ms.ts';

type Event = ['open', string, Record<string, string>] | ['close'] | ['text', string] | ['comment', string];

/** Merges adjacent texts; drops closes at the end of the page, where each parser closes all open elements. */
class EventList {
  readonly #events: Event[] = [];

  add(event: Event): void {
    const last = this.#events.at(-1);
    if (event[0] === 'text' && last?.[0] === 'text') last[1] += event[1];
    else if (event[0] !== 'text' || event[1] !== '') this.#events.push(event);
  }

  list(): Event[] {
    while (this.#events.at(-1)?.[0] === 'close') this.#events.pop();
    return this.#events;
  }
}

/** Everything is in the body, so that no element is opened implicitly. */
const FRAME = '<html><head></head><body>';

function read(pieces: readonly string[]): Event[] {
  const events = new EventList();
  const parser = new HtmlParser({
    wantsText: true,
    wantsComments: true,
    open: (name, attributes) => events.add(['open', name, attributes.toRecord()]),
    close: () => events.add(['close']),
    text: (text) => events.add(['text', text]),
    comment: (text) => events.add(['comment', text]),
  });
  parser.write(FRAME);
  for (const piece of pieces) parser.write(piece);
  parser.end();
  return events.list().slice(4);
}

/** Where the page ends inside a tag, htmlparser2 emits a character or two of the tag as text; no browser does. */
class Reference extends Parser {
  #page = '';

  override ontext(start: number, end: number): void {
    if (start >= 0 && !/^<[a-z]/i.test(this.#page.slice(Math.max(0, start - 1)))) super.ontext(start, end);
  }

  read(page: string): void {
    this.#page = page;
    this.end(page);
  }
}

function readByReference(page: string): Event[] {
  const events = new EventList();
  const parser = new Reference({
    onopentag: (name, attributes) => events.add(['open', name.toLowerCase(), attributes]),
    onclosetag: () => events.add(['close']),
    ontext: (text) => events.add(['text', text]),
    oncomment: (text) => events.add(['comment', text]),
  });
  parser.read(`${FRAME}${page}`);
  return events.list().slice(4);
}

const NAMES =
  'br img image Image input svg SVG math mi mtext annotation-xml foreignObject foreignobject desc title textarea script ' +
  'SCRIPT style iframe noembed noframes xmp linearGradient lineargradient path ſcript';
/**
 * An end tag does not close elements outside the HTML integration points of svg and math, which htmlparser2 does not
 * implement.
 */
const END_NAMES = NAMES.replaceAll(/ path| linear[gG]radient| foreign[oO]bject| ſcript/g, '');
const OPEN_NAMES = `${NAMES} span my-element h1x scripts x`;
const ENTITIES =
  '&amp; &amp &AMP &lt;b&gt; &not &notin; &notit; &yen1 &yen=1 &#65; &#65 &#x65E5; &#X1f600 &#128; &#0; &#xD800; ' +
  '&#9999999999; &nbsp;&copy &CounterClockwiseContourIntegral; &; &# &#x &#x; & &nope; &&amp; &am';
const ATTRIBUTES =
  `a|a=|a=b|A="x>y"|a='"'|a="'"|a=x/y|=a|a==b|a = "b c"|a\n=\nb|/|//|"|'|a"b|data-k="&amp;&amp"|title='&not;&notx'` +
  `|href=?a&copy=1&amp|a=&copy|a="&copy"|a="&copy|class="x y"|constructor=1|__proto__=1|<|<a|ÄÖ=ü|日本=語|a="<!--"|İ=1`;

const COMMENTS =
  '<!-- c -->|<!---->|<!-->|<!--->|<!--a--!>|<!--a--->|<!--a--!->|<!--|-->|--!|--|->|-|<!|<!>|<!a>|<!-|<!->|<!doctype html>|' +
  '<!DOCTYPE|<!doc|<!docx>|<![CDATA[|]]>|]]]>|<![CDATA[<b>&amp;]]>|<![cdata[x]]>|<![C>|<?xml ?>|<?|<?>';
const END_TAGS = '</|</>|</ p>|</1>|</ >|</\n|</scr|</script|</title|</textarea |</script/';
const NOISE = `<|>|/|!|-|?|=|'|"|&| |\n|a|b|p|t|;|#|x|1|[|]|D`;

const endName = fc.constantFrom(...END_NAMES.split(' '));
const openName = fc.constantFrom(...OPEN_NAMES.split(' '));
const space = fc.constantFrom('', ' ', '\n', '\t', '\f', '\r', '  ');
const attribute = fc.constantFrom(...ATTRIBUTES.split('|'));
const attributes = fc
  .array(fc.tuple(fc.constantFrom(' ', '\n', '/', '', ' '), attribute), { maxLength: 3 })
  .map((list) => list.flat().join(''));
const tagEnd = fc.constantFrom('>', '>', '>', '>', '/>', ' />', '/ >', '', ' ');
const markup = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.tuple(openName, attributes, space, tagEnd).map(([n, ...rest]) => `<${n}${rest.join('')}`),
  },
  {
    weight: 5,
    arbitrary: fc.tuple(endName, space, attribute, tagEnd).map(([n, s, a, e]) => `</${n}${s && s + a}${e}`),
  },
  { weight: 3, arbitrary: fc.constantFrom(...ENTITIES.split(' ')) },
  { weight: 3, arbitrary: fc.constantFrom('text', ' ', '\n', '日本', 'a < b', '<', '>', '"', "'", '<3', '/', '😀') },
  { weight: 2, arbitrary: fc.constantFrom(...COMMENTS.split('|'), ...END_TAGS.split('|')) },
);
const page = fc.array(markup, { maxLength: 14 }).map((parts) => parts.join(''));
const noise = fc.string({ unit: fc.constantFrom(...NOISE.split('|')), maxLength: 40 });

/**
 * htmlparser2 does not decode an entity after a false end tag of a title or textarea, and it also ends a textarea at
 * another textarea within svg.
 */
function isReadAlike(text: string): boolean {
  if (/<(svg|math)[^]*<textarea[^]*<textarea/i.test(text)) return false;
  return !/<\/?[a-z]*&/i.test(text) || !/<(title|textarea)/i.test(text);
}

/** Splits the text into pieces of these lengths, in turn. */
function cut(text: string, lengths: readonly number[]): string[] {
  const pieces: string[] = [];
  for (let at = 0; at < text.length; at += pieces.at(-1)!.length)
    pieces.push(text.slice(at, at + lengths[pieces.length % lengths.length]!));
  return pieces;
}

describe('the HTML parser', () => {
  it.each([
    ['markup', page],
    ['noise', noise],
  ])('emits for %s the same events as htmlparser2, however the page is split', (_name, pages) => {
    fc.assert(
      fc.property(
        pages.filter(isReadAlike),
        fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1 }),
        (text, lengths) => {
          const whole = readByReference(text);
          expect(read([text])).toEqual(whole);
          expect(read(cut(text, lengths))).toEqual(whole);
        },
      ),
      { numRuns: 800 },
    );
  });

  // A million characters each: rescanning with every piece would take minutes.
  it.each([
    ['a tag that never ends', '<p a="', 'x'],
    ['endless attributes', '<p', ' a'],
    ['a comment that never ends', '<!--', '-'],
    ['an entity that never ends', '&', 'a'],
    ['a script that never ends', '<script>', '</scrip'],
    ['a title that never ends', '<title>', '&am<'],
    ['characters that start no tag', '', '<'],
    ['unknown end tags under many open elements', '<b>'.repeat(4_000), '</x>'],
    ['stray ends of items under many open elements', `<li><ul>${'<span>'.repeat(4_000)}`, '</li></p></h1><li></li>'],
    ['formatting that no paragraph ends', '', '<p><b><i>x'],
  ])('takes linear time for %s', (_name, start, repeated) => {
    const piece = repeated.repeat(Math.ceil(100 / repeated.length));
    const pieces = [start, ...Array.from({ length: 10_000 }, () => piece)];
    expect(cpuMs(() => read(pieces))).toBeLessThan(3_000);
  });

  it('emits nothing for a tag that is cut off by the end of the page', () => {
    expect(read(['<p>a</p><a href="x'])).toEqual([
      ['open', 'p', {}],
      ['text', 'a'],
    ]);
  });

  it('skips text and comments that are not requested', () => {
    const seen: string[] = [];
    const parser = new HtmlParser({
      wantsText: false,
      wantsComments: false,
      open: (name, attributes) => seen.push(`${name} ${attributes.get('title')}`),
      close: () => undefined,
      text: (text) => seen.push(text),
      comment: (text) => seen.push(text),
    });
    for (const piece of ['<p TITLE="a&am', 'p;b">text<!-- c -->&am', 'p;<script>s</script>']) parser.write(piece);
    parser.end();
    expect(seen).toEqual(['html undefined', 'head undefined', 'body undefined', 'p a&b', 'script undefined']);
  });

  it('reads on where a handler reads another page in between', () => {
    const seen: string[] = [];
    const parser = new HtmlParser({
      wantsText: false,
      wantsComments: false,
      open: (name, attributes) => {
        if (name === 'i') read(['<p class="other">longer than what is left of this page</p>']);
        seen.push(`${name} ${attributes.get('id') ?? ''}`);
      },
      close: () => undefined,
      text: () => undefined,
      comment: () => undefined,
    });
    parser.write('<body><i id="a"></i><u id="b"></u>');
    parser.end();
    expect(seen.slice(-2)).toEqual(['i a', 'u b']);
  });
});
