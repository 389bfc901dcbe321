export function treeCpuMs(): number;
