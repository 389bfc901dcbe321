/** The recipe of the image, and how its last console lines are interpreted. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  imagesInUse,
  keptImages,
  refusalOf,
  removeImages,
  supersededImages,
} from '../../../../orchestrator/features/image/prune-images.ts';
import { isUnfinished } from '../../../../orchestrator/core/lookup/find-run.ts';
import type { OwnImage } from '../../../../orchestrator/core/cloud/image-lookup.ts';
import type { RunReport } from '../../../../orchestrator/core/model/report.ts';
import type { InstanceRecord, RunReader } from '../../../../orchestrator/core/model/stores.ts';
import type { InstancePhase } from '../../../../shared/domain/states.ts';
import { imageRecipe, packerFile, readyVersion, recipeFailure } from '../../../../userdata/image-recipe.ts';
import { MAX_USER_DATA_BYTES } from '../../../../userdata/user-data.ts';
import { aRun, anInstance } from '../../core/builders.ts';
import { tempDir } from '../../../support/temp-dir.ts';

describe('the recipe', () => {
  it.each([true, false])('is valid bash (power off: %s)', (powerOff) => {
    using folder = tempDir();
    writeFileSync(folder.file('recipe.sh'), imageRecipe({ powerOff }));
    execFileSync('bash', ['-n', folder.file('recipe.sh')]);
    expect(Buffer.byteLength(imageRecipe({ powerOff }))).toBeLessThan(MAX_USER_DATA_BYTES);
  });

  it('arms the power-off first, without leaving it on the disk', () => {
    const lines = imageRecipe({ powerOff: true }).split('\n');
    const armed = lines.findIndex((line) => line.startsWith('systemd-run '));
    expect(armed).toBeGreaterThan(0);
    expect(armed).toBeLessThan(lines.findIndex((line) => line.includes('apt-get')));
    expect(imageRecipe({ powerOff: true })).not.toContain('/etc/systemd/system');
  });

  it('leaves the shutdown to Packer', () => {
    expect(imageRecipe({ powerOff: false })).not.toContain('poweroff');
    expect(packerFile('eu-west-1', 'arm64', { owner: 'me', tags: {} })).toContain('debian-13-arm64-*');
    const file = packerFile('eu-west-1', 'x86_64', { owner: 'me', tags: { CostCenter: '4711' } });
    expect(file).toContain(
      'snapshot_tags = { "crawlfleet:image" = "browser", "crawlfleet:owner" = "me", "CostCenter" = "4711" }',
    );
    expect(file).toContain('run_tags        = { "CostCenter" = "4711" }');
  });
});

describe('the console of a builder', () => {
  it.each([
    ['crawlfleet-image: ready 156.0.8078.79\r\n[  OK  ] Reached target', '156.0.8078.79', null],
    ['a\ncrawlfleet-image: failed: line 12\nb', null, 'line 12'],
    ['crawlfleet-image: ready', null, null],
    ['', null, null],
  ])('%j', (console, version, why) => {
    expect(readyVersion(console)).toBe(version);
    expect(recipeFailure(console)).toBe(why);
  });
});

describe('old images', () => {
  const mine = { owner: 'me', ids: new Set<string>() };
  const ids = (images: readonly OwnImage[]): string[] => images.map(({ id }) => id);
  const image = (id: string, architecture: string, state = 'available'): OwnImage => ({
    id,
    name: id,
    architecture,
    state,
    createdAt: '',
    owner: 'me',
    chromium: null,
    snapshots: [],
  });

  it('are all but the newest launchable one of each architecture', () => {
    const newestFirst = [
      image('pending', 'arm64', 'pending'),
      image('failed', 'arm64', 'failed'),
      image('a2', 'arm64'),
      image('x1', 'x86_64'),
      image('a1', 'arm64'),
    ];
    expect(ids(supersededImages(newestFirst, mine))).toEqual(['failed', 'a1']);
  });

  it('exclude those that the configuration or a run names, and those of another owner', () => {
    const others = [
      { ...image('b1', 'arm64'), owner: 'b' },
      { ...image('packer', 'arm64'), owner: null },
    ];
    const newestFirst = [image('new', 'arm64'), image('pinned', 'arm64'), ...others, image('old', 'arm64')];
    const needed = { owner: 'me', ids: new Set(['pinned']) };
    expect(ids(supersededImages(newestFirst, needed))).toEqual(['old']);
    expect(keptImages(newestFirst, needed)).toEqual([
      { id: 'pinned', why: 'the configuration or a run that has not ended names it' },
      { id: 'b1', why: 'it belongs to the owner b' },
      { id: 'packer', why: 'it has no tag crawlfleet:owner' },
    ]);
  });

  it('in use by a run that has not ended are those that it pins and those in its claims', async () => {
    const { settings } = aRun();
    const pinned = { ...settings, aws: { ...settings.aws, image: 'ami-pinned' } };
    const ended = { phase: 'completed', report: {} as RunReport, balancers: {} } as const;
    const runs = [
      aRun({ id: 'going', settings: pinned }),
      aRun({ id: 'left', ...ended }),
      ...Array.from({ length: 60 }, (_, i) => aRun({ id: `over-${i}`, ...ended })),
      aRun({ id: 'long' }),
    ];
    const on = (imageId: string, phase: InstancePhase): InstanceRecord => {
      const record = anInstance(0, { phase });
      return { ...record, request: { ...record.request, imageId } };
    };
    const instances: Record<string, InstanceRecord[]> = {
      going: [on('ami-going', 'terminated')],
      left: [on('ami-left', 'terminating')],
      long: [on('ami-long', 'crawling')],
    };
    const asked: string[] = [];
    const of = (id: string) => {
      asked.push(id);
      return {
        fleet: { instances: () => Promise.resolve(instances[id] ?? [on('ami-over', 'terminated')]) },
      } as RunReader;
    };
    const store = {
      list: (limit: number) => Promise.resolve(runs.slice(0, limit)),
      unfinished: () => Promise.resolve(runs.filter(isUnfinished)),
    };
    const inUse = await imagesInUse({ runs: store, of });
    expect(inUse.sort()).toEqual(['ami-going', 'ami-left', 'ami-long', 'ami-pinned']);
    expect(asked.filter((id) => id === 'going')).toHaveLength(1);
  });

  it('are removed even if EC2 refuses one of them, which is reported', async () => {
    const said: string[] = [];
    const cloud = {
      removeImage: ({ id }: Pick<OwnImage, 'id'>) =>
        id === 'a' ? Promise.reject(new Error('UnauthorizedOperation')) : Promise.resolve(),
    };
    const nameOf = (id: string): string => `eu-central-1 ${id}`;
    const images = [image('a', 'arm64'), image('b', 'arm64')];
    const pruned = await removeImages(cloud, images, (text) => said.push(text), nameOf);
    expect(pruned).toEqual({ removed: ['b'], refused: [{ id: 'a', why: expect.stringContaining('Unauthorized') }] });
    expect(said).toEqual([expect.stringContaining('! eu-central-1 a could not be removed'), 'removed eu-central-1 b']);
    expect(refusalOf(pruned, nameOf)).toMatchObject({
      code: 'aws-failed',
      message: 'eu-central-1 a could not be removed',
    });
    expect(refusalOf({ removed: ['b'], refused: [] }, nameOf)).toBeNull();
  });
});
