/** Counts of this process about the site as a whole; the main server adds them up over all addresses. */
import type { PageResult } from '../fetch/page-result.ts';
import type { JudgementKind } from '../politeness/judgement.ts';

export class SiteTally {
  /** Requests that have ended, with any result. */
  tried = 0;
  /** Of those: a server error, a time-out or no connection. */
  unavailable = 0;
  /** Pages that were judged right or gone. */
  served = 0;

  noteTry(page: PageResult): void {
    this.tried++;
    if (isUnavailable(page)) this.unavailable++;
  }

  noteJudgement(kind: JudgementKind): void {
    if (kind === 'right' || kind === 'gone') this.served++;
  }
}

function isUnavailable(page: PageResult): boolean {
  if (page.kind !== 'failed') return false;
  return page.reason === 'network' || page.reason === 'timeout' || (page.reply?.status ?? 0) >= 500;
}
