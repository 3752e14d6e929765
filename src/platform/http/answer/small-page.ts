/**
 * Pages for people who follow a link in a mail, generated here as a whole: no script, no cookie, no external resources,
 * readable on a phone, in light and dark. In English.
 */
import { createHash } from 'node:crypto'

const STYLE = `:root{color-scheme:light dark;--ink:#1c1f23;--soft:#565d66;--page:#f4f5f7;--card:#fff;--line:#d9dde2;--main:#1d4ed8;--on:#fff}
@media (prefers-color-scheme:dark){:root{--ink:#eceef1;--soft:#a9b1bb;--page:#16181c;--card:#212429;--line:#3a3f47;--main:#9db8ff;--on:#10131a}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1.25rem;background:var(--page);color:var(--ink);font:1.0625rem/1.55 system-ui,sans-serif}
main{width:100%;max-width:30rem;padding:1.75rem;background:var(--card);border:1px solid var(--line);border-radius:.75rem;overflow-wrap:anywhere}
h1{margin:0 0 .75rem;font-size:1.5rem;line-height:1.25}
p{margin:0 0 1.25rem}
p:last-child{margin:0}
.soft{color:var(--soft);font-size:.9375rem}
button{width:100%;min-height:3rem;padding:.625rem 1rem;border:2px solid var(--main);border-radius:.5rem;background:var(--main);color:var(--on);font:inherit;font-weight:600;cursor:pointer}
button.quiet{background:transparent;color:var(--main)}
button:focus-visible{outline:3px solid var(--main);outline-offset:3px}
form{margin:0 0 1.25rem}`

const styleHash = createHash('sha256').update(STYLE).digest('base64')

/** No script, no external resource, no framing; the one form posts to the page's own origin. */
export const PAGE_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${styleHash}'`,
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ')

/**
 * A form with one button. Without an action attribute it posts to the address of the page itself.
 * `action`: value of the field of that name.
 */
export const postButton = (label: string, { action, quiet = false }: { action: string; quiet?: boolean }) =>
  `<form method="post"><input type="hidden" name="action" value="${action}"><button type="submit"${
    quiet ? ' class="quiet"' : ''
  }>${label}</button></form>`

/** A page with a heading; `parts` are HTML. */
export function smallPage(title: string, parts: readonly string[]): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="referrer" content="no-referrer">
<title>${title}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>${title}</h1>
${parts.join('\n')}
</main>
</body>
</html>
`
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

export const escapeHtml = (text: string) =>
  text.replaceAll(/[&<>"']/g, (character) => ESCAPES[character] ?? '')
