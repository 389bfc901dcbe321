/** Prints what the names in its arguments resolve to, as JSON, with the machine's own files. */
import { NameResolver } from '../../../shared/adapters/http/name-resolver.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';

const names = new NameResolver({ clock: systemClock });
const found = process.argv.slice(2).map((name) =>
  names.resolve(name, 4).then(
    (addresses) => addresses.map(({ address }) => address),
    (error: NodeJS.ErrnoException) => error.code,
  ),
);
console.log(JSON.stringify(await Promise.all(found)));
