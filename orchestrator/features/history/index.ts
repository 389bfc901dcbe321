/** Changes of published rows, and conditional requests for pages whose rows stand. */
import type { FeatureDeclaration } from '../../cli/program/feature.ts';

export const HISTORY: FeatureDeclaration = { load: async () => (await import('./data.ts')).history };
