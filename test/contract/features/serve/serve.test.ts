/** `orchestrator serve` as a process: who may reach it, and what it refuses before it listens. */
import { once } from 'node:events';
import { request as httpsRequest } from 'node:https';
import { openDatabase } from '../../../../orchestrator/core/db/connect.ts';
import { createReaders } from '../../../../orchestrator/core/db/create-stores.ts';
import { writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type CommandResult, type RunningCommand, startCommand, waitFor } from '../../../support/processes.ts';
import { makeSelfSigned } from '../../../support/self-signed.ts';
import { type TempDir, tempDir } from '../../../support/temp-dir.ts';
import { createRun, failed, load, openBench, settings, stored } from '../../core/db/harness.ts';
import { LAUNCHER } from '../../../system/fleet.ts';

const TOKEN = 'sixteen-characters-or-more';

let folder: TempDir;
const started: RunningCommand[] = [];
beforeEach(() => {
  folder = tempDir('crawlfleet-serve-');
  writeFileSync(folder.file('fleet.db'), '');
});
afterEach(async () => {
  for (const command of started.splice(0)) {
    command.kill('SIGTERM');
    await command.finished;
  }
  folder.remove();
});

function serve(server: string, ...args: string[]): RunningCommand {
  const config = `site: { product_url: "https://s.example/{id}", mapping: { fields: { title: h1 } } }
products: { query: select id from products }
database: { url: "sqlite:./fleet.db" }
server: ${server}
`;
  writeFileSync(folder.file('fleet.yaml'), config);
  const command = startCommand(process.execPath, [LAUNCHER, 'serve', ...args, '--config', folder.file('fleet.yaml')]);
  started.push(command);
  return command;
}

