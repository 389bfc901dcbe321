/** One run: how it stands against its deadline, its pace, its cap, and each of its instances. Live while it works. */
import { adviceOf, nameOf, type ReasonRow } from '../../../../shared/domain/reason-row.ts';
import { RUN_PHASE_FACTS } from '../../../../shared/domain/phases.ts';
import { isLate, standingInWords } from '../../../../shared/domain/standing.ts';
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { RunDocument, Story } from '../../../core/read/run-documents.ts';
import type { RunSample } from '../../../core/model/sample.ts';
import type { RunAction } from '../serve-app.ts';
import { act, askPace, downloadRows, NeedsToken, readLog, readSettings, startOfRetry, token, watchRun } from './api.ts';
import { Chart } from './charts.tsx';
import { count, duration, milliseconds, plural, rate, share, usd } from './format.ts';
import { groupStory, isAlarm, type StoryGroup } from './story.ts';
import { Words } from './words.tsx';
import { InstancesSection } from './instances.tsx';
import {
  askForToken,
  Confirm,
  EvidenceView,
  Fact,
  Fault,
  Pill,
  Section,
  SiteLink,
  Table,
  Time,
  type Tone,
  useToken,
  ZonedTime,
} from './parts.tsx';

interface Live {
  run: RunDocument | null;
  samples: RunSample[];
  story: Story | null;
}

/** What the page is shown from; the server sends it, or a report file has it inside. */
function useLive(id: string): Live & { fault: Error | null } {
  const [live, setLive] = useState<Live>({ run: null, samples: [], story: null });
  const [fault, setFault] = useState<Error | null>(null);
  const [round, setRound] = useState(0);
  useToken(() => setRound((n) => n + 1));
  useEffect(() => {
    const leave = new AbortController();
    // A new connection sends every sample again.
    let isFirst = true;
    void watchRun(
      id,
      {
        state: (error) => {
          isFirst = true;
          setFault(error);
        },
        event: ({ event, data }) => {
          if (event === 'trouble') return setFault(new Error(`the database does not answer: ${data.message}`));
          const from = isFirst && event === 'samples';
          if (event === 'samples') isFirst = false;
          setLive((old) => {
            if (event === 'run') return { ...old, run: data };
            if (event === 'story') return { ...old, story: data };
            return { ...old, samples: from ? data : [...old.samples, ...data] };
          });
          setFault(null);
        },
      },
      leave.signal,
    );
    return () => leave.abort();
  }, [id, round]);
  return { ...live, fault };
}

export function RunView({ id }: { id: string }) {
  const live = useLive(id);
  useEffect(() => {
    document.title = `${live.run ? `${live.run.state} · ` : ''}${id} · crawlfleet`;
  }, [id, live.run?.state]);
  if (!live.run) return live.fault ? <Fault error={live.fault} /> : <p class="muted">Loading run {id} …</p>;
  return (
    <>
      {live.fault && <Fault error={live.fault} />}
      <RunPage run={live.run} samples={live.samples} story={live.story} buttons={<Buttons run={live.run} />} />
    </>
  );
}

const ENDS = ['completed', 'held', 'banned', 'failed', 'cancelled'];

export const toneOf = ({ state, exitCode }: Pick<RunDocument, 'state' | 'exitCode'>): Tone => {
  if (state === 'completed') return exitCode === 0 ? 'good' : 'late';
  if (state === 'held' || state === 'cancelled') return 'late';
  return state === 'banned' || state === 'failed' ? 'bad' : 'plain';
};

