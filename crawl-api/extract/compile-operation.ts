/** Compiles the steps after the first into operations on lists of values. */
import type { ChainValue, Scalar, SelectStep, Step } from '../../shared/domain/mapping.ts';
import { fieldType, isSelectStep } from '../../shared/domain/mapping.ts';
import type { Operation } from './chain.ts';
import { SourceCompiler } from './compile-source.ts';
import { findJsonValues, parseJsonBlock, parsePath } from './json-ld.ts';
import { findJson, toScalars } from './json-values.ts';
import type { Libraries } from './libraries.ts';
import { loaded } from './libraries.ts';
import { PagePass } from './page-pass.ts';
import type { StepContext } from './processors.ts';
import { asText, mapValues, processValues } from './processors.ts';
import { MAX_VALUES } from './values.ts';

/** `maxChars`: maximum length of a value. */
export function compileOperation(step: Step, libraries: Libraries, allByTree: boolean, maxChars: number): Operation {
  if (isSelectStep(step)) {
    const select = compileSelect(step, libraries, allByTree, maxChars);
    const apply = (values: ChainValue[], place: StepContext): ChainValue[] => {
      const found: Scalar[] = [];
      for (const value of values) {
        if (found.length >= MAX_VALUES) break;
        for (const one of select(asText(value), place)) found.push(one);
      }
      return found.slice(0, MAX_VALUES);
    };
    return { step, selects: true, apply };
  }
  if (step.type === 'date') {
    const { readDate } = loaded(libraries.date);
    const withTime = fieldType({ steps: [step] }) === 'datetime';
    return {
      step,
      selects: false,
      apply: (values) => mapValues(values, (value) => readDate(asText(value), step, withTime)),
    };
  }
  return { step, selects: false, apply: (values, place) => processValues(step, values, place, maxChars) };
}

type Select = (text: string, place: StepContext) => readonly Scalar[];

function compileSelect(step: SelectStep, libraries: Libraries, allByTree: boolean, maxChars: number): Select {
  switch (step.type) {
    case 'css':
    case 'xpath': {
      // The text is parsed as a page of its own.
      const compiler = new SourceCompiler(libraries, allByTree);
      const source = compiler.source(step, { limit: MAX_VALUES, maxChars, inRecord: false });
      const plan = compiler.plan(null, false);
      return (text, { budget }) => {
        const pass = new PagePass(plan, 'html', budget);
        pass.write(text);
        const contents = pass.end();
        return source.read(contents, contents.page);
      };
    }
    case 'json_ld': {
      const path = parsePath(step.path);
      return (text) => {
        const block = parseJsonBlock(text);
        return block === undefined ? [] : findJsonValues([block], path, MAX_VALUES);
      };
    }
    case 'jsonpath': {
      const path = loaded(libraries.jsonPath).compileJsonPath(step.expression);
      return (text, { budget }) => toScalars(findJson(path, parseJsonBlock(text), MAX_VALUES), maxChars, budget);
    }
    case 'regex': {
      const pattern = loaded(libraries.regex).compilePattern(step.pattern);
      return (text, { budget }) => pattern.matches(text, step.group, MAX_VALUES, () => budget.search());
    }
  }
}
