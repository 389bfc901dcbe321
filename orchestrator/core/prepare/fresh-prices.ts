/** Prices for a plan: from the price API, cached for a day beside the runs, else the shipped table. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { firstLineOf } from '../../../shared/domain/errors.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import { askPrices, type PriceQuestion } from '../cloud/price-api.ts';
import { checkPrices, type PriceList, PRICES_OF } from '../plan/price-table.ts';

const KEPT_MS = 24 * 3_600_000;
const TIMEOUT_MS = 5_000;

const price = z.number().positive();
const keptSchema = z.array(
  z.object({
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
  }),
);

interface Kept {
  askedAtMs: number;
  list: PriceList;
}

export interface FreshPrices {
  /** One per region; none for a region of the shipped table. */
  lists: PriceList[];
  warnings: string[];
}

export interface PriceSource {
  file: string;
  clock: Clock;
  regions: readonly string[];
  instanceTypes: readonly string[];
  api?: Pick<PriceQuestion, 'endpoint' | 'credentials' | 'proxy'> & { timeoutMs?: number };
}

/** Takes at most five seconds and never throws: on any failure the shipped prices stand in, with a warning. */
export async function freshPrices({ file, clock, regions, instanceTypes, api }: PriceSource): Promise<FreshPrices> {
  const nowMs = clock.now();
  const kept = readKept(file, nowMs);
  const keptOf = (region: string): Kept | undefined =>
    kept.find(({ list }) => list.region === region && instanceTypes.every((type) => list.hourly[type] !== undefined));
  const answers = await Promise.all(
    regions.map(async (region): Promise<Kept | Failure> => {
      const question = { instanceTypes, nowMs, endpoint: null, timeoutMs: TIMEOUT_MS, ...api, region };
      try {
        return keptOf(region) ?? { askedAtMs: nowMs, list: await askPrices(question) };
      } catch (error) {
        return { region, why: firstLineOf(error) };
      }
    }),
  );
  // Kept prices are checked again: the user may have edited the file, or a newer shipped table may contradict it.
  const found = answers.flatMap((each) => ('list' in each ? { ...each, ...checkPrices(each.list) } : []));
  const sound = found
    .filter(({ warnings }) => warnings.length === 0)
    .map(({ askedAtMs, list }) => ({ askedAtMs, list }));
  const others = kept.filter(({ list }) => !regions.includes(list.region));
  if (sound.some(({ list }) => keptOf(list.region) === undefined)) keep(file, [...others, ...sound]);
  const failures = answers.filter((each) => 'why' in each);
  return {
    lists: found.map(({ list }) => list),
    warnings: [...failureWarnings(failures, regions.length), ...found.flatMap(({ warnings }) => warnings)],
  };
}

/** The same without a call: what the last plan has kept. Without warnings, as nothing is bought at these prices. */
export function keptPrices({ file, clock, regions, instanceTypes }: PriceSource): FreshPrices {
  const lists = readKept(file, clock.now()).flatMap(({ list }) => {
    const isAsked = regions.includes(list.region) && instanceTypes.every((type) => list.hourly[type] !== undefined);
    return isAsked ? [checkPrices(list).list] : [];
  });
  return { lists, warnings: [] };
}

interface Failure {
  region: string;
  why: string;
}

/** One for each cause; it names the regions if the run has several. */
function failureWarnings(failures: readonly Failure[], regions: number): string[] {
  return [...Map.groupBy(failures, ({ why }) => why)].map(([why, those]) => {
    const where = regions === 1 ? '' : ` for ${those.map(({ region }) => region).join(', ')}`;
    return `AWS's price API did not answer${where} (${why}); prices are those of ${PRICES_OF}.`;
  });
}

/** Those of the last day. */
function readKept(file: string, nowMs: number): Kept[] {
  try {
    const kept = keptSchema.parse(JSON.parse(readFileSync(file, 'utf8'))) as Kept[];
    return kept.filter(({ askedAtMs }) => nowMs >= askedAtMs && nowMs - askedAtMs < KEPT_MS);
  } catch {
    return [];
  }
}

/** Prices that cannot be cached are fetched again next time. */
function keep(file: string, content: readonly Kept[]): void {
  try {
    mkdirSync(dirname(file), { recursive: true });
    const fresh = join(dirname(file), `.prices-${process.pid}.json`);
    writeFileSync(fresh, `${JSON.stringify(content, null, 2)}\n`);
    renameSync(fresh, file);
  } catch {
    // A full or read-only disk must not prevent planning.
  }
}
