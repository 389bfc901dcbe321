/** The products of one run: by outcome, reason, and part of the ID, 200 at a time. */
import { useEffect, useState } from 'preact/hooks';
import { FAILURE_REASONS } from '../../../../shared/domain/outcome.ts';
import type { ProductsDocument } from '../serve-app.ts';
import { findProducts } from './api.ts';
import { count, isUnbreakable, plural } from './format.ts';
import { Fault, go, SiteLink, Table, useLoaded } from './parts.tsx';

const PARTS = ['text', 'outcome', 'reason', 'after'] as const;

/** Its query is in the address, so a list can be sent to somebody. */
export function ProductsView({ run }: { run: string }) {
  const [query] = useState(() => {
    const given = new URLSearchParams(location.search);
    return Object.fromEntries(PARTS.flatMap((name) => (given.get(name) ? [[name, given.get(name)!]] : [])));
  });
  const { value, error } = useLoaded(() => findProducts(run, query));
  const here = `/runs/${encodeURIComponent(run)}`;
  useEffect(() => {
    document.title = `Products of ${run} · crawlfleet`;
  }, [run]);
  const search = (change: Record<string, string>): void => {
    const next = Object.entries({ ...query, after: '', ...change }).filter(([, value]) => value !== '');
    go(`${here}/products?${new URLSearchParams(next).toString()}`);
  };
  return (
    <>
      <h1>
        Products of <a href={here}>{run}</a>
      </h1>
      <form
        role="search"
        class="filter"
        aria-label="Products of the run"
        onSubmit={(event) => {
          event.preventDefault();
          search(Object.fromEntries(new FormData(event.currentTarget)) as Record<string, string>);
        }}
      >
        <input type="search" name="text" aria-label="Part of the ID" placeholder="Part of the ID" value={query.text} />
        <Choice name="outcome" given={query.outcome} options={['stored', 'gone', 'failed']} />
        <Choice name="reason" given={query.reason} options={FAILURE_REASONS} />
        <button>Find</button>
      </form>
      {error && <Fault error={error} />}
      {!value && !error && <p class="muted">Looking …</p>}
      {value && (
        <Found found={value} from={Number(query.after ?? 0)} onMore={(after) => search({ after: String(after) })} />
      )}
    </>
  );
}

function Choice({ name, given, options }: { name: string; given: string | undefined; options: readonly string[] }) {
  return (
    <select name={name} aria-label={name}>
      <option value="">any {name}</option>
      {options.map((option) => (
        <option key={option} value={option} selected={option === given}>
          {option}
        </option>
      ))}
    </select>
  );
}

function Found({
  found: { products, next, planned },
  from,
  onMore,
}: {
  found: ProductsDocument;
  from: number;
  onMore: (after: number) => void;
}) {
  const looked = `numbers ${count(from + 1)} to ${count(Math.max(from + 1, next ?? planned))} of ${count(planned)}`;
  return (
    <>
      <p class="muted" role="status">
        {plural(products.length, 'product')} found among {looked}
        {next !== null && '; there may be more behind them'}.
      </p>
      {products.length > 0 && (
        <Table
          label="Products"
          stacks
          columns={[
            {
              head: 'ID',
              of: ({ id }) => (
                <a class={isUnbreakable(id) ? 'whole' : ''} href={`/products/${encodeURIComponent(id)}`}>
                  {id}
                </a>
              ),
            },
            { head: 'Outcome', of: ({ outcome }) => outcome ?? 'none yet' },
            { head: 'Reason', of: ({ reason }) => reason ?? '' },
            { head: 'Detail', of: ({ detail }) => detail ?? '' },
            { head: 'URL', of: ({ url }) => <SiteLink url={url} /> },
          ]}
          rows={products}
        />
      )}
      {next !== null && <button onClick={() => onMore(next)}>Go on</button>}
    </>
  );
}
