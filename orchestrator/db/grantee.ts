/** A connection's account in the form a GRANT needs, so that the statement in a message can be pasted. */
import type { Database } from './connect.ts';

/** Such as `'crawl'@'%'`; MySQL and MariaDB only. */
export async function grantee(db: Database): Promise<string> {
  const [rows] = (await db.knex.raw('select current_user() as account')) as [{ account: string }[]];
  const account = rows[0]?.account ?? '';
  const at = account.lastIndexOf('@');
  const quoted = (part: string): string => `'${part.replaceAll("'", "''")}'`;
  return `${quoted(account.slice(0, at))}@${quoted(account.slice(at + 1))}`;
}
