/** Products of a run that the user names, instead of the whole of products.query. */
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import { findIdFault, MAX_PRODUCTS } from '../../../shared/domain/product.ts';
import { readTextFile } from '../config/text-file.ts';
import { listedUrlsOf, productUrlsOf, someOf } from './own-urls.ts';
import type { RunSource } from './run-source.ts';

/** Faults that are listed; the rest is counted. */
const LISTED = 10;

/**
 * The IDs in a file, or stdin (`-`), one a line; with `site.hosts` each with its URL after a tab. Throws with the lines
 * of IDs that cannot be crawled.
 */
export function idsFrom(file: string): RunSource {
  return {
    choose({ config }) {
      const urls = listedUrlsOf(config);
      const lines = readLines(file);
      if (lines.length > MAX_PRODUCTS)
        throw new AppError(
          'usage',
          `${nameOf(file)} has more than ${MAX_PRODUCTS.toLocaleString('en-US')} lines, the most that a run takes`,
          { hint: 'Divide the file, and run its parts one after the other.' },
        );
      const faults: string[] = [];
      const ids = new Set<string>();
      let listed = 0;
      lines.forEach((line, i) => {
        if (line === '') return;
        // An ID may have a tab where nothing follows it.
        const [id = '', url] = urls.urls === null ? [line] : line.split(/\t(.*)/s);
        const fault = findIdFault(id);
        if (fault !== null) faults.push(`  line ${i + 1}: the product ID ${fault}`);
        else if (urls.looksAtRows) urls.add(i + 1, id, url ?? null);
        listed++;
        ids.add(id);
      });
      if (faults.length > LISTED) faults.splice(LISTED, Infinity, `  and ${faults.length - LISTED} more`);
      if (faults.length > 0)
        throw new AppError('product-id-invalid', `${nameOf(file)} has faults:\n${faults.join('\n')}`);
      if (ids.size === 0) throw new AppError('usage', `${nameOf(file)} names no product`);
      const own = productUrlsOf(config, [...ids], urls, 'line');
      return Promise.resolve({ products: { ...own, ids: [...ids], duplicates: listed - ids.size }, parentId: null });
    },
  };
}

/** The first products of products.query, to try a run out. Their number says nothing about the list. */
export const firstOfQuery = (limit: number): RunSource => ({
  isQuery: true,
  choose: async (checked) => {
    const all = await checked.readProducts(true);
    return { products: someOf(all, all.ids.slice(0, limit), checked.config), parentId: null };
  },
});

const nameOf = (file: string): string => (file === '-' ? 'stdin' : file);

function readLines(file: string): string[] {
  try {
    return readTextFile(file === '-' ? 0 : file).split(/\r?\n/);
  } catch (error) {
    throw new AppError('usage', `cannot read the product IDs in ${nameOf(file)}: ${describeError(error)}`);
  }
}
