/** The calls that make and remove the account's images. An image here is only a name with tags: no disk is copied. */
import { AwsError } from '../aws-error.ts';
import { ACCOUNT_ID, newResourceId } from '../ids.ts';
import type { Params } from '../query-protocol.ts';
import type { XmlNode } from '../xml.ts';
import type { Image } from './catalogue.ts';
import { type Ec2Context, findInstance, refuseDryRun } from './context.ts';
import { demandTags } from '../tag-policy.ts';
import { readTagSpecifications } from './tag-actions.ts';
import { NOT_COMPARED } from './token-ledger.ts';

const NAME = /^[\w ()./'@-]{3,128}$/;

export function createImage(params: Params, context: Ec2Context): XmlNode {
  const instance = findInstance(params, context);
  const name = newName(params, context);
  if (instance.state !== 'running' && instance.state !== 'stopped')
    throw new AwsError('IncorrectState', `The instance '${instance.id}' is not in a state from which it can be imaged`);
  const { architecture } = instance;
  const description = params.text('Description') ?? '';
  return { imageId: addImage('CreateImage', { name, description, architecture }, params, context) };
}

export function copyImage(params: Params, context: Ec2Context): XmlNode {
  const token = params.text('ClientToken') || null;
  const { region } = context.catalogue;
  const fingerprint = params.fingerprint(NOT_COMPARED);
  const earlier = token === null ? null : context.copies.find(token, region, fingerprint);
  if (earlier !== null) {
    refuseDryRun(params);
    return { imageId: earlier };
  }
  const id = params.need('SourceImageId');
  const source = context.imagesOf(params.need('SourceRegion')).find((image) => image.id === id);
  const name = newName(params, context);
  if (!source) throw new AwsError('InvalidAMIID.NotFound', `The image id '[${id}]' does not exist`);
  if (source.own && context.clock.now() < source.own.availableAtMs)
    throw new AwsError('InvalidAMIID.Unavailable', `The image ID '${id}' is not available`);
  const { architecture } = source;
  const description = params.text('Description') ?? source.description;
  const imageId = addImage('CopyImage', { name, description, architecture }, params, context);
  if (token !== null) context.copies.record(token, region, fingerprint, imageId);
  return { imageId };
}

function newName(params: Params, { catalogue }: Ec2Context): string {
  const name = params.need('Name');
  if (!NAME.test(name))
    throw new AwsError('InvalidAMIName.Malformed', `AMI names must be between 3 and 128 characters long: '${name}'`);
  if (catalogue.images.some((image) => image.ownerId === ACCOUNT_ID && image.name === name))
    throw new AwsError('InvalidAMIName.Duplicate', `AMI name ${name} is already in use by this account`);
  return name;
}

/** Returns its id. */
function addImage(
  action: string,
  about: Pick<Image, 'name' | 'description' | 'architecture'>,
  params: Params,
  { catalogue, clock, conditions, tags }: Ec2Context,
): string {
  const tagsByType = readTagSpecifications(params, ['image', 'snapshot']);
  demandTags(conditions.now.tagPolicy, {
    service: 'ec2',
    action,
    region: catalogue.region,
    created: ['image', 'snapshot'].map((type) => [type, tagsByType.get(type)]),
  });
  refuseDryRun(params);
  const snapshotId = newResourceId('snap');
  const image: Image = {
    ...about,
    id: newResourceId('ami'),
    ownerId: ACCOUNT_ID,
    ownerAlias: null,
    createdAt: new Date(clock.now()).toISOString(),
    own: { snapshotId, availableAtMs: clock.now() + conditions.now.imagePendingMs },
  };
  catalogue.images.push(image);
  tags.put(image.id, tagsByType.get('image') ?? new Map());
  tags.put(snapshotId, tagsByType.get('snapshot') ?? new Map());
  return image.id;
}

export function deregisterImage(params: Params, { catalogue, tags, snapshots }: Ec2Context): XmlNode {
  const id = params.need('ImageId');
  const image = catalogue.images.find((one) => one.id === id);
  if (image === undefined) throw new AwsError('InvalidAMIID.NotFound', `The image id '[${id}]' does not exist`);
  if (!image.own) throw new AwsError('AuthFailure', `Not authorized for image:${id}`, 403);
  refuseDryRun(params);
  catalogue.images.splice(catalogue.images.indexOf(image), 1);
  tags.forget(id);
  // The snapshot stays, and is billed, until it is deleted separately.
  snapshots.add(image.own.snapshotId);
  return { return: true };
}

export function deleteSnapshot(params: Params, { catalogue, tags, snapshots }: Ec2Context): XmlNode {
  const id = params.need('SnapshotId');
  const user = catalogue.images.find((image) => image.own?.snapshotId === id);
  if (user) throw new AwsError('InvalidSnapshot.InUse', `The snapshot ${id} is currently in use by ${user.id}`);
  if (!snapshots.has(id)) throw new AwsError('InvalidSnapshot.NotFound', `The snapshot '${id}' does not exist.`);
  refuseDryRun(params);
  snapshots.delete(id);
  tags.forget(id);
  return { return: true };
}
