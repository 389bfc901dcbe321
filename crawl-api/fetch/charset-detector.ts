/**
 * The library that guesses a charset from the bytes: loaded with the first page that needs it, because most sites never
 * do.
 */
import type { Guess } from './charset.ts';

let guess: Guess | null = null;

/** Null until the library is loaded. */
export const loadedDetector = (): Guess | null => guess;

/** Never rejects: without the library, nothing is guessed. */
export async function loadDetector(): Promise<Guess> {
  try {
    const { analyse } = await import('chardet');
    guess ??= (bytes) => analyse(bytes);
  } catch {
    guess ??= () => [];
  }
  return guess;
}
