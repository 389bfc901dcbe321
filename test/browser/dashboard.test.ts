/**
 * The operator's page during and after real dry runs: it agrees with the command line, runs no code of a site, and
 * changes nothing without the token.
 */
import axe from 'axe-core';
import type { Page } from 'playwright';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { request as httpRequest } from 'node:http';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { waitFor } from '../support/processes.ts';
import { gapsOf } from '../support/shop/arrivals.ts';
import { DashboardStage, TOKEN } from './dashboard-stage.ts';

/** Violations of WCAG 2 A and AA, by rule. */
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  return page.evaluate(async () => {
    const { violations } = await (globalThis as unknown as { axe: typeof axe }).axe.run();
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' ')}`);
  });
}

const doneOn = async (page: Page): Promise<number> => {
  const text = await page.locator('.fact', { hasText: 'Done' }).locator('dd').first().textContent();
  return Number(/[\d,]+/.exec(text ?? '')![0].replaceAll(',', ''));
};

const ATTACK = '<img src=x onerror="alert(1)"><script>alert(2)</script>';

/** Puts markup of a site wherever a run shows text that came from it. */
async function storeAttack({ fleet }: DashboardStage, run: string): Promise<void> {
  const quoted = ATTACK.replaceAll("'", "''");
  const evidence = JSON.stringify({
    rule: ATTACK,
    url: ATTACK,
    status: 403,
    headers: { [ATTACK]: ATTACK },
    body: ATTACK,
  });
  await fleet.query(
    `insert into crawlfleet_incidents (run_id, slot, epoch, seq, verdict, rule, at, evidence) values ('${run}', 0, 1, 1, 'banned', '${quoted}', 1, '${evidence.replaceAll("'", "''")}')`,
  );
  await fleet.query(
    `insert into crawlfleet_events (run_id, at, kind, detail) values ('${run}', 1, 'alarm', '${quoted}')`,
  );
  await fleet.query(`update product_snapshots set title = '${quoted}' where product_id = 'P00011'`);
}

