/** What the parts of a user-data script share: how text becomes part of a script without being read as one. */

/** One word for bash, whatever is in the text. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** Where everything of ours lies on a machine; only root writes there. */
export const HOME = '/opt/crawlfleet';
/** The system user that the crawl API runs as. */
export const USER = 'crawlfleet';
