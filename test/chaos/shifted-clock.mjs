// Loaded by `node --import` into a main server of a test: shifts its wall clock by this many milliseconds, as on a
// machine without NTP. Its monotonic clock and its timers stay right, as they do there.
const shiftMs = Number(process.env.CRAWLFLEET_TEST_CLOCK_SHIFT_MS ?? 0);
const realNow = Date.now;

globalThis.Date = class extends Date {
  constructor(...args) {
    super(...(args.length === 0 ? [realNow() + shiftMs] : args));
  }
  static now() {
    return realNow() + shiftMs;
  }
};
