/** All queries that need the page as a tree; loaded only by mappings that need it. */
export { compileCss } from './css.ts';
export { TreeBuilder, textOf } from './tree.ts';
export { evaluateXPath, selectByXPath } from './xpath.ts';
export { parseXPath } from '../../../shared/adapters/xpath/parse-xpath.ts';
export { Element } from 'domhandler';
