/** Durations, sizes, rates and shares in the notation of fleet.yaml: `4h`, `1h30m`, `200ms`, `5MB`, `5/s`, `5%`. */

const DURATION_UNITS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const SIZE_UNITS: Record<string, number> = {
  B: 1,
  KB: 1_000,
  MB: 1_000_000,
  GB: 1_000_000_000,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
};

/** Milliseconds in `1h30m`, `200ms`, `10s`; null when the text is not a duration. Zero is a duration. */
export function parseDuration(text: string): number | null {
  const trimmed = text.trim();
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(trimmed)) return null;
  let total = 0;
  for (const [, amount, unit = 'ms'] of trimmed.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g))
    total += Number(amount) * (DURATION_UNITS[unit] ?? 0);
  return Number.isFinite(total) ? Math.round(total) : null;
}

/** `1h 30m`, `12.5s`, `200ms`: at most the two largest units. */
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms)) return 'never';
  if (ms < 1_000) return `${Math.round(ms)}ms`;
  if (ms < 60_000) return `${Math.round(ms / 100) / 10}s`;
  const totalSeconds = Math.round(ms / 1_000);
  const hours = Math.floor(totalSeconds / 3_600);
  const minutes = Math.floor((totalSeconds % 3_600) / 60);
  const seconds = totalSeconds % 60;
  if (hours > 0) return minutes > 0 ? `${hours}h ${minutes}m` : `${hours}h`;
  return seconds > 0 ? `${minutes}m ${seconds}s` : `${minutes}m`;
}

/** Bytes in `5MB` (10^6) or `5MiB` (2^20); null when the text is not a size. */
export function parseSize(text: string): number | null {
  const [, amount, unit] = /^(\d+(?:\.\d+)?)\s*(B|KB|MB|GB|KiB|MiB|GiB)$/.exec(text.trim()) ?? [];
  return unit === undefined ? null : Math.round(Number(amount) * (SIZE_UNITS[unit] ?? 0));
}

/** `512B`, `4.2KB`, `1.3GB`. */
export function formatSize(bytes: number): string {
  const unit = bytes < 1_000 ? 'B' : bytes < 1_000_000 ? 'KB' : bytes < 1_000_000_000 ? 'MB' : 'GB';
  return `${Math.round((bytes / SIZE_UNITS[unit]!) * 10) / 10}${unit}`;
}

/** Requests per second in `5/s`, `30/m`, `1000/h`; null when the text is not a rate or is zero. */
export function parseRate(text: string): number | null {
  const [, amount, unit] = /^(\d+(?:\.\d+)?)\s*\/\s*(s|m|h)$/.exec(text.trim()) ?? [];
  if (unit === undefined) return null;
  const perSecond = (Number(amount) * 1_000) / (DURATION_UNITS[unit] ?? 1);
  return perSecond > 0 ? perSecond : null;
}

/** A share in `5%` or `0.05`; null when the text is neither or is outside [0, 1]. */
export function parseShare(text: string): number | null {
  const match = /^(\d+(?:\.\d+)?)(%?)$/.exec(text.trim());
  if (!match) return null;
  const share = Number(match[1]) / (match[2] === '%' ? 100 : 1);
  return share >= 0 && share <= 1 ? share : null;
}
