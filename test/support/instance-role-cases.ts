/**
 * What the role of an instance is asked for, and whether deploy/policies/instance.json allows it: for the policy, and
 * for the sandbox that plays it.
 */

export const OWN_SESSION = 'AROASANDBOX0000000001:i-0000000000000000a';
const OTHER_SESSION = 'AROASANDBOX0000000001:i-0000000000000000b';
const SHARD = 'runs/20260101-0000-abc/3/1';
const PART = `0-${'a'.repeat(64)}.ndjson.gz`;

export interface RoleCase {
  what: string;
  key: string;
  allowed: boolean;
  /** By the policy of earlier versions; omitted: as now. */
  allowedBefore?: boolean;
  /** Default: true. */
  onlyIfAbsent?: boolean;
  /** Default: PutObject. */
  action?: 'GetObject';
}

export const ROLE_CASES: readonly RoleCase[] = [
  { what: 'its own part', key: `${SHARD}/${OWN_SESSION}/${PART}`, allowed: true },
  { what: 'its own manifest', key: `${SHARD}/${OWN_SESSION}/manifest.json`, allowed: true },
  {
    what: 'a part in place of an existing one',
    key: `${SHARD}/${OWN_SESSION}/${PART}`,
    allowed: false,
    onlyIfAbsent: false,
  },
  { what: "another instance's part", key: `${SHARD}/${OTHER_SESSION}/${PART}`, allowed: false, allowedBefore: true },
  {
    what: "another instance's manifest",
    key: `${SHARD}/${OTHER_SESSION}/manifest.json`,
    allowed: false,
    allowedBefore: true,
  },
  { what: 'a part without a folder', key: `${SHARD}/${PART}`, allowed: false, allowedBefore: true },
  { what: "the main server's manifest", key: `${SHARD}/manifest.json`, allowed: false, allowedBefore: true },
  { what: 'a key document', key: 'runs/20260101-0000-abc/keys/3-1.json', allowed: false, allowedBefore: true },
  { what: 'the description of the run', key: 'runs/20260101-0000-abc/run.json', allowed: false, allowedBefore: true },
  { what: 'the products', key: 'runs/20260101-0000-abc/products-0.jsonl.gz', allowed: false, allowedBefore: true },
  {
    what: 'a session that only begins like its own',
    key: `${SHARD}/${OWN_SESSION}1/${PART}`,
    allowed: false,
    allowedBefore: true,
  },
  {
    what: 'its session in place of the epoch',
    key: `runs/r/3/${OWN_SESSION}/${PART}`,
    allowed: false,
    allowedBefore: true,
  },
  { what: 'a bundle', key: `bundles/${'b'.repeat(64)}.tar.gz`, allowed: false },
  { what: 'a backup', key: 'backups/db.gz', allowed: false },
  { what: 'reading its own part', key: `${SHARD}/${OWN_SESSION}/${PART}`, allowed: false, action: 'GetObject' },
];
