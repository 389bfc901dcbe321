/**
 * I1, I3, I8, I10, I15: every product ends exactly once, its rows are those of one part, the order of messages has no
 * effect, and a partial product loses no row.
 */
import { isRunEnd } from '../../../shared/domain/states.ts';
import { FAILURE_REASONS } from '../../../shared/domain/outcome.ts';
import { type History, placeOf, type Violation, violationsOf } from './history.ts';

/** I1: one terminal outcome for each planned product, with a reason of the closed list. */
export function checkOutcomes({ run, facts }: History): Violation[] {
  const found: string[] = [];
  const { stored, gone, failed, open } = facts.outcomes;
  if (facts.items !== facts.planned)
    found.push(`${facts.planned} products were planned, ${facts.items} are in the ledger`);
  if (isRunEnd(run.phase) && open > 0) found.push(`the run is ${run.phase} and ${open} products have no outcome`);
  if (stored + gone + failed + open !== facts.planned)
    found.push(`${facts.planned} planned products are not ${stored} + ${gone} + ${failed}`);
  const reasons = Object.entries(facts.reasons);
  const unknown = reasons.filter(([reason]) => !(FAILURE_REASONS as readonly string[]).includes(reason));
  if (unknown.length > 0) found.push(`${unknown.map(([reason]) => reason).join(', ')} are not in the list of reasons`);
  const named = reasons.reduce((sum, [, count]) => sum + count, 0);
  if (named !== failed) found.push(`${failed} products failed, ${named} with a reason`);
  if (facts.duplicates.count > 0) found.push(`${facts.duplicates.examples.join(', ')} are in the ledger twice`);
  return violationsOf('I1', found);
}

/**
 * I3: the rows are those of the stored products, each from exactly one part, and no part of a closed epoch is left out.
 */
export function checkRows({ facts, parts, objects, run }: History): Violation[] {
  const found: string[] = [];
  const empty = {
    partsOff: 'parts whose counts are not those of their products',
    withoutPart: 'products with a result that name no loaded part',
    storedWithoutRow: 'stored products without their row',
    rowsOff: 'stored products with another number of rows than they gave',
    rowsWithoutItem: 'rows of products that are not stored',
  } as const;
  for (const [name, what] of Object.entries(empty)) {
    const { count, examples } = facts[name as keyof typeof empty];
    if (count > 0) found.push(`${count} ${what}: ${examples.slice(0, 3).join(', ')}`);
  }
  if (facts.published && facts.resultRows !== facts.ledgerRows - facts.replacedRows)
    found.push(`the ledger counts ${facts.ledgerRows} rows, the result table has ${facts.resultRows}`);
  if (isRunEnd(run.phase)) {
    const seen = parts.filter((p) => p.state === 'seen');
    if (seen.length > 0) found.push(`${seen.length} parts were never loaded, the first is ${seen[0]!.key}`);
    const known = new Set(parts.map((p) => p.key));
    const workers = new Set(parts.map((p) => `${p.slot}/${p.epoch}/${p.seq}`));
    const left = (objects ?? []).filter((key) => !known.has(key) && !workers.has(placeOfKey(key)));
    if (left.length > 0) found.push(`${left.length} parts in the bucket are in no ledger, the first is ${left[0]!}`);
  }
  return violationsOf('I3', found);
}

/** `<slot>/<epoch>/<seq>` of a part's key. */
const placeOfKey = (key: string): string => /(\d+\/\d+\/\d+)-[0-9a-f]{64}\.ndjson\.gz$/.exec(key)?.[1] ?? '';

/** Failure reasons that are due to the run and not to the page. */
const OF_THE_RUN = new Set([
  'lost-instance',
  'deadline',
  'upload',
  'cancelled',
  'banned',
  'site-changed',
  'robots',
  'budget',
  'poison',
]);

/**
 * I8: whatever message was lost, late or duplicated, a product ends as the site has it, or fails for a reason of the
 * run.
 */
export function checkResults({ products }: History): Violation[] {
  const found: string[] = [];
  for (const product of products ?? []) {
    if (product.outcome === null) continue;
    if (product.expected !== null && product.outcome !== product.expected && !isOfTheRun(product))
      found.push(`${product.id} is ${product.outcome}(${product.reason ?? ''}), the site gives ${product.expected}`);
    if (!product.rowRight) found.push(`the row of ${product.id} is not what the site gave`);
  }
  return violationsOf('I8', found.slice(0, 5));
}

const isOfTheRun = (product: { outcome: string | null; reason: string | null }): boolean =>
  product.outcome === 'failed' && product.reason !== null && OF_THE_RUN.has(product.reason);

/**
 * I15: a product is partial where the site gives it so, and counted once; none of its older rows is deleted, and those
 * of a whole one are.
 */
export function checkPartial({ run, facts, partial, products }: History): Violation[] {
  const found: string[] = [];
  const { count } = facts.partial;
  if (partial.products !== count) found.push(`${partial.products} partial products are counted, ${count} are stored`);
  const most = facts.outcomes.stored + facts.refused;
  for (const left of partial.leftOut)
    if (left > most) found.push(`${left} products are counted without pages, ${most} were stored`);
  const isPublished = facts.published && run.phase !== 'held';
  for (const { id, outcome, partial: own, hasOlder } of products ?? []) {
    if (outcome !== 'stored') continue;
    if (own.expected !== null && own.expected !== own.ledger)
      found.push(`${id} is ${own.ledger ? 'partial' : 'whole'}, and the site gives the other`);
    if (!isPublished || hasOlder === null || own.expected === null) continue;
    if (own.expected && !hasOlder) found.push(`the older rows of ${id}, which is partial, are deleted`);
    if (!own.expected && hasOlder) found.push(`the older rows of ${id}, which is whole, stand`);
  }
  return violationsOf('I15', found.slice(0, 5));
}

/** I10: a chunk has one owner, and the uncrawled products of an owner that is gone are reassigned. */
export function checkLeases({ grants, products }: History): Violation[] {
  const found: string[] = [];
  const owners = new Map<string, string>();
  for (const grant of grants ?? []) {
    const owner = placeOf(grant);
    const known = owners.get(grant.chunk);
    if (known !== undefined && known !== owner)
      found.push(`chunk ${grant.chunk} was granted to ${known} and to ${owner}`);
    owners.set(grant.chunk, owner);
  }
  const stranded = (products ?? []).filter((p) => p.stranded);
  if (stranded.length > 0)
    found.push(`${stranded.length} products stayed with an instance that is gone, the first is ${stranded[0]!.id}`);
  return violationsOf('I10', found.slice(0, 5));
}
