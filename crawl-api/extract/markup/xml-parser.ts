/** XML by htmlparser2, with names in lower case, as in selectors. */
import { Parser } from 'htmlparser2';
import type { Attributes, MarkupHandler, MarkupParser } from './markup-events.ts';

export function createXmlParser(handler: MarkupHandler): MarkupParser {
  let record: Record<string, string> = {};
  const attributes: Attributes = {
    // Own properties only: `[constructor]` would match what every object inherits.
    get: (name) => (Object.hasOwn(record, name) ? record[name] : undefined),
    toRecord: () => record,
  };
  return new Parser(
    {
      onopentag: (name, found) => {
        record = found;
        handler.open(name, attributes);
      },
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