export function RunPage({
  run,
  samples,
  story,
  buttons,
}: Live & { run: RunDocument; buttons?: preact.ComponentChildren }) {
  const isOver = ENDS.includes(run.state);
  return (
    <>
      <header class="run-head">
        <h1>{run.hosts.length === 0 ? 'Any hosts' : run.hosts.join(', ')}</h1>
        <Pill tone={toneOf(run)}>
          {run.state}
          {run.exitCode !== null && `, exit ${run.exitCode}`}
        </Pill>
        {run.dryRun && <Pill tone="plain">dry run</Pill>}
        {buttons}
        <p class="reason">
          Run <b>{run.run}</b> into table <b>{run.table}</b>. <ProductsLink run={run.run} />{' '}
          <Words text={stateInWords(run)} />
        </p>
        <Now run={run} isOver={isOver} />
      </header>
      {run.reasons.length > 0 && <Reasons run={run} />}
      {story && <Decisions story={story} />}
      <Facts run={run} story={story} isOver={isOver} />
      <div class="columns">
        <BurnDown run={run} samples={samples} isOver={isOver} />
        <Replies samples={samples} />
        <Gaps run={run} />
        <Cost run={run} samples={samples} />
      </div>
      <InstancesSection run={run} />
      {story && story.incidents.length > 0 && <Incidents story={story} />}
      {run.report && run.report.notes.length > 0 && (
        <Section title="Notes of the report">
          <ul class="notes">
            {run.report.notes.map((note) => (
              <li key={note}>
                <Words text={note} />
              </li>
            ))}
          </ul>
        </Section>
      )}
      {!isReport && <More run={run} />}
    </>
  );
}

/** Rows, log and settings, each asked for when it is wanted. */
function More({ run }: { run: RunDocument }) {
  const [fault, setFault] = useState<Error | null>(null);
  const download = (ending: 'csv' | 'ndjson'): void => {
    setFault(null);
    downloadRows(run.run, ending).catch(setFault);
  };
  return (
    <Section title="Rows, log and settings">
      {run.products !== null && run.state !== 'held' && (
        <p class="row">
          <button onClick={() => download('csv')}>Rows as CSV</button>
          <button onClick={() => download('ndjson')}>Rows as NDJSON</button>
          <span class="muted">without those that a later run has replaced</span>
        </p>
      )}
      {fault && <Fault error={fault} />}
      <OnDemand label="Last lines of the log" load={() => readLog(run.run)} />
      <OnDemand label="Settings of the run, secrets masked" load={() => readSettings(run.run)} />
    </Section>
  );
}

/** Loads its text each time that it is opened. */
function OnDemand({ label, load }: { label: string; load: () => Promise<string> }) {
  const [text, setText] = useState<string | null>(null);
  const [fault, setFault] = useState<Error | null>(null);
  const onToggle = (event: { currentTarget: HTMLDetailsElement }): void => {
    if (!event.currentTarget.open) return;
    setFault(null);
    load().then(setText, setFault);
  };
  return (
    <details class="evidence" onToggle={onToggle}>
      <summary>{label}</summary>
      {fault ? (
        <Fault error={fault} />
      ) : text === null ? (
        <p class="muted">Loading …</p>
      ) : (
        <pre tabIndex={0}>{text}</pre>
      )}
    </details>
  );
}

/** By the report, and until there is one by the instances. */
function countsOf({ report, planned, live }: RunDocument): { planned: number; done: number; failed: number } {
  if (report === null) return { planned, done: live.done, failed: live.failed };
  const { stored, gone, failed } = report.products;
  return { planned: report.products.planned, done: stored + gone + failed, failed };
}

function stateInWords(run: RunDocument): string {
  const { state, reason, request, pace: asked } = run;
  const { planned, done, failed } = countsOf(run);
  const why = reason !== null && reason !== state ? ` Reason: ${reason}.` : '';
  const early = request !== null && !ENDS.includes(state) ? ` It was asked to end early: ${request}.` : '';
  const slowed = asked === null || ENDS.includes(state) ? '' : ` Its operator asks for: ${asked.words}.`;
  const products = `${count(done)} of ${plural(planned, 'product')} done, ${count(failed)} failed.`;
  return `${RUN_PHASE_FACTS[state].meaning}${why}${early}${slowed} ${products}`;
}

function ProductsLink({ run }: { run: string }) {
  if (isReport) return null;
  return (
    <>
      <a href={`/runs/${encodeURIComponent(run)}/products`}>All its products</a>.
    </>
  );
}

/** A report file is read long after its run: it has the time of its writing. */
const isReport = document.getElementById('report') !== null;

