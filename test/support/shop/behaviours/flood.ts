/** Pages without bounds: too many parts, or text that makes patterns backtrack. */
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import { renderPage } from '../page.ts';
import { type Answers, type Exchange, HTML } from './behaviour.ts';

export const floodShapes = [
  /** Number of sibling elements before the product: 3 bytes each. */
  z.strictObject({ type: z.literal('nodes'), count: z.int().positive().default(1_000_000) }),
  /** Text before the product on which backtracking patterns never finish. */
  z.strictObject({ type: z.literal('redos'), length: z.int().positive().default(100_000) }),
] as const;

export const floodAnswers: Answers<z.output<(typeof floodShapes)[number]>> = {
  nodes: (exchange, { count }) => send(exchange, repeated('<p>', count)),
  redos(exchange, { length }) {
    const texts = ['a'.repeat(length) + '!', ' '.repeat(length) + 'x', '1,'.repeat(length / 2) + 'x'];
    send(
      exchange,
      texts.map((text) => `<p>${text}</p>\n`),
    );
  },
};

/** Pieces small enough not to delay the shop's event loop. */
function* repeated(text: string, count: number): Generator<string> {
  for (let left = count; left > 0; left -= 10_000) yield text.repeat(Math.min(left, 10_000));
}

/** Sends the page with these pieces before its content, with back-pressure; the client may hang up in the middle. */
function send({ response, product }: Exchange, flood: Iterable<string>): void {
  const page = renderPage(product);
  const at = page.indexOf('<main>');
  response.writeHead(200, { 'content-type': HTML });
  // A client that hangs up ends it.
  const pieces = function* (): Generator<string> {
    yield page.slice(0, at);
    yield* flood;
    yield page.slice(at);
  };
  pipeline(pieces, response).catch(() => undefined);
}
