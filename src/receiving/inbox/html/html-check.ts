/**
 * Which mail programs show the HTML of a message as it is written: the elements, attributes and style rules that it uses,
 * looked up in the table of caniemail.com. Reads in steps with other work in between, and to a limit.
 */
import { setImmediate } from 'node:timers/promises'
import { Parser } from 'htmlparser2'
import type { Of } from '../../../base/shape.ts'
import type { HTML_CHECK } from '../shapes.ts'

export type HtmlCheck = Of<typeof HTML_CHECK>

/** Longer texts are read up to here: five times what Gmail shows. */
export const READ_CHARS_MAX = 512 * 1024
/** A millisecond or two of work. */
const STEP_CHARS = 32 * 1024
/** Characters read before the depth is checked again. */
const PIECE_CHARS = 4_096
/** The parser searches all open elements for each tag; newsletters have below 100. */
const DEPTH_MAX = 300
/** Length of one selector or declaration; longer ones are cut. */
const RULE_CHARS_MAX = 2_000

interface Feature {
  slug: string
  title: string
  keys: readonly string[]
  /** A letter per client: y, a (partly), n or u (unknown). */
  states: string
}

interface Table {
  date: string
  clients: readonly string[]
  features: readonly Feature[]
}

let table: Table | undefined

/** Loaded when it is first needed: it takes some hundred KB. */
async function supportTable(): Promise<Table> {
  if (table !== undefined) return table
  const { CLIENTS, FEATURES, SUPPORT_DATE } = await import('./support-table.ts')
  const features = FEATURES.trim()
    .split('\n')
    .map((line): Feature => {
      const [slug = '', title = '', keys = '', states = ''] = line.split('|')
      return { slug, title, keys: keys.split(','), states }
    })
  table = { date: SUPPORT_DATE, clients: CLIENTS.trim().split('\n'), features }
  return table
}

/** What is used, by the keys of the table, with how often. */
type Uses = Map<string, number>

export async function checkHtml(html: string): Promise<HtmlCheck> {
  const { date, clients, features } = await supportTable()
  const { uses, isComplete } = await usesOf(html)
  const found = features.flatMap((feature) => {
    const count = feature.keys.reduce((sum, key) => sum + (uses.get(key) ?? 0), 0)
    return count === 0 ? [] : [findingOf(feature, count, clients)]
  })
  const tested = found.reduce(
    (sum, { supported, partly, unsupported }) => sum + supported + partly + unsupported,
    0,
  )
  const shown = found.reduce((sum, { supported }) => sum + supported, 0)
  return {
    score: tested === 0 ? 100 : Math.round((100 * shown) / tested),
    features: found.length,
    findings: found
      .filter(({ partly, unsupported }) => partly + unsupported > 0)
      .sort(
        (a, b) => b.unsupported - a.unsupported || b.partly - a.partly || (a.feature < b.feature ? -1 : 1),
      ),
    clients: clients.length,
    data_of: date,
    complete: isComplete,
  }
}

function findingOf(
  { slug, title, states }: Feature,
  uses: number,
  clients: readonly string[],
): HtmlCheck['findings'][number] {
  const inState = (state: string) => clients.filter((_, at) => states[at] === state)
  const [partlyIn, unsupportedIn] = [inState('a'), inState('n')]
  return {
    feature: title,
    url: `https://www.caniemail.com/features/${slug}/`,
    uses,
    supported: inState('y').length,
    partly: partlyIn.length,
    unsupported: unsupportedIn.length,
    unknown: inState('u').length,
    partly_in: partlyIn,
    unsupported_in: unsupportedIn,
  }
}

async function usesOf(html: string): Promise<{ uses: Uses; isComplete: boolean }> {
  const uses: Uses = new Map()
  const styles: string[] = []
  let depth = 0
  let inStyle = 0
  const parser = new Parser({
    onopentag(name, attributes) {
      depth++
      if (name === 'style') inStyle++
      add(uses, `element ${name}`)
      if (attributes['type'] !== undefined && (name === 'input' || name === 'button'))
        add(uses, `element ${name} ${attributes['type'].toLowerCase().slice(0, 20)}`)
      for (const attribute in attributes) add(uses, `attribute ${attribute}`)
      if (attributes['style'] !== undefined) styles.push(`${attributes['style']};`)
      if (name === 'img' && attributes['src'] !== undefined) addImage(uses, attributes['src'])
    },
    ontext(text) {
      if (inStyle > 0) styles.push(text)
    },
    onclosetag(name) {
      depth--
      if (name !== 'style') return
      inStyle--
      // A rule that is not closed ends with its sheet.
      styles.push('}')
    },
  })
  const end = Math.min(html.length, READ_CHARS_MAX)
  let isComplete = html.length <= READ_CHARS_MAX
  for (let at = 0; at < end; at += PIECE_CHARS) {
    if (at > 0 && at % STEP_CHARS === 0) await setImmediate()
    parser.write(html.slice(at, Math.min(at + PIECE_CHARS, end)))
    if (depth > DEPTH_MAX) {
      isComplete = false
      break
    }
  }
  if (isComplete) parser.end()
  await readStyles(withoutComments(styles.join('')), uses)
  return { uses, isComplete }
}

