/**
 * What HTML says of elements by their names: which have no content, which end others by starting, whose content is text
 * whatever it looks like. From the tree construction of the standard (https://html.spec.whatwg.org/#tree-construction), without
 * its adoption agency and foster parenting; a test compares the trees with those of parse5.
 */

import { isAt } from './names.ts';

/** How text inside an element is read: `raw` as it stands, `rcdata` with entities, `plain` as it stands and to the end of the page. */
export type TextOnly = 'raw' | 'rcdata' | 'plain';

export interface Tag {
  /** As the stack of open elements has it: SVG's own names in their mixed case. */
  readonly name: string;
  /** As selectors have it. */
  readonly lower: string;
  readonly isVoid: boolean;
  readonly textOnly: TextOnly | null;
  /** Its start changes nothing around it: none of the rules below speak of it. */
  readonly isPlain: boolean;
  /** Names of innermost elements that end when this one starts. */
  readonly ends: ReadonlySet<string> | null;
  /** A paragraph around it ends when it starts. */
  readonly endsParagraph: boolean;
  /** The standard's category "special": its end tag is looked for in scope, and end tags of other elements do not reach beyond it. */
  readonly isSpecial: boolean;
  /** End tags of what is outside do not reach in. */
  readonly isScope: boolean;
  /** An item does not end one that is further out than this. */
  readonly boundsItems: boolean;
  /** Of an item: names of those before it that it ends. */
  readonly follows: ReadonlySet<string> | null;
  /** One of the standard's formatting elements, such as a and b. */
  readonly isFormatting: boolean;
  /** Formatting elements that a paragraph's end has closed open again before it. */
  readonly reopens: boolean;
  /** Inside of which the parts of a table may start; null for what is no such part. */
  readonly contexts: ReadonlySet<string> | null;
  /** Belongs into the head when it comes before the body. */
  readonly isMetadata: boolean;
  /** Whose rules hold inside: svg's and math's own, or HTML's again inside of these; null for those of the parent. */
  readonly rules: 'svg' | 'math' | 'html' | null;
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

/** Each line: what starts, and what of the innermost open elements ends by it. */
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

/** What starts, and inside of which of the open elements. */
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
/** Special elements that an item may end together with the item before it. */
const PASSED_BY_ITEMS = words('address div p');
const FOLLOWS: Readonly<Record<string, ReadonlySet<string>>> = {
  li: words('li'),
  dd: words('dd dt'),
  dt: words('dd dt'),
};
const SCOPE = words('applet caption html marquee object table td template th');
const FORMATTING = words('a b big code em font i nobr s small strike strong tt u');
/** Of the special ones; all that are not special do, too, but for the parts of ruby. */
const SPECIAL_REOPENS = words('applet area br button embed img input keygen marquee object select wbr xmp');
/** What open-elements.ts knows by name. */
const RULED_BY_NAME = words('html head body frameset form button');
const RUBY_PARTS = words('rb rp rt rtc');

/** Inside these, svg and math hold HTML. */
const HOLDS_HTML = 'mi mo mn ms mtext annotation-xml foreignObject desc title';

/** SVG's names that are not in lower case. */
const SVG_NAMES =
  'altGlyph altGlyphDef altGlyphItem animateColor animateMotion animateTransform clipPath feBlend feColorMatrix ' +
  'feComponentTransfer feComposite feConvolveMatrix feDiffuseLighting feDisplacementMap feDistantLight feDropShadow ' +
  'feFlood feFuncA feFuncB feFuncG feFuncR feGaussianBlur feImage feMerge feMergeNode feMorphology feOffset ' +
  'fePointLight feSpecularLighting feSpotLight feTile feTurbulence foreignObject glyphRef linearGradient ' +
  'radialGradient textPath';

/** Names that need no rule but are met often. */
const FREQUENT = 'span label picture video audio canvas g path use time sup sub';

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
]);

const KNOWN = new Map([...NAMES].map((name, id) => [name, createTag(name, id)]));

const UNKNOWN = createTag('', -1);

/** All with an id, in its order. */
export const KNOWN_TAGS: readonly Tag[] = [...KNOWN.values()];

const SVG_BY_LOWER: ReadonlyMap<string, string> = new Map(
  SVG_NAMES.split(' ').map((name) => [name.toLowerCase(), name]),
);

/** Known tags by what is quick to tell of a name; see bucketOf. */
const BUCKETS: readonly Tag[][] = (() => {
  const buckets: Tag[][] = Array.from({ length: 1_024 }, () => []);
  // A name that svg alone spells with capitals is not to be found by them elsewhere.
  for (const tag of KNOWN.values())
    if (tag.name === tag.lower) buckets[bucketOf(tag.name, 0, tag.name.length)]!.push(tag);
  return buckets;
})();

function bucketOf(text: string, start: number, end: number): number {
  return (text.charCodeAt(start) * 37 + text.charCodeAt(end - 1) * 5 + (end - start) * 131) & 1_023;
}

/** The tag whose name stands in the text from `start` to `end`, in any case; without rules when it is not known. */
export function tagAt(text: string, start: number, end: number): Tag {
  for (const tag of BUCKETS[bucketOf(text, start, end)]!) if (isAt(text, start, end, tag.name)) return tag;
  return tagNamed(text.slice(start, end).toLowerCase());
}

/** The known tag of this name, or one without rules. */
export function tagNamed(name: string): Tag {
  return KNOWN.get(name) ?? { ...UNKNOWN, name, lower: name.toLowerCase() };
}

/** SVG's spelling of a name in lower case; undefined where it is not different. */
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
    id,
  };
}
