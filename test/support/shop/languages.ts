/** Products in another charset have texts in a language of that charset, so that a wrong decoder is noticed. */
import { type Charset, CHARSET_SHORT_NAMES } from './charsets.ts';

interface Texts {
  title: string;
  brand: string;
  category: string;
  description: string;
}

const JAPANESE: Texts = {
  title: '手作りの急須・黒「表示能力」ソ',
  brand: 'ミドリ工房',
  category: '台所用品',
  description: '丈夫で長持ち、毎日の暮らしに。十年間の修理保証が付いています。',
};
const RUSSIAN: Texts = {
  title: 'Чайник эмалированный, синий',
  brand: 'Ёлка и сыновья',
  category: 'Кухня',
  description: 'Сделано вручную небольшими партиями. Запасные части хранятся десять лет.',
};

const TEXTS: Record<Exclude<Charset, 'utf-8'>, Texts> = {
  shift_jis: JAPANESE,
  'euc-jp': JAPANESE,
  'iso-2022-jp': JAPANESE,
  gbk: {
    title: '手工茶壶,蓝色珐琅',
    brand: '绿色工坊',
    category: '厨房用品',
    description: '小批量手工制作,出厂前逐一检验,备件保存十年。',
  },
  big5: {
    title: '手工茶壺,藍色琺瑯',
    brand: '綠色工坊',
    category: '廚房用品',
    description: '小批量手工製作,出廠前逐一檢驗,備件保存十年。',
  },
  'euc-kr': {
    title: '수제 주전자, 파란 법랑',
    brand: '초록 공방',
    category: '주방용품',
    description: '소량으로 손수 만들고 하나하나 검사합니다. 부품은 십 년간 보관합니다.',
  },
  'windows-1251': RUSSIAN,
  'koi8-r': RUSSIAN,
  'windows-1252': {
    title: 'Théière émaillée “Œillet” – 10 €',
    brand: 'Frères Lœwe & Søn',
    category: 'Café & thé',
    description: 'Fabriquée à la main en petites séries ; pièces détachées gardées dix ans.',
  },
  'utf-16le': JAPANESE,
  'utf-16be': JAPANESE,
};

const CHARSET_ID = /^([a-z0-9]+?)(?:wrongmeta|meta|none|wrong|clash|bom)?-/;

/** The product with its texts in the language of the charset in its ID; any other product unchanged. */
export function translate(product: ShopProduct): ShopProduct {
  const short = CHARSET_ID.exec(product.id)?.[1] ?? '';
  if (!Object.hasOwn(CHARSET_SHORT_NAMES, short)) return product;
  const charset: Charset = CHARSET_SHORT_NAMES[short as keyof typeof CHARSET_SHORT_NAMES];
  if (charset === 'utf-8') return product;
  const texts = TEXTS[charset];
  return { ...product, ...texts, title: `${texts.title} ${product.price % 900}` };
}
export interface ShopProduct {
  id: string;
  title: string;
  /** Whole yen. */
  price: number;
  brand: string;
  sku: string;
  category: string;
  inStock: boolean;
  /** 1.0 to 5.0, one decimal. */
  rating: number;
  reviewCount: number;
  description: string;
}
