/** A YAML text with the line of every key, so that each fault can be located. */
import { type Document, LineCounter, isMap, isSeq, parseDocument } from 'yaml';
import { describeError } from '../../../shared/domain/errors.ts';
import { isRecord } from './faults.ts';

export interface YamlSource {
  /** Every place has objects of its own, also where the text repeats one by an alias. */
  value: unknown;
  /** One text each; syntax errors with their line. */
  faults: string[];
  /** The line of the value at this path, or of the nearest existing parent. */
  lineOf(path: readonly PropertyKey[]): number;
}

/** Merge keys (`<<: *base`) are understood. */
export function readYaml(text: string): YamlSource {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true, merge: true });
  const faults = document.errors.map((e) => `line ${lines.linePos(e.pos[0]).line}: ${e.message}`);
  const value = faults.length > 0 ? undefined : valueOf(document, faults);
  return {
    value,
    faults,
    lineOf(path) {
      let node: unknown = document.contents;
      let offset = 0;
      for (const step of path) {
        if (isMap(node)) {
          const pair = node.items.find((p) => String((p.key as { value?: unknown } | null)?.value) === String(step));
          if (!pair) break;
          offset = (pair.key as { range?: [number, number, number] } | null)?.range?.[0] ?? offset;
          node = pair.value;
        } else if (isSeq(node)) {
          const item = node.items[Number(step)] as { range?: [number, number, number] } | undefined;
          if (!item) break;
          offset = item.range?.[0] ?? offset;
          node = item;
        } else break;
      }
      return lines.linePos(offset).line;
    },
  };
}

/** The most aliases of one anchor, with those inside it: thousands of sections of a mapping may share their fields. */
const MAX_ALIASES = 10_000;

/** Aliases and merges are followed only here. Their faults have no place. */
function valueOf(document: Document, faults: string[]): unknown {
  try {
    return unshared(document.toJS({ maxAliasCount: MAX_ALIASES }));
  } catch (error) {
    faults.push(`an alias or \`<<\`: ${describeError(error)}`);
    return undefined;
  }
}

/** A tree that can be edited in one place without another. Throws for an alias inside its own anchor. */
function unshared(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(unshared);
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, own]) => [key, unshared(own)]));
}
