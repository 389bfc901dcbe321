/** Shared by the parts of a user-data script: quoting of text for bash. */

/** Quotes any text as one bash word. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** The folder of all our files on a machine; only root writes there. */
export const HOME = '/opt/crawlfleet';
/** The system user that the crawl API runs as. */
export const USER = 'crawlfleet';
