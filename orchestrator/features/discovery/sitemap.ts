/**
 * Reads sitemaps, their indexes and feeds (sitemaps.org) as streams: XML or one URL a line, plain or compressed with
 * gzip.
 */
import { type EntryReader, type SitemapEntry, entryReaderFor } from './sitemap-entries.ts';
import { CutShort, sitemapText } from './sitemap-text.ts';

export interface SitemapLimits {
  /** The size of the decoded file; a compressed one must be no longer either. */
  maxBytes: number;
  maxUrls: number;
}

/** The limits of sitemaps.org for one file. */
export const SITEMAP_LIMITS: SitemapLimits = { maxBytes: 52_428_800, maxUrls: 50_000 };

/** `cut` comes last, and only when entries may be missing: it says why. */
export type SitemapItem = SitemapEntry | { kind: 'cut'; why: string };

/**
 * The entries of a sitemap or of an index, in order, while it is being read; no more than a piece of the file is in
 * memory. A file that is too long, broken or no sitemap gives what could be read, then a `cut`. Errors of `chunks` are
 * thrown.
 *
 * @param options `base`: where the file is; without it, an entry that begins with `/` is no URL
 */
export async function* readSitemap(
  chunks: AsyncIterable<Uint8Array>,
  { base, limits = SITEMAP_LIMITS }: { base?: string; limits?: SitemapLimits } = {},
): AsyncGenerator<SitemapItem> {
  const progress: Progress = { reader: null, fault: null };
  let urls = 0;
  for await (const entry of readEntries(sitemapText(chunks, limits.maxBytes), base, progress)) {
    if (urls === limits.maxUrls) {
      progress.fault = `more than ${limits.maxUrls} URLs`;
      break;
    }
    urls++;
    yield entry;
  }
  const { reader, fault } = progress;
  const reasons: string[] = [];
  if (fault !== null) reasons.push(fault);
  else if (reader === null) reasons.push('the file is empty');
  else if (reader.fault !== null) reasons.push(reader.fault);
  if (reader && reader.skipped > 0)
    reasons.push(`${reader.skipped} ${reader.skipped === 1 ? 'entry' : 'entries'} without a usable URL`);
  if (reasons.length > 0) yield { kind: 'cut', why: reasons.join('; ') };
}

interface Progress {
  /** The reader of entries; null until the first character that is not white space. */
  reader: EntryReader | null;
  fault: string | null;
}

/** Ends at the first fault, which is then in `progress` or in its reader. */
async function* readEntries(
  pieces: AsyncIterable<string>,
  base: string | undefined,
  progress: Progress,
): AsyncGenerator<SitemapEntry> {
  try {
    for await (const text of pieces) {
      if (progress.reader === null && text.trim() === '') continue;
      progress.reader ??= entryReaderFor(text, base);
      yield* progress.reader.write(text);
      if (progress.reader.fault !== null) return;
    }
    if (progress.reader) yield* progress.reader.end();
  } catch (error) {
    if (!(error instanceof CutShort)) throw error;
    progress.fault = error.message;
  }
}
