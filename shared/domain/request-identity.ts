/** What makes two requests the same one: the URL, and of a request with a body also its method and its body. */
import { sha256Of } from './sha256.ts';

/** 128 bits: no two bodies of a run have the same. */
const HASH_CHARS = 32;

/**
 * The plain URL of a GET without a body; otherwise `POST https://shop.example/graphql sha256:…`, with the beginning of
 * the body's hash. Two requests with the same identity ask for the same page.
 */
export function requestIdentity({
  url,
  method = 'GET',
  body,
}: {
  url: string;
  method?: string;
  body?: string;
}): string {
  if (method === 'GET' && body === undefined) return url;
  return `${method} ${url} sha256:${sha256Of(body ?? '').slice(0, HASH_CHARS)}`;
}
