import { type Expected, expectOf } from '../../../crawl-api/fetch/browser/expected-elements.ts';

/** For pages of which only the h1 is read, as the required field `title`. */
export function expectTitle(): (url: string) => Expected {
  const fields = [{ name: 'title', steps: [{ type: 'css' as const, selector: 'h1' }], required: true }];
  const expected = expectOf({ name: 'page', urlPatterns: [], urlParsers: [], rows: null, fields });
  return () => expected;
}
