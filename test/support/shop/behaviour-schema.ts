/** All misbehaviours, and how the shop answers for each. */
import { z } from 'zod';
import type { Answers, Exchange } from './behaviours/behaviour.ts';
import { charsetAnswers, charsetShapes } from './behaviours/charset.ts';
import { compressionAnswers, compressionShapes } from './behaviours/compression.ts';
import { connectionAnswers, connectionShapes } from './behaviours/connection.ts';
import { contentAnswers, contentShapes } from './behaviours/content.ts';
import { floodAnswers, floodShapes } from './behaviours/flood.ts';
import { preferenceAnswers, preferenceShapes } from './behaviours/preferences.ts';
import { refusalAnswers, refusalShapes } from './behaviours/refusal.ts';
import { scriptedAnswers, scriptedShapes } from './behaviours/scripted.ts';
import { statusAnswers, statusShapes } from './behaviours/status.ts';

export const behaviourSchema = z.discriminatedUnion('type', [
  ...statusShapes,
  ...refusalShapes,
  ...connectionShapes,
  ...contentShapes,
  ...compressionShapes,
  ...charsetShapes,
  ...floodShapes,
  ...scriptedShapes,
  ...preferenceShapes,
]);
export type Behaviour = z.output<typeof behaviourSchema>;
/** Input form: fields with a default are optional. */
export type BehaviourInput = z.input<typeof behaviourSchema>;

const ANSWERS: Answers<Behaviour> = {
  ...statusAnswers,
  ...refusalAnswers,
  ...connectionAnswers,
  ...contentAnswers,
  ...compressionAnswers,
  ...charsetAnswers,
  ...floodAnswers,
  ...scriptedAnswers,
  ...preferenceAnswers,
};

/** Answers the request with the given behaviour. */
export function misbehave(exchange: Exchange, behaviour: Behaviour): void {
  // The table has the answer of each type; only the compiler cannot relate the two.
  (ANSWERS[behaviour.type] as (exchange: Exchange, behaviour: Behaviour) => void)(exchange, behaviour);
}
