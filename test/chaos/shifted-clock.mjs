// Loaded by `node --import` into a main server of a test: shifts its wall clock by this many milliseconds, as on a
// machine without NTP; with a file, by what the file says as soon as it exists, as when somebody sets the clock. Its
// monotonic clock and its timers stay right, as they do there.
import { existsSync, readFileSync, watchFile } from 'node:fs';

let shiftMs = Number(process.env.CRAWLFLEET_TEST_CLOCK_SHIFT_MS ?? 0);
const file = process.env.CRAWLFLEET_TEST_CLOCK_FILE;
if (file !== undefined)
  watchFile(file, { interval: 100, persistent: false }, () => {
    if (existsSync(file)) shiftMs = Number(readFileSync(file, 'utf8'));
  });
const realNow = Date.now;

globalThis.Date = class extends Date {
  constructor(...args) {
    super(...(args.length === 0 ? [realNow() + shiftMs] : args));
  }
  static now() {
    return realNow() + shiftMs;
  }
};
