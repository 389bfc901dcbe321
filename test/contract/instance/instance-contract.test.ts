import { describeInstanceContract } from './describe-instance-contract.ts';
import { describePagesContract } from './describe-pages-contract.ts';
import { makeModelledInstance } from './modelled-instance.ts';
import { makeRealInstance } from './real-instance.ts';

for (const describeContract of [describeInstanceContract, describePagesContract]) {
  describeContract('crawl-api', makeRealInstance);
  describeContract('modelled instance', makeModelledInstance);
}
