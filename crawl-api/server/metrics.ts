/** Prometheus metrics of this instance, for programs on this machine. */
import type { Heartbeat } from '../../shared/wire/callbacks.ts';
import type { Queue } from '../queue/queue.ts';

export function renderMetrics({ phase, progress, problem, incident }: Heartbeat, queue: Queue): string {
  const lines: string[] = [];
  const add = (
    name: string,
    type: 'gauge' | 'counter',
    help: string,
    samples: [labels: string, value: number][],
  ): void => {
    lines.push(`# HELP crawlfleet_${name} ${help}`, `# TYPE crawlfleet_${name} ${type}`);
    for (const [labels, value] of samples) lines.push(`crawlfleet_${name}${labels} ${value}`);
  };
  add('phase', 'gauge', '1 for the current phase of the instance.', [[`{phase="${phase}"}`, 1]]);
  add('products_pending', 'gauge', 'Granted products without an outcome.', [['', progress.pending]]);
  add('products_total', 'counter', 'Products by outcome.', [
    ['{outcome="stored"}', progress.stored],
    ['{outcome="gone"}', progress.gone],
    ['{outcome="failed"}', progress.failed],
  ]);
  add('requests_total', 'counter', 'Requests sent to the target.', [['', progress.requests]]);
  add('rendered_total', 'counter', 'Requests sent by the browser.', [['', progress.rendered]]);
  add('canaries_total', 'counter', 'Requests for canary pages.', [['', progress.canaries]]);
  add('banned', 'gauge', '1 while the site bans this address, or seems to.', [['', incident === null ? 0 : 1]]);
  add('parts_total', 'counter', 'Parts stored in the bucket.', [['', queue.state.parts.length]]);
  if (progress.minGapMs !== null)
    add('min_gap_seconds', 'gauge', 'Smallest time between the starts of two requests.', [
      ['', progress.minGapMs / 1_000],
    ]);
  add('problem', 'gauge', '1 when a problem needs attention.', [['', problem === null ? 0 : 1]]);
  add('resident_memory_bytes', 'gauge', 'Memory of the process.', [['', process.memoryUsage.rss()]]);
  return `${lines.join('\n')}\n`;
}
