/**
 * MaxResults and NextToken. A token names the last item shown, so pages stay correct while items are added and removed.
 */
import { AwsError } from '../aws-error.ts';
import type { Params } from '../query-protocol.ts';

export interface Page<T> {
  items: T[];
  nextToken: string | undefined;
}

/** @param orderOf a number that increases along `items`; @param limits AWS's limits for MaxResults */
export function paginate<T>(
  items: readonly T[],
  params: Params,
  orderOf: (item: T) => number,
  limits: { min: number; max: number },
): Page<T> {
  const maxResults = params.int('MaxResults');
  if (maxResults !== undefined && (maxResults < limits.min || maxResults > limits.max)) {
    throw new AwsError(
      'InvalidParameterValue',
      `Value ( ${maxResults} ) for parameter maxResults is invalid. Expecting a value between ${limits.min} and ${limits.max}.`,
    );
  }
  const after = readToken(params.text('NextToken'));
  const rest = items.filter((item) => orderOf(item) > after);
  const shown = rest.slice(0, maxResults ?? limits.max);
  const last = shown.at(-1);
  return {
    items: shown,
    nextToken: last !== undefined && rest.length > shown.length ? writeToken(orderOf(last)) : undefined,
  };
}

const writeToken = (order: number): string => Buffer.from(`after:${order}`).toString('base64url');

function readToken(token: string | undefined): number {
  if (token === undefined || token === '') return -1;
  const match = /^after:(\d{1,15})$/.exec(Buffer.from(token, 'base64url').toString('utf8'));
  if (!match) throw new AwsError('InvalidNextToken', `The token '${token}' is invalid`);
  return Number(match[1]);
}
