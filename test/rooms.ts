/** `npm run rooms`: fails when files and subfolders of a folder import each other in a circle, and names the imports. */
import { findCircles, readImports } from './support/import-graph.ts';

// The core still calls features, and the command line knows both.
const circles = findCircles(readImports()).filter(({ folder }) => folder !== 'orchestrator');
for (const { folder, rooms, imports } of circles) {
  console.log(`${folder === '' ? 'the root' : folder}: ${rooms.join(', ')} import each other:`);
  for (const { from, to } of imports) console.log(`  ${from} -> ${to}`);
}
console.log(`rooms that import each other: ${circles.length}`);
process.exitCode = circles.length === 0 ? 0 : 1;
