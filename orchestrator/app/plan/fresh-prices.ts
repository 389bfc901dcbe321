/** Prices for a plan: from the price API, cached for a day beside the runs, else the shipped table. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { describeError } from '../../../shared/domain/errors.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import { askPrices, type PriceQuestion } from '../../cloud/price-api.ts';
import { checkPrices, type PriceList, PRICES_OF } from '../../plan/price-table.ts';

const KEPT_MS = 24 * 3_600_000;
const TIMEOUT_MS = 5_000;

const price = z.number().positive();
const cacheSchema = z.object({
  askedAtMs: z.number(),
  list: z.object({
    region: z.string(),
    of: z.string(),
    hourly: z.record(z.string(), price),
    ipv4Hour: z.optional(price),
    gp3GbMonth: z.optional(price),
    balancerHour: z.optional(price),
    lcuHour: z.optional(price),
  }),
});

export interface FreshPrices {
  /** Null for the shipped table. */
  list: PriceList | null;
  warnings: string[];
}

export interface PriceSource {
  file: string;
  clock: Clock;
  region: string;
  instanceTypes: readonly string[];
  api?: Pick<PriceQuestion, 'endpoint' | 'credentials' | 'proxy'> & { timeoutMs?: number };
}

/** Takes at most five seconds and never throws: on any failure the shipped prices stand in, with a warning. */
export async function freshPrices(source: PriceSource): Promise<FreshPrices> {
  const { file, clock, region, instanceTypes } = source;
  const nowMs = clock.now();
  const kept = readKept(file);
  const fits =
    kept !== null &&
    kept.list.region === region &&
    instanceTypes.every((type) => kept.list.hourly[type] !== undefined) &&
    nowMs >= kept.askedAtMs &&
    nowMs - kept.askedAtMs < KEPT_MS;
  // Validated again: the user may have edited the file, or a newer shipped table may contradict it.
  if (fits) return checkPrices(kept.list);
  try {
    const question = { instanceTypes, nowMs, endpoint: null, timeoutMs: TIMEOUT_MS, ...source.api, region };
    const checked = checkPrices(await askPrices(question));
    if (checked.warnings.length === 0) keep(file, { askedAtMs: nowMs, list: checked.list });
    return checked;
  } catch (error) {
    const why = describeError(error);
    return { list: null, warnings: [`AWS's price API did not answer (${why}); prices are those of ${PRICES_OF}.`] };
  }
}

function readKept(file: string): { askedAtMs: number; list: PriceList } | null {
  try {
    return cacheSchema.parse(JSON.parse(readFileSync(file, 'utf8'))) as { askedAtMs: number; list: PriceList };
  } catch {
    return null;
  }
}

/** Prices that cannot be cached are fetched again next time. */
function keep(file: string, content: { askedAtMs: number; list: PriceList }): void {
  try {
    mkdirSync(dirname(file), { recursive: true });
    const fresh = join(dirname(file), `.prices-${process.pid}.json`);
    writeFileSync(fresh, `${JSON.stringify(content, null, 2)}\n`);
    renameSync(fresh, file);
  } catch {
    // A full or read-only disk must not prevent planning.
  }
}
