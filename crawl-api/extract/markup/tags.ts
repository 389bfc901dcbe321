/**
 * HTML's rules for elements by name: which have no content, which close others by starting, whose content is always
 * text. From the tree construction of the standard (https://html.spec.whatwg.org/#tree-construction), without its
 * adoption agency and foster parenting; a test compares the trees with those of parse5.
 */
import { isNameAt, type Markup, toMarkup } from './characters.ts';

/** Text inside an element: `raw` verbatim, `rcdata` with entities, `plain` verbatim to the end of the page. */
type TextOnly = 'raw' | 'rcdata' | 'plain';

/**
 * How browsers show an element without the page's CSS: on lines or in cells of its own, within the line, within it with
 * smaller or raised letters, or not at all.
 */
export type Display = 'block' | 'inline' | 'small' | 'none';

export interface Tag {
  /** The name in the stack of open elements: SVG's own names in mixed case. */
  readonly name: string;
  /** The name in selectors. */
  readonly lower: string;
  readonly isVoid: boolean;
  readonly textOnly: TextOnly | null;
  /** Its start changes nothing around it: none of the rules below apply. */
  readonly isPlain: boolean;
  readonly ends: ReadonlySet<string> | null;
  readonly endsParagraph: boolean;
  /** The standard's category "special": end tags of other elements do not reach beyond it. */
  readonly isSpecial: boolean;
  /** End tags of outer elements do not reach into it. */
  readonly isScope: boolean;
  /** An item does not close one that is outside of this element. */
  readonly boundsItems: boolean;
  /** The names of previous items that an item closes. */
  readonly follows: ReadonlySet<string> | null;
  /** One of the standard's formatting elements, such as a and b. */
  readonly isFormatting: boolean;
  /** Formatting elements that the end of a paragraph has closed reopen before it. */
  readonly reopens: boolean;
  /** Elements in which this table part may start; null if it is not one. */
  readonly contexts: ReadonlySet<string> | null;
  /** Belongs in the head when it comes before the body. */
  readonly isMetadata: boolean;
  /** The rules inside it: svg's and math's own, or HTML's again inside of these; null for those of the parent. */
  readonly rules: 'svg' | 'math' | 'html' | null;
  readonly display: Display;
  /** Known names are numbered from 0; -1 for others. */
  readonly id: number;
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '));

const VOID = new Set(
  'area base basefont br col command embed frame hr img input isindex keygen link meta param source track wbr'.split(
    ' ',
  ),
);

const TEXT_ONLY: Readonly<Record<string, TextOnly>> = {
  iframe: 'raw',
  noembed: 'raw',
  noframes: 'raw',
  script: 'raw',
  style: 'raw',
  xmp: 'raw',
  title: 'rcdata',
  textarea: 'rcdata',
  plaintext: 'plain',
};

/** Each line: starting elements, and the innermost open elements that they close. */
const ENDS: readonly (readonly [starts: string, ends: string])[] = [
  ['a', 'a'],
  ['h1 h2 h3 h4 h5 h6', 'h1 h2 h3 h4 h5 h6'],
  ['input select textarea', 'optgroup option select'],
  ['option', 'option'],
  ['optgroup', 'optgroup option'],
  ['rt rp', 'rt rp'],
];

const ENDS_PARAGRAPH = words(
  'address article aside blockquote center dd details dialog dir div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 ' +
    'header hgroup hr li listing main menu nav ol p plaintext pre search section summary table ul xmp',
);

const CONTEXTS: Readonly<Record<string, ReadonlySet<string>>> = {
  caption: words('table'),
  colgroup: words('table'),
  col: words('colgroup table'),
  thead: words('table'),
  tbody: words('table'),
  tfoot: words('table'),
  tr: words('thead tbody tfoot table'),
  th: words('tr thead tbody tfoot table'),
  td: words('tr thead tbody tfoot table'),
};

const METADATA = words('base basefont bgsound link meta noframes noscript script style template title');

const SPECIAL = words(
  'address applet area article aside base basefont bgsound blockquote body br button caption center col colgroup dd details dir div dl dt ' +
    'embed fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe img input keygen li ' +
    'link listing main marquee menu meta nav noembed noframes noscript object ol p param plaintext pre script search section select source ' +
    'style summary table tbody td template textarea tfoot th thead title tr track ul wbr xmp',
);
/** Special elements that an item may close together with the previous item. */
const PASSED_BY_ITEMS = words('address div p');
const FOLLOWS: Readonly<Record<string, ReadonlySet<string>>> = {
  li: words('li'),
  dd: words('dd dt'),
  dt: words('dd dt'),
};
const SCOPE = words('applet caption html marquee object table td template th');
const FORMATTING = words('a b big code em font i nobr s small strike strong tt u');
/** Special elements that reopen formatting; all that are not special do, too, except the parts of ruby. */
const SPECIAL_REOPENS = words('applet area br button embed img input keygen marquee object select wbr xmp');
/** Elements that open-elements.ts handles by name. */
const RULED_BY_NAME = words('html head body frameset form button');
const RUBY_PARTS = words('rb rp rt rtc');

/** Besides those that end a paragraph, and the parts of a table. */
const BLOCKS = words('body br html legend optgroup option');
const SMALL = words('small sub sup');
/** Elements without text of their own: the text of a noscript is text of the page. */
const INVISIBLE = words('area base basefont bgsound link meta param script source style template track wbr');

const HOLDS_HTML = 'mi mo mn ms mtext annotation-xml foreignObject desc title';

const SVG_NAMES =
  'altGlyph altGlyphDef altGlyphItem animateColor animateMotion animateTransform clipPath feBlend feColorMatrix ' +
  'feComponentTransfer feComposite feConvolveMatrix feDiffuseLighting feDisplacementMap feDistantLight feDropShadow ' +
  'feFlood feFuncA feFuncB feFuncG feFuncR feGaussianBlur feImage feMerge feMergeNode feMorphology feOffset ' +
  'fePointLight feSpecularLighting feSpotLight feTile feTurbulence foreignObject glyphRef linearGradient ' +
  'radialGradient textPath';

const FREQUENT = 'span label image picture video audio canvas g path use time sup sub';

const RULES: Readonly<Record<string, Tag['rules']>> = {
  svg: 'svg',
  math: 'math',
  ...Object.fromEntries(HOLDS_HTML.split(' ').map((name) => [name, 'html' as const])),
};

const NAMES = new Set([
  ...VOID,
  ...Object.keys(TEXT_ONLY),
  ...Object.keys(RULES),
  ...ENDS.flatMap((line) => line.flatMap((names) => names.split(' '))),
  ...ENDS_PARAGRAPH,
  ...METADATA,
  ...SPECIAL,
  ...FORMATTING,
  ...RUBY_PARTS,
  ...FREQUENT.split(' '),
  ...BLOCKS,
]);

const KNOWN = new Map([...NAMES].map((name, id) => [name, createTag(name, id)]));

const UNKNOWN = createTag('', -1);

/** All tags with an id, by id. */
export const KNOWN_TAGS: readonly Tag[] = [...KNOWN.values()];

const SVG_BY_LOWER: ReadonlyMap<string, string> = new Map(
  SVG_NAMES.split(' ').map((name) => [name.toLowerCase(), name]),
);

/** Known tags by first and last letter, to find them without cutting the name out of the page. */
const BY_LETTERS: readonly Tag[][] = Array.from({ length: 1024 }, () => []);
for (const tag of KNOWN_TAGS) {
  // A name that only svg spells with capitals must not match elsewhere.
  if (tag.name === tag.lower) BY_LETTERS[lettersAt(toMarkup(tag.name), 0, tag.name.length)]!.push(tag);
}

/** The tag whose name is the text from `start` to `end`, ignoring case; without rules when it is unknown. */
export function tagAt(markup: Markup, start: number, end: number): Tag {
  for (const tag of BY_LETTERS[lettersAt(markup, start, end)]!) if (isNameAt(markup, start, end, tag.name)) return tag;
  return tagNamed(markup.text.slice(start, end).toLowerCase());
}

/** The same number for both cases of a letter. */
function lettersAt({ codes }: Markup, start: number, end: number): number {
  return ((codes[start]! & 31) << 5) | (codes[end - 1]! & 31);
}

/** The known tag of this name, or one without rules. */
export function tagNamed(name: string): Tag {
  return KNOWN.get(name) ?? { ...UNKNOWN, name, lower: name.toLowerCase() };
}

/** SVG's spelling of a lower-case name; undefined when it is the same. */
export function svgSpelling(lower: string): string | undefined {
  return SVG_BY_LOWER.get(lower);
}

function createTag(name: string, id: number): Tag {
  const ends = ENDS.find(([starts]) => starts.split(' ').includes(name));
  const rules = Object.hasOwn(RULES, name) ? RULES[name]! : null;
  const isSpecial = SPECIAL.has(name) || rules === 'html';
  const isRuled = ENDS_PARAGRAPH.has(name) || Object.hasOwn(CONTEXTS, name) || Object.hasOwn(FOLLOWS, name);
  return {
    name,
    lower: name.toLowerCase(),
    isVoid: VOID.has(name),
    textOnly: Object.hasOwn(TEXT_ONLY, name) ? TEXT_ONLY[name]! : null,
    isPlain: !isRuled && ends === undefined && !RULED_BY_NAME.has(name),
    ends: ends ? words(ends[1]) : null,
    endsParagraph: ENDS_PARAGRAPH.has(name),
    isSpecial,
    isScope: SCOPE.has(name) || rules === 'html',
    boundsItems: isSpecial && !PASSED_BY_ITEMS.has(name),
    follows: Object.hasOwn(FOLLOWS, name) ? FOLLOWS[name]! : null,
    isFormatting: FORMATTING.has(name),
    reopens: isSpecial ? SPECIAL_REOPENS.has(name) : !RUBY_PARTS.has(name),
    contexts: Object.hasOwn(CONTEXTS, name) ? CONTEXTS[name]! : null,
    isMetadata: METADATA.has(name),
    rules,
    display: displayOf(name),
    id,
  };
}

function displayOf(name: string): Display {
  if (ENDS_PARAGRAPH.has(name) || Object.hasOwn(CONTEXTS, name) || BLOCKS.has(name)) return 'block';
  if (SMALL.has(name)) return 'small';
  return INVISIBLE.has(name) ? 'none' : 'inline';
}
