/** Every check, in the order in which `orchestrator doctor` shows them. docs/doctor.md explains each. */
import { browser, diskSpace, nodeVersion, privateFiles, settings } from './machine.ts';
import { bucket, bucketSettings, bucketRights } from './bucket.ts';
import { bundle, plan, quota, prices, userData } from './run.ts';
import { callback } from './callback.ts';
import type { Check } from './check.ts';
import { credentials, endpoint, endpointClock, ec2Rights, elbRights } from './account.ts';
import { database, databaseRights, schema, products, results, otherRun } from './database.ts';
import { image } from './image.ts';
import { loadBalancer, subnets, securityGroups } from './network.ts';
import { robots, userAgent } from './site.ts';

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
