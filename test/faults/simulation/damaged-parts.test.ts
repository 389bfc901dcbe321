/** The model remembers what its instances wrote; a part that is not as it was written is read as in production. */
import { describe, expect, it } from 'vitest';
import type { SimulatedWorld } from '../../../orchestrator/core/simulation/world.ts';
import { play } from './play.ts';

type Change = (objects: Map<string, Uint8Array>, key: string) => void;

/** The alarms of a run in which the first part in the bucket is changed. */
async function alarmsAfter(change: Change): Promise<string[]> {
  let isChanged = false;
  const changeFirst = ({ cloud: { objects: store } }: SimulatedWorld): void => {
    const put = store.putIfAbsent.bind(store);
    store.putIfAbsent = async (key, body) => {
      const created = await put(key, body);
      if (!isChanged && key.endsWith('.ndjson.gz')) {
        isChanged = true;
        change(store.objects, key);
      }
      return created;
    };
  };
  const { timeline } = await play({ input: { products: 500 }, faults: [changeFirst] });
  expect(isChanged).toBe(true);
  return timeline.flatMap(({ text }) => (text.startsWith('! ') ? [text] : []));
}

describe('a part in the bucket', () => {
  const WRONG_HASH = /^! the object .* does not have the hash in its name/;

  it.each<[string, RegExp, Change]>([
    ['changed in place', WRONG_HASH, (objects, key) => void objects.get(key)!.fill(0, 20, 40)],
    ['replaced', WRONG_HASH, (objects, key) => void objects.set(key, Buffer.from('not a part'))],
    ['cut', WRONG_HASH, (objects, key) => void objects.set(key, objects.get(key)!.subarray(0, -1))],
    ['removed', /^! the bucket has no object/, (objects, key) => void objects.delete(key)],
  ])('is found out when it was %s', async (_, alarm, change) => {
    expect(await alarmsAfter(change)).toEqual([expect.stringMatching(alarm)]);
  });

  it('counts when its bytes are the same, wherever they are', async () => {
    expect(await alarmsAfter((objects, key) => void objects.set(key, objects.get(key)!.slice()))).toEqual([]);
  });
});
