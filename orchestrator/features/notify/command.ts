/** `orchestrator notify --test`: sends a test notice to every target of the configuration. */
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { testNotice } from './notice.ts';
import { deliver, nameOf } from './deliver.ts';
import { senderOf, targetsOf } from './announce.ts';
import { loadConfig } from '../../core/config/load-config.ts';
import type { ConfigSource } from '../../core/feature.ts';
import type { Output } from '../../cli/output.ts';
import { renderTable } from '../../../shared/domain/text-table.ts';

/** Exit code 4 when a target did not take the notice. Throws `config-invalid` when there is no target. */
export async function notifyCommand(options: ConfigSource, output: Output): Promise<ExitCode> {
  const config = loadConfig(options);
  const targets = targetsOf(config);
  if (targets.length === 0)
    throw new AppError('config-invalid', `there is nothing to notify in ${config.file}: notify has no target`, {
      hint: 'For example: notify: [{ webhook: "https://hooks.example.com/…" }]',
    });
  // A person waits for the answer: one try.
  const delivery = { clock: systemClock, signal: new AbortController().signal, tries: 1 };
  const results = await Promise.all(
    targets.map(async (target) => {
      const fault = await deliver(target, testNotice(senderOf(config, { dryRun: false })), delivery);
      return { host: nameOf(target), on: target.on, ok: fault === null, fault };
    }),
  );
  const rows = results.map(({ host, on, fault }) => [host, on.join(', '), fault ?? 'took the test notice']);
  output.line(renderTable(['target', 'on', 'result'], rows));
  output.document({ targets: results });
  return results.every(({ ok }) => ok) ? EXIT.complete : EXIT.config;
}
