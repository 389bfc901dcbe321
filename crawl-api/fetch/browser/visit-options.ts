/** The dependencies of a visit of the browser's page. */
import type { Clock } from '../../../shared/ports/clock.ts';
import type { PageExtractor, PageKind } from '../../extract/page-extractor.ts';
import type { FetchSettings } from '../page-result.ts';
import type { BrowserSession } from './browser-session.ts';
import type { DocumentReport } from './document-gate.ts';
import type { GateReport } from './proxy-gate.ts';
import type { Expected } from './expected-elements.ts';

export interface VisitOptions {
  session: BrowserSession;
  settings: FetchSettings;
  clock: Clock;
  openExtractor: (kind: PageKind, url: string) => PageExtractor;
  /** What to wait for on the page of this URL. */
  expect: (url: string) => Expected;
  /** The proxy's report of this visit. */
  report: GateReport;
  /** The navigations that the page attempted. */
  documents: Readonly<DocumentReport>;
  /** From the request to the first byte, as far as it is known. */
  waitMs: () => number;
}
