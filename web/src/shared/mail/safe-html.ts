/**
 * Makes the HTML of a foreign message safe to show. Four layers, each sufficient for its purpose:
 *
 * 1. The frame is sandboxed without any permission: no script, no form, no popup, no navigation of this
 *    page, no automatic refresh, and an opaque origin, so it can read nothing of ours.
 * 2. A policy inside the frame forbids every request; inline styles and data: images are allowed,
 *    images of other hosts only at the reader's request. The page's own policy applies there too.
 * 3. Elements that could bypass such a policy (`link` can cause a DNS lookup or a connection)
 *    or that only make sense with script are removed.
 * 4. Links do nothing in the frame; they are listed next to it, and open from there.
 *
 * An opaque origin sends no cookie, so the frame cannot load inline (`cid:`) images: the page
 * fetches them and inserts them as data: URLs. The message's HTML is only ever parsed in an inert
 * document and never becomes part of this page.
 */

export interface MessageLink {
  /** http, https or mailto; nothing else is ever offered for opening. */
  url: string
  text: string
}

export interface HtmlContent {
  document: Document
  /** Content-IDs in use, without angle brackets. */
  contentIds: string[]
  /** Distinct addresses of images on other hosts. */
  remoteImages: number
  links: MessageLink[]
}

const LINKS_MAX = 500
const REMOVED = [
  ...['script', 'noscript', 'template', 'base', 'link', 'meta[http-equiv]', 'meta[name=referrer i]'],
  ...['object', 'embed', 'applet', 'iframe', 'frame', 'portal', 'fencedframe', 'dialog', 'audio', 'video'],
].join(',')
const URL_ATTRIBUTES = ['src', 'background', 'poster', 'href', 'xlink:href'] as const
const CSS_URL = /url\(\s*(?:"([^"]*)"|'([^']*)'|([^'")]*))\s*\)/gi
/** The policy blocks these anyway, and the browser would note each as an error. The address may have a `;` in it. */
const IMPORT = /@import\s+(?:url\(\s*(?:"[^"]*"|'[^']*'|[^'")]*)\s*\)|"[^"]*"|'[^']*')[^;{}]*;?/gi
const REMOTE = /^\s*(?:https?:)?\/\//i

export function readHtml(html: string): HtmlContent {
  const document = new DOMParser().parseFromString(html, 'text/html')
  for (const element of document.querySelectorAll(REMOVED)) element.remove()
  const references = referencesOf(document)
  const contentIds = references.map(contentIdOf).filter((id) => id !== undefined)
  const remote = references.filter((reference) => REMOTE.test(reference))
  return {
    document,
    contentIds: [...new Set(contentIds)],
    remoteImages: new Set(remote).size,
    links: linksOf(document),
  }
}

/** The text for the frame's `srcdoc`. `inlineImages` maps a content-id to a data: URL. */
export function frameDocument(
  content: HtmlContent,
  inlineImages: ReadonlyMap<string, string>,
  remoteImages: boolean,
  colors: 'light' | 'dark' = 'light',
): string {
  const document = content.document.cloneNode(true) as Document
  const resolve = (reference: string) => {
    const id = contentIdOf(reference)
    return id === undefined ? undefined : (inlineImages.get(id) ?? 'data:,')
  }
  for (const element of document.querySelectorAll('*')) inlineAttributes(element, resolve)
  for (const style of document.querySelectorAll('style'))
    style.textContent = inColors(inlineCss(style.textContent, resolve).replaceAll(IMPORT, ''), colors)
  for (const link of document.querySelectorAll('a, area')) link.setAttribute('target', '_blank')
  document.head.prepend(
    meta(document, 'http-equiv', 'Content-Security-Policy', framePolicy(remoteImages)),
    meta(document, 'name', 'referrer', 'no-referrer'),
    meta(document, 'name', 'color-scheme', colors),
  )
  // No doctype is added to a message without one: mail in quirks mode should look that way here too.
  return (document.doctype ? '<!doctype html>' : '') + document.documentElement.outerHTML
}

/** Rules for a colour scheme hold by the one that is shown, whatever the reader's own is. */
const inColors = (css: string, colors: 'light' | 'dark') =>
  css.replace(/\(\s*prefers-color-scheme\s*:\s*(light|dark)\s*\)/gi, (_, scheme: string) =>
    scheme.toLowerCase() === colors ? '(min-width: 0)' : '(max-width: 0)',
  )

const framePolicy = (remoteImages: boolean) =>
  `default-src 'none'; style-src 'unsafe-inline'; img-src data:${remoteImages ? ' https: http:' : ''}; ` +
  "form-action 'none'; base-uri 'none'"

function meta(document: Document, kind: 'http-equiv' | 'name', name: string, content: string) {
  const element = document.createElement('meta')
  element.setAttribute(kind, name)
  element.setAttribute('content', content)
  return element
}

type Resolve = (reference: string) => string | undefined

function inlineAttributes(element: Element, resolve: Resolve) {
  for (const name of URL_ATTRIBUTES) {
    const value = element.getAttribute(name)
    const inlined = value === null ? undefined : resolve(value)
    if (inlined !== undefined) element.setAttribute(name, inlined)
  }
  const style = element.getAttribute('style')
  if (style !== null && /cid:/i.test(style)) element.setAttribute('style', inlineCss(style, resolve))
}

const inlineCss = (css: string, resolve: Resolve) =>
  css.replace(CSS_URL, (whole, double, single, bare) => {
    const inlined = resolve(double ?? single ?? bare ?? '')
    return inlined === undefined ? whole : `url("${inlined}")`
  })

/** Everything that the frame would load if allowed: images, posters, backgrounds, style URLs. */
function referencesOf(document: Document): string[] {
  const references: string[] = []
  const addCss = (css: string) => {
    for (const match of css.matchAll(CSS_URL)) references.push(match[1] ?? match[2] ?? match[3] ?? '')
  }
  for (const element of document.querySelectorAll('*')) {
    const isLink = /^(a|area)$/i.test(element.localName)
    for (const name of URL_ATTRIBUTES) {
      const value = isLink ? null : element.getAttribute(name)
      if (value !== null) references.push(value.trim())
    }
    const style = element.getAttribute('style')
    if (style !== null) addCss(style)
    if (element.localName === 'style') addCss(element.textContent)
    for (const candidate of element.getAttribute('srcset')?.split(',') ?? [])
      references.push(candidate.trim().split(/\s/)[0] ?? '')
  }
  return references
}

/** RFC 2392 §2: the URL is the Content-ID without angle brackets, percent-encoded. */
function contentIdOf(reference: string): string | undefined {
  const id = /^\s*cid:(.*)$/is.exec(reference)?.[1]?.trim()
  if (id === undefined) return undefined
  try {
    return decodeURIComponent(id)
  } catch {
    return id
  }
}

function linksOf(document: Document): MessageLink[] {
  const links: MessageLink[] = []
  for (const element of document.querySelectorAll('a[href], area[href]')) {
    const url = safeUrl(element.getAttribute('href') ?? '')
    const text = (element.textContent ?? '').replace(/\s+/g, ' ').trim()
    if (url !== undefined) links.push({ url, text: text || element.querySelector('img')?.alt || '' })
    if (links.length === LINKS_MAX) break
  }
  return links
}

function safeUrl(href: string): string | undefined {
  const url = URL.parse(href.trim())
  return url !== null && ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url.href : undefined
}
