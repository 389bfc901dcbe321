/** Elements that a page built by scripts must contain before it is worth extracting. */
import { type Field, hasDefault, type PageMapping } from '../../../shared/domain/mapping.ts';
import type { CompiledMapping } from '../../extract/compile-mapping.ts';
import type { Sign } from './page-probe.ts';

export interface Expected {
  /** Elements that must all be present. Only a quick test: the extraction decides. */
  signs: readonly Sign[];
  /** True when the mapping requires anything at all; otherwise the page is taken once it has loaded. */
  required: boolean;
}

/** Returns what to expect by the page's URL, which chooses among the mappings. */
export function expectBy(compiled: Pick<CompiledMapping, 'forUrl'>): (url: string) => Expected {
  const known = new Map<PageMapping | null, Expected>();
  return (url) => {
    const mapping = compiled.forUrl(url)?.mapping ?? null;
    const expected = known.get(mapping) ?? signsOf(mapping);
    known.set(mapping, expected);
    return expected;
  };
}

/** @param mapping the one for the page's URL; null when there is none */
export function signsOf(mapping: PageMapping | null): Expected {
  if (mapping === null) return { signs: [], required: false };
  if (mapping.rows !== null) {
    const { each, empty } = mapping.rows;
    // Records may rightly be missing, so either of the two is enough; without a CSS test for both, there is no quick
    // test.
    const canTest = each.type === 'css' && (empty === null || empty.type === 'css');
    const selectors = [each, ...(empty === null ? [] : [empty])].flatMap((step) =>
      step.type === 'css' ? [step.selector] : [],
    );
    return { signs: canTest ? [{ selector: selectors.join(', ') }] : [], required: true };
  }
  const required = mapping.fields.filter((field) => field.required);
  return { signs: required.flatMap(signOf), required: required.length > 0 };
}

function signOf(field: Field): Sign[] {
  const [first] = field.steps;
  // A default or another source replaces a missing element.
  if (first?.type !== 'css' || field.fallbacks !== undefined || hasDefault(field)) return [];
  return [
    first.attribute === undefined
      ? { selector: first.selector }
      : { selector: first.selector, attribute: first.attribute },
  ];
}
