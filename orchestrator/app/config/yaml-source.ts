/** A YAML text with the line of every key, so that each fault can be located. */
import { LineCounter, isMap, isSeq, parseDocument } from 'yaml';

export interface YamlSource {
  value: unknown;
  /** Syntax errors, one text each, with their line. */
  faults: string[];
  /** The line of the value at this path, or of the nearest existing parent. */
  lineOf(path: readonly PropertyKey[]): number;
}

export function readYaml(text: string): YamlSource {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true });
  const faults = document.errors.map((e) => `line ${lines.linePos(e.pos[0]).line}: ${e.message}`);
  return {
    value: faults.length > 0 ? undefined : document.toJS({ maxAliasCount: 100 }),
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
