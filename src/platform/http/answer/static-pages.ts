/**
 * The dashboard's files, read once at start: what is not in the list does not exist, so no path of a
 * request ever reaches the file system.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { extname, join, relative, sep } from 'node:path'
import { gzipSync } from 'node:zlib'
import { type FixedAnswer, fixedAnswer } from './fixed-answer.ts'

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
const PAGE_POLICY = [
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
    if (!statSync(file).isFile()) continue
    const path = `/${relative(folder, file).split(sep).join('/')}`
    const type = TYPES[extname(file)]
    if (type === undefined || !/^\/[\w./-]+$/.test(path)) throw new Error(`pages: cannot serve "${path}"`)
    const bytes = readFileSync(file)
    totalBytes += bytes.byteLength
    if (pages.size >= FILES_MAX || totalBytes > BYTES_MAX) throw new Error(`pages: "${folder}" is too large`)
    pages.set(path, pageOf(bytes, type, path.startsWith('/assets/')))
  }
  const index = pages.get('/index.html')
  if (index !== undefined) pages.set('/', index)
  return pages
}

function pageOf(bytes: Buffer, type: string, isHashed: boolean): FixedAnswer {
  const isText = !type.startsWith('image/') && !type.startsWith('font/')
  const headers = {
    'content-type': type,
    'cache-control': isHashed ? 'public, max-age=31536000, immutable' : 'no-cache',
    'content-security-policy': PAGE_POLICY,
  }
  // Compressed when asked for: for all pages it takes 60 ms, a fifth of a start, and most starts are not for the dashboard.
  const isCompressed = isText && bytes.byteLength >= GZIP_FROM_BYTES
  return fixedAnswer(bytes, headers, isCompressed ? { gzip: () => gzipSync(bytes) } : {})
}
