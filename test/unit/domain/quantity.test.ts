import { describe, expect, it } from 'vitest';
import { formatDuration, parseDuration, parseRate, parseShare, parseSize } from '../../../shared/domain/quantity.ts';

describe('quantities', () => {
  it.each([
    ['200ms', 200],
    ['10s', 10_000],
    ['1.5s', 1_500],
    ['1h30m', 5_400_000],
    ['4h', 14_400_000],
    ['2d', 172_800_000],
    ['0s', 0],
    ['10', null],
    ['4 hours', null],
    ['-5s', null],
    ['', null],
    ['1h 30m', null],
  ])('reads the duration %j as %j', (text, ms) => expect(parseDuration(text)).toBe(ms));

  it.each([
    [200, '200ms'],
    [12_500, '12.5s'],
    [60_000, '1m'],
    [95_000, '1m 35s'],
    [14_400_000, '4h'],
    [5_400_000, '1h 30m'],
    [Infinity, 'never'],
  ])('formats %j ms as %j', (ms, text) => expect(formatDuration(ms)).toBe(text));

  it.each([
    ['5MB', 5_000_000],
    ['500 KB', 500_000],
    ['1KiB', 1_024],
    ['12B', 12],
    ['5', null],
    ['5mb', null],
  ])('reads the size %j as %j', (text, bytes) => expect(parseSize(text)).toBe(bytes));

  it.each([
    ['5/s', 5],
    ['30/m', 0.5],
    ['3600/h', 1],
    ['0/s', null],
    ['5', null],
  ])('reads the rate %j as %j per second', (text, rate) => expect(parseRate(text)).toBe(rate));

  it.each([
    ['5%', 0.05],
    ['0.05', 0.05],
    ['100%', 1],
    ['101%', null],
    ['-1%', null],
  ])('reads the share %j as %j', (text, share) => expect(parseShare(text)).toBe(share));
});
