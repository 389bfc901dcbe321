/** Writes AWS's XML answers, and parses the few XML bodies that S3 clients send. */
import { Parser } from 'htmlparser2';

/** An array repeats its element; undefined omits it; null writes it empty. */
type XmlValue = string | number | boolean | null | undefined | XmlNode | XmlValue[];
export interface XmlNode {
  [name: string]: XmlValue;
}

const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Control characters become references, as on AWS: most parsers fail on a bare one. */
export function escapeXml(text: string): string {
  return text.replace(
    // eslint-disable-next-line no-control-regex -- exactly the characters that XML 1.0 forbids
    /[&<>"\u0000-\u0008\u000b-\u001f]/g,
    (c) => ESCAPES[c] ?? `&#x${c.charCodeAt(0).toString(16).toUpperCase()};`,
  );
}

function writeElement(name: string, value: XmlValue): string {
  if (value === undefined) return '';
  if (value === null || value === '') return `<${name}/>`;
  if (Array.isArray(value)) return value.map((item) => writeElement(name, item)).join('');
  return `<${name}>${typeof value === 'object' ? writeNode(value) : escapeXml(String(value))}</${name}>`;
}

function writeNode(node: XmlNode): string {
  return Object.entries(node)
    .map(([name, value]) => writeElement(name, value))
    .join('');
}

/** A complete document with one root element, which contains elements or only text. */
export function xmlDocument(root: string, content: XmlNode | string, namespace?: string): string {
  const inside = typeof content === 'string' ? escapeXml(content) : writeNode(content);
  const attribute = namespace === undefined ? '' : ` xmlns="${namespace}"`;
  return `<?xml version="1.0" encoding="UTF-8"?>\n<${root}${attribute}>${inside}</${root}>`;
}

/** One element of a request body. */
export interface XmlElement {
  name: string;
  text: string;
  children: XmlElement[];
}

/** The root element of a request body; null when there is none or a tag is not closed. */
export function parseXml(body: string): XmlElement | null {
  const top: XmlElement = { name: '', text: '', children: [] };
  const open: XmlElement[] = [top];
  let broken = false;
  const parser = new Parser(
    {
      onopentag(name) {
        const element: XmlElement = { name: name.replace(/^.*:/, ''), text: '', children: [] };
        open.at(-1)!.children.push(element);
        open.push(element);
      },
      ontext(text) {
        open.at(-1)!.text += text;
      },
      onclosetag(_name, implied) {
        broken ||= implied;
        open.pop();
      },
    },
    { xmlMode: true, decodeEntities: true },
  );
  parser.end(body);
  return broken ? null : (top.children[0] ?? null);
}

export function childrenNamed(element: XmlElement, name: string): XmlElement[] {
  return element.children.filter((child) => child.name === name);
}

/** Text of the first child with that name; undefined when there is none. */
export function childText(element: XmlElement, name: string): string | undefined {
  return childrenNamed(element, name)[0]?.text;
}
