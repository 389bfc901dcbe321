/**
 * The query protocol of EC2 and ELBv2: a form with `Action` and `Version`, lists as `Name.1` (EC2) or `Name.member.1`
 * (ELBv2), answers and errors as XML, each service with its own envelope.
 */
import { createHash } from 'node:crypto';
import { AwsError } from './aws-error.ts';
import { xmlDocument, type XmlNode } from './xml.ts';

export type QueryService = 'ec2' | 'elbv2' | 'sts';

/** The parameters of one call, or of one item of a list inside it. */
export class Params {
  readonly #values: ReadonlyMap<string, string>;
  readonly #prefix: string;
  readonly #service: QueryService;

  constructor(values: ReadonlyMap<string, string>, service: QueryService, prefix = '') {
    this.#values = values;
    this.#service = service;
    this.#prefix = prefix;
  }

  /** The parameter's text; undefined when it was not sent. */
  text(name: string): string | undefined {
    return this.#values.get(this.#prefix + name);
  }

  /** Throws the service's own error when the parameter was not sent. */
  need(name: string): string {
    const value = this.text(name);
    if (value !== undefined && value !== '') return value;
    throw this.#service === 'ec2'
      ? new AwsError('MissingParameter', `The request must contain the parameter ${this.#prefix}${name}`)
      : new AwsError('ValidationError', `'${this.#prefix}${name}' must be specified`);
  }

  needInt(name: string): number {
    return this.#toInt(name, this.need(name));
  }

  flag(name: string): boolean | undefined {
    const value = this.text(name)?.toLowerCase();
    return value === undefined ? undefined : value === 'true' || value === '1';
  }

  int(name: string): number | undefined {
    const value = this.text(name);
    return value === undefined ? undefined : this.#toInt(name, value);
  }

  #toInt(name: string, value: string): number {
    if (/^-?\d{1,15}$/.test(value)) return Number(value);
    throw new AwsError(
      this.#service === 'ec2' ? 'InvalidParameterValue' : 'ValidationError',
      `Invalid value '${value}' for ${this.#prefix}${name}: it must be a whole number`,
    );
  }

  /** A list of scalars, in order. */
  texts(name: string): string[] {
    const found: string[] = [];
    for (let i = 1; ; i++) {
      const value = this.text(`${name}.${i}`) ?? this.text(`${name}.member.${i}`);
      if (value === undefined) return found;
      found.push(value);
    }
  }

  /** A list of structures, in order. */
  groups(name: string): Params[] {
    const pattern = new RegExp(`^${escapeRegExp(`${this.#prefix}${name}`)}\\.((?:member\\.)?(\\d+))\\.`);
    const prefixes = new Map<number, string>();
    for (const key of this.#values.keys()) {
      const match = pattern.exec(key);
      if (match) prefixes.set(Number(match[2]), `${this.#prefix}${name}.${match[1]}.`);
    }
    return [...prefixes].sort(([a], [b]) => a - b).map(([, prefix]) => new Params(this.#values, this.#service, prefix));
  }

  group(name: string): Params {
    return new Params(this.#values, this.#service, `${this.#prefix}${name}.`);
  }

  /** An order-independent hash of all parameters except the named ones. */
  fingerprint(without: readonly string[]): string {
    const compared = [...this.#values].filter(([name]) => !without.includes(name)).sort(([a], [b]) => (a < b ? -1 : 1));
    return createHash('sha256').update(JSON.stringify(compared)).digest('hex');
  }
}

function escapeRegExp(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

/** One call of the query protocol; `instanceId` is the instance whose role signs it, null for any other caller. */
export type QueryAction = (params: Params, instanceId: string | null) => XmlNode | Promise<XmlNode>;

const NAMESPACE: Record<QueryService, string> = {
  ec2: 'http://ec2.amazonaws.com/doc/2016-11-15/',
  elbv2: 'http://elasticloadbalancing.amazonaws.com/doc/2015-12-01/',
  sts: 'https://sts.amazonaws.com/doc/2011-06-15/',
};

/** The answer to a successful call. */
export function queryReply(service: QueryService, action: string, result: XmlNode, requestId: string): string {
  const content =
    service === 'ec2'
      ? { requestId, ...result }
      : { [`${action}Result`]: result, ResponseMetadata: { RequestId: requestId } };
  return xmlDocument(`${action}Response`, content, NAMESPACE[service]);
}

/** The answer to a failed call. */
export function queryError(service: QueryService, error: AwsError, requestId: string): string {
  const { code: Code, message: Message, status } = error;
  if (service === 'ec2') return xmlDocument('Response', { Errors: { Error: { Code, Message } }, RequestID: requestId });
  const Type = status >= 500 ? 'Receiver' : 'Sender';
  return xmlDocument('ErrorResponse', { Error: { Type, Code, Message }, RequestId: requestId }, NAMESPACE[service]);
}

const SERVICE_OF_SCOPE = new Map<string, QueryService>([
  ['ec2', 'ec2'],
  ['elasticloadbalancing', 'elbv2'],
  ['sts', 'sts'],
]);
const SERVICE_OF_VERSION = new Map<string, QueryService>([
  ['2016-11-15', 'ec2'],
  ['2015-12-01', 'elbv2'],
  ['2011-06-15', 'sts'],
]);

/**
 * The service of a call: named by the signature's scope, or without one by the version.
 * @param authorization the Authorization header, or the X-Amz-Credential of a signed query
 */
export function serviceOf(authorization = '', version = ''): QueryService | null {
  const scope = /\/([a-z0-9-]+)\/aws4_request/.exec(authorization)?.[1];
  return (scope === undefined ? SERVICE_OF_VERSION.get(version) : SERVICE_OF_SCOPE.get(scope)) ?? null;
}