function Now({ run, isOver }: { run: RunDocument; isOver: boolean }) {
  const [nowMs, setNowMs] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNowMs(Date.now()), 5_000);
    return () => clearInterval(timer);
  }, []);
  const atMs = isReport ? Date.parse(run.at) : nowMs;
  const leftMs = Date.parse(run.deadline) - atMs;
  const { standing } = run;
  return (
    <dl class="now">
      <div>
        <dt>{isReport ? 'As of' : 'Now'}</dt>
        <dd>
          <ZonedTime at={atMs} />
        </dd>
      </div>
      <div>
        <dt>Deadline</dt>
        <dd>
          <ZonedTime at={run.deadline} />
          {!isOver && (leftMs >= 0 ? `, in ${duration(leftMs)}` : `, ${duration(leftMs)} ago`)}
        </dd>
      </div>
      <div>
        <dt>{isOver ? 'Ended' : 'Will probably end'}</dt>
        <dd>
          {standing === null ? (
            'no estimate yet'
          ) : (
            <>
              <ZonedTime at={standing.end} />,{' '}
              <span class={`whole ${isLate(standing) ? 'bad' : 'good'}`}>{standingInWords(standing)}</span>
            </>
          )}
        </dd>
      </div>
    </dl>
  );
}

function Facts({ run, story, isOver }: { run: RunDocument; story: Story | null; isOver: boolean }) {
  const { live, usd: cost, intervalMs } = run;
  const { planned, done, failed } = countsOf(run);
  // The list of them on this page has those that are over as well.
  const bans = story === null ? live.banned : bansIn(story);
  return (
    <dl class="facts" aria-live="off">
      <Fact name="Done" note={`of ${plural(planned, 'product')}`}>
        {count(done)} <small>{planned > 0 && share(done / planned)}</small>
      </Fact>
      <Fact
        name="Failed"
        tone={failed > planned * 0.05 ? 'bad' : 'plain'}
        note={
          !isOver && live.waiting > 0
            ? `${count(live.waiting)} more wait after a first try`
            : planned > 0
              ? share(failed / planned)
              : undefined
        }
      >
        {count(failed)}
      </Fact>
      <Fact name={isOver ? 'Mean pace' : 'Pace'} note="products a second">
        {live.perSecond === null ? '–' : rate(live.perSecond)}
      </Fact>
      <Fact
        name="Smallest gap"
        tone={live.minGapMs === null ? 'plain' : live.minGapMs < intervalMs ? 'bad' : 'good'}
        note={`interval ${duration(intervalMs)}`}
      >
        {live.minGapMs === null ? '–' : milliseconds(live.minGapMs)}
      </Fact>
      <Fact
        name="Bans"
        tone={live.banned > 0 ? 'bad' : bans > 0 || live.suspect > 0 ? 'late' : 'plain'}
        note={`${count(live.banned)} open now${live.suspect > 0 ? `, ${count(live.suspect)} in doubt` : ''}`}
      >
        {count(bans)}
      </Fact>
      <Fact
        name={run.dryRun ? 'Cost (unpaid)' : 'Cost'}
        tone={cost.cap !== null && cost.soFar > cost.cap ? 'bad' : 'plain'}
        note={
          cost.cap === null
            ? `planned ${usd(cost.planned)}, no cap`
            : `planned ${usd(cost.planned)}, cap ${usd(cost.cap)}`
        }
      >
        {usd(cost.soFar)}
      </Fact>
    </dl>
  );
}

function Reasons({ run }: { run: RunDocument }) {
  const isWaiting = run.reasons.some(({ waiting }) => waiting > 0);
  return (
    <Section title="Why products have no row">
      <Table
        label="Why products have no row"
        stacks
        columns={[
          { head: 'Reason', of: (row) => <ReasonLink run={run.run} row={row} />, class: 'whole' },
          { head: 'Products', of: (row) => count(row.products), class: 'n' },
          ...(isWaiting ? [{ head: 'Waiting', of: (row: ReasonRow) => count(row.waiting), class: 'n' }] : []),
          { head: 'Share', of: (row) => share(row.share), class: 'n' },
          { head: 'Example', of: ({ url }) => url !== null && <SiteLink url={url} /> },
          { head: 'What to do', of: (row) => <Words text={adviceOf(row)} /> },
        ]}
        rows={[...run.reasons]}
      />
    </Section>
  );
}

