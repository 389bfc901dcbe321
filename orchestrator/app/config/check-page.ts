/** The rules for one mapping in either form: names, chains, patterns, records. */
import { findChainFault, findStepFault } from '../../../shared/adapters/step-check.ts';
import { RESERVED_COLUMNS } from '../../../shared/domain/mapping.ts';
import type { PlacedStep } from './chain.ts';
import type { FaultList, Path } from './faults.ts';
import type { PlacedField, PlacedPage, PlacedRows } from './placed-page.ts';

export function checkPage(page: PlacedPage, faults: FaultList): void {
  checkNames(page.fields, faults);
  const inRows = page.rows !== null;
  for (const field of page.fields) checkField(field, inRows, faults);
  for (const { pattern, path } of page.urlPatterns) {
    const fault = findStepFault({ type: 'regex', pattern, group: 0 }, { first: true, inRows: false });
    if (fault !== null) faults.report(path, fault);
  }
  for (const { steps, path } of page.urlParsers) checkChain(steps, path, false, faults);
  if (page.rows) checkRows(page.rows, page.fields, faults);
}

function checkNames(fields: readonly PlacedField[], faults: FaultList): void {
  const seen = new Set<string>();
  for (const { name, path } of fields) {
    // Column names are case-insensitive in both engines.
    const column = name.toLowerCase();
    if (!/^[A-Za-z][A-Za-z0-9_]{0,63}$/.test(name))
      faults.report(path, 'a field name is a letter, then letters, digits or underscores, at most 64');
    if ((RESERVED_COLUMNS as readonly string[]).includes(column))
      faults.report(path, `the name is taken: every result table has a column ${column}`);
    if (seen.has(column)) faults.report(path, 'another field has this name, perhaps in another case');
    seen.add(column);
  }
}

function checkField(field: PlacedField, inRows: boolean, faults: FaultList): void {
  checkChain(field.steps, field.path, inRows, faults);
  const hasDefault = field.steps.some(({ step }) => step.type === 'default');
  if (field.required && hasDefault)
    faults.report(field.requiredPath, 'a field with a default always has a value; leave one of the two out');
}

/** Reports faults of single steps at their own position; only without any, those of the chain as a whole. */
function checkChain(steps: readonly PlacedStep[], path: Path, inRows: boolean, faults: FaultList): void {
  if (steps.length === 0) return;
  let sound = true;
  for (const [i, placed] of steps.entries()) {
    const fault = findStepFault(placed.step, { first: i === 0, inRows });
    if (fault === null) continue;
    faults.report(placed.path, fault);
    sound = false;
  }
  const fault = sound
    ? findChainFault(
        steps.map(({ step }) => step),
        inRows,
      )
    : null;
  if (fault !== null) faults.report(path, fault);
}

function checkRows(rows: PlacedRows, fields: readonly PlacedField[], faults: FaultList): void {
  checkRecordSelector(rows.each, faults);
  if (rows.empty) checkRecordSelector(rows.empty, faults);
  const key = fields.find((field) => field.name === rows.key);
  if (!key) faults.report([...rows.path, 'key'], `must be one of the fields: ${fields.map((f) => f.name).join(', ')}`);
  else if (key.steps.some(({ step }) => step.type === 'all'))
    faults.report([...rows.path, 'key'], `${rows.key} is a list; a key is one value`);
}

function checkRecordSelector({ step, path }: PlacedStep, faults: FaultList): void {
  if (step.type !== 'css' && step.type !== 'xpath' && step.type !== 'jsonpath') {
    faults.report(path, 'must be css, xpath or jsonpath');
    return;
  }
  if (step.type === 'css' && step.attribute !== undefined)
    faults.report(path, 'selects elements, not an attribute of them');
  const fault = findStepFault(step, { first: true, inRows: false });
  if (fault !== null) faults.report(path, fault);
}
