import { describe, expect, it } from 'vitest';
import { nextRunAdvice } from '../../../orchestrator/features/explain/next-run-advice.ts';
import type { RunEvent } from '../../../orchestrator/core/model/stores.ts';
import { timelineOf } from '../../../orchestrator/core/read/timeline.ts';
import { NO_PROGRESS } from '../../../shared/wire/callbacks.ts';
import { START_MS, aPlan, aRun, anIncident, anInstance } from './builders.ts';

const event = (after: number, change: Partial<RunEvent>): RunEvent => ({
  atMs: START_MS + after,
  kind: 'instance',
  slot: null,
  epoch: null,
  from: null,
  to: null,
  detail: null,
  ...change,
});
const move = (after: number, slot: number, [from, to]: [string | null, string], detail: string | null = null) =>
  event(after, { slot, epoch: 1, from, to, detail });
const texts = (events: RunEvent[]): string[] => timelineOf(aRun(), events).map((line) => line.text);

describe('timelineOf', () => {
  it('lists events in order of time, groups slots, and omits events that only follow from others', () => {
    const events = [
      move(40_000, 1, ['booting', 'ready']),
      event(0, { kind: 'run', to: 'planned' }),
      ...[2, 1, 0, 5, 5].map((slot) => move(1_000 + slot, slot, [null, 'claimed'])),
      move(2_000, 0, ['claimed', 'pending']),
      move(30_000, 0, ['booting', 'ready']),
    ];
    expect(texts(events)).toEqual([
      'the run is stored',
      'slots 0-2, 5 claimed: EC2 is asked for an instance',
      'slots 0-1 said hello',
    ]);
  });

  it('uses the plural for several slots', () => {
    const done = [0, 1].map((slot) => move(0, slot, ['uploading', 'done']));
    const overdue = [2, 3].map((slot) => move(10, slot, ['uploading', 'lost'], 'overdue'));
    const banned = [4, 5].map((slot) => move(20, slot, ['crawling', 'banned']));
    expect(texts([...done, ...overdue, ...banned])).toEqual([
      'slots 0-1 are done: their manifests are checked',
      'slots 2-3 did not bring their results to the bucket in time',
      'slots 4-5 stand still: the site refuses their addresses',
    ]);
    expect(texts([move(0, 0, ['uploading', 'done'])])).toEqual(['slot 0 is done: its manifest is checked']);
  });

  it('makes one line of decisions that differ in their numbers only, until a tenth of the run has none', () => {
    const back = (after: number, slot: number): RunEvent =>
      event(after, { kind: 'chunk', slot, epoch: 1, detail: `slot ${slot} has given back ${slot + 2} products` });
    const alarm = (after: number): RunEvent => event(after, { kind: 'alarm', detail: `${after} refused` });
    const minute = 60_000;
    expect(
      texts([
        back(0, 0),
        back(minute, 3),
        alarm(2 * minute),
        alarm(3 * minute),
        back(20 * minute, 1),
        back(60 * minute, 2),
      ]),
    ).toEqual([
      'slot 0 has given back 2 products; and 2 more like it within 20m',
      '! 120000 refused',
      '! 180000 refused',
      'slot 2 has given back 4 products',
    ]);
  });

  it('says why an instance was given up and that another one replaces it', () => {
    expect(
      texts([
        move(0, 3, ['crawling', 'lost'], 'heartbeat-lost'),
        { ...move(10, 3, [null, 'claimed']), epoch: 2 },
        move(20, 4, ['claimed', 'lost'], 'shared-address: it has the address 10.0.0.1 of slot 0'),
        move(30, 5, ['crawling', 'lost'], 'something-new'),
        move(40, 6, ['crawling', 'banned'], 'status-403, seen at 10.0.0.2'),
        move(50, 6, ['banned', 'crawling']),
      ]),
    ).toEqual([
      'slot 3 fell silent',
      'slot 3 claimed again (epoch 2): a replacement',
      'slot 4 has the address of another instance (it has the address 10.0.0.1 of slot 0)',
      'slot 5 was given up: something-new',
      'slot 6 stands still: the site refuses its address (status-403, seen at 10.0.0.2)',
      'slot 6 is served again',
    ]);
  });

  it('quotes alarms, decisions and transfers, and lists a forecast once', () => {
    expect(
      texts([
        event(0, { kind: 'forecast', to: 'late 50%', detail: 'the run may be late' }),
        event(1, { kind: 'alarm', detail: 'the run may be late' }),
        event(2, { kind: 'decision', slot: 3, to: 'slot 3', detail: 'launched in addition to the plan of 2' }),
        event(3, { kind: 'chunk', slot: 1, detail: 'slot 1 has given back 20 products' }),
        event(4, { kind: 'run', from: 'loading', to: 'completed', detail: 'deadline missed' }),
      ]),
    ).toEqual([
      '! the run may be late',
      'launched in addition to the plan of 2',
      'slot 1 has given back 20 products',
      'the rows are published (deadline missed)',
    ]);
  });
});

