/** All misbehaviours, and the function that answers for each. */
import { z } from 'zod';
import type { Exchange } from './behaviours/behaviour.ts';
import { answerCharset, charsetShapes } from './behaviours/charset.ts';
import { answerCompression, compressionShapes } from './behaviours/compression.ts';
import { answerConnection, connectionShapes } from './behaviours/connection.ts';
import { answerContent, contentShapes } from './behaviours/content.ts';
import { answerFlood, floodShapes } from './behaviours/flood.ts';
import { answerRefusal, refusalShapes } from './behaviours/refusal.ts';
import { answerScripted, scriptedShapes } from './behaviours/scripted.ts';
import { answerStatus, statusShapes } from './behaviours/status.ts';

export const behaviourSchema = z.discriminatedUnion('type', [
  ...statusShapes,
  ...refusalShapes,
  ...connectionShapes,
  ...contentShapes,
  ...compressionShapes,
  ...charsetShapes,
  ...floodShapes,
  ...scriptedShapes,
]);
export type Behaviour = z.output<typeof behaviourSchema>;
/** Input form: fields with a default are optional. */
export type BehaviourInput = z.input<typeof behaviourSchema>;

/** Answers the request with the given behaviour. */
export function misbehave(exchange: Exchange, behaviour: Behaviour): void {
  switch (behaviour.type) {
    case 'status':
    case 'not-modified':
    case 'page':
    case 'redirect':
    case 'chain':
      return answerStatus(exchange, behaviour);
    case 'captcha':
    case 'one-line-script':
    case 'login':
      return answerRefusal(exchange, behaviour);
    case 'hang':
    case 'reset':
    case 'slow':
      return answerConnection(exchange, behaviour);
    case 'missing-field':
    case 'content-type':
    case 'empty':
    case 'data':
    case 'two-pages':
      return answerContent(exchange, behaviour);
    case 'compressed':
      return answerCompression(exchange, behaviour);
    case 'charset':
      return answerCharset(exchange, behaviour);
    case 'nodes':
    case 'redos':
      return answerFlood(exchange, behaviour);
    case 'script-built':
    case 'fetch-built':
    case 'with-assets':
    case 'never-loaded':
      return answerScripted(exchange, behaviour);
  }
}
