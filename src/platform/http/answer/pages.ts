/**
 * Pages for people who follow a link in a mail, generated here as a whole: no script, no cookie, no external resources,
 * readable on a phone, in light and dark.
 */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { extname, join, relative, sep } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { sharedBytes } from '../../../base/flow/shared-bytes.ts'
import { type Compressed, type FixedAnswer, fixedAnswer } from './reply.ts'

const STYLE = `:root{color-scheme:light dark;--ink:#1c1f23;--soft:#565d66;--page:#f4f5f7;--card:#fff;--line:#d9dde2;--main:#1d4ed8;--on:#fff;--bad:#b42318}
@media (prefers-color-scheme:dark){:root{--ink:#eceef1;--soft:#a9b1bb;--page:#16181c;--card:#212429;--line:#3a3f47;--main:#9db8ff;--on:#10131a;--bad:#ff9d94}}
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
form{margin:0 0 1.25rem}
form:last-child{margin:0}
fieldset{margin:0 0 1.25rem;padding:.25rem 1rem;border:1px solid var(--line);border-radius:.5rem}
fieldset label{display:flex;gap:.75rem;align-items:center;min-height:2.75rem}
input[type=checkbox]{flex:none;width:1.25rem;height:1.25rem;accent-color:var(--main)}
.field{display:block;margin:0 0 1.25rem}
.field span{display:block;margin:0 0 .375rem;font-weight:600}
input[type=email]{width:100%;min-height:3rem;padding:.625rem .75rem;border:2px solid var(--line);border-radius:.5rem;background:transparent;color:inherit;font:inherit}
input:focus-visible{outline:3px solid var(--main);outline-offset:2px}
.fault{color:var(--bad);font-weight:600}`

/**
 * Pages with further style, and their policy: no script, no external resource, no framing; forms post to the page's own origin.
 */
export function createPages(more = '') {
  const style = more === '' ? STYLE : `${STYLE}\n${more}`
  const hash = createHash('sha256').update(style).digest('base64')
  return {
    /** `leadsTo`: the origin that the answer to a form may redirect to, since browsers apply `form-action` to that too. */
    policy: (leadsTo: string | null = null): string => policyOf([`style-src 'sha256-${hash}'`], leadsTo),
    /** A page with a heading; `title` and `parts` are HTML. `lang`: of all its texts. */
    page: (title: string, parts: readonly string[], lang = 'en') => wholePage(style, title, parts, lang),
  }
}

const policyOf = (more: readonly string[], leadsTo: string | null): string =>
  [
    "default-src 'none'",
    ...more,
    `form-action 'self'${leadsTo === null ? '' : ` ${leadsTo}`}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; ')

/**
 * For HTML that an account wrote: no script, no plug-in, no reload, an origin of its own without cookies and stored data,
 * and forms that post to the page's host alone. `leadsTo`: as for `createPages`.
 */
export const sandboxedPolicy = (leadsTo: string | null): string =>
  policyOf(["style-src 'unsafe-inline'", 'img-src https: data:', 'sandbox allow-forms'], leadsTo)

const SMALL = createPages()
export const pagePolicy = SMALL.policy
export const PAGE_POLICY = pagePolicy()
export const smallPage = SMALL.page

/**
 * A form with one button. Without an action attribute it posts to the address of the page itself.
 * `action`: value of the field of that name.
 */
export const postButton = (label: string, { action, quiet = false }: { action: string; quiet?: boolean }) =>
  `<form method="post"><input type="hidden" name="action" value="${action}"><button type="submit"${
    quiet ? ' class="quiet"' : ''
  }>${label}</button></form>`

function wholePage(style: string, title: string, parts: readonly string[], lang: string): string {
  return `<!doctype html>
<html lang="${lang}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="referrer" content="no-referrer">
<title>${escapeHtml(plainText(title))}</title>
<style>${style}</style>
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

/** HTML that was escaped by `escapeHtml`, without its elements, as text. */
export const plainText = (html: string) =>
  html
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll(/&(?:amp|lt|gt|quot|#39);/g, (escaped) => CHARACTERS.get(escaped) ?? escaped)

const CHARACTERS = new Map(Object.entries(ESCAPES).map(([character, escaped]) => [escaped, character]))

/** A built dashboard has some dozens of files and a few megabytes; more is a wrong folder. */
const FILES_MAX = 2_000
const BYTES_MAX = 64 * 1024 * 1024
const GZIP_FROM_BYTES = 1024

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.webmanifest': 'application/manifest+json',
  '.txt': 'text/plain; charset=utf-8',
  '.md': 'text/plain; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.webp': 'image/webp',
  '.woff2': 'font/woff2',
}

/**
 * Scripts only from our own files. Styles also inline: the component library sets them per element, and the
 * sandboxed frame that shows a mail inherits this policy. Images from elsewhere only because a reader may ask
 * for a mail's remote images; the frame's own policy forbids them until then.
 */
const DASHBOARD_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: https: http:",
  "connect-src 'self'",
  "frame-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/**
 * The dashboard's files, listed once at start: what is not in the list does not exist, so no path of a request ever
 * reaches the file system. A file is read for its first request, as most starts are not for the dashboard.
 *
 * Every file of `folder` by its URL path; `index.html` also as `/`. Files under `assets/` carry a hash in
 * their name and may be cached for good. A folder that does not exist has no pages: the API works without.
 * @throws Error for an unknown file type, an odd name, or a folder over the limits.
 */
export function readPages(folder: string): Map<string, FixedAnswer> {
  const pages = new Map<string, FixedAnswer>()
  let totalBytes = 0
  if (!existsSync(folder)) return pages
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const file = join(folder, name)
    const stats = statSync(file)
    if (!stats.isFile()) continue
    const path = `/${relative(folder, file).split(sep).join('/')}`
    const type = TYPES[extname(file)]
    if (type === undefined || !/^\/[\w./-]+$/.test(path)) throw new Error(`pages: cannot serve "${path}"`)
    totalBytes += stats.size
    if (pages.size >= FILES_MAX || totalBytes > BYTES_MAX) throw new Error(`pages: "${folder}" is too large`)
    pages.set(path, pageOf(file, stats.size, type, path.startsWith('/assets/')))
  }
  const index = pages.get('/index.html')
  if (index !== undefined) pages.set('/', index)
  return pages
}

function pageOf(file: string, size: number, type: string, isHashed: boolean): FixedAnswer {
  const isText = !type.startsWith('image/') && !type.startsWith('font/')
  const headers = {
    'content-type': type,
    'cache-control': isHashed ? 'public, max-age=31536000, immutable' : 'no-cache',
    'content-security-policy': DASHBOARD_POLICY,
  }
  const isCompressed = isText && size >= GZIP_FROM_BYTES
  let made: FixedAnswer | undefined
  const read = () => {
    const bytes = sharedBytes(readFileSync(file))
    made = fixedAnswer(bytes, headers, isCompressed ? compressedOf(bytes) : {})
    return made
  }
  return {
    get headers() {
      return (made ?? read()).headers
    },
    get forms() {
      return (made ?? read()).forms
    },
  }
}

/** Above this, all others wait too long while a file is compressed for its first request. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 6 } }

const compressedOf = (bytes: Uint8Array): Compressed => ({
  br: () => brotliCompressSync(bytes, BROTLI),
  gzip: () => gzipSync(bytes),
})
