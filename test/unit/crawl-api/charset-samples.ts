/** One text in each encoding that shops use, encoded with `iconv`. */

export interface CharsetSample {
  charset: string;
  text: string;
  bytes: Buffer;
}

const SAMPLES: [charset: string, text: string, base64: string][] = [
  [
    'shift_jis',
    '価格 1,200円 緑茶セット 静岡産。送料無料の商品です。在庫あります。お届けは三日後になります。',
    'ib+KaSAxLDIwMIl+IJfOkoODWoNig2cgkMOJqo5ZgUKRl5e/lrOXv4LMj6SVaYLFgreBQo3djMmCoILogtyCt4FCgqiTzYKvgs2OT5P6jOOCyYLIguiC3IK3gUI=',
  ],
  [
    'euc-jp',
    '価格 1,200円 緑茶セット 静岡産。送料無料の商品です。在庫あります。お届けは三日後になります。',
    'ssGzyiAxLDIwMLHfIM7Qw+Olu6XDpcggwMWyrLu6oaPB987BzLXOwaTOvqbJyqTHpLmho7rfuMukoqTqpN6kuaGjpKrGz6SxpM+7sMb8uOWky6TKpOqk3qS5oaM=',
  ],
  [
    'iso-2022-jp',
    '価格 1,200円 緑茶セット 静岡産。送料無料の商品です。在庫あります。お届けは三日後になります。',
    'GyRCMkEzShsoQiAxLDIwMBskQjFfGyhCIBskQk5QQ2MlOyVDJUgbKEIgGyRCQEUyLDs6ISNBd05BTDVOQSROPiZJSiRHJDkhIzpfOEskIiRqJF4kOSEjJCpGTyQxJE87MEZ8OGUkSyRKJGokXiQ5ISMbKEI=',
  ],
  [
    'gbk',
    '价格 绿茶礼盒。这是一个非常好的商品，包邮，库存充足，三天内发货。我们的客户都很满意。',
    'vNu48SDCzLLowPG60KGj1eLKx9K7uPa3x7OjusO1xMnMxrejrLD808qjrL/itOaz5Nfjo6zI/czsxNq3orv1oaPO0sPHtcS/zbuntry63ML60uKhow==',
  ],
  [
    'gb18030',
    '价格 绿茶礼盒。这是一个非常好的商品，包邮，库存充足，三天内发货。我们的客户都很满意。',
    'vNu48SDCzLLowPG60KGj1eLKx9K7uPa3x7OjusO1xMnMxrejrLD808qjrL/itOaz5Nfjo6zI/czsxNq3orv1oaPO0sPHtcS/zbuntry63ML60uKhow==',
  ],
  [
    'big5',
    '價格 綠茶禮盒。這是一個非常好的商品，包郵，庫存充足，三天內發貨。我們的客戶都很滿意。',
    'u/mu5iC68a/5wqeysKFDs2+sT6RArdOrRLFgpm6qurDTq36hQaVdtmyhQa53pnOlUqisoUGkVKTRpLq1b7NmoUOn2q3MqrqryKThs6Or3Lqht06hQw==',
  ],
  [
    'euc-kr',
    '가격 녹차 세트. 이 상품은 매우 좋습니다. 무료 배송이며 재고가 있습니다. 삼일 안에 도착합니다.',
    'sKGw3SCz7ML3ILy8xq4uIMDMILvzx7DAuiC4xb/sIMHBvcC0z7TZLiC5q7fhILnovNvAzLjnIMDnsO2woSDA1r3AtM+02S4gu+/AzyC+yL+hILW1wvjH1bTPtNku',
  ],
  [
    'windows-1251',
    'Цена. Зелёный чай. Это очень хороший товар, бесплатная доставка, есть в наличии. Доставим за три дня.',
    '1uXt4C4gx+XruO376SD34OkuIN3y7iDu9+Xt/CD17vDu+OjpIPLu4uDwLCDh5fHv6+Dy7eD/IOTu8fLg4urgLCDl8fL8IOIg7eDr6Pfo6C4gxO7x8uDi6Owg5+Ag8vDoIOTt/y4=',
  ],
  [
    'koi8-r',
    'Цена. Зелёный чай. Это очень хороший товар, бесплатная доставка, есть в наличии. Доставим за три дня.',
    '48XOwS4g+sXMo87ZyiDewcouIPzUzyDP3sXO2CDIz9LP28nKINTP18HSLCDCxdPQzMHUzsHRIMTP09TB18vBLCDF09TYINcgzsHMyd7JyS4g5M/T1MHXyc0g2sEg1NLJIMTO0S4=',
  ],
  [
    'windows-1252',
    'Prix 12 €. Thé vert très apprécié, livraison gratuite, disponible dès aujourd’hui à Besançon, même à Noël.',
    'UHJpeCAxMiCALiBUaOkgdmVydCB0cuhzIGFwcHLpY2npLCBsaXZyYWlzb24gZ3JhdHVpdGUsIGRpc3BvbmlibGUgZOhzIGF1am91cmSSaHVpIOAgQmVzYW7nb24sIG3qbWUg4CBOb+tsLg==',
  ],
  [
    'windows-1250',
    'Cena. Zelený čaj je velmi oblíbený, doprava zdarma, příští den u vás, žluťoučký kůň úpěl ďábelské ódy.',
    'Q2VuYS4gWmVsZW79IOhhaiBqZSB2ZWxtaSBvYmztYmVu/SwgZG9wcmF2YSB6ZGFybWEsIHD47Zp07SBkZW4gdSB24XMsIJ5sdZ1vdehr/SBr+fIg+nDsbCDv4WJlbHNr6SDzZHku',
  ],
  [
    'windows-1253',
    'Τιμή. Πράσινο τσάι, πολύ καλό προϊόν με δωρεάν αποστολή, διαθέσιμο σήμερα.',
    '1Ons3i4g0PHc8+nt7yD089zpLCDw7+v9IOrh6/wg8PHv+vztIOzlIOT58eXc7SDh8O/z9O/r3iwg5Onh6N3z6ezvIPPe7OXx4S4=',
  ],
  [
    'windows-1254',
    'Fiyat. Yeşil çay çok iyi bir ürün, ücretsiz kargo, bugün stokta, şişe ve ağaç.',
    'Rml5YXQuIFll/mlsIOdheSDnb2sgaXlpIGJpciD8cvxuLCD8Y3JldHNpeiBrYXJnbywgYnVn/G4gc3Rva3RhLCD+af5lIHZlIGHwYecu',
  ],
  [
    'windows-1256',
    'السعر. الشاي الأخضر منتج جيد جدا مع شحن مجاني ومتوفر اليوم في المتجر.',
    'x+HT2tEuIMfh1MftIMfhw87W0SDj5MrMIMztzyDMz8cg49og1M3kIOPMx+TtIObjyubd0SDH4e3m4yDd7SDH4ePKzNEu',
  ],
];

export const CHARSET_SAMPLES: CharsetSample[] = SAMPLES.map(([charset, text, base64]) => ({
  charset,
  text,
  bytes: Buffer.from(base64, 'base64'),
}));
