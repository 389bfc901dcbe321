/** Decoders of the Encoding Standard, byte by byte as in browsers. Invalid bytes become U+FFFD. */
import { TextDecoder } from 'node:util';
import { createMultibyteDecoder } from '@exodus/bytes/multi-byte.js';

/** Decodes one page. */
export interface Decoder {
  /** The text of the bytes so far that was not returned yet; a character that is not complete yet is kept. */
  decode: (bytes: Uint8Array) => string;
  /** No more bytes follow: the rest of the text. */
  end: () => string;
}

const MULTI_BYTE = ['shift_jis', 'euc-jp', 'iso-2022-jp', 'gbk', 'gb18030', 'big5', 'euc-kr'];

/** True for the standard's legacy multi-byte encodings. */
export const isMultiByte = (charset: string): boolean => MULTI_BYTE.includes(charset);

const NOTHING = new Uint8Array();

/** @param charset a name as TextDecoder has it in `encoding` */
export function createDecoder(charset: string): Decoder {
  if (isMultiByte(charset)) {
    // Node's own use ICU's tables. Half of what is valid in EUC-KR is not in them, and a quarter of Big5 differs. The
    // tables are loaded with the first page that needs them.
    const decode = createMultibyteDecoder(charset, true);
    return { decode: (bytes) => decode(bytes, true), end: () => decode(NOTHING) };
  }
  const decoder = new TextDecoder(charset);
  return { decode: (bytes) => decoder.decode(bytes, { stream: true }), end: () => decoder.decode() };
}
