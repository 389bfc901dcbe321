/** `products.recrawl`: a product is crawled when it is due. */
import type { FeatureDeclaration } from '../../cli/program/feature.ts';

export const RECRAWL: FeatureDeclaration = { load: async () => (await import('./data.ts')).recrawl };
