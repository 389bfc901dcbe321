import { describe, expect, it } from 'vitest';
import { architecturesWithBrowser } from '../../../../orchestrator/core/prepare/browser-boot.ts';
import { judgeBrowser, judgeVolumes } from '../../../../orchestrator/core/checks/image.ts';
import type { ImageFacts } from '../../../../orchestrator/core/cloud/image-facts.ts';

const image = (name: string, ownerId: string, change: Partial<ImageFacts> = {}): ImageFacts => ({
  id: 'ami-1',
  name,
  ownerId,
  ownerAlias: null,
  architecture: 'arm64',
  state: 'available',
  tags: {},
  keptVolumes: [],
  ...change,
});
const AMAZON = '137112412989';
const CANONICAL = '099720109477';
const MINE = '111122223333';

describe('the findings about the browser on an image', () => {
  it.each<[string, ImageFacts, string[]]>([
    ['ours', image('crawlfleet-browser-arm64-1', MINE, { tags: { 'crawlfleet:image': 'browser' } }), []],
    ['Debian 13', image('debian-13-arm64-20261101-1', '136693071363'), ['warning: each boot installs the browser']],
    [
      'Debian 12 in another partition',
      image('debian-12-amd64-1', '1', { ownerAlias: 'amazon' }),
      ['warning: installs'],
    ],
    ['Amazon Linux', image('al2023-ami-2023.9.20261101.0-kernel-6.1-arm64', AMAZON), ['failed: no Chromium']],
    [
      'Ubuntu',
      image('ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-arm64-server-1', CANONICAL),
      ['failed: every boot would fail'],
    ],
    ['a copy with a stock name', image('al2023-ami-2023-with-chrome', MINE), ['warning: cannot be seen']],
    ['a private one', image('golden', MINE), ['warning: cannot be seen']],
  ])('%s', (_what, given, expected) => {
    const findings = judgeBrowser(given);
    expect(findings).toHaveLength(expected.length);
    for (const [i, line] of expected.entries()) {
      const [level, part] = line.split(': ') as [string, string];
      expect(findings[i]).toMatchObject({ level, text: expect.stringMatching(part) });
    }
  });
});

describe('volumes of an image', () => {
  it('must be deleted with their machines', () => {
    expect(judgeVolumes(image('golden', MINE))).toEqual([]);
    expect(judgeVolumes(image('golden', MINE, { keptVolumes: ['/dev/xvda', '/dev/sdb'] }))).toMatchObject([
      {
        level: 'failed',
        text: expect.stringContaining('ami-1 keeps /dev/xvda, /dev/sdb when an instance ends') as string,
      },
    ]);
  });
});

describe('images that a run with a browser may need', () => {
  it('are for the types that can run a browser', () => {
    expect(architecturesWithBrowser(['t4g.nano', 't3.small'])).toEqual(['x86_64']);
    expect(architecturesWithBrowser(['t4g.small', 't3.small', 't4g.medium'])).toEqual(['arm64', 'x86_64']);
    expect(architecturesWithBrowser(['t4g.nano'])).toEqual(['arm64']);
  });
});