describe('the page', () => {
  let stage: DashboardStage;
  let run: string;

  beforeAll(async () => {
    stage = await DashboardStage.open(150, { operator_token: TOKEN });
    const live = stage.fleet.start('run', '--dry-run', '--yes');
    run = await stage.newestRun();
    const { page, faults } = await stage.page(`/runs/${run}`);
    // Live: the numbers move, and lie between those of the command line before and after.
    await waitFor(async () => (await doneOn(page).catch(() => 0)) > 5, { what: 'products to appear', everyMs: 200 });
    const before = await stage.status(run);
    const shown = await waitFor(
      async () => {
        const done = await doneOn(page);
        return done > before.live.done ? done : null;
      },
      { what: 'the number to move', everyMs: 100 },
    );
    const after = await waitFor(
      async () => {
        const status = await stage.status(run);
        return status.live.done >= shown ? status : null;
      },
      { what: 'the command line to agree', everyMs: 200 },
    );
    expect(shown).toBeLessThanOrEqual(after.live.done);
    const { exitCode } = await live.finished;
    expect(exitCode).toBe(0);
    await page.getByText('completed, exit 0').waitFor();
    expect(await doneOn(page)).toBe(150);
    expect(faults).toEqual([]);
    await page.close();
    await storeAttack(stage, run);
  });
  afterAll(() => stage?.close());

  it('has no accessibility violation in light and dark, at 360 px and wide', async () => {
    for (const path of ['/', `/runs/${run}`, `/runs/${run}/products`, '/products/P00011']) {
      const { page, faults } = await stage.page(path);
      await page.locator('h1').first().waitFor();
      for (const width of [1600, 360]) {
        await page.setViewportSize({ width, height: 800 });
        // Charts follow the width of the page in the next frame.
        const pageWidth = () => page.evaluate<number>('document.documentElement.scrollWidth');
        await expect.poll(pageWidth, { timeout: 10_000, message: path }).toBe(width);
        // As the list of a long night, which scrolls.
        await page.evaluate("for (const list of document.querySelectorAll('.story')) list.style.maxHeight = '1rem'");
        // Of the rules only the contrast depends on the colours, and it hardly on the width.
        await page.emulateMedia({ colorScheme: width === 360 ? 'dark' : 'light' });
        expect(await violations(page), `${path} at ${width}`).toEqual([]);
      }
      expect(faults).toEqual([]);
      await page.close();
    }
  });

  it('opens an instance by the keyboard, with its timeline', async () => {
    const { page } = await stage.page(`/runs/${run}`);
    await page.locator('.cell').first().focus();
    await page.keyboard.press('Enter');
    await page.getByRole('region', { name: 'Slot 0' }).getByText('claimed').first().waitFor();
    await page.close();
  });

  it('explains a word of the project on focus and on hover, in the sentence of the glossary', async () => {
    const { page } = await stage.page(`/runs/${run}`, { viewport: { width: 390, height: 844 } });
    const word = page.locator('h2 dfn', { hasText: 'Instances' });
    for (const begin of [() => word.focus(), () => word.hover()]) {
      await begin();
      const sentence = page.getByRole('tooltip').filter({ hasText: 'A machine that EC2 shows' });
      await sentence.waitFor();
      const box = (await sentence.boundingBox())!;
      expect([box.x >= 0, box.x + box.width <= 390]).toEqual([true, true]);
      expect(await violations(page)).toEqual([]);
      await page.keyboard.press('Escape');
      await word.blur();
      await sentence.waitFor({ state: 'hidden' });
    }
    await page.close();
  });

  it('finds a product by its URL', async () => {
    const { page } = await stage.page('/');
    await page.getByRole('searchbox').fill(stage.shop.productUrl.replace('{id}', 'P00011'));
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'P00011' }).waitFor();
    await page.getByText('stored').first().waitFor();
    await page.close();
  });

  it('breaks no number at 390 px', async () => {
    for (const path of ['/', `/runs/${run}`, `/runs/${run}/products`, '/products/P00011']) {
      const { page } = await stage.page(path, { viewport: { width: 390, height: 844 } });
      await page.locator('td, .fact').first().waitFor();
      const broken = await page.evaluate<string[]>(`[...document.querySelectorAll('td, dd, time')]
        .filter((cell) => /^[$~]?[\\d.,:]+(\\s?(%|ms|s))?$/.test(cell.textContent.trim()))
        .filter((cell) => {
          const range = document.createRange();
          range.selectNodeContents(cell);
          return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1;
        })
        .map((cell) => cell.textContent)`);
      expect(broken, path).toEqual([]);
      await page.close();
    }
  });

  it('lists the products of a run by a part of the ID, and has its rows, log and settings', async () => {
    const { page, faults } = await stage.page(`/runs/${run}`);
    await page.getByRole('link', { name: 'All its products' }).click();
    await page.getByText('150 products found').waitFor();
    await page.getByLabel('outcome').selectOption('stored');
    await page.getByLabel('Part of the ID').fill('p0001');
    await page.keyboard.press('Enter');
    await page.getByText('10 products found').waitFor();
    await page.getByRole('link', { name: 'P00011', exact: true }).waitFor();
    await page.getByRole('heading').getByRole('link', { name: run }).click();
    await page.getByText('Last lines of the log').click();
    await page.locator('pre', { hasText: ' info ' }).waitFor();
    await page.getByText('Settings of the run').click();
    const settings = await page.locator('pre', { hasText: '"productUrl"' }).textContent();
    expect(settings).toContain('"controlToken": "***"');
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Rows as CSV' }).click();
    expect((await saved).suggestedFilename()).toBe(`${run}.csv`);
    expect(faults).toEqual([]);
    await page.close();
  });

  it('shows text from a site as plain text', async () => {
    for (const path of [
      `/runs/${run}`,
      '/products/P00011',
      `/products/${encodeURIComponent(ATTACK)}`,
      `/runs/${encodeURIComponent(ATTACK)}`,
    ]) {
      const { page, faults } = await stage.page(path);
      await page.getByText('onerror=').first().waitFor();
      if (path === `/runs/${run}`) await page.locator('.evidence summary').first().click();
      expect(await page.locator('img').count()).toBe(0);
      // The browser logs the 404 of the missing run.
      expect(faults.filter((fault) => !fault.includes('404'))).toEqual([]);
      await page.close();
    }
  });

  it('is mailed as one self-contained file that contacts no server', { tags: ['nightly'] }, async () => {
    const file = join(dirname(stage.fleet.configPath), 'run.html');
    expect((await stage.fleet.run('report', run, '--html', '--to', file)).exitCode).toBe(0);
    const faults: string[] = [];
    const asked: string[] = [];
    const page = await stage.browser.newPage();
    page.on('pageerror', (error) => faults.push(error.message));
    page.on('dialog', (dialog) => faults.push(`dialog ${dialog.message()}`) && void dialog.dismiss());
    page.on('request', (request) => asked.push(request.url()));
    await page.goto(pathToFileURL(file).href);
    await page.getByText('completed, exit 0').waitFor();
    expect(await doneOn(page)).toBe(150);
    await page.getByText('onerror=').first().waitFor();
    expect(await page.locator('img').count()).toBe(0);
    expect(await page.getByRole('button', { name: /Stop|Cancel|Publish|Retry/ }).count()).toBe(0);
    expect(await violations(page)).toEqual([]);
    expect(asked.filter((url) => !/^(file|data|blob):/.test(url))).toEqual([]);
    expect(faults).toEqual([]);
    await page.close();
  });

  it('has 126 instances in view on a wide screen, and fits them into 360 px', { tags: ['nightly'] }, async () => {
    await stage.widen(run, 126);
    const status = await stage.status(run);
    expect(status.instances).toHaveLength(126);
    for (const width of [360, 3840]) {
      const { page, faults } = await stage.page(`/runs/${run}`, { viewport: { width, height: 2160 } });
      await page.locator('.cell').nth(125).waitFor();
      expect(await page.locator('.cell').count()).toBe(126);
      expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBe(width);
      expect(await violations(page)).toEqual([]);
      await page.locator('.cell').nth(125).click();
      await page.getByRole('region', { name: 'Slot 125' }).waitFor();
      expect(faults).toEqual([]);
      await page.close();
    }
  });

  it('refuses other sites, other names for this machine, and every change without the token', async () => {
    expect((await stage.call('/api/runs', { headers: { origin: 'https://evil.example' } })).status).toBe(403);
    // fetch cannot set the Host header.
    const byOtherName = httpRequest(`${stage.url}/api/runs`, { headers: { host: 'evil.example' } }).end();
    const [answer] = (await once(byOtherName, 'response')) as [{ statusCode: number; resume(): void }];
    answer.resume();
    expect(answer.statusCode).toBe(403);
    for (const headers of [{}, { authorization: 'Bearer wrong' }, { cookie: `token=${TOKEN}` }])
      for (const action of ['stop', 'cancel', 'publish', 'retry'])
        expect((await stage.call(`/api/runs/${run}/${action}`, { method: 'POST', headers })).status).toBe(401);
    expect(await stage.fleet.query(`select * from crawlfleet_events where kind = 'operator'`)).toEqual([]);
  });

  it('sends nothing to any other address, and allows no inline script', async () => {
    const response = await stage.call('/');
    expect(response.headers.get('content-security-policy')).toContain("script-src 'self'");
    const page = await stage.browser.newPage();
    const asked = new Set<string>();
    page.on('request', (request) => asked.add(new URL(request.url()).origin));
    await page.goto(`${stage.url}/runs/${run}`);
    await page.locator('h1').first().waitFor();
    expect([...asked].filter((origin) => origin !== 'null')).toEqual([stage.url]);
    await page.close();
  });

  it('stops a run with the token after confirmation, and records an event', async () => {
    const live = stage.fleet.start('run', '--dry-run', '--yes');
    const second = await stage.newestRun(run);
    const { page } = await stage.page(`/runs/${second}`);
    await waitFor(async () => (await doneOn(page).catch(() => 0)) > 5, { what: 'products to appear', everyMs: 200 });
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByLabel('Operator token').fill('not the token');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('the operator token is missing or wrong').waitFor();
    await page.getByLabel('Operator token').fill(TOKEN);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click();
    await page.getByRole('status').waitFor();
    expect((await live.finished).exitCode).toBe(11);
    await page.getByText('cancelled, exit 11').waitFor();
    await page.getByText('stop was asked for on the page').waitFor();
    await page.getByRole('button', { name: 'Retry failed' }).click();
    const question = page.getByRole('dialog', { name: `products that failed in dry run ${second}?` });
    await question.getByText(/Dry run on this machine, .* \d+ products with \d+ instances? .* deadline 20/).waitFor();
    await question.getByRole('button', { name: 'Leave it' }).click();
    expect(await stage.newestRun()).toBe(second);
    await page.close();
  });

  it('halves the pace of a run with the token, and resets it', { tags: ['nightly'] }, async () => {
    const live = stage.fleet.start('run', '--dry-run', '--yes', '--deadline', '120s');
    const slowed = await stage.newestRun(await stage.newestRun());
    const { page, faults } = await stage.page(`/runs/${slowed}`);
    await waitFor(async () => (await doneOn(page).catch(() => 0)) > 5, { what: 'products to appear', everyMs: 200 });
    await page.getByRole('button', { name: 'Half the pace' }).click();
    await page.getByLabel('Operator token').fill(TOKEN);
    await page.getByRole('button', { name: 'Sign in' }).click();
    const press = async (name: string): Promise<void> => {
      await page.getByRole('button', { name }).click();
      await page.getByRole('dialog').getByRole('button', { name }).click();
    };
    await press('Half the pace');
    await page.getByText('Its operator asks for: 400ms between two requests of one address instead of 200ms').waitFor();
    // The shop has seen the last request at the old pace once an instance keeps the new one.
    const newestGaps = async (): Promise<number[]> =>
      gapsOf((await stage.shop.log()).filter(({ kind }) => kind === 'page').slice(-12));
    await waitFor(async () => (await newestGaps()).every((ms) => ms >= 400), {
      what: 'the shop to get half the pace',
      everyMs: 500,
    });
    await press('Reset pace');
    await page.getByText('Its operator asks for').waitFor({ state: 'detached' });
    await page.getByText('the operator has reset the pace').first().waitFor();
    expect((await live.finished).exitCode).toBe(0);
    expect(faults).toEqual([]);
    await page.close();
  });

  it('still shows a run whose main server was killed', { tags: ['nightly'] }, async () => {
    const live = stage.fleet.start('run', '--dry-run', '--yes');
    const newest = await stage.newestRun(await stage.newestRun());
    const { page, faults } = await stage.page(`/runs/${newest}`);
    await waitFor(async () => (await doneOn(page).catch(() => 0)) > 5, { what: 'products to appear', everyMs: 200 });
    live.kill('SIGKILL', 'group');
    await live.finished;
    expect(await doneOn(page)).toBeGreaterThan(5);
    await page.reload();
    await page.getByText('crawling').first().waitFor();
    expect(faults).toEqual([]);
    const { exitCode } = await stage.fleet.run('resume');
    expect(exitCode).toBe(0);
    await page.getByText('completed, exit 0').waitFor();
    await page.close();
  });
});
