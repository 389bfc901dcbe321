/** The image that instances boot: it exists, has the right architecture, and a browser if one is needed. */
import { type ImageFacts, readImage, browserOn } from '../cloud/image-facts.ts';
import { architectureOf } from '../plan/instance-types.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { defaultVolumeKey } from '../cloud/right-checks.ts';
import { type Check, failed, type Finding, ok, standing, warning } from './check.ts';

export const image: Check = {
  id: 'image',
  regional: true,
  title: 'image of the instances',
  only: 'aws',
  needs: ['credentials'],
  beforeLaunch: true,
  async run({ config, facts }) {
    const type = facts.instanceType();
    // Throws when the configured image does not exist or is for the other architecture.
    const id = await facts.imageId();
    const found = await readImage(facts.aws(), id);
    if (found === null) return warning(`${id} is not shown by EC2`);
    if (found.state !== 'available')
      return failed(
        'aws-invalid',
        `${id} is ${found.state}: it cannot be launched`,
        'Wait for it, or name another in aws.image',
      );
    const whose = config.values.aws.image === null ? 'the newest that fits' : 'aws.image';
    const said = ok(`${id} ${found.name} (${whose}), ${architectureOf(type)} as ${type}`);
    const volumes = judgeVolumes(found);
    return config.values.site.render === 'http' ? [said, ...volumes] : [said, ...volumes, ...judgeBrowser(found)];
  },
};

export const volumes: Check = {
  id: 'volumes',
  title: 'encryption of the volumes',
  only: 'aws',
  needs: ['credentials'],
  beforeLaunch: true,
  async run({ config, facts }) {
    const named = config.values.aws.volume?.kms_key ?? null;
    try {
      return judgeVolumeKey(named, named ?? (await defaultVolumeKey(facts.aws())));
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'aws-denied') throw error;
      return warning(
        "the account's encryption of new volumes could not be read",
        'Allow ec2:GetEbsEncryptionByDefault and ec2:GetEbsDefaultKmsKeyId',
      );
    }
  },
};

/** @param named key of `aws.volume`; `key`: that one, else the account's default */
export function judgeVolumeKey(named: string | null, key: string | null): Finding {
  if (key === null) return ok("no KMS key but AWS's own");
  const remedy = `orchestrator setup --ebs-kms-key ${key} prints them, and the key's policy must let the account's policies decide`;
  if (named !== null)
    return standing(`${key}: only a launch shows whether the main server has the rights on it`, remedy);
  return warning(
    `new volumes of this account are encrypted with ${key}: without rights of the main server on that key every instance ends at its launch`,
    remedy,
  );
}

/** Volumes must be deleted with their machines: one that stays is billed until it is found and deleted. */
export function judgeVolumes({ id, keptVolumes }: ImageFacts): Finding[] {
  if (keptVolumes.length === 0) return [];
  return [
    failed(
      'aws-invalid',
      `${id} keeps ${keptVolumes.join(', ')} when an instance ends: every launch would leave a volume behind that is billed`,
      'Register the image again with DeleteOnTermination for each volume (aws ec2 register-image --block-device-mappings), or leave aws.image empty',
    ),
  ];
}

/** How a boot will provide the browser; no finding for an image that has it. */
export function judgeBrowser(image: ImageFacts): Finding[] {
  const make = 'orchestrator image makes one with the browser, which runs use automatically while aws.image is empty';
  switch (browserOn(image)) {
    case 'ready':
      return [];
    case 'debian':
      return [
        warning(
          `${image.id} is a plain Debian, so each boot installs the browser: some minutes more, which are paid for`,
          make,
        ),
      ];
    case 'lacking':
      return [
        failed(
          'config-invalid',
          `${image.id} ${image.name} has no Chromium, and its system has no package of it: every boot would fail`,
          `Leave aws.image empty; ${make}`,
        ),
      ];
    case 'unknown':
      return [
        warning(
          `whether ${image.id} has Chromium and nft cannot be seen: without them a Debian installs them at each boot, and on any other system the boot fails`,
          make,
        ),
      ];
  }
}
