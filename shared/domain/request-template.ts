/** How a page is requested: as a configuration or a section of a mapping says it. */
export type RequestTemplate =
  | { method: 'GET' }
  /** `contentType` is omitted where the body is empty. */
  | { method: 'POST'; body: string; contentType?: string };
