/** What follows when the result table refuses rows of a run: the products fail, or the run is held. */
import { AppError } from '../../../../shared/domain/errors.ts';
import { eventOf } from '../../model/run-event.ts';
import type { Core } from '../../model/core.ts';
import type { RefusedRows, RunStores } from '../../model/stores.ts';

type Refusing = RunStores & Pick<Core, 'clock' | 'log'>;

const EXAMPLES = 3;
/** Refused products that an alarm lists. */
export const LISTED = 100;

/**
 * Why the run must be held, with an alarm that lists the first hundred; null when its refused products may simply fail.
 * @param most how many products may fail
 */
export async function holdForRefused(core: Refusing, refused: RefusedRows, most: number): Promise<string | null> {
  const { refusals, complete, words } = refused;
  if (complete && refusals.length <= most) return null;
  if (refusals.length > 0) await core.run.addEvent(eventOf('alarm', core.clock.now(), listOf(refused, LISTED)));
  const found = refusals.length === 0 ? words : listOf(refused, EXAMPLES);
  if (refusals.length > most)
    return `the result table refuses the rows of more products than run.max_failed allows (${most}): ${found}`;
  return `the result table refuses rows, and not all of them were found in a minute: ${found}`;
}

/**
 * Makes the refused products `failed(load)`; everything else can be published. Throws `internal` when none of them was
 * stored.
 */
export async function failRefused(core: Refusing, refused: RefusedRows): Promise<void> {
  const { refusals } = refused;
  const moved = await core.results.refuse(refusals, `${listOf(refused, LISTED)}; they failed (load)`);
  // Publishing would find them again, and again.
  if (moved === 0)
    throw new AppError('internal', `none of the refused products is stored: ${listOf(refused, EXAMPLES)}`);
  core.log.warn({ products: refusals.length }, 'products whose rows the result table refuses have failed');
}

function listOf({ refusals, complete }: RefusedRows, most: number): string {
  const [first] = refusals;
  const ids = refusals.slice(0, most).map(({ id }) => id);
  const count = `${refusals.length}${complete ? '' : ' or more'} ${refusals.length === 1 ? 'product' : 'products'}`;
  const example = first === undefined ? '' : `. ${first.id}: ${first.detail}`;
  return `rows of ${count} were refused: ${ids.join(', ')}${refusals.length > most ? ' …' : ''}${example}`;
}