/** To the products with the reason; not from a report file, nor for those that only wait. */
function ReasonLink({ run, row }: { run: string; row: ReasonRow }) {
  const { reason } = row;
  if (isReport || row.products === 0) return <>{nameOf(row)}</>;
  const query = new URLSearchParams(reason === 'gone' ? { outcome: 'gone' } : { outcome: 'failed', reason });
  return <a href={`/runs/${encodeURIComponent(run)}/products?${query.toString()}`}>{nameOf(row)}</a>;
}

function BurnDown({ run, samples, isOver }: { run: RunDocument; samples: RunSample[]; isOver: boolean }) {
  const shown = useMemo(() => {
    const startMs = Date.parse(run.startedAt);
    const deadlineMs = Date.parse(run.deadline);
    const points = [
      { atMs: startMs, left: run.planned },
      ...samples.map((s) => ({ atMs: s.atMs, left: leftOf(run, s) })),
    ];
    const now = { atMs: Date.parse(run.at), left: Math.max(0, run.planned - run.live.done) };
    if (!isOver && now.atMs > points.at(-1)!.atMs) points.push(now);
    const p50 = isOver ? null : toMs(run.projection?.p50);
    const p95 = isOver ? null : toMs(run.projection?.p95);
    const times = [
      ...new Set([...points.map((p) => p.atMs), ...[p50, p95, deadlineMs].filter((t) => t !== null)]),
    ].sort((a, b) => a - b);
    const left = new Map(points.map((p) => [p.atMs, p.left]));
    const from = points.at(-1)!;
    const toZero = (endMs: number | null) => (t: number) =>
      endMs === null || t < from.atMs || endMs <= from.atMs
        ? null
        : Math.max(0, from.left * (1 - (t - from.atMs) / (endMs - from.atMs)));
    return {
      times,
      lines: [
        {
          label: 'still allowed',
          color: 'allowed',
          dash: [6, 4],
          values: times.map((t) => Math.max(0, run.planned * (1 - (t - startMs) / (deadlineMs - startMs)))),
        },
        { label: 'left', color: 'main', fill: true as const, values: times.map((t) => left.get(t) ?? null) },
        { label: 'forecast', color: 'forecast', values: times.map(toZero(p95)), width: 1 },
        { label: '', color: 'forecast', fill: 2, values: times.map(toZero(p50)), width: 1 },
      ],
    };
  }, [run, samples, isOver]);
  const left = Math.max(0, run.planned - run.live.done);
  const summary = `${count(left)} of ${count(run.planned)} products left, deadline ${new Date(run.deadline).toTimeString().slice(0, 5)}`;
  return (
    <Section title="Burn-down">
      <Chart title="Products left" summary={summary} times={shown.times} lines={shown.lines} show={count} />
    </Section>
  );
}

const toMs = (iso: string | null | undefined): number | null => (iso ? Date.parse(iso) : null);

const leftOf = ({ planned }: RunDocument, { stored, gone, failed }: RunSample): number =>
  Math.max(0, planned - stored - gone - failed);

const REPLY_KINDS: { label: string; color: string; has: (reply: string) => boolean }[] = [
  { label: '2xx', color: 'ok', has: (r) => r.startsWith('2') },
  { label: '3xx', color: 'moved', has: (r) => r.startsWith('3') },
  { label: '404, 410', color: 'missing', has: (r) => r === '404' || r === '410' },
  { label: 'other 4xx', color: 'refused', has: (r) => r.startsWith('4') && r !== '404' && r !== '410' },
  { label: '5xx', color: 'error', has: (r) => r.startsWith('5') },
  { label: 'no reply', color: 'none', has: (r) => !/^[2345]\d\d$/.test(r) },
];

