/** The dashboard for Grafana that crawlfleet.json is made from; Grafana's own schema checks its types. */
import type { Dashboard, Panel } from '@grafana/schema';

interface Query {
  expr: string;
  legend: string;
}

let made = 0;

function panel(title: string, unit: string, queries: Query[], more: Partial<Panel> = {}): Panel {
  const place = made++;
  return {
    type: 'timeseries',
    title,
    id: made,
    datasource: { type: 'prometheus', uid: '${source}' },
    gridPos: { x: (place % 2) * 12, y: Math.floor(place / 2) * 8, w: 12, h: 8 },
    fieldConfig: { defaults: { unit }, overrides: [] },
    targets: queries.map(({ expr, legend }, i) => ({ refId: String.fromCharCode(65 + i), expr, legendFormat: legend })),
    ...more,
  };
}

const of = (metric: string): string => `crawlfleet_run_${metric}{table=~"$table"}`;

/** Reads the metrics of docs/metrics.md. */
export const dashboard: Dashboard = {
  title: 'crawlfleet',
  uid: 'crawlfleet',
  tags: ['crawlfleet'],
  schemaVersion: 39,
  editable: true,
  time: { from: 'now-6h', to: 'now' },
  refresh: '30s',
  templating: {
    list: [
      { type: 'datasource', name: 'source', query: 'prometheus', label: 'Source' },
      {
        type: 'query',
        name: 'table',
        label: 'Table',
        datasource: { type: 'prometheus', uid: '${source}' },
        query: 'label_values(crawlfleet_run_products_planned, table)',
        includeAll: true,
        multi: true,
        refresh: 2,
      },
    ],
  },
  panels: [
    panel('Products', 'short', [
      { expr: of('products'), legend: '{{table}} {{outcome}}' },
      { expr: of('products_planned'), legend: '{{table}} planned' },
    ]),
    panel('Requests a second', 'reqps', [{ expr: `rate(${of('requests')}[5m])`, legend: '{{table}}' }]),
    panel('Smallest gap against the interval', 's', [
      { expr: of('min_gap_seconds'), legend: '{{table}} smallest gap' },
      { expr: of('interval_seconds'), legend: '{{table}} interval' },
    ]),
    panel('Instances by phase', 'short', [{ expr: of('instances'), legend: '{{table}} {{phase}}' }]),
    panel('Addresses that have stopped', 'short', [{ expr: of('addresses_stopped'), legend: '{{table}} {{verdict}}' }]),
    panel('Cost', 'currencyUSD', [{ expr: of('cost_dollars'), legend: '{{table}}' }]),
    panel('Time to the deadline', 's', [
      { expr: `${of('deadline_time_seconds')} - time()`, legend: '{{table}} deadline' },
      { expr: `${of('forecast_end_time_seconds')} - time()`, legend: '{{table}} forecast {{quantile}}' },
    ]),
    panel('Last exit code', 'short', [{ expr: of('exit_code'), legend: '{{table}}' }], { type: 'stat' }),
  ],
};
