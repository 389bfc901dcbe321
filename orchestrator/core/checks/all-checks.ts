/** Every check, in the order in which `orchestrator doctor` shows them. docs/doctor.md explains each. */
import { browser, diskSpace, nodeVersion, privateFiles, settings } from './machine.ts';
import { bucket, bucketRights, bucketSettings } from './bucket.ts';
import { bundle, plan, prices, quota, robots, userAgent, userData } from './run.ts';
import { callback } from './callback.ts';
import type { Check } from './check.ts';
import { credentials, ec2Rights, elbRights, endpoint, endpointClock } from './account.ts';
import { database, databaseRights, otherRun, products, results, schema } from './database.ts';
import { image, volumes } from './image.ts';
import { loadBalancer, securityGroups, subnets } from './network.ts';

export const ALL_CHECKS: readonly Check[] = [
  nodeVersion,
  diskSpace,
  privateFiles,
  browser,
  settings,
  database,
  databaseRights,
  schema,
  products,
  results,
  otherRun,
  userAgent,
  robots,
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
  volumes,
  ec2Rights,
  elbRights,
  callback,
  quota,
  prices,
  plan,
  bundle,
  userData,
];
