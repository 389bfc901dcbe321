/** Charts of a run on uPlot. Each has its figures as text too: a canvas says nothing to a screen reader. */
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

interface Line {
  label: string;
  /** Name of a colour in style.css, without `--`. */
  color: string;
  values: (number | null)[];
  /** Filled down to zero, or to the line with this index. */
  fill?: true | number;
  dash?: number[];
  width?: number;
  /** A step at each point, as bars have. */
  stepped?: true;
}

export interface ChartProps {
  title: string;
  /** The figures in a sentence. */
  summary: string;
  /** Milliseconds since 1970. */
  times: number[];
  lines: Line[];
  show: (value: number) => string;
  height?: number;
}

/** As the browser computes it: a canvas knows neither variables nor schemes. */
function color(name: string): string {
  const probe = document.createElement('i');
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const computed = getComputedStyle(probe).color;
  probe.remove();
  return computed;
}

/** A colour without a fill of its own fills with itself. */
const fillOf = (name: string): string => color(`${name}-fill, var(--${name})`);

export function Chart({ title, summary, times, lines, show, height = 200 }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const data = [times.map((ms) => ms / 1_000), ...lines.map((l) => l.values)] as uPlot.AlignedData;
  const shape = lines.map((l) => l.label).join();
  useEffect(() => {
    // The reference is empty as soon as the page shows something else, before these are undone.
    const box = place.current!;
    const draw = (): void => {
      plot.current?.destroy();
      plot.current = new uPlot(optionsOf(lines, show, box.clientWidth, height), data, box);
    };
    draw();
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const resize = new ResizeObserver(() => plot.current?.setSize({ width: box.clientWidth, height }));
    resize.observe(box);
    dark.addEventListener('change', draw);
    return () => {
      resize.disconnect();
      dark.removeEventListener('change', draw);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape]);
  useEffect(() => plot.current?.setData(data), [times, lines]);
  return (
    <figure class="chart">
      <figcaption>
        <strong>{title}</strong> <span>{summary}</span>
      </figcaption>
      <div ref={place} aria-hidden="true" />
      <ul class="legend" aria-hidden="true">
        {lines
          .filter((l) => l.label !== '')
          .map((l) => (
            <li key={l.label} style={{ '--legend': `var(--${l.color})` }}>
              {l.label}
            </li>
          ))}
      </ul>
    </figure>
  );
}

function optionsOf(lines: Line[], show: (value: number) => string, width: number, height: number): uPlot.Options {
  const axis = { stroke: color('muted'), grid: { stroke: color('line'), width: 1 }, ticks: { show: false } };
  return {
    width,
    height,
    legend: { show: false },
    cursor: { y: false, points: { size: 6 } },
    scales: { y: { range: (_, _least, most) => [0, most > 0 ? most * 1.08 : 1] } },
    axes: [
      {
        ...axis,
        values: (...[, seconds, , , step]) =>
          seconds.map((s) => new Date(s * 1_000).toTimeString().slice(0, step < 60 ? 8 : 5)),
        space: 80,
      },
      { ...axis, size: 56, values: (_, values) => values.map(show) },
    ],
    series: [
      {},
      ...lines.map(({ label, color: name, dash, width: stroke = 2, fill, stepped }): uPlot.Series => {
        const paths = stepped ? uPlot.paths.stepped!({ align: 1 }) : undefined;
        return {
          label,
          stroke: stroke === 0 ? 'transparent' : color(name),
          width: stroke,
          points: { show: false },
          ...(dash ? { dash } : {}),
          ...(paths ? { paths } : {}),
          ...(fill === true ? { fill: fillOf(name) } : {}),
        };
      }),
    ],
    bands: lines.flatMap(({ fill, color: name }, i) =>
      typeof fill === 'number' ? [{ series: [i + 1, fill + 1] as [number, number], fill: fillOf(name) }] : [],
    ),
  };
}
