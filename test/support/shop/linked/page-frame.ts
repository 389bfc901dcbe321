/**
 * What all pages of the linked shop share: a few KB, built like a real shop's page, with text enough for a real one.
 */
import { escapeHtml } from '../page.ts';

/** More text than a notice may have (ENOUGH_CHARS in crawl-api/politeness/judgement.ts). */
export const PROSE = [
  'We send every order from our own warehouse, usually on the day on which it reaches us.',
  'You can return what you do not like within thirty days; we pay the postage both ways.',
  'The people who write these pages have held each thing in their hands, used it for a week and cleaned it afterwards.',
  'Sizes are measured by us and not copied from the maker, so they may differ by a millimetre from those on the box.',
  'Prices include tax. What it costs to send a parcel abroad depends on its weight, and the basket shows it before you pay.',
  'A repair is often cheaper than a replacement: ask us for parts, even for things that left the catalogue years ago.',
  'Once a month we write a letter about new arrivals, old favourites and the weather at the harbour. It has no pictures.',
  'The shop on the quay is open from Tuesday to Saturday. Bring the old one along, and we will take it apart together.',
  'Companies, schools and clubs get an invoice with thirty days to pay; we only need a name that somebody can spell.',
  'Nothing here is chosen by a machine, although a machine counts the stock each night and is right more often than we are.',
  'If a description is wrong, tell us, and we correct it on the same day and send you something small for your trouble.',
].join(' ');

/** A page with a heading, and with PROSE between its content and its footer; header, footer and content are HTML. */
export function linkedPage(title: string, main: string, around: { header: string; footer: string }): string {
  const escaped = escapeHtml(title);
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>${escaped} - Demo Shop</title><meta name="viewport" content="width=device-width"></head>
<body>
<header>${around.header}</header>
<main><h1>${escaped}</h1>
${main}
</main>
<section class="about"><p>${PROSE}</p></section>
<footer>${around.footer}</footer>
</body>
</html>
`;
}
