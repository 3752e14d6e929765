/**
 * The guides of `docs/` as pages: which there are, and how their Markdown becomes what a page shows. It runs when the dashboard
 * or the static site (`scripts/docs-site.ts`) is built; browsers get the result.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Marked, type Token, type Tokens } from 'marked'

/** Files without `.md`, by their path from `docs/`, in the order of the list. */
export const GUIDES: readonly { group: string; files: readonly string[] }[] = [
  { group: 'Begin', files: ['quick-start', 'how-it-works', 'install', 'going-live', 'dns', 'first-ip'] },
  {
    group: 'Connect and move',
    files: ['ghost', 'applications', 'clients', 'leave-mailgun', 'moving-in', 'relays'],
  },
  {
    group: 'Send and receive',
    files: ['write-a-template', 'templates', 'webhooks', 'receiving', 'ci', 'terraform'],
  },
  {
    group: 'Run',
    files: [
      ...[
        'operations',
        'troubleshooting',
        'settings',
        'behind-nat-and-balancers',
        'backup',
        'upgrading',
        'sizing',
        'scaling',
        'kubernetes',
        'clickhouse',
        'warm-up',
        'assistants',
      ],
      ...['good-name', 'shaping', 'subaccounts', 'security', 'gdpr'],
    ],
  },
  {
    group: 'Look up',
    files: [
      '../CHANGELOG',
      'errors',
      'glossary',
      'commands',
      'differences',
      'rights',
      'rfcs',
      'reliability',
      'versions',
      'publishing',
    ],
  },
  {
    group: 'The API, rule by rule',
    files: [
      ...['api/wire-conventions', 'api/auth-limits', 'api/messages', 'api/smtp-submission', 'api/events'],
      'api/event-examples',
      ...[
        'api/webhooks',
        'api/domains',
        'api/dns-writing',
        'api/domain-keys',
        'api/tracking',
        'api/templates',
      ],
      ...[
        'api/mailing-lists',
        'api/suppressions',
        'api/routes-inbound',
        'api/metrics-logs',
        'api/tags-stats',
      ],
      ...['api/bounce-classification', 'api/validation', 'api/ips-pools', 'api/dynamic-pools', 'api/relays'],
      ...['api/alerts', 'api/standing', 'api/content-check', 'api/health-score', 'api/reputation'],
      ...['api/monitoring', 'api/dmarc', 'api/exports', 'api/accounts', 'api/own-operations'],
    ],
  },
]

export const DOCS = join(import.meta.dirname, '../docs')

/** A part of a guide: markup, or code that can be copied. */
export type GuidePart = { kind: 'html'; html: string } | { kind: 'code'; language: string; text: string }

export interface RenderedGuide {
  title: string
  /** Headings of the second and third level, for searching. */
  headings: string[]
  parts: GuidePart[]
}

/** Address of a guide's page on the dashboard. */
const dashboardPage = (slug: string) => `/docs/guides/${slug}`

