/** Text files that a user hands us. */
import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { AppError } from '../../../shared/domain/errors.ts';

/** Editors, PowerShell and spreadsheets begin a text with it, and joined files have it at the beginning of a line. */
const BYTE_ORDER_MARK = /^\uFEFF/gm;

export const withoutMark = (text: string): string => text.replace(BYTE_ORDER_MARK, '');

/** The text without byte order marks. Throws errors of the file system, and `config-invalid` for what is not UTF-8. */
export function readTextFile(file: string | 0): string {
  const bytes = readFileSync(file);
  // UTF-16 has NULs in it.
  if (!isUtf8(bytes) || bytes.includes(0))
    throw new AppError('config-invalid', `${file === 0 ? 'stdin' : file} is not a text file in UTF-8`, {
      hint: 'Save it in UTF-8, or name the right file.',
    });
  return withoutMark(bytes.toString('utf8'));
}
