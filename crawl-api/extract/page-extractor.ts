/**
 * Reads one page as it streams in and gives the row the mapping asks for.
 *
 * The text of an element is all text inside it, entities decoded, without what stands in script and style; of a matched
 * script or style itself it is its source. Without `all` the first element that matches (and has the attribute, where
 * one is asked for) decides; if its value is empty or no number where one is wanted, the field has no value.
 */
import { Parser } from 'htmlparser2';
import type { FieldValue, Row } from '../../shared/domain/mapping.ts';
import type { CompiledField, CompiledMapping } from './compile-mapping.ts';
import { findJsonValues, parseJsonBlock } from './json-ld.ts';
import { processValue } from './processors.ts';
import { SelectorMatcher } from './selector-matcher.ts';
import { MAX_VALUES, MAX_VALUE_BYTES, cleanText, fitValue } from './values.ts';

export type PageKind = 'html' | 'xml' | 'json';
export type Extraction = { row: Row; missing: null } | { row: null; missing: string };

/** Text collected for one matched element until it closes. */
interface Capture {
  field: number;
  index: number;
  depth: number;
  text: string;
}

/** White space is trimmed after collecting, so more is collected than a value may have. */
const MAX_COLLECTED = MAX_VALUE_BYTES * 4;
/** JSON-LD blocks larger than this are not read. */
const MAX_JSON = 2_000_000;

export class PageExtractor {
  readonly #mapping: CompiledMapping;
  readonly #kind: PageKind;
  readonly #parser: Parser | null;
  readonly #matcher: SelectorMatcher;
  /** Raw values by field, in the order in which their elements open. */
  readonly #values: (string | null)[][];
  readonly #blocks: unknown[] = [];
  #captures: Capture[] = [];
  /** Depth of the open script or style; 0 outside. */
  #silentDepth = 0;
  #json: string | null = null;
  #opening: Record<string, string> = {};

  constructor(mapping: CompiledMapping, kind: PageKind) {
    this.#mapping = mapping;
    this.#kind = kind;
    this.#matcher = new SelectorMatcher(mapping);
    this.#values = mapping.fields.map(() => []);
    if (kind === 'json') {
      this.#parser = null;
      this.#json = '';
    } else {
      this.#parser = new Parser(
        {
          onopentag: (name, attributes) => this.#open(name, attributes),
          onclosetag: () => this.#close(),
          ontext: (text) => this.#text(text),
        },
        kind === 'xml'
          ? { xmlMode: true, lowerCaseTags: true, lowerCaseAttributeNames: true }
          : { recognizeSelfClosing: false },
      );
    }
  }

  /** Takes the next piece of the page; throws only TooDeepError. */
  write(text: string): void {
    if (this.#parser) this.#parser.write(text);
    else this.#addJson(text);
  }

  /** The row once the whole page was written, or the first required field that has no value. */
  end(): Extraction {
    this.#parser?.end();
    if (this.#kind === 'json') this.#endJson();
    const row: Row = {};
    for (const [index, compiled] of this.#mapping.fields.entries()) {
      const value = this.#valueOf(compiled, index);
      if (value === null && compiled.field.required) return { row: null, missing: compiled.field.name };
      row[compiled.field.name] = value;
    }
    return { row, missing: null };
  }

  #valueOf(compiled: CompiledField, index: number): FieldValue {
    const { field, path, type } = compiled;
    const raw = path ? findJsonValues(this.#blocks, path, field.all ? MAX_VALUES : 1) : this.#values[index]!;
    const values: (string | number)[] = [];
    let bytes = 0;
    for (const one of raw) {
      const processed =
        one === null ? null : processValue(typeof one === 'string' ? cleanText(one) : one, field.process);
      const value = processed === null ? null : fitValue(processed, type);
      if (!field.all) return value;
      if (value === null) continue;
      // The whole list is one column, so the limit of one value is the limit of all together.
      bytes += typeof value === 'string' ? Buffer.byteLength(value) + 3 : 25;
      if (bytes > MAX_VALUE_BYTES) break;
      values.push(value);
    }
    return values.length > 0 ? values : null;
  }

  readonly #onMatch = (field: number): void => {
    const values = this.#values[field]!;
    const { attribute, field: wanted } = this.#mapping.fields[field]!;
    if (values.length >= (wanted.all ? MAX_VALUES : 1)) return;
    if (attribute !== null) {
      const value = this.#opening[attribute];
      // Selectors of one list may match the same element; it counts once.
      if (typeof value === 'string' && this.#matchedHere.add(field)) values.push(value);
      return;
    }
    if (!this.#matchedHere.add(field)) return;
    this.#captures.push({ field, index: values.length, depth: this.#matcher.depth, text: '' });
    values.push(null);
  };

  /** Fields matched by the element that is opening. */
  readonly #matchedHere = new FewNumbers();

  #open(name: string, attributes: Record<string, string>): void {
    this.#opening = attributes;
    this.#matchedHere.clear();
    // SVG's mixed-case names come through as they are written in its specification.
    this.#matcher.open(name.toLowerCase(), attributes, this.#onMatch);
    if (this.#silentDepth > 0 || (name !== 'script' && name !== 'style')) return;
    this.#silentDepth = this.#matcher.depth;
    const isJson = name === 'script' && /^\s*application\/ld\+json\s*(;|$)/i.test(attributes.type ?? '');
    if (isJson && this.#mapping.readsJson) this.#json = '';
  }

  #close(): void {
    const depth = this.#matcher.depth;
    if (this.#captures.length > 0) this.#finishCaptures(depth);
    if (depth === this.#silentDepth) {
      this.#silentDepth = 0;
      this.#endJson();
    }
    this.#matcher.close();
  }

  #finishCaptures(depth: number): void {
    let kept = 0;
    for (const capture of this.#captures) {
      if (capture.depth < depth) this.#captures[kept++] = capture;
      else this.#values[capture.field]![capture.index] = capture.text;
    }
    this.#captures.length = kept;
  }

  #text(text: string): void {
    if (this.#json !== null) this.#addJson(text);
    for (const capture of this.#captures) {
      if (this.#silentDepth > 0 && capture.depth !== this.#silentDepth) continue;
      if (capture.text.length < MAX_COLLECTED) capture.text += text;
    }
  }

  #addJson(text: string): void {
    if (this.#json !== null && this.#json.length < MAX_JSON) this.#json += text;
  }

  #endJson(): void {
    if (this.#json === null) return;
    const block = parseJsonBlock(this.#json);
    if (block !== undefined) this.#blocks.push(block);
    this.#json = null;
  }
}

/** A set for a handful of numbers that is cleared for every start tag: cheaper than Set. */
class FewNumbers {
  readonly #numbers: number[] = [];

  clear(): void {
    if (this.#numbers.length > 0) this.#numbers.length = 0;
  }

  /** False when the number was there already. */
  add(number: number): boolean {
    if (this.#numbers.includes(number)) return false;
    this.#numbers.push(number);
    return true;
  }
}
