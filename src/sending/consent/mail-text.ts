/** The built-in confirmation mail, in the language of the list. No text of a stranger is in it. */
import { escapeHtml } from '../../platform/http/answer/pages.ts'
import type { List } from '../lists/list.ts'
import { fill, TEXTS } from '../tracking/page-texts.ts'

/** `url` leads to the page of the confirmation. */
export function mailText(list: List, url: string): { subject: string; text: string; html: string } {
  const texts = TEXTS[list.language]
  const plain = { list: nameOf(list), days: String(list.confirmDays) }
  const html = { list: `<strong><bdi>${escapeHtml(plain.list)}</bdi></strong>`, days: plain.days }
  const paragraphs = [texts.mailIntro, texts.mailAsk].map((text) => `<p>${fill(text, html)}</p>`)
  return {
    subject: fill(texts.mailSubject, plain),
    text: `${fill(texts.mailIntro, plain)}

${fill(texts.mailAsk, plain)}

${url}

${texts.mailIgnore}
`,
    html: `<!doctype html>
<html lang="${list.language}"><head><meta charset="utf-8"><title>${escapeHtml(fill(texts.mailSubject, plain))}</title></head>
<body style="font:16px/1.5 system-ui,sans-serif">
${paragraphs.join('\n')}
<p><a href="${url}">${url}</a></p>
<p>${texts.mailIgnore}</p>
</body></html>
`,
  }
}

/** How people know the list. */
export const nameOf = ({ title, name, address }: List): string => title || name || address
