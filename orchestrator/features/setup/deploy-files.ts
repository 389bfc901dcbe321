/** The files of deploy/. */
import { readFileSync } from 'node:fs';

/** The folder deploy/ of the checkout, and of the package, where this file is one folder deeper (dist/). */
const DEPLOY = new URL(import.meta.url.endsWith('.ts') ? '../../../deploy/' : '../../../../deploy/', import.meta.url);

/** The text of the file at this path below deploy/. */
export const readDeployFile = (path: string): string => readFileSync(new URL(path, DEPLOY), 'utf8');
