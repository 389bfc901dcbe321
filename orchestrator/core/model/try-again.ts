/** The command that crawls the failed products of a run again. Pure. */
import type { RunRecord } from './stores.ts';

const RETRY = 'orchestrator retry';
const DISCOVER = 'orchestrator discover';

/** What failed in a discovery, the next one crawls: `retry` refuses it. */
export const retryRefuses = ({ discover }: RunRecord['settings']): boolean => discover !== undefined;

/** @param only what to add for `retry`, such as `--reason timeout` */
export const tryAgain = ({ id, settings }: Pick<RunRecord, 'id' | 'settings'>, only = ''): string =>
  retryRefuses(settings) ? DISCOVER : `${RETRY} ${id}${only}`;

/** Advice that is written for any run, with the command that fits this one. */
export const adviceFor = (text: string, { settings }: Pick<RunRecord, 'settings'>): string =>
  retryRefuses(settings) ? adviceForDiscovery(text) : text;

export const adviceForDiscovery = (text: string): string => text.replaceAll(RETRY, DISCOVER);
