/** Extracts values from JSON by JSONPath. */
import type { Scalar } from '../../shared/domain/mapping.ts';
import type { JsonPath } from '../../shared/adapters/steps/json-path.ts';
import { type PageBudget, PageLimitError } from './page-limits.ts';

/** The values of the first `limit` nodes; none without JSON. Throws PageLimitError. */
export function findJson(path: JsonPath, json: unknown, limit: number): unknown[] {
  if (json === undefined) return [];
  try {
    return path.find(json, limit);
  } catch (error) {
    throw new PageLimitError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

/** Converts JSON values for a chain: null is no value, objects and arrays become JSON text. Throws PageLimitError. */
export function toScalars(values: readonly unknown[], maxChars: number, budget: PageBudget): Scalar[] {
  const scalars: Scalar[] = [];
  for (const value of values) {
    if (typeof value === 'number' || typeof value === 'boolean') scalars.push(value);
    else if (value !== null && value !== undefined) {
      const text = typeof value === 'string' ? value : stringify(value);
      budget.spend('chars', text.length);
      scalars.push(text.slice(0, maxChars));
    }
  }
  return scalars;
}

function stringify(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    throw new PageLimitError('the JSON nests too deep', { cause: error });
  }
}
