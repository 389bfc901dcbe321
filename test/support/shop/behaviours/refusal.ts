/** Hidden refusals: pages that look like a normal response but are not. */
import { z } from 'zod';
import { type Exchange, sendHtml } from './behaviour.ts';

export const refusalShapes = [
  /** A captcha page. */
  z.strictObject({
    type: z.literal('captcha'),
  }),
  /** 200 with a single script line that redirects elsewhere. */
  z.strictObject({ type: z.literal('one-line-script') }),
  /** 200 with a login form in place of the product. */
  z.strictObject({ type: z.literal('login') }),
] as const;

export type RefusalBehaviour = z.output<(typeof refusalShapes)[number]>;

export const CAPTCHA_PAGE = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Just a moment: are you a human?</title></head>
<body><main class="challenge"><p>We have noticed unusual traffic from your network. Please confirm that you are not a robot.</p>
<form action="/verify" method="post"><div class="g-recaptcha" data-sitekey="shop"></div><button>Continue</button></form>
</main></body></html>\n`;

export const LOGIN_PAGE = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Log in - Demo Shop</title></head>
<body><h1>Welcome back</h1><form action="/login" method="post"><label>E-mail <input name="user" type="email"></label>
<label>Password <input name="password" type="password"></label><button>Log in</button></form></body></html>\n`;

export function answerRefusal(exchange: Exchange, behaviour: RefusalBehaviour): void {
  switch (behaviour.type) {
    case 'captcha':
      return sendHtml(exchange, CAPTCHA_PAGE);
    case 'one-line-script':
      return sendHtml(exchange, `<script>location.href="/verify?from="+encodeURIComponent(location.pathname)</script>`);
    case 'login':
      return sendHtml(exchange, LOGIN_PAGE);
  }
}
