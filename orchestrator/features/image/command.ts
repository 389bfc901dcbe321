/** `orchestrator image`: makes the image with Chromium that browser crawls boot from, once for all later runs. */
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { imageRecipe, packerFile } from '../../../userdata/image-recipe.ts';
import { Ec2Compute } from '../../core/cloud/ec2-compute.ts';
import { Ec2Images } from './image-ec2.ts';
import type { OwnImage } from '../../core/cloud/image-lookup.ts';
import type { AwsOptions } from '../../core/cloud/sdk-clients.ts';
import {
  type Architecture,
  architectureOf,
  BROWSER_MEMORY_GB,
  describeInstanceType,
} from '../../core/plan/instance-types.ts';
import { BUILDER_TYPES } from '../../core/plan/defaults.ts';
import { hourlyPrice } from '../../core/plan/price-table.ts';
import { awsOptions } from '../../core/cloud-access/cloud-access.ts';
import { type Config, type Environment, loadConfig } from '../../core/config/load-config.ts';
import type { ConfigSource } from '../../core/feature.ts';
import { storesToList, withDatabase } from '../../core/lookup/find-run.ts';
import { confirmRun } from '../../cli/confirm.ts';
import { type Copy, copyFailure, copyImage, errorIn, howToPin, joinErrors, makeImage } from './make-image.ts';
import { imagesInUse, keptImages, type Pruned, refusalOf, removeImages, supersededImages } from './prune-images.ts';
import { watchInterrupts } from '../../cli/interrupts.ts';
import { errorDocument, type Output } from '../../cli/output.ts';
import { renderTable } from '../../../shared/domain/text-table.ts';
import { ownerOf, volumeOf } from '../../core/prepare/settings-of.ts';
import { isLocal, regionOf } from '../../core/config/target.ts';
import { OpenResources } from '../../core/open-resources.ts';

export interface ImageOptions extends ConfigSource {
  yes: boolean;
  /** The architecture; omitted: that of the first type in aws.instance_types that can hold a browser. */
  architecture?: Architecture;
  /** The image to build on; omitted: the newest Debian 13. */
  base?: string;
  /** What is printed instead, without any call. */
  print?: 'recipe' | 'packer';
  /** True to list only the images that this command has made. */
  list?: boolean;
  /** True to remove only old images that are not needed any more. */
  prune?: boolean;
}

/** Such a disk holds about 2 GB; a snapshot is billed by its content. */
const SNAPSHOT_WORD = 'its snapshot of about 2 GB costs some $0.10 a month';
/** A builder works for about five minutes and is billed for each. */
const BUILDER_HOURS = 1 / 6;

/** Exit code 0 when there is an image that runs can use. */
export async function imageCommand(options: ImageOptions, output: Output): Promise<ExitCode> {
  const config = loadConfig(options);
  const architecture = options.architecture ?? architectureFor(config);
  if (options.print === 'recipe') return print('recipe', imageRecipe({ powerOff: false }), output);
  const [first, ...others] = imageRegionsOf(config, options.environment);
  if (first === undefined)
    throw new AppError('config-invalid', `an image is made in a region: aws.region is missing in ${config.file}`);
  if (options.print === 'packer')
    return print(
      'packer',
      packerFile(first.region, architecture, { owner: ownerOf(config), tags: config.values.aws.tags }),
      output,
    );
  const places = [first, ...others];
  await using opened = new OpenResources();
  for (const { images } of places) opened.use(images);
  if (options.list) return await show(places, output);
  if (options.prune) return await prune(places, config, options, output);
  return await make({ options, config, architecture, first, others }, output);
}

/** A region whose runs may need an image. */
interface ImageRegion {
  region: string;
  aws: AwsOptions;
  images: Ec2Images;
  subnets: readonly string[];
  groups: readonly string[];
}

/** The regions of the images in the order of the configuration; empty if none is configured. Makes no call. */
function imageRegionsOf(config: Config, environment: Environment): ImageRegion[] {
  const { endpoint, regions, ...there } = config.values.aws;
  const region = regionOf(config, environment);
  const named = regions ?? (region === null ? [] : [{ ...there, region }]);
  return named.map(({ region, subnets, security_groups: groups }) => {
    const aws = awsOptions({ region, endpoint }, isLocal(endpoint));
    return { region, aws, images: new Ec2Images(aws), subnets, groups };
  });
}

