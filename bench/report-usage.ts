/**
 * Loaded into a measured program with --import: at its end, writes the process's resource usage to file descriptor 3.
 */
import { writeSync } from 'node:fs';
import { readProcess } from '../test/support/processes.ts';

process.once('exit', () => {
  const { userCPUTime, systemCPUTime } = process.resourceUsage();
  // Not `maxRSS`: on Linux it includes the peak of the process that forked this one.
  const { peakRssBytes } = readProcess(process.pid);
  writeSync(3, JSON.stringify({ cpuMs: (userCPUTime + systemCPUTime) / 1_000, maxRssBytes: peakRssBytes }));
});