describe('nextRunAdvice', () => {
  const progress = { ...NO_PROGRESS, assigned: 100, stored: 100, requests: 100, pageMs: 300 };
  const run = aRun({ phase: 'completed', plan: aPlan({ instances: 2 }), planned: 3_000, finishedAtMs: START_MS });
  const events = [0, 1].map((slot) => move(120_000, slot, ['booting', 'ready']));
  const instances = [0, 1].map((slot) => anInstance(slot, { phase: 'terminated', progress }));
  const base = { run, instances, events, incidents: [], reasons: [], left: 0, nowMs: START_MS };

  it('recommends no change after a healthy run', () => {
    expect(nextRunAdvice(base)).toEqual([expect.stringMatching(/nothing: the same plan \(2 instances\)/)]);
  });

  it('recommends the number of instances that the pace and the boots of a late run require', () => {
    // Four hours less a boot of two minutes and a tail of one: 1,407 products each at 10.1 s.
    expect(nextRunAdvice({ ...base, left: 900 })[0]).toMatch(/takes 3 instances for 3000 products in 4h, not 2/);
    const slow = instances.map((i) => ({ ...i, progress: { ...progress, pageMs: 20_200 } }));
    expect(nextRunAdvice({ ...base, instances: slow, left: 900 })[0]).toMatch(/takes 5 instances/);
  });

  it('names what products came to when the site has changed, and no retry that would be refused', () => {
    const row = { reason: 'site-changed', sign: null, products: 9, waiting: 0, share: 1, url: null } as const;
    const reasons = [{ ...row, evidence: '9 of the 9 tried came to gone 404', todo: 'correct site.product_url' }];
    const said = nextRunAdvice({ ...base, run: { ...run, request: 'site-changed' }, reasons, left: 9 });
    expect(said).toEqual([
      'the site or its mapping has changed: 9 of the 9 tried came to gone 404: correct site.product_url',
    ]);
  });

  it('does not blame the interval for bans by pages without values', () => {
    const evidence = { rule: 'field-missing', url: '', status: 200, headers: {}, body: '' };
    const incidents = [{ ...anIncident({ rule: 'field-missing' }), slot: 0, epoch: 1, address: null, evidence }];
    const said = nextRunAdvice({ ...base, incidents })[0];
    expect(said).toMatch(/1 address was banned: the pages had no values, .*site\.render: auto/);
    expect(said).not.toContain('make site.interval longer');
  });

  it('names the site that asked for a slower pace, and no number of instances', () => {
    const cap = { addresses: 2, delayMs: 40_000, beforeMs: 10_000, atMs: START_MS, runId: run.id };
    const paces = [{ host: 'shop.example', intervalMs: 40_000, cap }];
    expect(nextRunAdvice({ ...base, run: { ...run, paces }, left: 900 })).toEqual([
      expect.stringMatching(
        /^900 products were not crawled, all of them because the site asked for a slower pace: robots\.txt of shop\.example.*later deadline/,
      ),
    ]);
  });

  it('names the operator who slowed the run, and what the next plan is made from', () => {
    const pace = { atMs: START_MS, intervalMs: 40_000, pausedUntilMs: null, addresses: 2, runId: run.id };
    const advice = (isForNextPlan: boolean): string[] =>
      nextRunAdvice({ ...base, run: { ...run, operatorPace: { ...pace, isForNextPlan } }, left: 900 });
    expect(advice(false)).toEqual([
      expect.stringMatching(
        /^900 products were not crawled, all of them because the operator asked.*set site\.interval$/,
      ),
    ]);
    expect(advice(true)).toEqual([expect.stringMatching(/orchestrator pace \S+ --reset forgets it/)]);
  });

  it('names the cause of a stalled run, without a number of instances', () => {
    const stalled = { ...run, request: 'unreachable' as const };
    expect(nextRunAdvice({ ...base, run: stalled, left: 900 })).toEqual([
      expect.stringMatching(/cannot reach the load balancer: .*security group/),
    ]);
  });

  it('names bans, refusals and losses', () => {
    const refused = anInstance(2, { instanceId: null, reason: 'launch-refused', phase: 'terminated' });
    const lost = anInstance(3, { reason: 'heartbeat-lost', phase: 'terminated' });
    const evidence = { rule: 'status-403', url: '', status: 403, headers: {}, body: '' };
    const incidents = [{ ...anIncident(), slot: 0, epoch: 1, address: null, evidence }];
    const said = nextRunAdvice({ ...base, instances: [...instances, refused, lost], incidents }).join('\n');
    expect(said).toMatch(/1 address was banned: make site.interval longer than 10s/);
    expect(said).toMatch(/1 launch was refused/);
    expect(said).toMatch(/1 of 3 instances was lost/);
  });

  it.each([
    [false as const, /1 address was banned: .*its cookie sid back: set site.keep_cookies to true/],
    [undefined, /1 address was banned: .*in a circle and sets the cookie sid/],
  ])('names the cookie that the site wants back (keepCookies %s), and no longer interval', (keepCookies, expected) => {
    const evidence = { rule: 'redirect-loop', url: '', status: 302, headers: {}, body: '', cookie: 'sid' };
    const incidents = [{ ...anIncident(), slot: 0, epoch: 1, address: null, evidence }];
    const { keepCookies: _, ...site } = run.settings.site;
    const settings = { ...run.settings, site: { ...site, ...(keepCookies === false && { keepCookies }) } };
    const said = nextRunAdvice({ ...base, run: { ...run, settings }, incidents }).join('\n');
    expect(said).toMatch(expected);
    expect(said).not.toMatch(/interval/);
    const other = { ...incidents[0]!, evidence: { ...evidence, cookie: undefined as never } };
    expect(nextRunAdvice({ ...base, run: { ...run, settings }, incidents: [...incidents, other] })[0]).toMatch(
      /interval/,
    );
  });

  it.each([
    ['expired keys', 'credentials', /2 launches were refused \(.*expired.*\): renew the keys/i],
    [
      'a missing permission',
      'denied',
      /2 launches were refused \(.*expired.*\): allow what orchestrator doctor names/i,
    ],
    ['a wrong parameter', 'invalid', /2 launches were refused \(.*expired.*\): correct that parameter/i],
    ['a type that the account may not launch', 'type', /2 launches were refused: name more types/],
  ] as const)('names the remedy for launches that were refused for %s', (_name, cause, advice) => {
    const answer = { kind: 'refused', cause, message: 'RequestExpired: Request has expired.' } as const;
    const refused = [2, 3].map((slot) =>
      anInstance(slot, { instanceId: null, reason: 'launch-refused', phase: 'terminated', answer }),
    );
    const said = nextRunAdvice({ ...base, instances: [...instances, ...refused] });
    expect(said).toEqual([expect.stringMatching(advice)]);
  });

  it('names the remedy for machines that EC2 ended at launch, and recommends no reserve for them', () => {
    const stateReason = { code: 'Client.InvalidKMSKey.InvalidState', message: 'the key is in an incorrect state' };
    const dead = [2, 3].map((slot) =>
      anInstance(slot, { phase: 'terminated', reason: 'ec2-terminated', publicKey: null, stateReason }),
    );
    const said = nextRunAdvice({ ...base, instances: [...instances, ...dead] });
    expect(said).toEqual([
      expect.stringMatching(/2 instances were ended by EC2 at launch \(Client.InvalidKMSKey.*KMS key/),
    ]);
  });
});
