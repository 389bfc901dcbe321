/** What happened, as the page lists it. Pure. */
import type { TimelineEntry } from '../../../core/read/timeline.ts';

/** Entries that say the same with other numbers. */
export interface StoryGroup {
  newest: TimelineEntry;
  /** Newest first. */
  older: TimelineEntry[];
}

/** Numbers, durations, and lists of slots: `slots 0-4, 7`, `12m 5s`, `3 %`. */
const NUMBERS = /\d[\d.,:-]*(?:\s?(?:ms|[smhd])\b)?(?:,? (?=\d))?/g;
const kindOf = (text: string): string => text.replaceAll(NUMBERS, '#').replaceAll(/#+/g, '#');

export const isAlarm = ({ text }: TimelineEntry): boolean => text.startsWith('! ');

/**
 * Newest first, what repeats itself under its newest entry.
 * @param wanted text that an entry contains, in any case
 */
export function groupStory(story: readonly TimelineEntry[], wanted = '', alarmsOnly = false): StoryGroup[] {
  const text = wanted.trim().toLowerCase();
  const groups = new Map<string, StoryGroup>();
  for (const entry of story.toSorted((a, b) => b.atMs - a.atMs)) {
    if ((alarmsOnly && !isAlarm(entry)) || !entry.text.toLowerCase().includes(text)) continue;
    const kind = kindOf(entry.text);
    const group = groups.get(kind);
    if (group) group.older.push(entry);
    else groups.set(kind, { newest: entry, older: [] });
  }
  return [...groups.values()];
}
