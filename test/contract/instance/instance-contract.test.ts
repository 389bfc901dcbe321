import { describeInstanceContract } from './describe-instance-contract.ts';
import { makeRealInstance } from './real-instance.ts';

describeInstanceContract('crawl-api', makeRealInstance);
