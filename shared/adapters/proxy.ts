/**
 * The proxy of the SDK's clients: HTTPS_PROXY and NO_PROXY, or the same in small letters, as Node reads them. The SDK
 * itself ignores them. https://nodejs.org/api/http.html#built-in-proxy-support
 */
import { versions } from 'node:process';

export type ProxySettings = Readonly<Record<string, string | undefined>>;

const NAMES = ['https_proxy', 'HTTPS_PROXY', 'no_proxy', 'NO_PROXY'];

/** The environment's settings of a proxy; undefined where it names none for HTTPS. */
export function proxyOf(environment: ProxySettings): ProxySettings | undefined {
  if (!environment.https_proxy && !environment.HTTPS_PROXY) return undefined;
  return Object.fromEntries(NAMES.flatMap((name) => (environment[name] ? [[name, environment[name]]] : [])));
}

/**
 * Request handler settings of a client: only HTTPS goes through the proxy, so an endpoint on this machine never does.
 */
export const behindProxy = (proxy: ProxySettings | undefined) =>
  proxy === undefined ? {} : { httpsAgent: { keepAlive: true, maxSockets: 50, proxyEnv: { ...proxy } } };

/** False for a Node whose HTTPS agents know no proxy: before 22.21, and from 23 up to 24.4. */
export function knowsProxies(node = versions.node): boolean {
  const [major = 0, minor = 0] = node.split('.').map(Number);
  return major > 24 || (major === 24 && minor >= 5) || (major === 22 && minor >= 21);
}
