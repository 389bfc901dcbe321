/**
 * A user ID without an entry in /etc/passwd, as in a container started with `--user 4711`: Node then throws for both.
 */
import { homedir, userInfo } from 'node:os';
import { AppError } from '../../shared/domain/errors.ts';

/** Sets HOME where neither it nor an entry names a folder: the AWS SDK asks for one before every first call. */
export function provideHome(environment: NodeJS.ProcessEnv): void {
  try {
    homedir();
  } catch {
    // Docker's own choice for such a user.
    environment.HOME = '/';
  }
}

/** Throws `platform` where the user has no name. */
export function userName(): string {
  try {
    return userInfo().username;
  } catch {
    throw new AppError(
      'platform',
      `user ${process.getuid?.()} has no entry in /etc/passwd, and a unit names its user`,
      {
        hint: 'Run the command on the machine of the unit, as the user that is to run it.',
      },
    );
  }
}
