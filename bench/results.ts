/** Result files: results/<name>.json per bench, and results/README.md generated from all of them. */
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { BenchResult } from './frame.ts';

export interface StoredResult extends BenchResult {
  name: string;
  title: string;
  /** ISO date and time. */
  measuredAt: string;
  tookMs: number;
  machine: { cpu: string; cores: number; memoryGb: number; system: string; node: string };
}

const FOLDER = fileURLToPath(new URL('results/', import.meta.url));

export function describeMachine(): StoredResult['machine'] {
  const cores = cpus();
  return {
    cpu: cores[0]?.model.trim() || 'unknown',
    cores: cores.length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()}`,
    node: process.versions.node,
  };
}

/** Stores the result and regenerates the table. */
export function storeResult(result: StoredResult): void {
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(`${FOLDER}${result.name}.json`, `${JSON.stringify(result, null, 2)}\n`);
  const all = globSync('*.json', { cwd: FOLDER })
    .sort()
    .map((file) => JSON.parse(readFileSync(`${FOLDER}${file}`, 'utf8')) as StoredResult);
  writeFileSync(`${FOLDER}README.md`, renderPage(all));
}

export function renderPage(results: readonly StoredResult[]): string {
  const head = [
    '# Measured',
    '',
    'Made by `npm run bench`; do not edit it by hand. Compare the ratios: both sides of each were measured in one run on',
    'the same machine. The absolute figures are those of that machine.',
  ];
  return `${[...head, ...results.flatMap(renderResult)].join('\n')}\n`;
}

function renderResult({ name, title, about, measuredAt, machine, rows, ratios }: StoredResult): string[] {
  const figures = [...new Set(rows.flatMap((row) => Object.keys(row.figures)))];
  return [
    '',
    `## ${title}`,
    '',
    about,
    '',
    `\`npm run bench ${name}\`, ${measuredAt.slice(0, 10)}, Node ${machine.node}, ${machine.cpu}, ${machine.cores} cores, ${machine.memoryGb} GB, ${machine.system}.`,
    '',
    ...table(
      ['Ratio', 'Measured', 'To reach'],
      ratios.map((ratio) => [ratio.name, round(ratio.value), ratio.target ?? '-']),
    ),
    '',
    ...table(
      ['Case', ...figures],
      rows.map((row) => [row.name, ...figures.map((f) => (f in row.figures ? round(row.figures[f]!) : '-'))]),
    ),
  ];
}

/** Cells padded to the column's width, which is also prettier's format. */
function table(head: string[], rows: string[][]): string[] {
  const widths = head.map((cell, i) => Math.max(3, cell.length, ...rows.map((row) => row[i]!.length)));
  const line = (cells: string[]): string => `| ${cells.map((cell, i) => cell.padEnd(widths[i]!)).join(' | ')} |`;
  return [line(head), `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`, ...rows.map(line)];
}

/** Three significant digits, without a fraction from 100 on. */
function round(value: number): string {
  return Math.abs(value) >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
}
