/**
 * Pages with status 200 that consist of a script which redirects the reader, or of nothing but a script. The start page
 * of a client-side application does not count: it has an element to build in and loads its program from a file.
 */
import type { PageShape } from './page-shape.ts';

/** `location = …`, `location.href = …`, `location.replace(…)`, a self-submitting form, a cookie set before a reload. */
const NAVIGATES =
  /\blocation(?:\s*\.\s*href)?\s*=[^=]|\blocation\s*\.\s*(?:replace|assign|reload)\s*\(|\.submit\s*\(|\bdocument\s*\.\s*cookie\s*=/;
/** `Loading…`, `Redirecting, please wait`. */
const NOTICE_CHARS = 80;
const BARE_SCRIPT_CHARS = 2_048;

export function isScriptShell(body: string, shape: PageShape): boolean {
  const text = body.trim();
  if (text === '' || text.startsWith('{') || text.startsWith('[')) return false;
  if (!/<[a-z!/]/i.test(text)) return text.length <= BARE_SCRIPT_CHARS && NAVIGATES.test(text) && /[;)'"}]$/.test(text);
  if (shape.textChars > NOTICE_CHARS) return false;
  if (shape.hasMetaRefresh) return true;
  if (NAVIGATES.test(shape.scripts)) return !shape.hasExternalScript || shape.otherElements === 0;
  return shape.textChars === 0 && shape.otherElements === 0 && shape.scripts !== '' && !shape.hasExternalScript;
}
