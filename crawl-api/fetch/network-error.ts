/** Describes DNS and connection errors so that their causes can be told apart. */
import { describeError } from '../../shared/domain/errors.ts';

const MEANINGS: Record<string, string> = {
  ENOTFOUND: 'the name does not exist',
  EAI_AGAIN: 'no name server answers',
  ECONNREFUSED: 'nothing listens on that port',
  ECONNRESET: 'the server has closed the connection',
  UND_ERR_SOCKET: 'the server has closed the connection',
};

/** One line: the meaning, where known, and the text of the error. */
export function describeNetworkError(error: unknown): string {
  const text = describeError(error) || 'unknown';
  const code = codeOf(error);
  const meaning = code !== null && Object.hasOwn(MEANINGS, code) ? MEANINGS[code] : undefined;
  return meaning === undefined ? text : `${meaning}: ${text}`;
}

function codeOf(error: unknown): string | null {
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  if (!(error instanceof Error)) return null;
  const { code } = error as NodeJS.ErrnoException;
  return typeof code === 'string' ? code : null;
}
