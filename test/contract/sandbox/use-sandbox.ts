import { afterAll, beforeAll } from 'vitest';
import { uploadBundle } from '../../support/sandbox/boot.ts';
import { clientsFor, type SandboxClients } from '../../support/sandbox/clients.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox/start-sandbox.ts';
import { TEST_BUNDLE_SHA256 } from '../../support/sandbox/test-bundle.ts';

interface Made {
  sandbox: TestSandbox;
  clients: SandboxClients;
  /** Of the test bundle, which instances may run. */
  bundleUrl: string;
}

/** One sandbox for a file or a suite, and AWS's own clients for it; `take` receives them before the first test. */
export function useSandbox(take: (made: Made) => void): void {
  let made: Made | undefined;
  beforeAll(async () => {
    const sandbox = await startSandbox({ allowBundles: [TEST_BUNDLE_SHA256] });
    const clients = clientsFor(sandbox);
    made = { sandbox, clients, bundleUrl: await uploadBundle(clients) };
    take(made);
  });
  afterAll(async () => {
    made?.clients.destroy();
    await made?.sandbox.stop();
  });
}
