/**
 * Loaded into a measured program with --import: at its end, writes the process's resource usage to file descriptor 3.
 */
import { writeSync } from 'node:fs';

process.once('exit', () => {
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
  writeSync(3, JSON.stringify({ cpuMs: (userCPUTime + systemCPUTime) / 1_000, maxRssBytes: maxRSS * 1_024 }));
});
