/** The checks of mapping steps with all their libraries: what the configuration uses before anything is launched. */
import type { Mapping, Step } from '../domain/mapping.ts';
import type { StepLocation } from './step-faults.ts';
import { findFaultOfChain, findFaultOfStep, findFaultsOfPage } from './step-faults.ts';
import { findDateFault } from './steps/date-format.ts';
import { findJsonPathFault } from './steps/json-path.ts';
import { findPatternFault } from './steps/regex.ts';

export { needsDom } from './step-faults.ts';
export { findPatternFault };

const CHECKS = { findPatternFault, findJsonPathFault, findDateFault };

/** What is wrong with one step, on one line; null when it can be used. */
export function findStepFault(step: Step, place: StepLocation): string | null {
  return findFaultOfStep(step, place, CHECKS);
}

/** The first thing wrong with a chain (`inRows`: that of a field of a mapping with rows), on one line; null when it can be used. */
export function findChainFault(steps: readonly Step[], inRows = false): string | null {
  return findFaultOfChain(steps, inRows, CHECKS);
}

/** All that is wrong with the steps of a mapping, each with its place; empty when an instance can run it. */
export function findMappingFaults(mapping: Mapping): string[] {
  return mapping.pages.flatMap((page) => findFaultsOfPage(page, CHECKS));
}