/** The map stays small: names that are in no table are counted, but few of them. */
const NAMES_MAX = 5_000
const KEY_CHARS_MAX = 100
function add(uses: Uses, key: string): void {
  if (key.length > KEY_CHARS_MAX) return
  const count = uses.get(key)
  if (count !== undefined || uses.size < NAMES_MAX) uses.set(key, (count ?? 0) + 1)
}

const IMAGE_END = /\.(gif|jpe?g|png|svg|webp|avif|bmp|heif|heic|ico|tiff?)(?:[?#]|$)/i
const IMAGE_NAMES: Readonly<Record<string, string>> = { jpeg: 'jpg', tif: 'tiff', heic: 'heif' }

function addImage(uses: Uses, src: string): void {
  if (/^\s*data:/i.test(src)) add(uses, 'image data')
  const [, end] = IMAGE_END.exec(src.slice(0, RULE_CHARS_MAX)) ?? []
  const name = end?.toLowerCase()
  if (name !== undefined) add(uses, `image ${IMAGE_NAMES[name] ?? name}`)
}

/** A comment that does not end takes the rest. */
function withoutComments(css: string): string {
  const kept: string[] = []
  for (let at = 0; at < css.length; ) {
    const start = css.indexOf('/*', at)
    kept.push(css.slice(at, start < 0 ? css.length : start))
    if (start < 0) break
    const end = css.indexOf('*/', start + 2)
    at = end < 0 ? css.length : end + 2
  }
  return kept.join(' ')
}

/** Cuts at `{`, `}` and `;`: what precedes a brace is a selector or an at-rule, all else declarations. */
async function readStyles(css: string, uses: Uses): Promise<void> {
  let from = 0
  let stepAt = STEP_CHARS
  for (let at = 0; at <= css.length; at++) {
    const mark = css[at]
    if (mark !== undefined && mark !== '{' && mark !== '}' && mark !== ';') continue
    const rule = css.slice(from, Math.min(at, from + RULE_CHARS_MAX)).trim()
    from = at + 1
    if (rule.startsWith('@')) addAtRule(uses, rule)
    else if (mark === '{') addSelector(uses, rule)
    else addDeclaration(uses, rule)
    if (at > stepAt) {
      stepAt = at + STEP_CHARS
      await setImmediate()
    }
  }
}

function addAtRule(uses: Uses, rule: string): void {
  const [, name = ''] = /^@(?:-webkit-|-moz-)?([a-z-]{1,30})/i.exec(rule) ?? []
  add(uses, `at ${name.toLowerCase()}`)
  if (name.toLowerCase() !== 'media') return
  for (const [, feature = ''] of rule.matchAll(/\(\s*([a-z-]{1,50})/gi))
    add(uses, `media ${feature.toLowerCase().replace(/^any-/, '')}`)
}

function addSelector(uses: Uses, selector: string): void {
  for (const [, name = ''] of selector.matchAll(/::?([a-z-]{1,30})/gi))
    add(uses, `pseudo ${name.toLowerCase()}`)
}

const UNIT = /[\d.](px|em|rem|pt|pc|cm|mm|in|ex|ch|vh|vw|vmin|vmax|%)(?![\w-])/gi

function addDeclaration(uses: Uses, declaration: string): void {
  const colon = declaration.indexOf(':')
  if (colon < 1) return
  const name = declaration.slice(0, colon).trim().toLowerCase()
  const value = declaration
    .slice(colon + 1)
    .trim()
    .toLowerCase()
  add(uses, `property ${name.slice(0, 50)}`)
  if (value.length <= 30) add(uses, `value ${name.slice(0, 50)} ${value.replace(/\s*!important$/, '')}`)
  if (value.endsWith('!important')) add(uses, 'word !important')
  for (const [, unit = ''] of value.matchAll(UNIT)) add(uses, `unit ${unit}`)
  for (const [, called = ''] of value.matchAll(/([a-z-]{1,30})\(/g))
    add(uses, `function ${called.replace(/^-(?:webkit|moz)-/, '')}`)
}
