/** Elements that a page built by scripts must contain, or may still change, before it is worth extracting. */
import { chainsOf, type Field, hasDefault, type PageMapping, type Step } from '../../../shared/domain/mapping.ts';
import type { CompiledMapping } from '../../extract/compile-mapping.ts';
import { PageHabits } from './page-habits.ts';
import type { Sign } from './page-snapshot.ts';

export interface Expected {
  /** Where the values come from, as far as an element shows. Only a quick test: the extraction decides. */
  signs: readonly Sign[];
  /** True when the mapping requires anything at all; otherwise the page is taken once it has loaded. */
  required: boolean;
  /** The names of all fields. */
  fields: readonly string[];
  /** The habits of the pages seen so far. */
  habits: PageHabits;
}

/** Returns what to expect by the page's URL, which chooses among the mappings. */
export function expectBy(compiled: Pick<CompiledMapping, 'forUrl'>): (url: string) => Expected {
  const known = new Map<PageMapping | null, Expected>();
  return (url) => {
    const mapping = compiled.forUrl(url)?.mapping ?? null;
    const expected = known.get(mapping) ?? expectOf(mapping);
    known.set(mapping, expected);
    return expected;
  };
}

/** @param mapping the one for the page's URL; null when there is none */
export function expectOf(mapping: PageMapping | null): Expected {
  const habits = new PageHabits();
  if (mapping === null) return { signs: [], required: false, fields: [], habits };
  const fields = mapping.fields.map(({ name }) => name);
  const links = mapping.urlParsers.flatMap(({ steps }) => signOf(steps[0], false));
  if (mapping.rows !== null) {
    const { each, empty } = mapping.rows;
    // Records may rightly be missing, so either of the two is enough; without a CSS test for both, there is no quick
    // test.
    const canTest = each.type === 'css' && (empty === null || empty.type === 'css');
    const selectors = [each, ...(empty === null ? [] : [empty])].flatMap((step) =>
      step.type === 'css' ? [step.selector] : [],
    );
    const signs = canTest ? [{ selector: selectors.join(', '), required: true }] : [];
    return { signs: [...signs, ...links], required: true, fields, habits };
  }
  const signs = new Map([...mapping.fields.flatMap(signOfField), ...links].map((sign) => [JSON.stringify(sign), sign]));
  return { signs: [...signs.values()], required: mapping.fields.some((field) => field.required), fields, habits };
}

function signOfField(field: Field): Sign[] {
  const chains = chainsOf(field);
  // A default or another source replaces a missing element.
  const required = field.required && chains.length === 1 && !hasDefault(field);
  return chains.flatMap(([first]) => signOf(first, required));
}

/** The signs that a value is there: only an element that a selector finds shows it. */
function signOf(step: Step | undefined, required: boolean): Sign[] {
  switch (step?.type) {
    case 'css':
      return [
        { selector: step.selector, ...(step.attribute === undefined ? {} : { attribute: step.attribute }), required },
      ];
    case 'xpath':
      return [{ xpath: step.expression, required: false }];
    case 'json_ld':
      return [{ selector: 'script[type*="ld+json" i]', required: false }];
    case 'microdata':
      return [{ selector: `[itemprop~=${JSON.stringify(step.path.split('.').at(-1))}]`, required: false }];
    default:
      return [];
  }
}
