/** Values of flags: each reader returns what the command takes, or throws what the flag must be. */
import { InvalidArgumentError } from 'commander';
import { FAILURE_REASONS, type FailureReason } from '../../../shared/domain/outcome.ts';
import { parseDuration, parseShare } from '../../../shared/domain/quantity.ts';

/** A duration, still as text: the configuration parses it again like its own values. */
export function readDuration(text: string): string {
  const ms = parseDuration(text);
  if (ms === null || ms <= 0) throw new InvalidArgumentError('It must be a duration such as 45s, 4h or 1h30m.');
  return text;
}

/** Durations separated by commas, in milliseconds: the longest first, each once. */
export function readDurations(text: string): number[] {
  const all = text.split(',').map((one) => parseDuration(readDuration(one))!);
  return [...new Set(all)].sort((a, b) => b - a);
}

export function readAmount(text: string): number {
  const amount = Number(text);
  if (!(amount > 0)) throw new InvalidArgumentError('It must be an amount in USD, such as 5 or 0.80.');
  return amount;
}

const whole =
  (must: string, min: number, max = Infinity) =>
  (text: string): number => {
    const value = Number(text);
    if (Number.isInteger(value) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(must);
  };

export const readCount = whole('It must be a whole number from 1 on.', 1);
export const readSeed = whole('It must be a whole number.', Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
export const readPort = whole('It must be a port from 0 to 65535.', 0, 65_535);
export const readSlot = whole('It must be a slot number, such as 0.', 0);
/** Reads the slots of a flag that may be repeated. */
export const readSlots = (text: string, before: unknown): number[] => [
  ...(Array.isArray(before) ? (before as number[]) : []),
  readSlot(text),
];

/** A limit on printed values; a million would take minutes. */
export function readFewCount(text: string): number {
  const count = readCount(text);
  if (count > 1_000) throw new InvalidArgumentError('It must be 1,000 at most.');
  return count;
}

export function readShare(text: string): number {
  const share = parseShare(text);
  if (share === null) throw new InvalidArgumentError('It must be a share such as 5% or 0.05.');
  return share;
}

export function readExponent(text: string): number {
  const exponent = Number(text);
  if (!/^\d+(\.\d+)?$/.test(text) || exponent > 3) throw new InvalidArgumentError('It must be a number from 0 to 3.');
  return exponent;
}

export function readReasons(text: string): FailureReason[] {
  const reasons = text.split(',').map((word) => word.trim());
  for (const word of reasons)
    if (!FAILURE_REASONS.some((reason) => reason === word))
      throw new InvalidArgumentError(`${word} is none of ${FAILURE_REASONS.join(', ')}.`);
  return reasons as FailureReason[];
}

/** `DUE/STARTED/SCHEDULE`, both times in milliseconds: what a daemon starts the process of a run with. */
export function readDueStart(text: string): { atMs: number; startedAtMs: number; schedule: string } {
  const [, atMs, startedAtMs, schedule] = /^(\d+)\/(\d+)\/(.+)$/s.exec(text) ?? [];
  if (schedule === undefined) throw new InvalidArgumentError('It must be DUE/STARTED/SCHEDULE.');
  return { atMs: Number(atMs), startedAtMs: Number(startedAtMs), schedule };
}
