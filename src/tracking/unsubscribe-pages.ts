/**
 * The pages that recipients see, generated here as a whole: no script, no cookie, no external resources, readable
 * on a phone, in light and dark. In English.
 *
 * The page shows the address in a masked form: its owner recognises it, and a stranger to whom the message was
 * forwarded does not learn it.
 */
import { createHash } from 'node:crypto'

/** What a link unsubscribes from, as a page describes it. */
export interface Subject {
  /** Bare address; shown masked. */
  recipient: string
  scope: 'domain' | 'tags' | 'list'
  /** Name of the sending domain or address of the list; null: it no longer exists. */
  sender: string | null
}

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

const askPage = (subject: Subject) =>
  page('Unsubscribe', [
    `<p>Stop ${mailPhrase(subject)} to <strong>${masked(subject)}</strong>?</p>`,
    button('unsubscribe', 'Unsubscribe', ''),
    '<p class="soft">Nothing changes until you press the button.</p>',
  ])

const donePage = (subject: Subject) =>
  page('You are unsubscribed', [
    `<p><strong>${masked(subject)}</strong> gets no more ${shortPhrase(subject)}.</p>`,
    button('resubscribe', 'Undo: subscribe again', 'quiet'),
    '<p class="soft">Mail that is already on its way may still arrive.</p>',
  ])

const undonePage = (subject: Subject) =>
  page('You are subscribed again', [
    `<p><strong>${masked(subject)}</strong> gets ${shortPhrase(subject)} again.</p>`,
    button('unsubscribe', 'Unsubscribe', 'quiet'),
  ])

/** The sender, not this link, unsubscribed the address. */
const keptPage = (subject: Subject) =>
  page('Still unsubscribed', [
    `<p><strong>${masked(subject)}</strong> was not unsubscribed with this link, so it cannot be undone here.
Ask the sender to be added again.</p>`,
  ])

export const PAGES = { ask: askPage, done: donePage, undone: undonePage, kept: keptPage } as const

function mailPhrase({ scope, sender }: Subject): string {
  if (scope === 'list')
    return `mail of the mailing list${sender ? ` <strong>${escapeHtml(sender)}</strong>` : ''}`
  const from = sender ? ` from <strong>${escapeHtml(sender)}</strong>` : ' from this sender'
  return scope === 'tags' ? `mail of this kind${from}` : `all mail${from}`
}

const shortPhrase = (subject: Subject) => mailPhrase(subject).replace(/^all mail/, 'mail')

/** `a***@example.org`: its owner recognises it, a stranger does not learn it. */
export function maskAddress(address: string): string {
  const at = address.lastIndexOf('@')
  const [first = ''] = address
  if (at < 0) return '***'
  return at > 1 ? `${first}***${address.slice(at)}` : `***${address.slice(at)}`
}

const masked = ({ recipient }: Subject) => escapeHtml(maskAddress(recipient))

/** Without an action attribute the form posts to the address of the page itself. */
const button = (action: string, label: string, kind: string) =>
  `<form method="post"><input type="hidden" name="action" value="${action}"><button type="submit"${
    kind && ` class="${kind}"`
  }>${label}</button></form>`

function page(title: string, parts: readonly string[]): string {
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

const escapeHtml = (text: string) => text.replaceAll(/[&<>"']/g, (character) => ESCAPES[character] ?? '')