function print(what: 'recipe' | 'packer', text: string, output: Output): ExitCode {
  if (output.json) output.document({ [what]: text });
  else output.line(text.trimEnd());
  return EXIT.complete;
}

interface Making {
  options: ImageOptions;
  config: Config;
  architecture: Architecture;
  /** Where the image is made. */
  first: ImageRegion;
  /** Where it is copied to. */
  others: ImageRegion[];
}

async function make(making: Making, output: Output): Promise<ExitCode> {
  const { options, config, architecture, first, others } = making;
  const { region, images } = first;
  using interrupts = watchInterrupts();
  const baseImageId = await images.baseImage(options.base ?? null, architecture);
  const instanceType = BUILDER_TYPES[architecture];
  const { volume } = config.values.aws;
  const usd = hourlyPrice(region, instanceType).usd * BUILDER_HOURS;
  output.line(
    `An image for ${architecture} is made from ${baseImageId}, by one ${instanceType} for about five minutes: less than $${Math.max(0.01, usd).toFixed(2)}; ${SNAPSHOT_WORD}.`,
  );
  if (others.length > 0)
    output.line(
      `It is made in ${region} and copied to ${others.map((o) => o.region).join(', ')}: each copy costs the traffic of about 2 GB between regions, and has a snapshot of its own.`,
    );
  const go = await confirmRun({ yes: options.yes, dryRun: false, json: output.json, signal: interrupts.leave });
  if (!go) throw new AppError('interrupted', 'nothing was launched');
  const startedAtMs = systemClock.monotonic();
  const watch = {
    clock: systemClock,
    signal: interrupts.leave,
    onProgress: (text: string) => output.line(text),
  };
  const { labels, chromium, imageId } = await makeImage({
    ...watch,
    cloud: images,
    owner: ownerOf(config),
    tags: config.values.aws.tags,
    builder: {
      instanceType,
      userData: imageRecipe({ powerOff: true }),
      ...(volume === null ? {} : { volume: volumeOf(volume) }),
      ...(await networkOf(first)),
    },
    baseImageId,
    architecture,
  });
  const to = others.map((other) => ({ region: other.region, cloud: other.images }));
  const copies = await copyImage({ ...watch, from: region, image: { imageId, labels }, to });
  const tookMs = Math.round(systemClock.monotonic() - startedAtMs);
  const made: Copy[] = [{ region, imageId }, ...copies];
  const ready = made.flatMap((copy) => ('imageId' in copy ? [copy] : []));
  output.line(
    [
      `Image ${imageId} (Chromium ${chromium}) is ready after ${formatDuration(Math.round(tookMs / 1_000) * 1_000)}.`,
      `Runs with site.render: browser or auto use the newest one automatically. ${howToPin(ready, config.values.aws.regions !== null)}`,
      'Chromium on it stays as it is: make a new one each month or so, and remove the old ones with --prune.',
    ].join('\n'),
  );
  const failure = copyFailure(copies);
  if (failure) warn(failure, output);
  const { name } = labels;
  return finish({ imageId, name, chromium, tookMs, images: ready, architecture, baseImageId }, failure, output);
}

function warn({ message, hint }: AppError, output: Output): void {
  output.line(`! ${message}${hint === undefined ? '' : `\n  ${hint}`}`);
}

/** The one document of the command. `failure` has been printed. */
function finish(done: object, failure: AppError | null, output: Output): ExitCode {
  const end = failure === null ? { exitCode: EXIT.complete } : errorDocument(failure);
  output.document({ ...done, ...end });
  return end.exitCode;
}

/** The subnet and groups a run would launch in: the builder needs the same way out to the internet. */
async function networkOf({
  aws,
  subnets,
  groups,
}: ImageRegion): Promise<{ subnetId: string; securityGroupIds: string[] }> {
  using compute = new Ec2Compute(aws);
  const [subnet] = await compute.subnets(subnets);
  return { subnetId: subnet!.id, securityGroupIds: await compute.securityGroups(groups, subnet!.vpcId) };
}

