/** The failed products of a run, page by page. */
import type { FailureReason } from '../../../shared/domain/outcome.ts';
import type { FailedProduct, WorkReader } from '../../control/model/stores.ts';

const PAGE = 5_000;

export async function* listFailed(work: WorkReader, reasons?: readonly FailureReason[]): AsyncGenerator<FailedProduct> {
  for (let after = 0; ;) {
    const page = await work.failedProducts(after, PAGE, reasons);
    yield* page;
    if (page.length < PAGE) return;
    after = page.at(-1)!.n;
  }
}
