/**
 * Every check, in the order in which `orchestrator doctor` shows them. docs/doctor.md explains each; a test enforces
 * that.
 */
import { browser } from './browser.ts';
import { bucket } from './bucket.ts';
import { bucketRights } from './bucket-rights.ts';
import { bucketSettings } from './bucket-settings.ts';
import { bundle } from './bundle.ts';
import { callback } from './callback.ts';
import type { Check } from './check.ts';
import { credentials } from './credentials.ts';
import { database } from './database.ts';
import { databaseRights } from './database-rights.ts';
import { diskSpace } from './disk-space.ts';
import { ec2Rights } from './ec2-rights.ts';
import { elbRights } from './elb-rights.ts';
import { endpoint } from './endpoint.ts';
import { endpointClock } from './endpoint-clock.ts';
import { image } from './image.ts';
import { loadBalancer } from './load-balancer.ts';
import { nodeVersion } from './node-version.ts';
import { otherRun } from './other-run.ts';
import { plan } from './plan.ts';
import { prices } from './prices.ts';
import { privateFiles } from './private-files.ts';
import { products } from './products.ts';
import { quota } from './quota.ts';
import { results } from './results.ts';
import { robots } from './robots.ts';
import { schema } from './schema.ts';
import { securityGroups } from './security-groups.ts';
import { settings } from './settings.ts';
import { subnets } from './subnets.ts';
import { userAgent } from './user-agent.ts';
import { userData } from './user-data.ts';

export const ALL_CHECKS: readonly Check[] = [
  // This machine.
  nodeVersion,
  diskSpace,
  privateFiles,
  browser,
  settings,
  // The database.
  database,
  databaseRights,
  schema,
  products,
  results,
  otherRun,
  // The site.
  userAgent,
  robots,
  // AWS, or what replaces it.
  endpoint,
  credentials,
  endpointClock,
  bucket,
  bucketSettings,
  bucketRights,
  subnets,
  loadBalancer,
  securityGroups,
  image,
  ec2Rights,
  elbRights,
  callback,
  // The run.
  quota,
  prices,
  plan,
  bundle,
  userData,
];
