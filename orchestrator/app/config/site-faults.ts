/** Faults of `site` that only show when its values are used: ban patterns, canaries. */
import { compilePattern, findPatternFault } from '../../../shared/adapters/steps/regex.ts';
import type { Mapping } from '../../../shared/domain/mapping.ts';
import { columnsOf } from '../../../shared/domain/mapping.ts';
import { findIdFault } from '../../../shared/domain/product.ts';
import type { ConfigValues } from './schema.ts';

export interface SiteFault {
  path: (string | number)[];
  message: string;
}

export function findSiteFaults(site: ConfigValues['site'], mapping: Mapping): SiteFault[] {
  return [
    ...statusFaults(site.ban.statuses),
    ...redirectFaults(site.ban.redirects, site.product_url),
    ...patternFaults(site.ban.patterns),
    ...canaryFaults(site.canaries, mapping),
  ];
}

/** A rule that matches good pages would ban every address at its first one. */
function statusFaults(statuses: readonly number[]): SiteFault[] {
  return statuses.flatMap((status, i) =>
    status >= 200 && status < 300
      ? [{ path: ['site', 'ban', 'statuses', i], message: 'is the status of good pages' }]
      : [],
  );
}

function redirectFaults(redirects: readonly string[], productUrl: string): SiteFault[] {
  return redirects.flatMap((part, i) =>
    productUrl.toLowerCase().includes(part.toLowerCase())
      ? [{ path: ['site', 'ban', 'redirects', i], message: 'is part of site.product_url, so it fits every product' }]
      : [],
  );
}

/** A minimal page. */
const PLAIN_PAGE = '<!doctype html><html><head><title>Product</title></head><body><h1>Product</h1></body></html>';

function patternFaults(patterns: readonly string[]): SiteFault[] {
  return patterns.flatMap((pattern, i) => {
    const message =
      findPatternFault(pattern) ??
      (['', PLAIN_PAGE].some((page) => compilePattern(pattern).isIn(page)) ? 'fits every page' : null);
    return message === null ? [] : [{ path: ['site', 'ban', 'patterns', i], message }];
  });
}

function canaryFaults(canaries: ConfigValues['site']['canaries'], mapping: Mapping): SiteFault[] {
  const names = new Set(columnsOf(mapping).map((c) => c.name));
  return canaries.flatMap(({ id, fields }, i) => {
    const path = ['site', 'canaries', i];
    const idFault = findIdFault(id);
    return [
      ...(idFault === null ? [] : [{ path: [...path, 'id'], message: `the product ID ${idFault}` }]),
      ...Object.keys(fields)
        .filter((name) => !names.has(name))
        .map((name) => ({ path: [...path, 'fields', name], message: 'the mapping has no field of this name' })),
    ];
  });
}
