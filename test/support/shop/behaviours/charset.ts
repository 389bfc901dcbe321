/** The page in another charset, declared in all the ways that sites use: correctly, wrongly, twice, not at all. */
import { z } from 'zod';
import { CHARSETS, CHARSET_SHORT_NAMES, byteOrderMark, encodeText } from '../charsets.ts';
import { renderPage } from '../page.ts';
import type { Answers } from './behaviour.ts';

export const charsetShapes = [
  z.strictObject({
    type: z.literal('charset'),
    charset: z.enum(CHARSETS),
    /** Charset in the content-type header; null: none. */
    header: z.string().nullable().default(null),
    /** Charset in the meta element; null: no meta element. */
    meta: z.string().nullable().default(null),
    bom: z.boolean().default(false),
  }),
] as const;

type CharsetBehaviour = z.output<(typeof charsetShapes)[number]>;

export const charsetAnswers: Answers<CharsetBehaviour> = {
  charset({ product, response }, { charset, header, meta, bom }) {
    const page = renderPage(product).replace(
      '<meta charset="utf-8">',
      meta === null ? '' : `<meta http-equiv="Content-Type" content="text/html; charset=${meta}">`,
    );
    const body = Buffer.concat([bom ? byteOrderMark(charset) : Buffer.alloc(0), encodePage(page, charset)]);
    const type = header === null ? 'text/html' : `text/html; charset=${header}`;
    response.writeHead(200, { 'content-type': type, 'content-length': body.length }).end(body);
  },
};

/** Characters missing from the charset become references in markup and escapes in JSON. */
function encodePage(page: string, charset: CharsetBehaviour['charset']): Buffer {
  const parts = page.split(/(<script type="application\/ld\+json">[^<]*)/);
  const jsonEscape = (character: string): string =>
    [...Array(character.length).keys()]
      .map((i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`)
      .join('');
  return Buffer.concat(
    parts.map((part, index) => (index % 2 === 1 ? encodeText(part, charset, jsonEscape) : encodeText(part, charset))),
  );
}

const DECLARED = {
  /** Declared in the header only. */
  '': (label: string) => ({ header: label }),
  meta: (label: string) => ({ meta: label }),
  none: () => ({}),
  /** The header wrongly declares UTF-8; there is no correct declaration. */
  wrong: () => ({ header: 'utf-8' }),
  /** The meta element wrongly declares UTF-8; there is no correct declaration. */
  wrongmeta: () => ({ meta: 'utf-8' }),
  /** The header wrongly declares UTF-8; the meta element is correct. */
  clash: (label: string) => ({ header: 'utf-8', meta: label }),
  bom: () => ({ bom: true }),
} as const;

/** `sjis-`, `sjismeta-`, `sjisnone-`, `sjiswrong-`, `sjiswrongmeta-`, `sjisclash-` and so on for each charset. */
export const CHARSET_PREFIXES: Record<string, CharsetBehaviour> = Object.fromEntries(
  Object.entries(CHARSET_SHORT_NAMES).flatMap(([short, charset]) =>
    Object.entries(DECLARED).map(([how, declare]) => [
      `${short}${how}-`,
      { type: 'charset' as const, charset, header: null, meta: null, bom: false, ...declare(charset) },
    ]),
  ),
);