function Replies({ samples }: { samples: RunSample[] }) {
  const shown = useMemo(() => {
    const times = samples.map((s) => s.atMs);
    const perMinute = REPLY_KINDS.map(({ has }) => {
      const totals = samples.map(({ replies }) =>
        Object.entries(replies).reduce((sum, [reply, n]) => sum + (has(reply) ? n : 0), 0),
      );
      // A restarted instance counts from zero again.
      return totals.map((n, i) =>
        i === 0 ? 0 : (Math.max(0, n - totals[i - 1]!) * 60_000) / (times[i]! - times[i - 1]!),
      );
    });
    // Drawn from the tallest: each covers the sum of those below it.
    const lines = REPLY_KINDS.map(({ label, color }, i) => ({
      label,
      color,
      fill: true as const,
      width: 0,
      stepped: true as const,
      values: times.map((_, t) => perMinute.slice(0, i + 1).reduce((sum, kind) => sum + kind[t]!, 0)),
    })).toReversed();
    const last = samples.at(-1)?.replies ?? {};
    const total = Object.values(last).reduce((sum, n) => sum + n, 0);
    const good = Object.entries(last).reduce((sum, [reply, n]) => sum + (reply.startsWith('2') ? n : 0), 0);
    return {
      times,
      lines,
      summary:
        total === 0
          ? 'none yet'
          : `${plural(total, 'reply').replace('replys', 'replies')}, ${share(good / total)} of them 2xx`,
    };
  }, [samples]);
  return (
    <Section title="Replies">
      <Chart title="Replies a minute" {...shown} show={(n) => count(Math.round(n))} />
    </Section>
  );
}

/** Beyond this many only the smallest gaps are drawn: they are what matters. */
const SHOWN_GAPS = 300;

function Gaps({ run }: { run: RunDocument }) {
  const { intervalMs } = run;
  const known = run.instances
    .flatMap(({ address, slot, progress }) =>
      progress?.minGapMs == null ? [] : [{ address, slot, gapMs: progress.minGapMs }],
    )
    .sort((a, b) => a.gapMs - b.gapMs);
  const below = known.filter(({ gapMs }) => gapMs < intervalMs).length;
  const summary =
    known.length === 0
      ? 'No address has sent two requests yet.'
      : below > 0
        ? `${plural(below, 'address')} below the interval of ${duration(intervalMs)}.`.replace('addresss', 'addresses')
        : `All ${known.length} at or above the interval of ${duration(intervalMs)}; the smallest is ${milliseconds(known[0]!.gapMs)}.`;
  const most = Math.max(
    intervalMs * 1.5,
    ...known.slice(0, SHOWN_GAPS).map(({ gapMs }) => Math.min(gapMs, intervalMs * 3)),
  );
  const x = (ms: number): number => 10 + (Math.min(ms, most) / most) * 580;
  return (
    <Section title="Politeness">
      <figure class="chart">
        <figcaption>
          <strong>Smallest gap of each address</strong> <span class={below > 0 ? 'bad' : ''}>{summary}</span>
        </figcaption>
        <svg viewBox="0 0 600 96" class="strip" aria-hidden="true">
          <line x1="10" x2="590" y1="72" y2="72" class="axis" />
          <line x1={x(intervalMs)} x2={x(intervalMs)} y1="8" y2="78" class="limit" />
          <text x={x(intervalMs)} y="92" text-anchor="middle">
            {duration(intervalMs)}
          </text>
          {known.slice(0, SHOWN_GAPS).map(({ slot, gapMs }, i) => (
            <circle
              key={slot}
              cx={x(gapMs)}
              cy={64 - (i % 7) * 8}
              r="4"
              class={gapMs < intervalMs ? 'under' : 'over'}
            />
          ))}
        </svg>
      </figure>
    </Section>
  );
}

