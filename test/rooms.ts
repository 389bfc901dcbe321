/**
 * `npm run rooms`: fails when files and subfolders of a folder import each other in a circle, and when more files than
 * MOST_IMPORTERS outside a feature's folder import from it; names the imports.
 */
import { findCircles, importersOfFeatures, readImports } from './support/import-graph.ts';

/** A feature that more files know cannot be taken out in an hour. */
const MOST_IMPORTERS = 3;

const imports = readImports();
const circles = findCircles(imports);
for (const { folder, rooms, imports } of circles) {
  console.log(`${folder === '' ? 'the root' : folder}: ${rooms.join(', ')} import each other:`);
  for (const { from, to } of imports) console.log(`  ${from} -> ${to}`);
}
console.log(`rooms that import each other: ${circles.length}`);

const importers = [...importersOfFeatures(imports)];
console.log(
  `files that import a feature: ${importers.map(([feature, files]) => `${feature} ${files.length}`).join(', ')}`,
);
const known = importers.filter(([, files]) => files.length > MOST_IMPORTERS);
for (const [feature, files] of known) console.log(`features/${feature} is imported by ${files.join(', ')}`);
process.exitCode = circles.length + known.length === 0 ? 0 : 1;
