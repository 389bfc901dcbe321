/** The countries of AWS's regions, for `site.countries`. */

/**
 * The regions by ISO 3166 code, from https://docs.aws.amazon.com/global-infrastructure/latest/regions/aws-regions.html
 */
const REGIONS: Record<string, readonly string[]> = {
  AE: ['me-central-1'],
  AU: ['ap-southeast-2', 'ap-southeast-4'],
  BH: ['me-south-1'],
  BR: ['sa-east-1'],
  CA: ['ca-central-1', 'ca-west-1'],
  CH: ['eu-central-2'],
  CN: ['cn-north-1', 'cn-northwest-1'],
  DE: ['eu-central-1', 'eusc-de-east-1'],
  ES: ['eu-south-2'],
  FR: ['eu-west-3'],
  GB: ['eu-west-2'],
  HK: ['ap-east-1'],
  ID: ['ap-southeast-3'],
  IE: ['eu-west-1'],
  IL: ['il-central-1'],
  IN: ['ap-south-1', 'ap-south-2'],
  IT: ['eu-south-1'],
  JP: ['ap-northeast-1', 'ap-northeast-3'],
  KR: ['ap-northeast-2'],
  MX: ['mx-central-1'],
  MY: ['ap-southeast-5'],
  NZ: ['ap-southeast-6'],
  SE: ['eu-north-1'],
  SG: ['ap-southeast-1'],
  TH: ['ap-southeast-7'],
  TW: ['ap-east-2'],
  US: ['us-east-1', 'us-east-2', 'us-west-1', 'us-west-2', 'us-gov-east-1', 'us-gov-west-1'],
  ZA: ['af-south-1'],
};

/** ISO code of the region's country; null for a region that is newer than this list. */
export function countryOf(region: string): string | null {
  return Object.entries(REGIONS).find(([, regions]) => regions.includes(region))?.[0] ?? null;
}

/** The regions that no entry allows: an entry is a country (`JP`) or a region (`ap-northeast-1`). */
export function regionsOutside(regions: readonly string[], allowed: readonly string[]): string[] {
  return regions.filter((region) => ![region, countryOf(region)].some((place) => place && allowed.includes(place)));
}
