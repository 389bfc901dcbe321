/** The port that a URL leads to, explicit or default. */
export const portOf = (url: URL): number =>
  url.port === '' ? (url.protocol === 'http:' ? 80 : 443) : Number(url.port);
