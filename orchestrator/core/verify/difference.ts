/** A check that does not hold. */
export interface Difference {
  check: string;
  expected: string;
  found: string;
  examples: string[];
}

export const differs = (check: string, expected: string, found: string, examples: string[] = []): Difference => {
  return { check, expected, found, examples };
};
