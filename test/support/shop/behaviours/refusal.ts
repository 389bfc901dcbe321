/** Hidden refusals: pages that look like a normal response but are not. */
import { z } from 'zod';
import type { Exchange } from './behaviour.ts';
import { sendHtml } from './behaviour.ts';

export const refusalShapes = [
  /** A captcha page. */
  z.strictObject({
    type: z.literal('captcha'),
    status: z.union([z.literal(200), z.literal(403), z.literal(429), z.literal(503)]).default(200),
    headers: z.record(z.string(), z.string()).default({}),
  }),
  /** 200 with a single script line that redirects elsewhere. */
  z.strictObject({ type: z.literal('one-line-script') }),
  /** A complete document that contains nothing but a script. */
  z.strictObject({ type: z.literal('script-shell') }),
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
      for (const [name, value] of Object.entries(behaviour.headers)) exchange.response.setHeader(name, value);
      return sendHtml(exchange, CAPTCHA_PAGE, behaviour.status);
    case 'one-line-script':
      return sendHtml(exchange, `<script>location.href="/verify?from="+encodeURIComponent(location.pathname)</script>`);
    case 'script-shell':
      return sendHtml(
        exchange,
        `<!doctype html><html><head><script>(function(){var t=0;for(var i=0;i<9;i++)t+=i;document.cookie="t="+t})()</script></head><body></body></html>`,
      );
    case 'login':
      return sendHtml(exchange, LOGIN_PAGE);
  }
}
