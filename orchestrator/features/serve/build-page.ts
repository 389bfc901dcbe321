/** Part of `npm run build`: the page as the package has it. `build-page.ts FOLDER`. */
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundlePage } from './bundle-page.ts';

const folder = process.argv[2]!;
const { js, css } = await bundlePage();
mkdirSync(folder, { recursive: true });
writeFileSync(join(folder, 'main.js'), js);
writeFileSync(join(folder, 'main.css'), css);
copyFileSync(fileURLToPath(new URL('page/index.html', import.meta.url)), join(folder, 'index.html'));
