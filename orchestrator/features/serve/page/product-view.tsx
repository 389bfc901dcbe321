/** One product: its row, and what became of it night after night. */
import { useEffect } from 'preact/hooks';
import type { ProductDocument, ProductNight } from '../../../core/read/product-document.ts';
import { readProduct } from './api.ts';
import { plural, valueText } from './format.ts';
import { EvidenceView, Fault, Pill, Section, Table, Time, Timeline, useLoaded, type Tone } from './parts.tsx';

const TONES: Record<NonNullable<ProductNight['outcome']>, Tone> = { stored: 'good', gone: 'late', failed: 'bad' };

export function ProductView({ id }: { id: string }) {
  const { value, error } = useLoaded(() => readProduct(id));
  useEffect(() => {
    document.title = `${value?.id ?? id} · crawlfleet`;
  }, [value]);
  if (!value) return error ? <Fault error={error} /> : <p class="muted">Looking for {id} …</p>;
  const { nights } = value;
  return (
    <>
      <h1 class="product">{value.id}</h1>
      {nights.length === 0 && <p class="fault">None of the last runs has this product.</p>}
      {nights[0] && (
        <p class="url">
          <a href={nights[0].url} rel="noreferrer noopener" target="_blank">
            {nights[0].url}
          </a>
        </p>
      )}
      {nights[0]?.request && <pre tabIndex={0}>POST {nights[0].request.body}</pre>}
      <Rows rows={value.rows} />
      {value.changes.map((history) => (
        <Changes key={history.table} {...history} />
      ))}
      {nights.map((night) => (
        <Night key={night.run} night={night} />
      ))}
    </>
  );
}

function Rows({ rows }: Pick<ProductDocument, 'rows'>) {
  return rows
    .filter((table) => table.rows.length > 0)
    .map(({ table, rows }) => (
      <Section key={table} title={`In table ${table}`} aside={rows.length > 1 ? plural(rows.length, 'row') : undefined}>
        <Table
          label={`Rows of ${table}`}
          columns={Object.keys(rows[0]!).map((head) => ({
            head,
            of: (row: Record<string, unknown>) => valueOf(row[head]),
          }))}
          rows={rows}
        />
      </Section>
    ));
}

const valueOf = (value: unknown) => (value === null ? <i class="muted">null</i> : valueText(value));

function Changes({ table, changes }: ProductDocument['changes'][number]) {
  return (
    <Section title={`Changes in ${table}`} aside={plural(changes.length, 'change')}>
      <Timeline label={`Changes in ${table}`}>
        {changes.map(({ at, row, field, from, to }, i) => (
          <li key={i}>
            <Time at={at} withDate />{' '}
            <div>
              <b>{[row, field].filter((part) => part !== null).join(' ') || 'product'}</b> {valueOf(from)} →{' '}
              {valueOf(to)}
            </div>
          </li>
        ))}
      </Timeline>
    </Section>
  );
}

function Night({ night }: { night: ProductNight }) {
  const { run, startedAt, outcome, reason, detail, attempts } = night;
  return (
    <Section
      title={run}
      aside={
        <>
          <Time at={startedAt} withDate /> <a href={`/runs/${encodeURIComponent(run)}`}>open the run</a>
        </>
      }
    >
      <p>
        <Pill tone={outcome === null ? 'plain' : TONES[outcome]}>{outcome ?? 'not crawled yet'}</Pill> {reason}
        {detail !== null && `${reason === null ? '' : ': '}${detail}`}
      </p>
      {attempts.length > 0 && (
        <Timeline label="Attempts">
          {attempts.map(({ at, slot, epoch, address, outcome, reason, detail, evidence }, i) => (
            <li key={i}>
              {at !== null && <Time at={at} />}{' '}
              <div>
                <b>{outcome ?? 'stopped'}</b> {reason}
                {detail !== null && `: ${detail}`}{' '}
                {slot !== null && `(slot ${slot}.${epoch}${address === null ? '' : `, ${address}`})`}
                {evidence && <EvidenceView evidence={evidence} />}
              </div>
            </li>
          ))}
        </Timeline>
      )}
    </Section>
  );
}
