/** All queries that need the page as a tree; loaded only by mappings that need it. */
export { compileCss } from './css.ts';
export { TreeBuilder, textOf } from './tree.ts';
export { evaluateXPath, parseXPath, selectByXPath } from './xpath.ts';
export { Element } from 'domhandler';
