/** Classifies a rendered page by the media type of its reply. */
import type { PageKind } from '../../extract/page-extractor.ts';

/** Lower-case, without parameters; '' without a header. */
export function mediaTypeOf(headers: Readonly<Record<string, string>>): string {
  return (headers['content-type'] ?? '').split(';', 1)[0]!.trim().toLowerCase();
}

/** Null for what is no page: PDF, video, archives … XHTML is HTML to the extractor, and SVG is an image. */
export function classifyMediaType(mediaType: string): PageKind | null {
  if (mediaType === 'text/html' || mediaType === 'application/xhtml+xml') return 'html';
  if (mediaType === 'application/json' || mediaType === 'text/json' || mediaType.endsWith('+json')) return 'json';
  if (mediaType === 'image/svg+xml') return null;
  if (mediaType === 'application/xml' || mediaType === 'text/xml' || mediaType.endsWith('+xml')) return 'xml';
  return null;
}
