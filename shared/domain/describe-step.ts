/** A step on one line, in its short form. */
import type { Step } from './mapping.ts';

export function describeStep(step: Step): string {
  switch (step.type) {
    case 'css':
      return `css ${step.selector}${step.attribute === undefined ? '' : ` @${step.attribute}`}`;
    case 'xpath':
    case 'jsonpath':
      return `${step.type} ${step.expression}`;
    case 'json_ld':
    case 'microdata':
      return `${step.type} ${step.path}${step.node === undefined ? '' : ` (node ${step.node})`}`;
    case 'regex':
      return `regex ${step.pattern}${step.group === 0 ? '' : ` (group ${step.group})`}`;
    case 'replace':
      return `replace ${JSON.stringify(step.find)} with ${JSON.stringify(step.with)}`;
    case 'date':
      return `date ${step.format ?? 'ISO 8601'}${step.locale === null ? '' : ` (${step.locale})`}`;
    case 'split':
    case 'join':
      return `${step.type} ${JSON.stringify(step.by)}`;
    case 'default':
      return `default ${JSON.stringify(step.value)}`;
    case 'number':
    case 'integer':
    case 'price':
    case 'currency':
      return [step.type, ...describeOptions(step)].join(' ');
    default:
      return step.type;
  }
}

function describeOptions(step: { decimal?: string; currency?: string }): string[] {
  const { currency, decimal } = step;
  return [...(currency === undefined ? [] : [currency]), ...(decimal === undefined ? [] : [JSON.stringify(decimal)])];
}
