/** Loaded into a measured program with --import: writes what the process has used to file descriptor 3 when it ends. */
import { writeSync } from 'node:fs';

process.once('exit', () => {
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
  writeSync(3, JSON.stringify({ cpuMs: (userCPUTime + systemCPUTime) / 1_000, maxRssBytes: maxRSS * 1_024 }));
});
