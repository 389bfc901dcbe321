/** The products of a child run: those that failed in another one. */
import type { Output } from '../caller.ts';
import { isDeepStrictEqual } from 'node:util';
import { hasOwnUrls, type ProductUrl } from '../../../shared/domain/domains.ts';
import type { RequestTemplate } from '../../../shared/domain/request-template.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { EXIT } from '../../../shared/domain/exit-codes.ts';
import type { FailureReason } from '../../../shared/domain/outcome.ts';
import { findUrlFault } from '../../../shared/domain/own-url.ts';
import { SEGMENTS_MARK, siteOrigins } from '../../../shared/domain/product.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import { oneLine } from '../../../shared/domain/terminal-text.ts';
import type { RunRecord } from '../model/stores.ts';
import { siteSettingsOf } from '../config/site-section.ts';
import { assertKept, findRun, getRun, openWaiting, storesOf } from '../lookup/find-run.ts';
import { plural } from '../plan/wording.ts';
import { judgeUrlsBy, urlsAmong } from '../prepare/own-urls.ts';
import type { Preflight } from '../prepare/preflight.ts';
import type { ProductList } from '../prepare/products.ts';
import { listFailed } from './carry-out.ts';
import type { RunSource } from '../prepare/run-source.ts';

export interface Retried {
  runId: string | undefined;
  /** The reasons of the failed products to retry; omitted: any reason. */
  reasons: readonly FailureReason[] | undefined;
}

/**
 * The products that failed in the named run, else in the newest of this result table; without one nothing is planned.
 */
export function failedProducts({ runId, reasons }: Retried, output: Output): RunSource {
  return {
    async parent(config) {
      await using database = await openWaiting(config, output);
      const { runs } = await storesOf(database);
      const isOurs = (run: RunRecord): boolean => run.settings.results.table === config.values.results.table;
      // One that has lost its main server is ended before its products are chosen.
      return await findRun(runs, { runId, config }, `for ${config.values.results.table}`, isOurs);
    },
    async choose(checked, found) {
      const { results, site } = checked.config.values;
      const parent = await getRun(checked.stores.runs, found!.id);
      if (!isRunEnd(parent.phase))
        throw new AppError('run-unfinished', `run ${parent.id} is not over yet: it is ${parent.phase}`, {
          hint: `Wait for it, or take it up with: orchestrator resume ${parent.id}`,
        });
      assertKept(parent);
      const { productUrl, request } = siteSettingsOf(site);
      assertSameWork(parent, { table: results.table, productUrl, request });
      const { left, ...products } = await failedOf(checked, parent, reasons);
      if (left > 0)
        output.line(
          `${plural(left, 'product')} without a URL to request ${left === 1 ? 'is' : 'are'} left out: correct the rows, then orchestrator run`,
        );
      const why = reasons ? ` for ${reasons.join(' or ')}` : '';
      if (products.ids.length > 0) {
        const count = plural(products.ids.length, 'product');
        output.line(`Trying ${count} again that failed${why} in run ${parent.id}.`);
        return { products, parentId: parent.id };
      }
      const other = left > 0 ? 'other ' : '';
      output.line(`No ${other}product of run ${parent.id} has failed${why}: there is nothing to try again.`);
      output.document({ run: null, parent: parent.id, products: { planned: 0 }, exitCode: EXIT.complete });
      return null;
    },
  };
}

/** Otherwise its products would be fetched from another site, or written to another table, under the old run's name. */
function assertSameWork(
  parent: RunRecord,
  now: { table: string; productUrl: ProductUrl; request: RequestTemplate | undefined },
): void {
  const { results, site } = parent.settings;
  const was = { table: results.table, productUrl: inWords(site.productUrl), request: site.request };
  const productUrl = inWords(now.productUrl);
  const fault =
    was.table !== now.table
      ? `results.table was ${was.table} and is ${now.table}`
      : was.productUrl !== productUrl
        ? `site.product_url was ${was.productUrl} and is ${productUrl}`
        : !isDeepStrictEqual(was.request, now.request)
          ? `site.request was ${requestInWords(was.request)} and is ${requestInWords(now.request)}`
          : null;
  if (fault === null) return;
  throw new AppError('usage', `run ${parent.id} cannot be tried again with this configuration: ${fault}`, {
    hint: 'Give the configuration of that run with --config, or name another run',
  });
}

/** The shares of hosts are those of a list, and each run has its own. */
function inWords(productUrl: ProductUrl): string {
  if (hasOwnUrls(productUrl)) return `replaced by site.hosts (${siteOrigins(productUrl).toSorted().join(', ')})`;
  const text = typeof productUrl === 'string' ? productUrl : JSON.stringify(productUrl);
  return text.replaceAll(SEGMENTS_MARK, '{path}');
}

/** Enough to see a difference at the beginning of a body. */
const SHOWN_BODY = 200;

const requestInWords = (request: RequestTemplate | undefined): string =>
  request?.method === 'POST' ? `POST ${oneLine(request.body).slice(0, SHOWN_BODY)}` : 'GET';

/** The failed products, with the URLs that they had in that run. `left`: those that have none to request. */
async function failedOf(
  checked: Preflight,
  parent: RunRecord,
  reasons: readonly FailureReason[] | undefined,
): Promise<ProductList & { left: number }> {
  const { productUrl } = parent.settings.site;
  const ids: string[] = [];
  const urls = new Map<string, string>();
  const judge = judgeUrlsBy(checked.config);
  let left = 0;
  for await (const { id, url } of listFailed(checked.stores.of(parent.id).work, reasons)) {
    if (findUrlFault(productUrl, url ?? id) !== null || (url !== undefined && judge(url) !== null)) {
      left++;
      continue;
    }
    ids.push(id);
    if (url !== undefined) urls.set(id, url);
  }
  return { ids, duplicates: 0, left, ...urlsAmong(productUrl, ids, urls, checked.config.values.site.host_key) };
}
