/** The page: which view an address shows, and what surrounds all of them. */
import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import './style.css';
import { decodePercent } from '../../../../shared/domain/percent.ts';
import { token } from './api.ts';
import { NightsView } from './nights-view.tsx';
import { go, TokenDialog, useToken } from './parts.tsx';
import { ProductView } from './product-view.tsx';
import type { ReportData } from '../report-html.ts';
import { ProductsView } from './products-view.tsx';
import { RunPage, RunView } from './run-view.tsx';

function onLink(event: MouseEvent): void {
  const link = (event.target as Element).closest('a');
  const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey;
  if (!link || !isPlain || link.origin !== location.origin || link.hash !== '') return;
  event.preventDefault();
  go(link.pathname + link.search);
}

function App() {
  const [path, setPath] = useState(location.pathname + location.search);
  useEffect(() => {
    const onMove = (): void => setPath(location.pathname + location.search);
    addEventListener('popstate', onMove);
    document.addEventListener('click', onLink);
    return () => {
      removeEventListener('popstate', onMove);
      document.removeEventListener('click', onLink);
    };
  }, []);
  const [, kind, given = '', list] = /^\/(runs|products)\/([^/?]+)(\/products)?(?:\?|$)/.exec(path) ?? [];
  const id = decodePercent(given);
  return (
    <>
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <header class="top">
        <a href="/" class="brand" aria-current={path === '/' ? 'page' : undefined}>
          crawlfleet
        </a>
        <Search />
        <TokenButton />
      </header>
      <TokenDialog />
      <main id="content" tabIndex={-1}>
        {kind === 'runs' && list !== undefined ? (
          <ProductsView key={path} run={id} />
        ) : kind === 'runs' ? (
          <RunView key={id} id={id} />
        ) : kind === 'products' ? (
          <ProductView key={id} id={id} />
        ) : (
          <NightsView />
        )}
      </main>
    </>
  );
}

function Search() {
  const onSubmit = (event: SubmitEvent): void => {
    event.preventDefault();
    const text = new FormData(event.target as HTMLFormElement).get('product') as string;
    if (text.trim() !== '') go(`/products/${encodeURIComponent(text.trim())}`);
  };
  return (
    <form role="search" class="search" onSubmit={onSubmit}>
      <label for="product" class="hidden">
        Product ID or URL
      </label>
      <input id="product" name="product" type="search" placeholder="Product ID or URL" autocomplete="off" />
    </form>
  );
}

function TokenButton() {
  const [isSet, setIsSet] = useState(token.get() !== null);
  useToken(() => setIsSet(token.get() !== null));
  const forget = (): void => {
    token.set(null);
    dispatchEvent(new Event('token'));
  };
  return isSet ? (
    <button class="quiet" onClick={forget}>
      Sign out
    </button>
  ) : null;
}

/** A report file has its run inside. */
const report = document.getElementById('report')?.textContent;
const view = report ? (
  <main>
    <RunPage {...(JSON.parse(report) as ReportData)} />
  </main>
) : (
  <App />
);
render(view, document.getElementById('app')!);
