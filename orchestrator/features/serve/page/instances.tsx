/** The fleet as a grid: one cell a slot, opened to what the instance has done. */
import { useEffect, useState } from 'preact/hooks';
import type { InstanceDocument, RunDocument } from '../../../core/read/run-documents.ts';
import type { RunEvent } from '../../../core/model/stores.ts';
import { readSlot } from './api.ts';
import { count, duration, milliseconds, share } from './format.ts';
import { Words } from './words.tsx';
import { Pill, Section, Time, Timeline, type Tone } from './parts.tsx';

const TONES: Partial<Record<InstanceDocument['phase'], Tone>> = {
  ready: 'good',
  crawling: 'good',
  uploading: 'good',
  done: 'good',
  banned: 'bad',
  lost: 'bad',
};

const toneOf = ({ phase, problem, incident }: InstanceDocument): Tone =>
  incident && incident.overAtMs === null
    ? incident.verdict === 'banned'
      ? 'bad'
      : 'late'
    : problem !== null
      ? 'late'
      : (TONES[phase] ?? 'plain');

const doneOf = ({ progress }: InstanceDocument): number =>
  progress ? progress.stored + progress.gone + progress.failed : 0;

export function InstancesSection({ run }: { run: RunDocument }) {
  const [open, setOpen] = useState<number | null>(null);
  const latest = [...new Map(run.instances.map((i) => [i.slot, i])).values()];
  const troubled = latest.filter((i) => toneOf(i) === 'bad' || toneOf(i) === 'late').length;
  const aside = `${count(latest.length)}${troubled > 0 ? `, ${troubled} with a problem` : ''}`;
  return (
    <Section title="Instances" aside={aside}>
      <ul class="grid">
        {latest.map((instance) => (
          <Cell
            key={instance.slot}
            instance={instance}
            isOpen={open === instance.slot}
            onToggle={() => setOpen(open === instance.slot ? null : instance.slot)}
          />
        ))}
      </ul>
      {open !== null && <Details key={open} run={run} slot={open} />}
    </Section>
  );
}

function Cell({ instance, isOpen, onToggle }: { instance: InstanceDocument; isOpen: boolean; onToggle: () => void }) {
  const { slot, phase, progress, address } = instance;
  const assigned = progress?.assigned ?? 0;
  const done = doneOf(instance);
  return (
    <li>
      <button class={`cell ${toneOf(instance)}`} aria-expanded={isOpen} onClick={onToggle}>
        <span class="cell-head">
          <b>{slot}</b> {phase}
        </span>
        <span class="cell-address">{address ?? '–'}</span>
        <progress
          max={Math.max(1, assigned)}
          value={done}
          aria-label={`slot ${slot}: ${done} of ${assigned} products`}
        />
        <span class="cell-count">
          {count(done)}/{count(assigned)}
        </span>
      </button>
    </li>
  );
}

function Details({ run, slot }: { run: RunDocument; slot: number }) {
  const [events, setEvents] = useState<RunEvent[] | null>(null);
  const epochs = run.instances.filter((i) => i.slot === slot);
  const phases = epochs.map((i) => `${i.epoch} ${i.phase}`).join();
  useEffect(() => {
    // A report file has no server behind it.
    if (location.protocol === 'file:') return;
    readSlot(run.run, slot).then(setEvents, () => setEvents([]));
  }, [run.run, slot, phases]);
  const end = run.projection?.instances.find((i) => i.slot === slot);
  return (
    <div class="details" role="region" aria-label={`Slot ${slot}`}>
      {epochs.toReversed().map((instance) => (
        <dl key={instance.epoch} class="pairs">
          <Pair name={`slot ${slot}, epoch ${instance.epoch}`}>
            <Pill tone={toneOf(instance)}>{instance.phase}</Pill> since <Time at={instance.since} />
            {instance.reason !== null && `: ${instance.reason}`}
          </Pair>
          <Pair name="instance">
            {instance.instanceId ?? 'not launched'} {instance.zone !== null && `in ${instance.zone}`}
          </Pair>
          <Pair name="address">{instance.address ?? '–'}</Pair>
          <Pair name="products">
            {count(doneOf(instance))} of {count(instance.progress?.assigned ?? 0)}
            {instance.progress &&
              doneOf(instance) > 0 &&
              `, ${share(instance.progress.failed / doneOf(instance))} failed`}
          </Pair>
          <Pair name="smallest gap">
            {instance.progress?.minGapMs == null ? '–' : milliseconds(instance.progress.minGapMs)}
          </Pair>
          <Pair name="a page takes">
            {instance.progress?.pageMs == null ? '–' : duration(instance.progress.pageMs)}
          </Pair>
          <Pair name="last heartbeat">
            {instance.lastHeartbeatAt === null ? '–' : <Time at={instance.lastHeartbeatAt} />}
          </Pair>
          {end?.epoch === instance.epoch && end.p50 !== null && (
            <Pair name="done at">
              <Time at={end.p50} />
            </Pair>
          )}
          {instance.problem !== null && <Pair name="problem">{instance.problem}</Pair>}
          {instance.incident && (
            <Pair name="incident">
              {instance.incident.verdict} by {instance.incident.rule} <Time at={instance.incident.atMs} />
            </Pair>
          )}
        </dl>
      ))}
      {events && events.length > 0 && (
        <Timeline label="Events of the instance">
          {events.map(({ atMs, kind, from, to, detail, epoch }, i) => (
            <li key={i}>
              <Time at={atMs} />{' '}
              <span>
                {kind === 'instance' ? `epoch ${epoch}: ${from ?? 'new'} → ${to}` : kind}
                {detail !== null && `: ${detail}`}
              </span>
            </li>
          ))}
        </Timeline>
      )}
    </div>
  );
}

const Pair = ({ name, children }: { name: string; children: preact.ComponentChildren }) => (
  <div>
    <dt>
      <Words text={name} />
    </dt>
    <dd>{children}</dd>
  </div>
);
