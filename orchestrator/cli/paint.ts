/** Colours that say good, late and bad. They only repeat what the text says: a terminal may have none. */
import { styleText } from 'node:util';

export type Tone = 'good' | 'late' | 'bad' | 'plain';
export type Paint = (tone: Tone, text: string) => string;

const COLOURS = { good: 'green', late: 'yellow', bad: 'red' } as const;

/** Colours a text where the stream shows colours: not with NO_COLOR, and not in a file. */
export const painter =
  (stream: NodeJS.WriteStream): Paint =>
  (tone, text) =>
    tone === 'plain' ? text : styleText(COLOURS[tone], text, { stream });
