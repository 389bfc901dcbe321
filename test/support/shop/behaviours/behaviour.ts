/** What every family of misbehaviour gets to work with. */
import type { ServerResponse } from 'node:http';
import type { PageField } from '../page.ts';
import type { ShopProduct } from '../product.ts';

export interface Exchange {
  product: ShopProduct;
  response: ServerResponse;
  /** Sends the product's page as a good shop would, or without some of its fields. */
  sendPage(without?: readonly PageField[]): void;
  /** Calls back after `ms` unless the client has gone by then. */
  later(ms: number, then: () => void): void;
}
