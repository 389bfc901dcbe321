/** What the cases that read product pages share: their figures, and the values that each must read. */
import { expectedProduct } from '../test/support/shop/product.ts';
import { measureProgram } from './frame.ts';

export interface PageFigures {
  pagesPerCpuSecond: number;
  pagesPerSecond: number;
}

/** In the case's process: measures the reading of that many pages and prints its figures. */
export async function printFigures(
  pages: number,
  read: () => Promise<void> | void,
  cpuMs: () => number = ownCpuMs,
): Promise<void> {
  const cpuBefore = cpuMs();
  const startMs = performance.now();
  await read();
  const wallMs = performance.now() - startMs;
  const figures: PageFigures = {
    pagesPerCpuSecond: (pages * 1_000) / (cpuMs() - cpuBefore),
    pagesPerSecond: (pages * 1_000) / wallMs,
  };
  await new Promise((resolve) => process.stdout.write(JSON.stringify(figures), resolve));
}

function ownCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** Runs a case to its end. */
export async function measurePages(file: string, args: readonly string[]): Promise<PageFigures & { maxRssMb: number }> {
  const { stdout, maxRssBytes } = await measureProgram(file, args);
  return { ...(JSON.parse(stdout) as PageFigures), maxRssMb: maxRssBytes / 2 ** 20 };
}

/** Throws when the values read of a product's page are wrong. */
export function checkRow(name: string, id: string, row: unknown): void {
  const { title, price, brand, rating, category, inStock } = expectedProduct(1, id);
  const crumbs = ['Home', 'Catalogue', category];
  const expected = { title, price, brand, rating, crumbs, stock: inStock ? 'In stock' : 'Sold out' };
  if (JSON.stringify(row) !== JSON.stringify(expected))
    throw new Error(`${name} misreads product ${id}: ${JSON.stringify(row)}`);
}
