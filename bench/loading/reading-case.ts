/**
 * Reads one part as the main server does, in a process of its own: `reading-case.ts FILE`. Prints by how much its
 * resident memory grew, how long it took and what came of it.
 */
import '../../orchestrator/cli/heap-limits.ts';
import { readFileSync } from 'node:fs';
import { piecesOf } from '../../orchestrator/core/model/part-results.ts';
import { readPart } from '../../orchestrator/core/act/results/load-parts.ts';
import { describeError } from '../../shared/domain/errors.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import { sha256Hex } from '../../shared/wire/signature.ts';

const bytes = readFileSync(process.argv[2]!);
const objects = { get: () => Promise.resolve(bytes) } as unknown as ObjectStore;
const name = { key: 'part', sha256: sha256Hex(bytes), sizeBytes: bytes.length };
const peakMb = (): number => process.resourceUsage().maxRSS / 1_000;
const [beforeMb, startMs] = [peakMb(), performance.now()];
let results = 0;
let fault: string | null = null;
try {
  for await (const piece of piecesOf(await readPart(objects, name))) results += piece.length;
} catch (error) {
  fault = describeError(error);
}
const figures = { packedKb: bytes.length / 1_000, peakMb: peakMb() - beforeMb, ms: performance.now() - startMs };
process.stdout.write(JSON.stringify({ figures, results, fault }));
