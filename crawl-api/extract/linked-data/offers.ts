/**
 * The offer of a page that all `offers.…` fields of a mapping read: of the new ones (or those of unstated condition) in
 * the first one's currency the cheapest that is in stock, else the cheapest. So an amount never gets the currency of
 * another offer.
 */
import { readNumber } from '../numbers/read-number.ts';
import { toBoolean } from '../processors.ts';
import { bareName } from './node-types.ts';
import { isNode, listOf, literalOf, type Node, own, ShownText, textOf } from './nodes.ts';
import type { PageAddress } from './page-address.ts';
import type { PageNodes, Stage } from './page-nodes.ts';

/** An offer, and the aggregate around it, whose properties it shares. */
interface Offer {
  node: Node;
  /** The product that has it. */
  owner: unknown;
  aggregate: Node | null;
  /** Where its price is: see priceIn. */
  price: Node | null;
}

export interface ChosenOffer extends Offer {
  /** An offer that is in stock, if any is. */
  inStock: Offer | null;
}

/** The offer chosen from all stages; null where the nodes have no offers. */
export function chooseOffer(stages: readonly Stage[], nodes: PageNodes, address: PageAddress): ChosenOffer | null {
  const seen = new Set<unknown>();
  const pools = stages
    .flatMap((stage) => stage.pools)
    .map((members) => members.flatMap((owner) => offersIn({ owner, aggregate: null }, nodes, seen)))
    .filter((offers) => offers.length > 0);
  const offers = pools.find((pool) => pool.some(hasPrice)) ?? pools[0];
  return offers === undefined ? null : choose(offers, address);
}

function choose(offers: readonly Offer[], address: PageAddress): ChosenOffer {
  const fresh = orAll(offers.filter(isNew), offers);
  const priced = orAll(fresh.filter(hasPrice), fresh);
  const [first] = priced;
  const currency = first && currencyOf(first);
  const inCurrency = priced.filter((offer) => currencyOf(offer) === currency);
  // A page of a variant: its query names one of the offers.
  const scores = inCurrency.map(({ node }) => address.score(textOf(node, 'url') ?? ''));
  const best = scores.reduce((most, score) => Math.max(most, score), 0);
  const named = best > 1 ? inCurrency.filter((_, i) => scores[i] === best) : inCurrency;
  const chosen = cheapest(orAll(named.filter(isInStock), named));
  const rivals = best > 1 ? named : fresh;
  return { ...chosen, inStock: isInStock(chosen) ? chosen : (rivals.find(isInStock) ?? null) };
}

const orAll = <T>(some: readonly T[], all: readonly T[]): readonly T[] => (some.length > 0 ? some : all);

/**
 * Those of aggregates one by one; an aggregate that only sums them up is an offer itself. Those in `seen` are left out,
 * and the others added: references to one aggregate would multiply its offers.
 */
function offersIn(place: Pick<Offer, 'owner' | 'aggregate'>, nodes: PageNodes, seen: Set<unknown>): Offer[] {
  const { owner, aggregate } = place;
  return listOf(own(aggregate ?? owner, 'offers')).flatMap((one): Offer[] => {
    const node = nodes.resolve(one);
    if (!isNode(node) || seen.has(node)) return [];
    seen.add(node);
    const inner = aggregate === null ? offersIn({ owner, aggregate: node }, nodes, new Set()) : [];
    return inner.length > 0 ? inner : [{ node, owner, aggregate, price: priceIn(node, nodes) }];
  });
}

/** The offer itself or its price specification, whichever has the price; null where neither does. */
export function priceIn(offer: Node, nodes: PageNodes): Node | null {
  return textOf(offer, 'price') === null ? specificationIn(offer, nodes) : offer;
}

/** The first price specification with a price, of those that anyone pays for the whole product if there are any. */
export function specificationIn(offer: Node, nodes: PageNodes): Node | null {
  const specifications = listOf(own(offer, 'priceSpecification')).map((one) => nodes.resolve(one));
  const priced = specifications.filter(isNode).filter((specification) => textOf(specification, 'price') !== null);
  return priced.find(isPaid) ?? priced[0] ?? null;
}

/** Other types are prices to compare with, such as list prices; some are for a unit, or for members only. */
function isPaid(specification: Node): boolean {
  const type = textOf(specification, 'priceType');
  if (type !== null && bareName(type) !== 'saleprice') return false;
  return ['referenceQuantity', 'validForMemberTier'].every((key) => listOf(own(specification, key)).length === 0);
}

const hasPrice = ({ price }: Offer): boolean => price !== null;

/** The currency of the offer's price in upper case; null where nothing says it. */
function currencyOf({ node, aggregate, price }: Offer): string | null {
  const codes = [price, node, aggregate].map((place) => textOf(place, 'priceCurrency'));
  return codes.find((code) => code !== null)?.toUpperCase() ?? null;
}

/** Whether the sums of an aggregate are in the currency of the chosen offer. */
export function isBeside(chosen: ChosenOffer, aggregate: unknown): boolean {
  if (aggregate === chosen.node || aggregate === chosen.aggregate) return true;
  return (textOf(aggregate, 'priceCurrency')?.toUpperCase() ?? null) === currencyOf(chosen);
}

function cheapest(offers: readonly Offer[]): Offer {
  const amounts = offers.map(amountOf);
  // Without all amounts nothing shows which one is the lowest.
  if (!amounts.every((amount) => amount !== null)) return offers[0]!;
  return offers[amounts.reduce((best, amount, i) => (amount < amounts[best]! ? i : best), 0)]!;
}

function amountOf(offer: Offer): number | null {
  const price = literalOf(offer.price, 'price');
  if (typeof price === 'number' || price === null) return price;
  const [text, isMachine] = price instanceof ShownText ? [price.text, false] : [price, true];
  const { value } = readNumber(text, { decimal: null, isMachine, price: { currency: currencyOf(offer) } });
  return typeof value === 'number' ? value : null;
}

function isNew({ node }: Offer): boolean {
  const condition = textOf(node, 'itemCondition');
  return condition === null || ['newcondition', 'new'].includes(bareName(condition));
}

const isInStock = ({ node, aggregate }: Offer): boolean =>
  toBoolean(textOf(node, 'availability') ?? textOf(aggregate, 'availability') ?? '') === true;
