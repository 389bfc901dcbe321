/**
 * The contracts at a third-party endpoint.
 * @module-tag nightly
 */
import { describe } from 'vitest';
import { findMotoServer, sayMotoIsMissing, startMotoServer } from '../../../support/endpoints/moto-server.ts';
import { describeEndpointContracts } from './endpoint-contracts.ts';

const MOTO = await findMotoServer();
if (MOTO === null) sayMotoIsMissing('the contracts of EC2, ELBv2 and S3 at moto');

describe.skipIf(MOTO === null)('moto', () => {
  describeEndpointContracts({
    title: 'moto',
    name: 'moto',
    async start() {
      const { endpoint, stop } = await startMotoServer(MOTO!);
      const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
      return { options: { region: 'ap-northeast-1', endpoint, credentials }, stop };
    },
    listenPort: () => 8_080,
  });
});
