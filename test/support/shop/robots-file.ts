/** The shop's robots.txt: any text that a test sets, served well or badly. */
import type { ServerResponse } from 'node:http';
import { z } from 'zod';

const robotsSchema = z.strictObject({
  text: z.string().default(''),
  status: z.int().min(200).max(599).default(200),
  /** Never answers. */
  hang: z.boolean().default(false),
  /** Total length of comment lines before the text. */
  paddingBytes: z.int().min(0).default(0),
});

/** The JSON that tests post to the shop. */
export type Robots = z.input<typeof robotsSchema>;

const NONE = robotsSchema.parse({ status: 404, text: 'no such page' });
const COMMENT = '# nothing to see here, move on to the next line please\n';

export class RobotsFile {
  #robots: z.output<typeof robotsSchema> | null = null;

  /** null: forgets the setting. Throws ZodError on an invalid setting. */
  set(value: unknown): void {
    this.#robots = value === null ? null : robotsSchema.parse(value);
  }

  /** @param otherwise the text while none is set; omitted: there is no robots.txt then */
  answer(response: ServerResponse, otherwise?: string): void {
    const unset = otherwise === undefined ? NONE : robotsSchema.parse({ text: otherwise });
    const { text, status, hang, paddingBytes } = this.#robots ?? unset;
    if (hang) return;
    response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' });
    response.end(COMMENT.repeat(Math.ceil(paddingBytes / COMMENT.length)) + text);
  }
}
