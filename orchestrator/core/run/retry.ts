/** The products of a child run: those that failed in another one. */
import type { Output } from '../caller.ts';
import { isDeepStrictEqual } from 'node:util';
import type { ProductUrl } from '../../../shared/domain/domains.ts';
import type { RequestTemplate } from '../../../shared/domain/request-body.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { EXIT } from '../../../shared/domain/exit-codes.ts';
import type { FailureReason } from '../../../shared/domain/outcome.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import { oneLine } from '../../../shared/domain/terminal-text.ts';
import type { RunRecord } from '../model/stores.ts';
import { requestSettingsOf } from '../config/request-section.ts';
import { assertKept, findRun, getRun, openWaiting, storesOf } from '../lookup/find-run.ts';
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
      const { request } = requestSettingsOf(site.request);
      assertSameWork(parent, { table: results.table, productUrl: site.product_url, request });
      const products = await failedOf(checked, parent.id, reasons);
      const why = reasons ? ` for ${reasons.join(' or ')}` : '';
      if (products.ids.length > 0) {
        output.line(`Trying ${products.ids.length} products again that failed${why} in run ${parent.id}.`);
        return { products, parentId: parent.id };
      }
      output.line(`No product of run ${parent.id} has failed${why}: there is nothing to try again.`);
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

const inWords = (productUrl: ProductUrl): string =>
  typeof productUrl === 'string' ? productUrl : JSON.stringify(productUrl);

/** Enough to see a difference at the beginning of a body. */
const SHOWN_BODY = 200;

const requestInWords = (request: RequestTemplate | undefined): string =>
  request?.method === 'POST' ? `POST ${oneLine(request.body).slice(0, SHOWN_BODY)}` : 'GET';

async function failedOf(
  checked: Preflight,
  runId: string,
  reasons: readonly FailureReason[] | undefined,
): Promise<ProductList> {
  const ids: string[] = [];
  for await (const { id } of listFailed(checked.stores.of(runId).work, reasons)) ids.push(id);
  return { ids, duplicates: 0 };
}
