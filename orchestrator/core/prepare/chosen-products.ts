/** Products of a run that the user names, instead of the whole of products.query. */
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import { findIdFault, MAX_PRODUCTS } from '../../../shared/domain/product.ts';
import { readTextFile } from '../config/text-file.ts';
import type { RunSource } from './run-source.ts';

/** Faults that are listed; the rest is counted. */
const LISTED = 10;

/** The IDs in a file, or stdin (`-`), one a line. Throws with the lines of IDs that cannot be crawled. */
export function idsFrom(file: string): RunSource {
  return {
    choose() {
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
      lines.forEach((id, i) => {
        if (id === '') return;
        const fault = findIdFault(id);
        if (fault !== null) faults.push(`  line ${i + 1}: the product ID ${fault}`);
        listed++;
        ids.add(id);
      });
      if (faults.length > LISTED) faults.splice(LISTED, Infinity, `  and ${faults.length - LISTED} more`);
      if (faults.length > 0)
        throw new AppError('product-id-invalid', `${nameOf(file)} has faults:\n${faults.join('\n')}`);
      if (ids.size === 0) throw new AppError('usage', `${nameOf(file)} names no product`);
      return Promise.resolve({ products: { ids: [...ids], duplicates: listed - ids.size }, parentId: null });
    },
  };
}

/** The first products of products.query, to try a run out. Their number says nothing about the list. */
export const firstOfQuery = (limit: number): RunSource => ({
  isQuery: true,
  choose: async (checked) => {
    const { ids } = await checked.readProducts(true);
    return { products: { ids: ids.slice(0, limit), duplicates: 0 }, parentId: null };
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
