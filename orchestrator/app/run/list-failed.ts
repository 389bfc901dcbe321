/** The failed products of a run, page by page. */
import type { FailureReason } from '../../../shared/domain/outcome.ts';
import type { FailedProduct, WorkStore } from '../../control/model/stores.ts';

const PAGE = 5_000;

export async function* listFailed(
  work: WorkStore,
  runId: string,
  reasons?: readonly FailureReason[],
): AsyncGenerator<FailedProduct> {
  for (let after = 0; ;) {
    const page = await work.failedProducts(runId, after, PAGE, reasons);
    yield* page;
    if (page.length < PAGE) return;
    after = page.at(-1)!.n;
  }
}
