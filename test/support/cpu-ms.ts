/** Processor time that this thread needs for `work`, in ms: that others have the processor meanwhile says nothing of it. */
export function cpuMs(work: () => unknown): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}
