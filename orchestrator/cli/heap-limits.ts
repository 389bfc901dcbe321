/**
 * Keeps the main server small: on a large machine V8 lets the heap grow long before it collects garbage. Imported first
 * by bin/orchestrator.js, because V8 flags apply only to what V8 has not initialized yet. Measured with 100,000
 * products and 30 %: 395 MB without, 228 MB with them.
 */
import v8 from 'node:v8';

v8.setFlagsFromString('--semi-space-growth-factor=1');
v8.setFlagsFromString('--heap-growing-percent=20');
