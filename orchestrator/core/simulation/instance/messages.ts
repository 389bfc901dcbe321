/** What a modelled instance sends to the main server: one message at a time, signed, and its replies checked. */
import type { KeyObject } from 'node:crypto';
import type { InstanceSettings } from '../../../../shared/wire/settings.ts';
import { type Envelope, importPublicKey, macMessage, type Signatures } from '../../../../shared/wire/signature.ts';
import type { Callback, CallbackBody, CallbackReply } from '../../callbacks/callbacks.ts';
import type { Life } from './life.ts';

export interface MessageParts {
  settings: InstanceSettings;
  life: Life;
  signatures: Signatures;
  privateKey: KeyObject;
  /** Sends a callback; null when no main server runs, or it died before it answered. */
  call: (path: string, callback: Callback) => Promise<CallbackReply | null>;
  /** An error that ends the simulation: a reply that the run has not signed. */
  onFault: (error: unknown) => void;
}

/**
 * A message does not leave this process, so it is neither written down nor read: that would take most of a heartbeat.
 */
const NOT_WRITTEN = '';
const bodyOf = (message: unknown): CallbackBody => ({
  signed: NOT_WRITTEN,
  // The contract of an instance checks that its messages have this form.
  read: () => message as never,
});

/** Gets null without an answer. */
type Then = (reply: CallbackReply | null) => void;

export class Messages {
  /** A message is under way. */
  isCalling = false;
  readonly #p: MessageParts;
  readonly #runKey: KeyObject;
  #counter = 0;

  constructor(parts: MessageParts) {
    this.#p = parts;
    this.#runKey = importPublicKey(parts.settings.runPublicKey);
  }

  /** The process died: no reply comes. */
  restart(): void {
    this.isCalling = false;
  }

  /** The hello, with the token of the user data. */
  sendHello(path: string, message: unknown, then: Then): void {
    this.#post(path, null, { message, sign: (e) => macMessage(this.#p.settings.token, e, NOT_WRITTEN) }, then);
  }

  sendSigned(path: string, message: unknown, then: Then): void {
    const { signatures, privateKey } = this.#p;
    this.#post(path, ++this.#counter, { message, sign: (e) => signatures.sign(privateKey, e, NOT_WRITTEN) }, then);
  }

  #post(
    path: string,
    counter: number | null,
    { message, sign }: { message: unknown; sign: (envelope: Envelope) => string },
    then: Then,
  ): void {
    const { settings, signatures, life, call, onFault } = this.#p;
    const { run, slot, epoch } = settings;
    const envelope = { method: 'POST', path, run, slot, epoch, counter };
    const signature = sign(envelope);
    const callback: Callback = { run, slot, epoch, counter, signature, body: () => Promise.resolve(bodyOf(message)) };
    this.isCalling = true;
    life.settle(call(path, callback), (failure, reply) => {
      this.isCalling = false;
      if (failure !== null) return onFault(failure);
      if (reply?.status === 200) {
        const back = { ...envelope, method: 'REPLY' };
        if (!signatures.verify(this.#runKey, back, NOT_WRITTEN, reply.sign?.(NOT_WRITTEN) ?? ''))
          return onFault(new Error(`the reply to ${path} is not signed by the run`));
      }
      then(reply ?? null);
    });
  }
}
