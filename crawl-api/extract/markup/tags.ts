/**
 * What HTML says of elements by their names: which have no content, which end others by starting, whose content is text
 * whatever it looks like. The rules are those of htmlparser2, which leaves out the standard's table and formatting
 * repairs; a test compares the two.
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
  /** Names of elements that end when this one starts. */
  readonly ends: ReadonlySet<string> | null;
  /** Whose rules hold inside: svg's and math's own, or HTML's again inside of these; null for those of the parent. */
  readonly rules: 'svg' | 'math' | 'html' | null;
  /** Known names are numbered from 0; -1 for others. */
  readonly id: number;
}

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

const FORM_PARTS = 'input option optgroup select button datalist textarea';

/** Each line: what starts, and what of the innermost open elements ends by it. */
const ENDS: readonly (readonly [starts: string, ends: string])[] = [
  ['tr', 'tr th td'],
  ['th', 'th'],
  ['td', 'thead th td'],
  ['body', 'head link script'],
  ['a', 'a'],
  ['li', 'li'],
  ['h1 h2 h3 h4 h5 h6', 'h1 h2 h3 h4 h5 h6 p'],
  ['select input output button datalist textarea', FORM_PARTS],
  ['option', 'option'],
  ['optgroup', 'optgroup option'],
  ['dd dt', 'dd dt'],
  ['rt rp', 'rt rp'],
  ['tbody tfoot', 'thead tbody'],
  [
    'p address article aside blockquote details div dl fieldset figcaption figure footer form header hr main nav ol pre section table ul',
    'p',
  ],
];

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
const FREQUENT = 'html head b i u s em strong small span label picture video audio canvas g path use time code sup sub';

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
  ...FREQUENT.split(' '),
]);

const KNOWN = new Map([...NAMES].map((name, id) => [name, createTag(name, id)]));

/** So many names have an id. */
export const KNOWN_TAGS = KNOWN.size;

const SVG_BY_LOWER: ReadonlyMap<string, string> = new Map(
  SVG_NAMES.split(' ').map((name) => [name.toLowerCase(), name]),
);

/** Known tags by what is quick to tell of a name; see bucketOf. */
const BUCKETS: readonly Tag[][] = (() => {
  const buckets: Tag[][] = Array.from({ length: 256 }, () => []);
  // A name that svg alone spells with capitals is not to be found by them elsewhere.
  for (const tag of KNOWN.values())
    if (tag.name === tag.lower) buckets[bucketOf(tag.name, 0, tag.name.length)]!.push(tag);
  return buckets;
})();

function bucketOf(text: string, start: number, end: number): number {
  return (text.charCodeAt(start) * 31 + text.charCodeAt(end - 1) * 7 + (end - start)) & 255;
}

/** The tag whose name stands in the text from `start` to `end`, in any case; without rules when it is not known. */
export function tagAt(text: string, start: number, end: number): Tag {
  for (const tag of BUCKETS[bucketOf(text, start, end)]!) if (isAt(text, start, end, tag.name)) return tag;
  return tagNamed(text.slice(start, end).toLowerCase());
}

/** The known tag of this name, or one without rules. */
export function tagNamed(name: string): Tag {
  return (
    KNOWN.get(name) ?? {
      name,
      lower: name.toLowerCase(),
      isVoid: false,
      textOnly: null,
      ends: null,
      rules: null,
      id: -1,
    }
  );
}

/** SVG's spelling of a name in lower case; undefined where it is not different. */
export function svgSpelling(lower: string): string | undefined {
  return SVG_BY_LOWER.get(lower);
}

function createTag(name: string, id: number): Tag {
  const ends = ENDS.find(([starts]) => starts.split(' ').includes(name));
  return {
    name,
    lower: name.toLowerCase(),
    isVoid: VOID.has(name),
    textOnly: Object.hasOwn(TEXT_ONLY, name) ? TEXT_ONLY[name]! : null,
    ends: ends ? new Set(ends[1].split(' ')) : null,
    rules: Object.hasOwn(RULES, name) ? RULES[name]! : null,
    id,
  };
}
