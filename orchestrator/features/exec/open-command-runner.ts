/** The command runner of a run: one of Systems Manager for each of its regions. */
import { systemRandom } from '../../../shared/adapters/random.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { awsOptions, LOCAL_CREDENTIALS } from '../../core/cloud-access/cloud-access.ts';
import { regionsOf } from '../../core/model/run-settings.ts';
import type { RunRecord } from '../../core/model/stores.ts';
import type { CommandRunner } from './command-runner.ts';
import { SsmCommandRunner } from './ssm-command-runner.ts';

/** A sandbox runs commands only for the owner of its control token. */
export function openCommandRunner({ settings, dryRun }: Pick<RunRecord, 'settings' | 'dryRun'>): CommandRunner {
  const { aws, sandbox } = settings;
  const place = sandbox && {
    endpoint: sandbox.endpoint ?? aws.endpoint,
    credentials: { ...LOCAL_CREDENTIALS, accessKeyId: sandbox.controlToken },
  };
  return acrossRegions(
    regionsOf(aws).map(({ region }) => {
      const options = { ...awsOptions({ ...aws, region }, dryRun), ...place };
      return new SsmCommandRunner({ ...options, clock: systemClock, random: systemRandom });
    }),
  );
}

/** An instance can be reached in its own region only. Rejects when no region answers. */
export function acrossRegions(runners: readonly CommandRunner[]): CommandRunner {
  return {
    async run(request, signal) {
      const answers = await Promise.allSettled(runners.map((runner) => runner.run(request, signal)));
      const results = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
      if (results.length === 0) throw (answers[0] as PromiseRejectedResult).reason;
      return request.instanceIds.flatMap((_, i) => {
        const all = results.flatMap((result) => result[i] ?? []);
        return all.find(({ status }) => status !== 'unreachable') ?? all.slice(0, 1);
      });
    },
    [Symbol.dispose]() {
      for (const runner of runners) runner[Symbol.dispose]();
    },
  };
}
