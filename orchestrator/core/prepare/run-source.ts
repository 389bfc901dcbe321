/** Which products a run crawls: those of the query, of a retry, of a discovery, or those that are due. */
import type { RunRecord } from '../model/stores.ts';
import type { Config } from '../config/load-config.ts';
import type { Preflight } from './preflight.ts';
import type { ProductList } from './products.ts';

export interface RunSource {
  /** What the run goes by instead of the configuration as it stands. */
  configure?(config: Config): Config;
  /** True for products.query: the checks may then read it before `choose`, to report all failures at once. */
  isQuery?: true;
  /** The run that it tries again: the new one is of its kind, a dry run or on AWS. Called first. */
  parent?(config: Config): Promise<RunRecord>;
  /**
   * Chooses the products; null when there is nothing to do and the user knows why. The result table is checked
   * afterwards.
   */
  choose(
    checked: Preflight,
    parent: RunRecord | null,
  ): Promise<{ products: ProductList; parentId: string | null } | null>;
}

/** The product query of the configuration. `acceptDrop`: a shorter list is right. */
export const wholeQuery = (acceptDrop: boolean): RunSource => ({
  isQuery: true,
  choose: async (checked) => ({ products: await checked.readProducts(acceptDrop), parentId: null }),
});
