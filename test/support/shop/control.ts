/** The control API for tests, below `/_shop/`; its requests are not counted. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { z } from 'zod';
import type { Arrivals } from './arrivals.ts';
import type { Bans } from './bans.ts';
import type { Rules } from './rules.ts';
import { sendNote, type Site } from './site.ts';

export const CONTROL_PATH = '/_shop/';

export interface ShopParts {
  arrivals: Arrivals;
  rules: Rules;
  bans: Bans;
  site: Site;
}

/** Answers a control request; an invalid one with 400 and the error. */
export async function answerControl(
  parts: ShopParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  try {
    const route = `${request.method} ${(request.url ?? '').slice(CONTROL_PATH.length)}`;
    const body = request.method === 'POST' ? await text(request) : '';
    const answer = carryOut(parts, route, body === '' ? undefined : (JSON.parse(body) as unknown));
    if (answer === null) return sendNote(response, 404, 'no such control');
    if (answer === '') response.writeHead(204).end();
    else response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' }).end(answer);
  } catch (error) {
    response.writeHead(400, { 'content-type': 'text/plain; charset=utf-8' }).end(String(error));
  }
}

/** The response text, '' for an empty response; null for an unknown route. */
function carryOut({ arrivals, rules, bans, site }: ShopParts, route: string, body: unknown): string | null {
  switch (route) {
    case 'GET log':
      return arrivals
        .list()
        .map((entry) => `${JSON.stringify(entry)}\n`)
        .join('');
    case 'GET stats':
      return JSON.stringify({ ...arrivals.stats(), refused: bans.refused() });
    case 'POST rules':
      rules.set(body);
      return '';
    case 'POST products':
      site.sell(z.array(z.string().min(1)).parse(body));
      return '';
    case 'POST robots':
      site.robots = z.string().nullable().parse(body);
      return '';
    case 'POST ban-policies':
      bans.setPolicies(body);
      return '';
    case 'POST reset':
      arrivals.clear();
      rules.clear();
      bans.clear();
      site.robots = null;
      return '';
    default:
      return null;
  }
}
