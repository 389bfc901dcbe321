/** Hidden refusals: pages that look like a normal response but are not. */
import { z } from 'zod';
import { type Answers, sendHtml } from './behaviour.ts';

export const refusalShapes = [z.strictObject({ type: z.literal('captcha') })] as const;

const CAPTCHA_PAGE = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Just a moment: are you a human?</title></head>
<body><main class="challenge"><p>We have noticed unusual traffic from your network. Please confirm that you are not a robot.</p>
<form action="/verify" method="post"><div class="g-recaptcha" data-sitekey="shop"></div><button>Continue</button></form>
</main></body></html>\n`;

export const refusalAnswers: Answers<z.output<(typeof refusalShapes)[number]>> = {
  captcha: (exchange) => sendHtml(exchange, CAPTCHA_PAGE),
};