interface Listing {
  answered: (ImageRegion & { own: OwnImage[] })[];
  /** The errors of the regions that do not answer; printed. */
  errors: AppError[];
}

async function listImages(places: readonly ImageRegion[], output: Output): Promise<Listing> {
  const listing: Listing = { answered: [], errors: [] };
  const answers = await Promise.allSettled(places.map(({ images }) => images.ownImages()));
  for (const [i, place] of places.entries()) {
    const answer = answers[i];
    if (answer?.status === 'fulfilled') listing.answered.push({ ...place, own: answer.value });
    else listing.errors.push(errorIn(place.region, answer?.reason));
  }
  for (const error of listing.errors) warn(error, output);
  return listing;
}

const namesOf = (places: readonly ImageRegion[]): string => places.map(({ region }) => region).join(', ');

async function show(places: readonly ImageRegion[], output: Output): Promise<ExitCode> {
  const { answered, errors } = await listImages(places, output);
  const images = answered.flatMap(({ region, own }) => own.map((image) => ({ region, ...image })));
  if (images.length > 0)
    output.line(
      renderTable(
        ['image', 'region', 'architecture', 'state', 'made', 'Chromium'],
        images.map((i) => [i.id, i.region, i.architecture, i.state, i.createdAt.slice(0, 19), i.chromium]),
      ),
    );
  else if (answered.length > 0)
    output.line(`orchestrator image has not made any image in this account in ${namesOf(answered)}.`);
  return finish({ images }, joinErrors(errors), output);
}

async function prune(
  places: readonly ImageRegion[],
  config: Config,
  options: ImageOptions,
  output: Output,
): Promise<ExitCode> {
  const needed = { owner: ownerOf(config), ids: new Set(await neededImages(options, output)) };
  const { answered, errors } = await listImages(places, output);
  const perRegion = answered.map(({ region, images, own }) => ({
    images,
    old: supersededImages(own, needed),
    kept: keptImages(own, needed),
    nameOf: (id: string) => (places.length > 1 ? `${region} ${id}` : id),
  }));
  for (const { kept, nameOf } of perRegion)
    for (const { id, why } of kept) output.line(`${nameOf(id)} is kept: ${why}`);
  const names = perRegion.flatMap(({ old, nameOf }) => old.map(({ id }) => nameOf(id)));
  if (names.length > 0) {
    output.line(`To be removed, with their snapshots: ${names.join(', ')}`);
    const go = await confirmRun({ yes: options.yes, dryRun: false, json: output.json });
    if (!go) throw new AppError('interrupted', 'nothing was removed');
  } else if (answered.length > 0) output.line(`There is nothing to remove in ${namesOf(answered)}.`);
  const all: Pruned = { removed: [], refused: [] };
  const refusals: AppError[] = [];
  for (const { images, old, nameOf } of perRegion) {
    const pruned = await removeImages(images, old, (text) => output.line(text), nameOf);
    all.removed.push(...pruned.removed);
    all.refused.push(...pruned.refused);
    const refusal = refusalOf(pruned, nameOf);
    if (refusal) refusals.push(refusal);
  }
  const refusal = joinErrors(refusals);
  if (refusal) warn(refusal, output);
  const kept = perRegion.flatMap(({ kept }) => kept);
  return finish({ ...all, kept }, joinErrors([...errors, ...refusals]), output);
}

/** Throws when the database cannot be queried: a removed image that a run needs cannot be restored. */
const neededImages = (options: ImageOptions, output: Output): Promise<string[]> =>
  withDatabase(options, output, async (database, config) => {
    const { image, regions } = config.values.aws;
    const stores = await storesToList(database, output);
    const used = stores === null ? [] : await imagesInUse(stores);
    return [image, ...(regions ?? []).map((there) => there.image)].flatMap((id) => id ?? []).concat(used);
  });

function architectureFor(config: Config): Architecture {
  const types = config.values.aws.instance_types;
  const holding = types.find((type) => describeInstanceType(type).memoryGb >= BROWSER_MEMORY_GB);
  return architectureOf(holding ?? types[0] ?? 't4g.small');
}
