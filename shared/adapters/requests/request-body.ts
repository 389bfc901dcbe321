/**
 * The body of a POST request: a template in which `{id}` stands for the product ID, escaped for its place. The ID comes
 * from a table and may have any character; in no place may it end a text, add a member, or change an operation.
 */
import type { RequestTemplate } from '../../domain/request-template.ts';

type BodyKind = 'json' | 'form' | 'graphql' | 'text';

/** Media types in which an ID can be escaped; others are refused. */
const KINDS: [RegExp, BodyKind][] = [
  [/^application\/(?:[\w.-]+\+)?json$/, 'json'],
  [/^application\/x-www-form-urlencoded$/, 'form'],
  [/^application\/graphql$/, 'graphql'],
  [/^text\/plain$/, 'text'],
];
/** A body is sent as UTF-8. */
const CHARSET = /\s*;\s*charset="?utf-8"?\s*$/i;

/** Stands for the ID in a template. */
export const ID_MARK = '{id}';

/** Null for a type that no body may have. */
export function kindOfBody(contentType: string): BodyKind | null {
  const type = contentType.replace(CHARSET, '').toLowerCase();
  return KINDS.find(([pattern]) => pattern.test(type))?.[1] ?? null;
}

/** The body for one product. @param contentType one that `kindOfBody` knows; omitted for an empty body */
export function fillBody(
  { body, contentType = 'text/plain' }: RequestTemplate & { method: 'POST' },
  id: string,
): string {
  return body.includes(ID_MARK) || /%7Bid%7D/i.test(body) ? rewriteBody(body, contentType, fillerOf(id)) : body;
}

/** True when products with different IDs have different bodies. */
export const bodyNamesProduct = (template: RequestTemplate | undefined): boolean =>
  template?.method === 'POST' && fillBody(template, 'a') !== fillBody(template, 'b');

/** What takes the place of the marks in a body. */
export interface BodyFiller {
  /** The text in place of one that has a mark; called with what a form or a string of JSON stands for. */
  textOf: (text: string) => string;
  /** JSON in place of a mark that is no part of a string. */
  value: string;
}

/** Outside of strings of JSON an ID is a number where it is one, else a string. */
const fillerOf = (id: string): BodyFiller => ({
  textOf: (text) => text.replaceAll(ID_MARK, () => id),
  value: /^-?(?:0|[1-9]\d*)$/.test(id) ? id : JSON.stringify(id),
});

/** The body with its marks replaced, also those in JSON inside of other texts. */
export function rewriteBody(body: string, contentType: string, filler: BodyFiller): string {
  switch (kindOfBody(contentType)) {
    case 'json':
      return rewriteJson(body, filler);
    case 'form':
      return rewriteForm(body, filler);
    case 'text':
      return rewriteText(body, filler);
    case 'graphql':
    case null:
      return body;
  }
}

/** Strings, the mark outside of them, and what is between. */
const JSON_PIECE = /"(?:[^"\\]|\\[^])*"|\{id\}|[^"{]+|[^]/g;

function rewriteJson(template: string, filler: BodyFiller): string {
  return template.replace(JSON_PIECE, (piece) => {
    if (piece === ID_MARK) return filler.value;
    if (!piece.startsWith('"') || piece.length === 1) return piece;
    const text = JSON.parse(piece) as string;
    return text.includes(ID_MARK) ? JSON.stringify(rewriteText(text, filler)) : piece;
  });
}

const rewriteText = (text: string, filler: BodyFiller): string =>
  isJson(text) ? rewriteJson(text, filler) : filler.textOf(text);

/** `[{id}]` and `{"id": "{id}"}`, but not `{id}`. */
export function isJson(text: string): boolean {
  return /^\s*[[{]/.test(text) && typeof parsedTemplate(text) === 'object';
}

/** The value of a template of JSON, its texts with their marks; undefined for a text that is none. */
export function parsedTemplate(template: string): unknown {
  try {
    return JSON.parse(rewriteJson(template, { textOf: (text) => text, value: '""' }));
  } catch {
    return undefined;
  }
}

function rewriteForm(template: string, filler: BodyFiller): string {
  const rewrite = (part: string): string => {
    const text = decodeFormPart(part);
    if (!text.includes(ID_MARK)) return part;
    const rewritten = rewriteText(text, filler);
    return rewritten === text ? part : encodeURIComponent(rewritten).replace(/[!'()*]/g, percent);
  };
  return template
    .split('&')
    .map((pair) => {
      const at = pair.indexOf('=');
      return at === -1 ? rewrite(pair) : `${rewrite(pair.slice(0, at))}=${rewrite(pair.slice(at + 1))}`;
    })
    .join('&');
}

/** What a name or value of a form stands for; itself where it is none. */
export function decodeFormPart(part: string): string {
  try {
    return decodeURIComponent(part.replaceAll('+', ' '));
  } catch {
    return part;
  }
}

const percent = (char: string): string => `%${char.charCodeAt(0).toString(16).toUpperCase()}`;