/** The last part of the page's path: `api/messages` has `api-messages`, `../CHANGELOG` has `changelog`. */
export const slugOf = (file: string): string =>
  file
    .replace(/^\.\.\//, '')
    .replaceAll('/', '-')
    .toLowerCase()

/** Stands for the folder that has `docs/`. */
const ROOT = 'http://root'
const SERVED = new Set(GUIDES.flatMap(({ files }) => files))

const TEXT_ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
}
const escaped = (text: string) => text.replaceAll(/[&<>"]/g, (sign) => TEXT_ESCAPES[sign] as string)

/**
 * Where a link of a guide leads on the pages; null: to a file that is not served, and only its text is shown.
 * @param file the guide, as in `GUIDES`
 * @param pageOf address of a guide's page by its slug
 */
export function pageLink(href: string, file: string, pageOf = dashboardPage): string | null {
  if (/^https?:\/\//.test(href) || href.startsWith('#')) return href
  const target = guideAt(href, file)
  return target === null ? null : `${pageOf(slugOf(target))}${/#.*$/.exec(href)?.[0] ?? ''}`
}

/** The guide that a link leads to; null: another file, or another host. */
function guideAt(href: string, file: string): string | null {
  const { origin, pathname } = new URL(href, `${ROOT}/docs/${file}.md`)
  const path = /^\/(.+)\.md$/.exec(pathname)?.[1]
  const target = path?.startsWith('docs/') ? path.slice('docs/'.length) : `../${path}`
  return origin === ROOT && SERVED.has(target) ? target : null
}

/** As GitHub makes them, so that links within the Markdown work on both. */
export const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .trim()
    .replaceAll(' ', '-')

/**
 * @param titleOf a guide's title, for links whose text is the name of its file
 * @param pageOf address of a guide's page by its slug
 * @throws when the Markdown does not begin with a title
 */
export function renderGuide(
  markdown: string,
  file: string,
  titleOf: (file: string) => string,
  pageOf = dashboardPage,
): RenderedGuide {
  const marked = new Marked({ gfm: true })
  const headings: string[] = []
  marked.use({
    renderer: {
      // Markers of tests are comments. Other markup is not used, and would be shown as it is written.
      html: ({ text }) => (text.startsWith('<!--') ? '' : escaped(text)),
      heading({ tokens, depth }) {
        const text = plainText(tokens)
        if (depth > 1 && depth < 4) headings.push(text)
        return `<h${depth} id="${escaped(anchorOf(text))}">${this.parser.parseInline(tokens)}</h${depth}>\n`
      },
      link({ href, tokens }) {
        const to = pageLink(href, file, pageOf)
        const target = guideAt(href, file)
        const isFileName = target !== null && /^[\w/.-]+\.md$/.test(plainText(tokens))
        const text = isFileName ? escaped(titleOf(target)) : this.parser.parseInline(tokens)
        if (to === null) return text
        const elsewhere = to.startsWith('http') ? ' target="_blank" rel="noopener noreferrer"' : ''
        return `<a href="${escaped(to)}"${elsewhere}>${text}</a>`
      },
      // Pictures show the dashboard, where the reader is already.
      image: () => '',
      table({ header, rows }) {
        const row = (cells: Tokens.TableCell[], tag: 'th' | 'td') =>
          `<tr>${cells.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join('')}</tr>`
        const body = rows.map((cells) => row(cells, 'td')).join('')
        // Wide tables scroll by themselves, which the keyboard must reach.
        return `<div class="guide-table" tabindex="0"><table><thead>${row(header, 'th')}</thead><tbody>${body}</tbody></table></div>\n`
      },
    },
  })
  const tokens = marked.lexer(markdown)
  const [first, ...others] = tokens.filter(({ type }) => type !== 'space')
  if (first?.type !== 'heading' || first['depth'] !== 1) throw new Error(`docs/${file}.md has no title`)
  return { title: plainText(first['tokens'] ?? []), parts: partsOf(others, marked), headings }
}

function partsOf(tokens: readonly Token[], marked: Marked): GuidePart[] {
  const parts: GuidePart[] = []
  let texts: Token[] = []
  const endTexts = () => {
    const html = marked.parser(texts)
    if (html.trim() !== '') parts.push({ kind: 'html', html })
    texts = []
  }
  for (const token of tokens) {
    if (token.type !== 'code') texts.push(token)
    else {
      endTexts()
      parts.push({ kind: 'code', language: token['lang'] ?? '', text: token['text'] })
    }
  }
  endTexts()
  return parts
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
}

/** Without markup. */
function plainText(tokens: readonly Token[]): string {
  return tokens
    .map((token) => {
      const inner = 'tokens' in token ? token.tokens : undefined
      const text = 'text' in token ? String(token.text) : ''
      return inner
        ? plainText(inner)
        : text.replaceAll(/&(?:amp|lt|gt|quot|#39);/g, (name) => ENTITIES[name] ?? name)
    })
    .join('')
}

const markdownOf = (file: string) => readFileSync(join(DOCS, `${file}.md`), 'utf8')
const titleOf = (file: string) => /^# (.+)$/m.exec(markdownOf(file))?.[1] ?? file

/** A guide from its file, as `renderGuide`. */
export const readGuide = (file: string, pageOf = dashboardPage): RenderedGuide =>
  renderGuide(markdownOf(file), file, titleOf, pageOf)

/** What is searched of a guide: each of its words once, in lower case. */
export function searchedWords({ title, parts }: RenderedGuide): string {
  const texts = parts.map((part) =>
    part.kind === 'code' ? part.text : part.html.replaceAll(/<[^>]*>/g, ' '),
  )
  const words = [title, ...texts]
    .join(' ')
    .replaceAll(/&(?:amp|lt|gt|quot|#39);/g, (name) => ENTITIES[name] ?? name)
    .toLowerCase()
    .split(/[\s"'`(),;:|<>]+/)
  return [...new Set(words)].join(' ')
}