function Cost({ run, samples }: { run: RunDocument; samples: RunSample[] }) {
  const { cap, planned, soFar } = run.usd;
  const times = useMemo(
    () => [Date.parse(run.startedAt), ...samples.map((s) => s.atMs), Date.parse(run.finishedAt ?? run.at)],
    [samples, run],
  );
  const lines = useMemo(
    () => [
      { label: 'so far', color: 'main', fill: true as const, values: [0, ...samples.map((s) => s.usd), soFar] },
      { label: 'planned', color: 'allowed', dash: [6, 4], values: times.map(() => planned) },
      ...(cap === null ? [] : [{ label: 'cap', color: 'error', dash: [2, 3], values: times.map(() => cap) }]),
    ],
    [times],
  );
  const summary = `${usd(soFar)} of ${usd(planned)} planned${cap === null ? ', no cap' : `, cap ${usd(cap)}`}${run.dryRun ? '; a dry run pays nothing' : ''}`;
  return (
    <Section title="Cost">
      <Chart title="USD at list prices" summary={summary} times={times} lines={lines} show={usd} />
    </Section>
  );
}

const bansIn = ({ incidents }: Story): number => incidents.filter(({ verdict }) => verdict === 'banned').length;

function Incidents({ story }: { story: Story }) {
  const bans = bansIn(story);
  const aside = `${plural(bans, 'ban')}, ${plural(story.incidents.length - bans, 'suspicion')}`;
  return (
    <Section title="Bans and suspicions" aside={aside}>
      <ul class="incidents">
        {story.incidents.map(({ slot, epoch, address, verdict, rule, atMs, untilMs, overAtMs, evidence }) => (
          <li key={`${slot}.${epoch}.${atMs}`}>
            <Pill tone={verdict === 'banned' ? 'bad' : 'late'}>{verdict}</Pill> <Time at={atMs} />{' '}
            <Words text={`slot ${slot}`} /> ({address ?? 'no address'}) by rule <code>{rule}</code>
            {overAtMs !== null ? ', over at ' : untilMs !== null ? ', rests until ' : ', open'}
            {(overAtMs ?? untilMs) !== null && <Time at={(overAtMs ?? untilMs)!} />}
            <EvidenceView evidence={evidence} />
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** Lines of what happened that are shown at first. */
const SHOWN_EVENTS = 12;

function Decisions({ story }: { story: Story }) {
  const [wanted, setWanted] = useState('');
  const [alarmsOnly, setAlarmsOnly] = useState(false);
  const [all, setAll] = useState(false);
  const groups = groupStory(story.story, wanted, alarmsOnly);
  const shown = all ? groups : groups.slice(0, SHOWN_EVENTS);
  const seen = new Set<string>();
  return (
    <Section title="What happened and why" aside="newest first">
      <div class="filter">
        <input
          type="search"
          aria-label="Filter what happened"
          placeholder="Filter"
          onInput={(event) => setWanted(event.currentTarget.value)}
        />
        <label>
          <input type="checkbox" onChange={(event) => setAlarmsOnly(event.currentTarget.checked)} /> alarms only
        </label>
      </div>
      {groups.length === 0 && <p class="muted">Nothing like it has happened.</p>}
      <ol class="story open" aria-label="What happened and why">
        {shown.map((group) => (
          <Happened key={`${group.newest.atMs} ${group.newest.text}`} {...group} seen={seen} />
        ))}
      </ol>
      {groups.length > shown.length && (
        <button class="quiet" onClick={() => setAll(true)}>
          Show {plural(groups.length - shown.length, 'older line')}
        </button>
      )}
    </Section>
  );
}

function Happened({ newest, older, seen }: StoryGroup & { seen: Set<string> }) {
  return (
    <li class={isAlarm(newest) ? 'alarm' : ''}>
      <Time at={newest.atMs} />{' '}
      <div>
        <span>
          <Words text={newest.text} seen={seen} />
        </span>
        {older.length > 0 && (
          <details>
            <summary>{plural(older.length, 'earlier one')} like it</summary>
            <ul>
              {older.map(({ atMs, text }, i) => (
                <li key={i}>
                  <Time at={atMs} /> <span>{text}</span>
                </li>
              ))}
            </ul>
          </details>
        )}
      </div>
    </li>
  );
}

const nameOfRun = ({ run, dryRun }: RunDocument): string => `${dryRun ? 'dry run' : 'run'} ${run}`;

type Button = RunAction | 'slower' | 'pause' | 'reset';

/** Of the buttons: how long a pause is. */
const PAUSE = '30m';

/** Twice the interval that the run keeps now. */
const slowerThan = ({ intervalMs, pace: asked }: RunDocument): string =>
  `${2 * Math.max(intervalMs, asked?.intervalMs ?? 0)}ms`;

/** Those that change the pace: the query for the server. */
const PACE_OF: Partial<Record<Button, (run: RunDocument) => Record<string, string>>> = {
  slower: (run) => ({ interval: slowerThan(run) }),
  pause: () => ({ pause: PAUSE }),
  reset: () => ({ reset: '' }),
};

const BUTTONS: Record<Button, { label: string; question: (run: RunDocument) => string | Promise<string> }> = {
  slower: {
    label: 'Half the pace',
    question: (run) =>
      `Let each address of ${nameOfRun(run)} wait ${duration(Number.parseInt(slowerThan(run)))} between two requests? No address is added to make up for it.`,
  },
  pause: {
    label: `Pause ${PAUSE}`,
    question: (run) => `Send no request in ${nameOfRun(run)} for ${PAUSE}? The deadline stays.`,
  },
  reset: {
    label: 'Reset pace',
    question: (run) => `Go back to the configured pace in ${nameOfRun(run)}, at once?`,
  },
  stop: {
    label: 'Stop',
    question: (run) => `Stop ${nameOfRun(run)}? Its instances upload what they have, and that is published.`,
  },
  cancel: {
    label: 'Cancel',
    question: (run) => `Cancel ${nameOfRun(run)} and discard its results? Nothing of it is published.`,
  },
  publish: { label: 'Publish', question: (run) => `Publish the held rows of ${nameOfRun(run)} as they are?` },
  retry: {
    label: 'Retry failed',
    question: async (run) =>
      `Start a run of the products that failed in ${nameOfRun(run)}? ${await startOfRetry(run.run)}`,
  },
};

function actionsFor({ state, products, live, canRetry, pace: asked }: RunDocument): Button[] {
  if (state === 'held') return ['publish', 'cancel'];
  if (!ENDS.includes(state))
    return ['slower', 'pause', ...(asked === null ? [] : ['reset' as const]), 'stop', 'cancel'];
  return canRetry && (products?.failed ?? live.failed) > 0 ? ['retry'] : [];
}

function Buttons({ run }: { run: RunDocument }) {
  const [asked, setAsked] = useState<{ action: Button; question: string } | null>(null);
  const [said, setSaid] = useState<{ text: string; isFault: boolean } | null>(null);
  const [isBusy, setBusy] = useState(false);
  const attempt = async (work: () => Promise<void>): Promise<void> => {
    setBusy(true);
    try {
      await work();
    } catch (error) {
      const isToken = error instanceof NeedsToken;
      setSaid(isToken ? null : { text: error instanceof Error ? error.message : String(error), isFault: true });
      if (isToken) askForToken(error.message);
    } finally {
      setBusy(false);
    }
  };
  const press = (action: Button): void => {
    if (token.get() === null) return askForToken('Changing a run needs the operator token (server.operator_token).');
    void attempt(async () => {
      const question = BUTTONS[action].question(run);
      if (typeof question !== 'string') setSaid({ text: 'Planning it …', isFault: false });
      setAsked({ action, question: await question });
      setSaid(null);
    });
  };
  const carryOut = (action: Button): Promise<void> =>
    attempt(async () => {
      const query = PACE_OF[action]?.(run);
      const text = query === undefined ? await act(run.run, action as RunAction) : await askPace(run.run, query);
      setSaid({ text, isFault: false });
    });
  return (
    <div class="actions">
      {actionsFor(run).map((action) => (
        <button
          key={action}
          class={action === 'cancel' ? 'danger' : ''}
          onClick={() => press(action)}
          disabled={isBusy || (action === 'stop' && run.request !== null)}
        >
          {BUTTONS[action].label}
        </button>
      ))}
      {said && (
        <p role="status" class={said.isFault ? 'fault' : 'said'}>
          {said.text}
        </p>
      )}
      {asked && (
        <Confirm
          question={asked.question}
          label={BUTTONS[asked.action].label}
          action={() => carryOut(asked.action)}
          onDone={() => setAsked(null)}
        />
      )}
    </div>
  );
}
