/**
 * Checks a logo as BIMI wants it: SVG Tiny 1.2 in the profile Portable/Secure (draft-svg-tiny-ps-abrotman). The file comes from
 * strangers: it is at most 32 KB unpacked, is read in one pass, and nothing in it is followed or expanded.
 */
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { Parser } from 'htmlparser2'

const gunzipAsync = promisify(gunzip)

/** Draft, §2; of the file as it is read. */
export const LOGO_BYTES_MAX = 32 * 1024
/** Each is one sentence of advice. */
const FAULTS_MAX = 8
/** Drawings have about ten. */
const DEPTH_MAX = 100

const GZIP = [0x1f, 0x8b]

/** The file unpacked; null: it is over the limit, or its compression is broken. */
export async function unpackedLogo(bytes: Uint8Array): Promise<Buffer | null> {
  if (!GZIP.every((byte, at) => bytes[at] === byte))
    return bytes.byteLength > LOGO_BYTES_MAX ? null : Buffer.from(bytes)
  return gunzipAsync(bytes, { maxOutputLength: LOGO_BYTES_MAX }).catch(() => null)
}

/** What the profile forbids: scripts and events, movement, media, foreign content, and what only leads elsewhere. */
const FORBIDDEN = new Set([
  ...[
    'script',
    'handler',
    'listener',
    'style',
    'foreignobject',
    'image',
    'audio',
    'video',
    'a',
    'iframe',
    'link',
  ],
  ...[
    'animate',
    'animatecolor',
    'animatemotion',
    'animatetransform',
    'animation',
    'discard',
    'set',
    'prefetch',
  ],
])

/** What is wrong with a logo, as parts of a sentence, at most eight; empty: nothing. `bytes`: unpacked. */
export function logoFaults(bytes: Buffer): string[] {
  const faults = new Set<string>()
  const find = (fault: string) => faults.size < FAULTS_MAX && faults.add(fault)
  let depth = 0
  let root: string | null = null
  let title = ''
  let isTitle = false
  const parser = new Parser(
    {
      onprocessinginstruction(name) {
        // An entity would be declared there.
        if (name.toLowerCase() === '!doctype') find('it has a document type, which may declare entities')
      },
      onopentag(written, attributes) {
        depth += 1
        const name = localName(written)
        if (depth > DEPTH_MAX) {
          find('its elements are nested too deeply')
          return
        }
        if (root === null) {
          root = name
          for (const fault of rootFaults(name, attributes)) find(fault)
        }
        isTitle = name === 'title' && depth === 2
        if (FORBIDDEN.has(name)) find(`it has the element ${name}`)
        for (const [attribute, value] of Object.entries(attributes))
          for (const fault of attributeFaults(localName(attribute), value)) find(fault)
      },
      ontext(text) {
        if (isTitle) title += text.slice(0, 100)
      },
      onclosetag() {
        depth -= 1
        isTitle = false
      },
    },
    // Only the five entities of XML itself are known.
    { xmlMode: true },
  )
  parser.end(bytes.toString('utf8'))
  if (root === null) find('it is no SVG')
  else if (title.trim() === '') find('it has no title')
  return [...faults]
}

const localName = (name: string): string => name.slice(name.indexOf(':') + 1).toLowerCase()

function rootFaults(name: string, attributes: Readonly<Record<string, string>>): string[] {
  if (name !== 'svg') return ['it is no SVG']
  const viewBox =
    attributes['viewBox']
      ?.trim()
      .split(/[\s,]+/)
      .map(Number) ?? []
  const [, , width, height] = viewBox
  return [
    attributes['xmlns'] !== 'http://www.w3.org/2000/svg' &&
      'its root lacks xmlns="http://www.w3.org/2000/svg"',
    attributes['baseProfile'] !== 'tiny-ps' && 'its root lacks baseProfile="tiny-ps"',
    attributes['version'] !== '1.2' && 'its root lacks version="1.2"',
    ('x' in attributes || 'y' in attributes) && 'its root has x= or y=',
    viewBox.length > 0 && width !== height && 'it is not square',
  ].filter((fault) => fault !== false)
}

function attributeFaults(name: string, value: string): string[] {
  const targets = [
    ...(name === 'href' || name === 'src' ? [value] : []),
    ...[...value.matchAll(/url\(\s*['"]?([^'")]*)/gi)].map(([, target = '']) => target),
  ]
  return [
    /^on[a-z]/.test(name) && 'it has an event attribute',
    targets.some((target) => !target.trim().startsWith('#')) && 'it refers to something outside',
  ].filter((fault) => fault !== false)
}
