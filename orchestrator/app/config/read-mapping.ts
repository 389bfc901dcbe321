/**
 * Reads a mapping as a user writes it, in the short form or in the JSON form, into the normalised one. `fields`
 * distinguishes the forms: an object in the short form, a list in the JSON form. A file holds one mapping, a list of
 * them, or `mappings: [...]`.
 */
import { findMappingFaults } from '../../../shared/adapters/step-check.ts';
import type { Mapping } from '../../../shared/domain/mapping.ts';
import { readChainForm } from './chain-form.ts';
import { checkPage } from './check-page.ts';
import { checkPages } from './check-pages.ts';
import type { MappingFault, Path } from './faults.ts';
import { FaultList, isRecord } from './faults.ts';
import type { PlacedPage } from './placed-page.ts';
import { toPageMapping } from './placed-page.ts';
import { readShortForm } from './short-form.ts';

export interface MappingReading {
  /** Usable only without faults. */
  mapping: Mapping;
  /** All faults, each with its path. */
  faults: MappingFault[];
}

export function readMapping(value: unknown): MappingReading {
  const faults = new FaultList();
  const parts = findParts(value, faults);
  const pages = parts.flatMap(({ value: part, path }, i): PlacedPage[] => {
    if (!isRecord(part)) {
      faults.report(path, 'must be a mapping with `fields`');
      return [];
    }
    const name = parts.length === 1 ? 'mapping' : `mapping ${i + 1}`;
    const read = Array.isArray(part.fields) ? readChainForm : readShortForm;
    const before = faults.all.length;
    const page = read(part, path, name, faults);
    if (page) checkPage(page, faults);
    // Refuses what an instance would refuse. A part that already has a fault is not checked again.
    if (page && faults.all.length === before)
      for (const fault of findMappingFaults({ pages: [toPageMapping(page)] })) faults.report(page.path, fault);
    return page ? [page] : [];
  });
  checkPages(pages, faults);
  return { mapping: { pages: pages.map(toPageMapping) }, faults: faults.all };
}

function findParts(value: unknown, faults: FaultList): { value: unknown; path: Path }[] {
  if (Array.isArray(value)) return listParts(value, [], faults);
  if (!isRecord(value) || !('mappings' in value)) return [{ value, path: [] }];
  for (const key of Object.keys(value)) {
    if (key !== 'mappings') faults.report([key], 'unknown key beside `mappings`; it goes into each of them');
  }
  if (Array.isArray(value.mappings)) return listParts(value.mappings, ['mappings'], faults);
  faults.report(['mappings'], 'must be a list of mappings');
  return [];
}

function listParts(list: readonly unknown[], path: Path, faults: FaultList): { value: unknown; path: Path }[] {
  if (list.length === 0) faults.report(path, 'must have at least one mapping');
  return list.map((value, i) => ({ value, path: [...path, i] }));
}
