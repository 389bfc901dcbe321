import { describeInstanceContract } from './describe-instance-contract.ts';
import { makeModelledInstance } from './modelled-instance.ts';
import { makeRealInstance } from './real-instance.ts';

describeInstanceContract('crawl-api', makeRealInstance);
describeInstanceContract('modelled instance', makeModelledInstance);
