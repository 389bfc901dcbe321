/**
 * Loaded into the process of an instance: writes how long each fdatasync has taken, which only its journal asks for, in
 * milliseconds and a line each, into a file of the folder that its own URL names.
 */
import fs from 'node:fs';

const file = `${new URL(import.meta.url).searchParams.get('folder')}/journal-${process.pid}`;
const { fdatasync } = fs;
let times = '';

fs.fdatasync = (fd, done) => {
  const startMs = performance.now();
  fdatasync(fd, (error) => {
    times += `${performance.now() - startMs}\n`;
    done(error);
  });
};
setInterval(() => {
  fs.appendFileSync(file, times);
  times = '';
}, 1_000).unref();
