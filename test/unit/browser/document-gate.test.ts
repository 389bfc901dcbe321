/** Which documents one visit may request. */
import { describe, expect, it } from 'vitest';
import { DocumentGate } from '../../../crawl-api/fetch/browser/document-gate.ts';

const URL_ASKED = 'https://shop.example/item/1?a=%7e';
const paused = (url: string, networkId: string, frameId = 'main') => ({ request: { url }, networkId, frameId });

describe('DocumentGate', () => {
  it('admits nothing outside a visit', () => {
    const gate = new DocumentGate('main');
    expect(gate.admits(paused(URL_ASKED, 'a'))).toBe(false);
    gate.open(URL_ASKED, () => {});
    gate.shut();
    expect(gate.admits(paused(URL_ASKED, 'a'))).toBe(false);
  });

  it('admits the requested page first, and reports the first URL that it leads to', () => {
    const gate = new DocumentGate('main');
    const report = gate.open(`${URL_ASKED}#top`, () => {});
    expect(gate.admits(paused('https://shop.example/item/0', 'a'))).toBe(false);
    expect(report.move).toBe(null);
    expect(gate.admits(paused('https://shop.example/item/1?a=~', 'b'))).toBe(true);
    expect(gate.admits(paused('https://shop.example/x', 'c'))).toBe(false);
    expect(gate.admits(paused('https://shop.example/y', 'd'))).toBe(false);
    expect(report.move).toBe('https://shop.example/x');
  });

  it('follows no redirect of the requested page, and does not report it as a move', () => {
    const gate = new DocumentGate('main');
    const report = gate.open(URL_ASKED, () => {});
    expect(gate.admits(paused(URL_ASKED, 'a'))).toBe(true);
    expect(gate.admits(paused('https://www.shop.example/2', 'a'))).toBe(false);
    expect(report.move).toBe(null);
  });

  it('admits twenty documents, including the page itself', () => {
    const gate = new DocumentGate('main');
    gate.open(URL_ASKED, () => {});
    gate.admits(paused(URL_ASKED, 'a'));
    const admitted = Array.from({ length: 30 }, (_, n) => gate.admits(paused('https://x.example/', `f${n}`, 'f')));
    expect(admitted.filter(Boolean)).toHaveLength(19);
  });

  it('reports a flood once', () => {
    const gate = new DocumentGate('main');
    let floods = 0;
    gate.open(URL_ASKED, () => floods++);
    for (let n = 0; n < 200; n++) gate.countReply();
    expect(floods).toBe(0);
    for (let n = 0; n < 200; n++) gate.countReply();
    expect(floods).toBe(1);
  });
});
