/**
 * Writes `src/receiving/inbox/html/support-table.ts` from the data of caniemail.com, which the npm package `caniemail` holds
 * as `data/caniemail.json`:
 *
 *     npm pack caniemail && tar xf caniemail-*.tgz
 *     node scripts/update-mail-support.ts package/data/caniemail.json
 *
 * The package itself is no dependency: it would install 30 MB for a table of 40 KB.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const TABLE = join(import.meta.dirname, '../src/receiving/inbox/html/support-table.ts')

interface Source {
  last_update_date: string
  nicenames: { family: Record<string, string>; platform: Record<string, string> }
  data: {
    slug: string
    title: string
    category: string
    stats: Record<string, Record<string, Record<string, string>>>
  }[]
}

/** How each feature is recognised (html-check.ts); those that no rule fits are left out. Several are alternatives. */
const KEYS: Readonly<Record<string, readonly string[]>> = {
  'css-at-media-device-pixel-ratio': [
    'media -webkit-device-pixel-ratio',
    'media -webkit-min-device-pixel-ratio',
  ],
  'css-border-inline-block': ['property border-inline', 'property border-block'],
  'css-block-inline-size': ['property block-size', 'property inline-size'],
  'css-column-layout-properties': ['property columns', 'property column-width', 'property column-rule'],
  'css-display-flex': ['value display flex', 'value display inline-flex'],
  'css-display-grid': ['value display grid', 'value display inline-grid'],
  'css-display-none': ['value display none'],
  'css-flex-direction': ['property flex-direction'],
  'css-flex-wrap': ['property flex-wrap'],
  'css-gap': ['property gap', 'property column-gap', 'property row-gap'],
  'css-grid-template': [
    'property grid-template',
    'property grid-template-columns',
    'property grid-template-rows',
    'property grid-template-areas',
  ],
  'css-important': ['word !important'],
  'css-left-right-top-bottom': ['property left', 'property right', 'property top', 'property bottom'],
  'css-linear-gradient': ['function linear-gradient'],
  'css-radial-gradient': ['function radial-gradient'],
  'css-conic-gradient': ['function conic-gradient'],
  'css-margin-block-start-end': ['property margin-block-start', 'property margin-block-end'],
  'css-margin-inline-block': ['property margin-inline', 'property margin-block'],
  'css-margin-inline-start-end': ['property margin-inline-start', 'property margin-inline-end'],
  'css-padding-block-start-end': ['property padding-block-start', 'property padding-block-end'],
  'css-padding-inline-block': ['property padding-inline', 'property padding-block'],
  'css-padding-inline-start-end': ['property padding-inline-start', 'property padding-inline-end'],
  'css-modern-color': ['function lch', 'function oklch', 'function lab', 'function oklab'],
  'css-rgb': ['function rgb'],
  'css-rgba': ['function rgba'],
  'css-unit-calc': ['function calc'],
  'css-unit-percent': ['unit %'],
  'css-variables': ['function var'],
  'html-background': ['attribute background'],
  'html-button-reset': ['element button reset'],
  'html-button-submit': ['element button submit'],
  'html-h1-h6': ['element h1', 'element h2', 'element h3', 'element h4', 'element h5', 'element h6'],
  'html-image-maps': ['element map'],
  'html-link': ['element link'],
  'html-lists': ['element ul', 'element ol', 'element dl'],
  'html-loading-attribute': ['attribute loading'],
  'html-semantics': [
    ...['article', 'aside', 'details', 'figcaption', 'figure', 'footer', 'header', 'main', 'mark', 'nav'],
    ...['section', 'summary', 'time'],
  ].map((name) => `element ${name}`),
  'html-srcset': ['attribute srcset', 'attribute sizes'],
  'html-style': ['element style'],
  'image-base64': ['image data'],
}
/** Not to be seen in a message, or in every one of them. */
const LEFT_OUT =
  /^(?:amp|bimi|css-(?:comments|nesting|intrinsic-size|sytem-ui|scroll-snap|unit-initial|border-inline-block-.*|border-radius-logical|selector-.*|hyphenate-.*)|html-(?:comments|doctype|body|anchor-links|mailto-links|meta-color-scheme)|image-(?:mp4|hdr|apng))$/

function keysOf(slug: string, category: string): readonly string[] {
  const known = KEYS[slug]
  if (known !== undefined) return known
  if (LEFT_OUT.test(slug)) return []
  const [, kind, name = ''] =
    /^css-(at-media|at|function|unit|pseudo-class|pseudo-element)-(.+)$/.exec(slug) ?? []
  if (slug === 'css-at-media') return ['at media']
  if (kind === 'at-media') return [`media ${name}`]
  if (kind === 'at' || kind === 'function' || kind === 'unit') return [`${kind} ${name}`]
  if (kind !== undefined) return [`pseudo ${name}`]
  if (category === 'css') return [`property ${slug.slice(4)}`]
  if (category === 'image') return [`image ${slug.slice(6)}`]
  const html = slug.slice(5)
  const input = /^input-(.+)$/.exec(html)?.[1]
  if (input !== undefined) return [`element input ${input}`]
  return [ATTRIBUTES.test(html) ? `attribute ${html}` : `element ${html}`]
}
const ATTRIBUTES =
  /^(?:align|aria-.*|cellpadding|cellspacing|dir|height|hidden|lang|popover|required|role|target|valign|width)$/

const { data, nicenames, last_update_date } = JSON.parse(
  readFileSync(process.argv[2] ?? 'caniemail.json', 'utf8'),
) as Source

const clients = [
  ...new Set(
    data.flatMap(({ stats }) =>
      Object.entries(stats).flatMap(([family, platforms]) =>
        Object.keys(platforms).map((platform) => `${family} ${platform}`),
      ),
    ),
  ),
].sort()
const nameOf = (client: string) => {
  const [family = '', platform = ''] = client.split(' ')
  return `${nicenames.family[family] ?? family} (${nicenames.platform[platform] ?? platform})`
}
/** The newest version that was tested: y, n, a (partly) or u (unknown). */
const stateOf = (stats: Source['data'][number]['stats'], client: string) => {
  const [family = '', platform = ''] = client.split(' ')
  return Object.values(stats[family]?.[platform] ?? {}).at(-1)?.[0] ?? 'u'
}
const lines = data.flatMap(({ slug, title, category, stats }) => {
  const keys = keysOf(slug, category)
  if (keys.length === 0) return []
  const states = clients.map((client) => stateOf(stats, client)).join('')
  return [[slug, title.trim(), keys.join(','), states].join('|')]
})
writeFileSync(
  TABLE,
  `// Made by \`node scripts/update-mail-support.ts\` from the data of caniemail.com (https://www.caniemail.com), by way of the
// npm package caniemail. MIT, Copyright (c) 2019 HTeuMeuLeu; of the package: Copyright Avi Goldman, Copyright Andrew Powell.

/** Date of the data. */
export const SUPPORT_DATE = '${last_update_date.slice(0, 10)}'

/** Mail programs, a line each. */
export const CLIENTS = \`
${clients.map(nameOf).join('\n')}
\`

/** A feature a line: its name at caniemail.com, its title, what it is recognised by, and its state in each program. */
export const FEATURES = \`
${lines.join('\n').replaceAll('`', "'").replaceAll('\\', '\\\\').replaceAll('${', '$\\{')}
\`
`,
)
