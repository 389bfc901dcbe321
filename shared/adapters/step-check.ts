/** The checks of mapping steps with all their libraries, used by the configuration before a launch. */
import type { Mapping, Step } from '../domain/mapping.ts';
import { findFaultOfChain, findFaultOfStep, findFaultsOfPage, type StepLocation } from './step-faults.ts';
import { findDateFault } from './steps/date-format.ts';
import { findJsonPathFault } from './steps/json-path.ts';
import { findPatternFault } from './steps/regex.ts';

export { needsDom } from './step-faults.ts';

const CHECKS = { findPatternFault, findJsonPathFault, findDateFault };

/** The fault of one step, on one line; null when it is usable. */
export function findStepFault(step: Step, location: StepLocation): string | null {
  return findFaultOfStep(step, location, CHECKS);
}

/** The first fault of a chain (`inRows`: of a field in a mapping with rows), on one line; null when it is usable. */
export function findChainFault(steps: readonly Step[], inRows = false): string | null {
  return findFaultOfChain(steps, inRows, CHECKS);
}

/** All faults in the steps of a mapping, each with its location; empty when an instance can run it. */
export function findMappingFaults(mapping: Mapping): string[] {
  return mapping.pages.flatMap((page) => findFaultsOfPage(page, CHECKS));
}
