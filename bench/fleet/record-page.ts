/** The pages of the fleet bench, and the mapping that reads them. */
export const RECORDS = 30;

const records = Array.from(
  { length: RECORDS },
  (_, i) => `<li><b>user ${i}</b><i>${i % 6}</i><p>Does what it should, day ${i}.</p></li>`,
);
export const RECORD_PAGE = `<ul>${records.join('')}</ul>`;

export const RECORD_MAPPING = {
  rows: { each: 'li', key: 'user' },
  fields: { user: { css: 'b', required: true }, stars: { css: 'i', integer: true }, text: 'p' },
};

/** Where the shop returns the times of all requests. */
export const TIMES_PATH = '/times.json';
