/** Pages without bounds: too many parts, or text that makes patterns backtrack. */
import { z } from 'zod';
import { renderPage } from '../page.ts';
import { type Exchange, HTML } from './behaviour.ts';

export const floodShapes = [
  /** Number of sibling elements before the product: 3 bytes each. */
  z.strictObject({ type: z.literal('nodes'), count: z.int().positive().default(1_000_000) }),
  /** Text before the product on which backtracking patterns never finish. */
  z.strictObject({ type: z.literal('redos'), length: z.int().positive().default(100_000) }),
] as const;

export type FloodBehaviour = z.output<(typeof floodShapes)[number]>;

export function answerFlood(exchange: Exchange, behaviour: FloodBehaviour): void {
  const page = renderPage(exchange.product);
  switch (behaviour.type) {
    case 'nodes':
      return send(exchange, [before(page), repeated('<p>', behaviour.count), after(page)]);
    case 'redos': {
      const { length } = behaviour;
      const texts = ['a'.repeat(length) + '!', ' '.repeat(length) + 'x', '1,'.repeat(length / 2) + 'x'];
      return send(exchange, [before(page), texts.map((text) => `<p>${text}</p>\n`), after(page)]);
    }
  }
}

const SPLIT = '<main>';
const before = (page: string): string => page.slice(0, page.indexOf(SPLIT));
const after = (page: string): string => page.slice(page.indexOf(SPLIT));

/** Pieces small enough not to delay the shop's event loop. */
function* repeated(text: string, count: number): Generator<string> {
  for (let left = count; left > 0; left -= 10_000) yield text.repeat(Math.min(left, 10_000));
}

/** Sends with back-pressure; the client is expected to hang up in the middle. */
function send({ response }: Exchange, parts: (string | Iterable<string>)[]): void {
  response.writeHead(200, { 'content-type': HTML });
  const pieces = flatten(parts);
  const more = (): void => {
    while (!response.destroyed) {
      const { done, value } = pieces.next();
      if (done) return void response.end();
      if (!response.write(value)) return void response.once('drain', more);
    }
  };
  more();
}

function* flatten(parts: (string | Iterable<string>)[]): Generator<string, undefined> {
  for (const part of parts) {
    if (typeof part === 'string') yield part;
    else yield* part;
  }
  return undefined;
}
