import { expect, it } from 'vitest';
import { OpenResources } from '../../../orchestrator/core/open-resources.ts';

function tracked() {
  const closed: string[] = [];
  const close = (name: string) => () => void closed.push(name);
  return {
    closed,
    sync: (name: string): Disposable => ({ [Symbol.dispose]: close(name) }),
    async: (name: string): AsyncDisposable => ({
      [Symbol.asyncDispose]: async () => {
        await Promise.resolve();
        close(name)();
      },
    }),
    close,
  };
}

it('closes what was opened last first, and once', async () => {
  const { closed, sync, async, close } = tracked();
  const opened = new OpenResources();
  opened.use(sync('database'));
  opened.defer(close('sandbox'));
  opened.use(async('session'));
  await opened[Symbol.asyncDispose]();
  await opened[Symbol.asyncDispose]();
  expect(closed).toEqual(['session', 'sandbox', 'database']);
});

it('leaves to the new owner what was moved', async () => {
  const { closed, sync } = tracked();
  const opened = new OpenResources();
  opened.use(sync('lock'));
  const moved = opened.move();
  await opened[Symbol.asyncDispose]();
  expect(closed).toEqual([]);
  await moved[Symbol.asyncDispose]();
  expect(closed).toEqual(['lock']);
});

it('closes the rest although one fails, and throws the first error', async () => {
  const { closed, sync } = tracked();
  const opened = new OpenResources();
  opened.use(sync('database'));
  opened.defer(() => Promise.reject(new Error('second')));
  opened.defer(() => {
    throw new Error('first');
  });
  await expect(opened[Symbol.asyncDispose]()).rejects.toThrow('first');
  expect(closed).toEqual(['database']);
});
