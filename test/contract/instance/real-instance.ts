/** The program of an instance in memory: all of it but its files, its sockets and its pages. */
import type { MainServerClient, Reply } from '../../../crawl-api/callbacks/main-server-client.ts';
import { sayHello } from '../../../crawl-api/callbacks/hello.ts';
import { UserHeaders } from '../../../crawl-api/fetch/user-headers.ts';
import type { FetchHooks, PageAnswer, PageSource } from '../../../crawl-api/fetch/page-result.ts';
import { compileRowPages, compileSections } from '../../../crawl-api/extract/row-pages.ts';
import { compileFollowRules } from '../../../crawl-api/politeness/follow-rules.ts';
import { compileRequests } from '../../../crawl-api/fetch/compile-requests.ts';
import { compileSiteRules } from '../../../crawl-api/politeness/site-rules.ts';
import { openQueue } from '../../../crawl-api/queue/open-queue.ts';
import type { OfferAnswer } from '../../../crawl-api/queue/queue.ts';
import { NO_RESERVE } from '../../../crawl-api/queue/reserve-file.ts';
import { createWork, type Work, type WorkParts } from '../../../crawl-api/work.ts';
import { seededRandom } from '../../../shared/adapters/random.ts';
import type { ObjectStore } from '../../../shared/ports/object-store.ts';
import { HELLO_PATH } from '../../../shared/wire/callbacks.ts';
import type { Offer } from '../../../shared/wire/instance-api.ts';
import { createKeyPair, exportPublicKey } from '../../../shared/wire/signature.ts';
import { fine, odd, refused } from '../../unit/crawl-api/crawl-scene.ts';
import { MemoryJournal, silentLog } from '../../unit/crawl-api/fakes.ts';
import type { InstanceStage, InstanceUnderTest } from './stage.ts';

export async function makeRealInstance(stage: InstanceStage): Promise<InstanceUnderTest> {
  const rules = await compileSiteRules(stage.settings.site.ban, true);
  const follow = await compileFollowRules(stage.settings);
  const requests = await compileRequests(stage.settings);
  const rowPages = await compileRowPages(stage.settings.mapping);
  const sectionOf = await compileSections(stage.settings.mapping);
  const instance = new RealInstance(stage, { rules, follow, requests, rowPages, sectionOf });
  instance.boot(false);
  return instance;
}

/** What was begun by a process that has died: it never comes to an end. */
const NEVER = new Promise<never>(() => undefined);

class RealInstance implements InstanceUnderTest {
  readonly #stage: InstanceStage;
  readonly #rules: Pick<WorkParts, 'rules' | 'follow' | 'requests' | 'rowPages' | 'sectionOf'>;
  readonly #journal = new MemoryJournal();
  readonly #keys = createKeyPair();
  #isReady = false;
  #process = new AbortController();
  #work: Work | null = null;

  constructor(
    stage: InstanceStage,
    rules: Pick<WorkParts, 'rules' | 'follow' | 'requests' | 'rowPages' | 'sectionOf'>,
  ) {
    this.#stage = stage;
    this.#rules = rules;
  }

  offer(offer: Offer): Promise<OfferAnswer> {
    return this.#work!.takeOffer(offer);
  }

  crash(downMs: number, lost = 0): void {
    const { clock } = this.#stage;
    this.#process.abort();
    const { records } = this.#journal;
    const results = records.flatMap(({ t }, at) => (t === 'result' ? [at] : []));
    if (lost > 0) records.splice(results.at(-lost) ?? records.length);
    clock.at(clock.now() + downMs, () => this.boot(lost > 0));
  }

  /** As runInstance does, after the files and before the listeners. */
  boot(damaged: boolean): void {
    const { settings, clock } = this.#stage;
    const life = new AbortController();
    this.#process = life;
    const userHeaders = new UserHeaders(settings.site);
    const parts = { settings, userHeaders, clock, random: seededRandom(1), log: silentLog };
    const file = {
      append: (records: Parameters<MemoryJournal['append']>[0]) =>
        life.signal.aborted ? undefined : this.#journal.append(records),
      sync: () => this.#journal.sync(),
    };
    const { queue } = openQueue(parts, (apply) => {
      const records = structuredClone(this.#journal.records);
      records.forEach(apply);
      return { file, replay: { records: records.length, lostBytes: 0, damaged }, reserve: NO_RESERVE };
    });
    const client = this.#client(life.signal);
    const instanceId = 'i-0123456789abcdef0';
    const onFenced = (): void => {
      this.#stage.isFenced = true;
      life.abort();
    };
    this.#work = createWork({
      ...parts,
      instanceId,
      privateKey: this.#keys.privateKey,
      queue,
      client,
      session: () => Promise.resolve(null),
      openStore: () => Promise.resolve(this.#store(life.signal)),
      sources: { http: this.#source(life.signal), browser: null },
      ...this.#rules,
      userHeaders,
      decryptSecrets: () => null,
      onFenced,
    });
    const publicKey = exportPublicKey(this.#keys.publicKey);
    const hello = { instanceId, address: '192.0.2.1', publicKey, bundleSha256: settings.bundle.sha256 };
    const run = async (): Promise<void> => {
      if (!this.#isReady && (await sayHello(client, hello, parts, life.signal)) === 'refused') return onFenced();
      this.#isReady = true;
      await this.#work!.run(life.signal);
    };
    run().catch((error: unknown) => this.#stage.faults.push(error));
  }

  #client(life: AbortSignal): Pick<MainServerClient, 'sendHello' | 'sendSigned'> {
    const send = async (path: string, message: unknown): Promise<Reply> => {
      if (life.aborted) return NEVER;
      const reply = await this.#stage.reply(path, JSON.stringify(message));
      if (life.aborted) return NEVER;
      if (reply === null) throw new Error('ECONNREFUSED');
      return { ...reply, authentic: true };
    };
    return { sendHello: () => send(HELLO_PATH, {}), sendSigned: send };
  }

  #store(life: AbortSignal): ObjectStore {
    const { objects } = this.#stage;
    const putIfAbsent: ObjectStore['putIfAbsent'] = (key, bytes) =>
      life.aborted ? NEVER : objects.putIfAbsent(key, bytes);
    return Object.assign(Object.create(objects) as ObjectStore, { putIfAbsent });
  }

  #source(life: AbortSignal): PageSource {
    const stage = this.#stage;
    return {
      fetch: async (url: string, hooks: FetchHooks, signal: AbortSignal): Promise<PageAnswer> => {
        if (life.aborted) return NEVER;
        hooks.onStart();
        const path = new URL(url).pathname;
        const answer = stage.request(Number(path.replace('/p', '')));
        await stage.clock.sleep(stage.pageMs, signal);
        if (life.aborted) return NEVER;
        if (signal.aborted) return { kind: 'not-now' };
        hooks.onFirstByte();
        const page = { fine: fine(path), ban: refused(429), odd: odd(), down: refused(500) }[answer];
        return { ...page, reply: { ...page.reply!, url } };
      },
      close: () => Promise.resolve(),
    };
  }
}
