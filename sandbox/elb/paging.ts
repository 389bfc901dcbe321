/** ELBv2's paging: PageSize and Marker. */
import { AwsError } from '../aws-error.ts';
import type { Params } from '../query-protocol.ts';

const MAX_PAGE = 400;

/** @param nameOf identifies the item that a marker names */
export function pageOf<T>(
  items: readonly T[],
  params: Params,
  nameOf: (item: T) => string,
): { items: T[]; nextMarker: string | undefined } {
  const size = params.int('PageSize') ?? MAX_PAGE;
  if (size < 1 || size > MAX_PAGE) throw new AwsError('ValidationError', `PageSize must be between 1 and ${MAX_PAGE}`);
  const marker = params.text('Marker');
  const after = marker === undefined ? -1 : items.findIndex((item) => encode(nameOf(item)) === marker);
  if (marker !== undefined && after < 0) throw new AwsError('ValidationError', 'Invalid Marker');
  const shown = items.slice(after + 1, after + 1 + size);
  const more = after + 1 + shown.length < items.length;
  return { items: shown, nextMarker: more ? encode(nameOf(shown.at(-1)!)) : undefined };
}

const encode = (name: string): string => Buffer.from(name).toString('base64url');
