/** A shop for one test file, and helpers to visit it. */
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { productUrl } from '../../../shared/domain/product.ts';
import type { Shop } from '../../support/shop/start-shop.ts';
import { startShop } from '../../support/shop/start-shop.ts';

export const SEED = 3;

export interface ShopStage {
  readonly shop: Shop;
  /** The product's page; redirects are not followed. */
  readonly get: (id: string) => Promise<Response>;
  /** The page of one request from a chosen address of this machine. */
  readonly visitFrom: (localAddress: string, id: string) => Promise<{ status: number; body: string }>;
}

/** Starts the shop before the file's tests, resets it before each, and stops it after them. */
export function useShop(): ShopStage {
  let shop: Shop | null = null;
  const stage = {
    get shop(): Shop {
      if (!shop) throw new Error('the shop is open during tests only');
      return shop;
    },
    get: (id: string) => fetch(productUrl(stage.shop.productUrl, id), { redirect: 'manual' }),
    visitFrom: (localAddress: string, id: string) =>
      new Promise<{ status: number; body: string }>((resolve, reject) => {
        request(productUrl(stage.shop.productUrl, id), { localAddress, agent: false }, (response) => {
          text(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject);
        })
          .on('error', reject)
          .end();
      }),
  };
  beforeAll(async () => {
    shop = await startShop({ products: 10, seed: SEED });
  });
  afterAll(() => shop?.stop());
  beforeEach(() => stage.shop.reset());
  return stage;
}
