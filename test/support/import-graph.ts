/** Which file of the repository imports which, types included. */
import { globSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';

const ROOT = new URL('../../', import.meta.url);
const SOURCES = '{orchestrator,crawl-api,shared,userdata,sandbox}/**/*.{ts,tsx,js,mjs}';
const IMPORT = /(?:\bfrom|\bimport|\brequire\()\s*\(?\s*['"]([\w@./:-]+)['"]/g;

/** Paths of all source files from the repository's root. */
export const sourceFiles = (): string[] => globSync(SOURCES, { cwd: ROOT }).sort();

export const readSource = (file: string): string => readFileSync(new URL(file, ROOT), 'utf8');

export const withoutComments = (source: string): string => source.replace(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm, '');

/** What a file imports: a path from the root for our own files, else the name of a module. */
export function importsIn(file: string, source: string): string[] {
  return [...withoutComments(source).matchAll(IMPORT)].map(([, specifier]) =>
    specifier!.startsWith('.') ? posix.join(posix.dirname(file), specifier!) : specifier!,
  );
}

export interface Import {
  from: string;
  to: string;
}

/** The imports between source files. */
export function readImports(): Import[] {
  const files = new Set(sourceFiles());
  return [...files].flatMap((from) =>
    importsIn(from, readSource(from)).flatMap((to) => (files.has(to) ? [{ from, to }] : [])),
  );
}

/** Files and subfolders of one folder that import each other in a circle. */
export interface Circle {
  /** Empty: the root. */
  folder: string;
  rooms: string[];
  /** Those between its rooms. */
  imports: Import[];
}

/**
 * The circles of all folders: a folder is read in one go only if each of its rooms (a subfolder, or a file beside them)
 * builds on others that do not build on it.
 */
export function findCircles(imports: readonly Import[]): Circle[] {
  const folders = new Map<string, Map<string, Import[]>>();
  for (const one of imports) {
    const [from, to] = [one.from.split('/'), one.to.split('/')];
    let depth = 0;
    while (from[depth] === to[depth]) depth++;
    const folder = from.slice(0, depth).join('/');
    const arrows = folders.get(folder) ?? new Map<string, Import[]>();
    folders.set(folder, arrows);
    const arrow = `${from[depth]!} ${to[depth]!}`;
    arrows.set(arrow, [...(arrows.get(arrow) ?? []), one]);
  }
  return [...folders].flatMap(([folder, arrows]) =>
    circlesOf([...arrows.keys()].map((arrow) => arrow.split(' ') as [string, string])).map((rooms) => ({
      folder,
      rooms,
      imports: rooms.flatMap((from) => rooms.flatMap((to) => arrows.get(`${from} ${to}`) ?? [])),
    })),
  );
}

/** Groups of two or more nodes that each reach each other. */
function circlesOf(arrows: readonly (readonly [string, string])[]): string[][] {
  const nodes = [...new Set(arrows.flat())].sort();
  const reached = new Map(nodes.map((node) => [node, reach(node, arrows)]));
  const circles = nodes.map((node) =>
    nodes.filter((other) => other === node || (reached.get(node)!.has(other) && reached.get(other)!.has(node))),
  );
  return circles.filter((circle, i) => circle.length > 1 && circle[0] === nodes[i]);
}

function reach(start: string, arrows: readonly (readonly [string, string])[]): Set<string> {
  const reached = new Set<string>();
  const open = [start];
  for (let node = open.pop(); node !== undefined; node = open.pop())
    for (const [from, to] of arrows)
      if (from === node && !reached.has(to)) {
        reached.add(to);
        open.push(to);
      }
  return reached;
}

const FEATURES = 'orchestrator/features/';

/** Names of the folders of features. */
export const featureFolders = (): string[] => [
  ...new Set(sourceFiles().flatMap((file) => (file.startsWith(FEATURES) ? [file.split('/')[2]!] : []))),
];

/** Files outside a feature's folder that import from it, by feature. */
export const importersOfFeatures = (imports: readonly Import[]): Map<string, string[]> =>
  new Map(
    featureFolders().map((feature) => {
      const isOwn = (file: string): boolean => file.startsWith(`${FEATURES}${feature}/`);
      const from = imports.flatMap((one) => (isOwn(one.to) && !isOwn(one.from) ? [one.from] : []));
      return [feature, [...new Set(from)]];
    }),
  );
