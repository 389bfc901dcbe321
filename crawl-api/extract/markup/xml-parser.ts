/** XML by htmlparser2, with names in lower case, as in selectors. */
import { Parser } from 'htmlparser2';
import type { MarkupHandler, MarkupParser } from './markup-events.ts';
import { RecordAttributes } from './record-attributes.ts';

export class XmlParser implements MarkupParser {
  readonly #parser: Parser;

  constructor(handler: MarkupHandler) {
    const attributes = new RecordAttributes();
    this.#parser = new Parser(
      {
        onopentag: (name, record) => handler.open(name, attributes.of(record)),
        onclosetag: () => handler.close(),
        ontext: (text) => {
          if (text !== '' && handler.wantsText) handler.text(text);
        },
        oncomment: (text) => {
          if (handler.wantsComments) handler.comment(text);
        },
      },
      { xmlMode: true, lowerCaseTags: true, lowerCaseAttributeNames: true },
    );
  }

  write(text: string): void {
    this.#parser.write(text);
  }

  end(): void {
    this.#parser.end();
  }
}
