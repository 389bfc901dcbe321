import { describe, expect, it } from 'vitest';
import { fleetSubnets } from '../../../../orchestrator/core/cloud-access/launch-network.ts';
import { bundleToGoOnWith, bundlesOf, putBundle } from '../../../../orchestrator/core/cloud-access/launch-template.ts';
import type { SubnetInfo } from '../../../../orchestrator/core/cloud/compute.ts';
import type { InstanceRecord } from '../../../../orchestrator/core/model/stores.ts';
import { AppError } from '../../../../shared/domain/errors.ts';
import { MemoryObjectStore } from '../../../../orchestrator/core/simulation/cloud/memory-objects.ts';
import { encodeSettingsLine, parseUserData, type UserData } from '../../../../shared/wire/settings.ts';
import { oneTitle } from '../../../support/one-title.ts';
import { userDataFor } from '../../../support/sandbox/test-bundle.ts';

const AWS = { bucket: 'fleet', endpoint: null };

function bundle(onOpen: () => void = () => {}) {
  return {
    sha256: 'a'.repeat(64),
    sizeBytes: 3,
    contents: [],
    async *open() {
      onOpen();
      yield Uint8Array.of(1, 2, 3);
    },
  };
}

describe('putBundle', () => {
  it('uploads the bundle once, and afterwards only checks that it exists', async () => {
    const store = new MemoryObjectStore();
    const calls: string[] = [];
    store.onCall = (operation, key) => void calls.push(`${operation} ${key}`);
    let opened = 0;
    const given = bundle(() => void opened++);
    expect(await putBundle(store, given, AWS)).toBe('created');
    expect(await putBundle(store, given, AWS)).toBe('exists');
    const key = `bundles/${'a'.repeat(64)}.tar.gz`;
    expect(calls).toEqual([`exists ${key}`, `put ${key}`, `exists ${key}`]);
    expect(opened).toBe(1);
    expect(store.objects.get(key)).toEqual(Uint8Array.of(1, 2, 3));
  });

  it('names the bucket that refuses the upload', async () => {
    const store = new MemoryObjectStore();
    store.onCall = () => {
      throw Object.assign(new Error('no'), { name: 'AccessDenied', $metadata: { httpStatusCode: 403 } });
    };
    await expect(putBundle(store, bundle(), AWS)).rejects.toMatchObject({
      code: 'aws-denied',
      message: expect.stringContaining('putting the bundle into fleet'),
    });
  });
});

const claim = (sha256: string): Pick<InstanceRecord, 'request'> => {
  const userData = Buffer.from(userDataFor({ bundleUrl: 'http://127.0.0.1/b', sha256 }), 'base64').toString('utf8');
  return { request: { userData } as InstanceRecord['request'] };
};

/** The same, written by an earlier version. */
const olderClaim = (sha256: string): Pick<InstanceRecord, 'request'> => {
  const { crawlSettings: _none, ...own } = parseUserData(claim(sha256).request.userData) as UserData;
  const { site: given, mapping } = oneTitle('http://127.0.0.1:1/{id}');
  const { maxRatePerSecond: _rate, onBan: _onBan, ...site } = given;
  return {
    request: { userData: encodeSettingsLine({ ...own, version: 1, site, mapping }) } as InstanceRecord['request'],
  };
};

describe('bundleToGoOnWith', () => {
  const [a, b] = ['a'.repeat(64), 'b'.repeat(64)];
  const noNode = (): Promise<never> => Promise.reject(new AppError('runtime-unavailable', 'there is no npm'));

  it('is a newly built bundle', async () => {
    const given = bundle();
    const said: string[] = [];
    const make = () => Promise.resolve(given);
    expect(await bundleToGoOnWith(make, [claim(b)], new MemoryObjectStore(), (t) => said.push(t))).toBe(given);
    expect(said).toEqual([]);
  });

  it('is, where Node is unavailable, the bundle of the newest claim that is in the bucket, with a message', async () => {
    const store = new MemoryObjectStore();
    await store.putIfAbsent(`bundles/${a}.tar.gz`, Uint8Array.of(1));
    const said: string[] = [];
    const claims = [claim(a), claim(b)];
    expect(await bundleToGoOnWith(noNode, claims, store, (t) => said.push(t))).toEqual({ sha256: a });
    expect(said).toEqual(['there is no npm; further instances get the bundle that the run began with']);
    store.objects.clear();
    await expect(bundleToGoOnWith(noNode, claims, store, () => {})).rejects.toMatchObject({
      code: 'runtime-unavailable',
    });
  });

  it('is never the bundle of an earlier version, which cannot read the user data of this one', async () => {
    const store = new MemoryObjectStore();
    await store.putIfAbsent(`bundles/${a}.tar.gz`, Uint8Array.of(1));
    await expect(bundleToGoOnWith(noNode, [olderClaim(a)], store, () => {})).rejects.toMatchObject({
      code: 'runtime-unavailable',
    });
    expect(bundlesOf([olderClaim(a)])).toEqual([a]);
  });
});

describe('bundlesOf', () => {
  it('names each bundle of the stored claims once, and skips unreadable user data', () => {
    const unread = { request: { userData: '#!/bin/sh' } as InstanceRecord['request'] };
    const [a, b] = ['a'.repeat(64), 'b'.repeat(64)];
    expect(bundlesOf([claim(a), claim(b), unread, claim(a)])).toEqual([a, b]);
    expect(bundlesOf([])).toEqual([]);
  });
});

const subnets = ['f', 'b', 'a', 'c', 'a'].map((zone, i): SubnetInfo => ({
  id: `subnet-${i}`,
  zone,
  vpcId: 'vpc',
  publicAddresses: true,
}));
const compute = { subnets: () => Promise.resolve(subnets) };

/** Each zone of the load balancer has a public address, which costs money. */
describe('fleetSubnets', () => {
  it('takes two zones of the default VPC with all their subnets, always the same ones', async () => {
    expect((await fleetSubnets(compute, [])).map((s) => s.id)).toEqual(['subnet-1', 'subnet-2', 'subnet-4']);
  });

  it('takes every configured subnet', async () => {
    expect(await fleetSubnets(compute, ['subnet-0'])).toEqual(subnets);
  });
});