const address = (command: RunningCommand): Promise<string> =>
  waitFor(() => /page: (\S+)\//.exec(command.stdout())?.[1], { what: 'the page to be served' });

describe('an address that other machines reach', () => {
  const refused = async (server: string, listen = '0.0.0.0:0'): Promise<CommandResult> => {
    const result = await serve(server, '--listen', listen).finished;
    expect(result.exitCode).toBe(4);
    return result;
  };

  it('is refused without token and TLS, naming what is missing', async () => {
    expect((await refused('{}')).stderr).toMatch(/server\.operator_token and server\.operator_tls/);
  });

  it('is refused with a fault in any of them, naming it', { tags: ['nightly'] }, async () => {
    expect((await refused('{}', '[::]:0')).stderr).toContain('can be reached from other machines');
    expect((await refused(`{ operator_token: "${TOKEN}" }`)).stderr).toMatch(/set server\.operator_tls$/m);
    expect((await refused('{ operator_tls: proxy }')).stderr).toMatch(/set server\.operator_token$/m);
    const { stderr } = await refused(`{ operator_token: "${TOKEN}", operator_tls: { cert: none.pem, key: none.pem } }`);
    expect(stderr).toMatch(/server\.operator_tls: .*ENOENT/);
    expect((await refused('{ operator_token: short }', '127.0.0.1:0')).stderr).toContain('at least 16 characters');
  });

  it('shows nothing without the token, over its own TLS', async () => {
    const { cert, key } = makeSelfSigned('127.0.0.1');
    writeFileSync(folder.file('cert.pem'), cert);
    writeFileSync(folder.file('key.pem'), key);
    const command = serve(
      `{ operator_token: "${TOKEN}", operator_tls: { cert: cert.pem, key: key.pem } }`,
      '--listen',
      '0.0.0.0:0',
    );
    const url = new URL(await address(command));
    expect(url.protocol).toBe('https:');
    const get = async (path: string, authorization?: string): Promise<number> => {
      const headers = authorization === undefined ? {} : { authorization };
      const call = httpsRequest({ host: '127.0.0.1', port: url.port, path, ca: cert, headers }).end();
      const [response] = (await once(call, 'response')) as [{ statusCode: number; resume(): void }];
      response.resume();
      return response.statusCode;
    };
    for (const path of [
      '/api/runs',
      '/api/runs/x',
      '/api/runs/x/events',
      '/api/products/x',
      '/api/token',
      '/metrics',
    ]) {
      expect(await get(path)).toBe(401);
      expect(await get(path, 'Bearer wrong')).toBe(401);
    }
    expect(await get('/api/runs', `Bearer ${TOKEN}`)).toBe(200);
    expect(await get('/api/token', `Bearer ${TOKEN}`)).toBe(200);
    expect(await get('/api/runs/x', `Bearer ${TOKEN}`)).toBe(404);
    // The page itself has nothing in it.
    expect(await get('/')).toBe(200);
    expect(await get('/healthz')).toBe(200);
  });
});

describe('retry', () => {
  it('says with the token what it would start, of the kind of its run', async () => {
    const bench = await openBench({ url: `sqlite:${folder.file('fleet.db')}` });
    const ended: string[] = [];
    for (const [i, dryRun] of [true, false].entries()) {
      const own = { ...settings('product_snapshots'), site: { productUrl: 'https://s.example/{id}' } };
      const { id, run } = await createRun(bench, 2, { settings: own as never });
      await load(bench, id, [stored(1, `p${i}`, { title: 'a' }), failed(2)]);
      await run.setReport({} as never);
      await bench.db.knex('crawlfleet_runs').where({ id }).update({ phase: 'completed', dry_run: dryRun });
      ended.push(id);
    }
    await bench.stores.runs.releaseLock(bench.fence);
    await bench.db.close();
    writeFileSync(folder.file('.env'), 'FLEET_SITE_ROBOTS=ignore\n');
    const server = `{ operator_token: ${TOKEN} }\nrun: { deadline: 1h }`;
    const url = await address(serve(server, '--listen', '127.0.0.1:0'));
    const headers = { authorization: `Bearer ${TOKEN}` };
    const [dry, paid] = ended.map((id) => `${url}/api/runs/${id}/retry`) as [string, string];
    expect((await fetch(dry)).status).toBe(401);
    expect(await (await fetch(dry, { headers })).json()).toEqual({
      start: expect.stringMatching(
        /^Dry run on this machine, which costs nothing: 1 product with 1 instance .* deadline /,
      ) as string,
    });
    const refused = await fetch(paid, { headers });
    expect(refused.status).toBe(409);
    expect(await refused.json()).toMatchObject({ error: expect.stringContaining('a run on AWS needs') as string });
  });
});

describe('the pace', () => {
  it('is changed with the token, as the command changes it', async () => {
    const bench = await openBench({ url: `sqlite:${folder.file('fleet.db')}` });
    const own = { ...settings('product_snapshots'), site: { productUrl: 'https://s.example/{id}', intervalMs: 1_000 } };
    const { id } = await createRun(bench, 2, { settings: own as never });
    await bench.stores.runs.releaseLock(bench.fence);
    await bench.db.close();
    const url = await address(serve(`{ operator_token: ${TOKEN} }`, '--listen', '127.0.0.1:0'));
    const headers = { authorization: `Bearer ${TOKEN}` };
    const ask = async (query: string, given: object = { headers }): Promise<[number, string]> => {
      const response = await fetch(`${url}/api/runs/${id}/pace?${query}`, { method: 'POST', ...given });
      return [response.status, await response.text()];
    };
    expect((await ask('interval=20s', {}))[0]).toBe(401);
    for (const wrong of ['', 'interval=--config', 'interval=20s&pause=1m', 'pause=0s', 'reset=now'])
      expect((await ask(wrong))[0]).toBe(400);
    expect(await ask('interval=20s')).toEqual([
      200,
      expect.stringMatching(/20s between two requests of one address instead of 1s.*No main server is at work/s),
    ]);
    const paceOf = async (): Promise<unknown> => {
      await using database = await openDatabase(`sqlite:${folder.file('fleet.db')}`);
      return (await createReaders(database).runs.get(id))!.operatorPace;
    };
    expect(await paceOf()).toMatchObject({ intervalMs: 20_000, pausedUntilMs: null });
    expect(await ask('interval=500ms')).toEqual([409, expect.stringContaining('would not be slower')]);
    expect((await ask('reset='))[0]).toBe(200);
    expect(await paceOf()).toMatchObject({ addresses: null });
  });
});

describe('on this machine', () => {
  it('shows without a token, and changes nothing', async () => {
    const url = await address(serve('{}', '--listen', '127.0.0.1:0'));
    expect(await (await fetch(`${url}/api/runs`)).json()).toEqual({ runs: [], canAct: false, nextDue: null });
    expect(await (await fetch(`${url}/metrics`)).text()).toContain('# TYPE crawlfleet_run_phase gauge');
    expect((await fetch(`${url}/api/token`)).status).toBe(403);
    const response = await fetch(`${url}/api/runs/x/stop`, { method: 'POST', headers: { authorization: 'Bearer x' } });
    expect(response.status).toBe(403);
    expect(await response.json()).toMatchObject({ error: expect.stringContaining('read-only') });
  });

  it('names the program that has its port, and ends with 0 after a signal', async () => {
    const first = serve('{}', '--listen', '127.0.0.1:0');
    const port = new URL(await address(first)).port;
    const second = await serve('{}', '--listen', `127.0.0.1:${port}`).finished;
    expect(second.exitCode).toBe(4);
    expect(second.stderr).toMatch(new RegExp(`port ${port} on 127\\.0\\.0\\.1 is used by process \\d+`));
    first.kill('SIGTERM');
    expect((await first.finished).exitCode).toBe(0);
  });

  it('runs the schedule too, with one /healthz for both', async () => {
    const url = await address(serve('{}\nrun: { deadline: 4h }', '--listen', '127.0.0.1:0', '--schedule', '--dry-run'));
    expect(await (await fetch(`${url}/healthz`)).json()).toMatchObject({ ok: true, next: expect.any(String) });
    const nextDue = (): Promise<string | null> =>
      fetch(`${url}/api/runs`).then(
        async (response) => ((await response.json()) as { nextDue: string | null }).nextDue,
      );
    expect(await waitFor(async () => (await nextDue()) ?? undefined, { what: 'the due time to be stored' })).toMatch(
      /T02:00:00/,
    );
  });
});
