/** The sample of a version: variables for its previews and tests. The server keeps it with the version. */
import type { RenderedTemplate } from '../../api-types.ts'
import { TEXT } from './text.ts'

export type Sample = Readonly<Record<string, unknown>>

/** The object that the text is, or why it is none. An empty text is an empty object. */
export function readSample(text: string): { value: Sample } | { fault: string } {
  if (text.trim() === '') return { value: {} }
  try {
    const value: unknown = JSON.parse(text)
    if (isObject(value) && !Array.isArray(value)) return { value: value as Sample }
    return { fault: TEXT.notObject }
  } catch (error) {
    return { fault: TEXT.notJson(error instanceof Error ? error.message : String(error)) }
  }
}

export const sampleText = (sample: Sample) =>
  Object.keys(sample).length === 0 ? '' : JSON.stringify(sample, null, 2)

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

type Path = readonly (string | number)[]

/** One variable in one place: `products[0].name`. */
export interface Place {
  path: Path
  name: string
  kind: RenderedTemplate['variables'][number]['kind']
  /** Undefined: there is none, which leaves a hole. */
  value: unknown
}

const ITEM = '[]'
/** A list of a sample is shown up to here; its text has all of it. */
const ITEMS_MAX = 10
const PLACES_MAX = 200

/** Every place of the variables; those of a list for each of its items, and for the first one that it lacks. */
export function placesOf(variables: RenderedTemplate['variables'], sample: Sample): Place[] {
  const places = new Map<string, Place>()
  for (const { path, kind } of variables) {
    for (const each of pathsOf(path, sample)) {
      if (places.size === PLACES_MAX) break
      const name = nameOf(each)
      places.set(name, { path: each, name, kind, value: valueAt(sample, each) })
    }
  }
  return [...places.values()]
}

/** `[]` is replaced by the numbers of the items that there are. */
function pathsOf(path: readonly string[], sample: Sample): Path[] {
  const at = path.indexOf(ITEM)
  if (at === -1) return [path]
  let paths: Path[] = [[]]
  for (const part of path) {
    paths = paths.flatMap((before) => {
      if (part !== ITEM) return [[...before, part]]
      const list = valueAt(sample, before)
      const count = Array.isArray(list) ? Math.max(1, Math.min(list.length, ITEMS_MAX)) : 1
      return Array.from({ length: count }, (_, index) => [...before, index])
    })
  }
  return paths
}

export const nameOf = (path: Path) =>
  path.map((part, at) => (typeof part === 'number' ? `[${part}]` : at === 0 ? part : `.${part}`)).join('')

function valueAt(sample: unknown, path: Path): unknown {
  let value = sample
  for (const part of path)
    value =
      isObject(value) && Object.hasOwn(value, part)
        ? (value as Record<string | number, unknown>)[part]
        : undefined
  return value
}

/** The sample with a value at that place; undefined removes it. What stands in the way is replaced. */
export function withValue(sample: Sample, path: Path, value: unknown): Sample {
  const [part, ...rest] = path
  if (part === undefined) return value as Sample
  const old: object = isObject(sample) ? sample : {}
  const holder =
    typeof part === 'number' ? (Array.isArray(old) ? [...old] : []) : Array.isArray(old) ? {} : { ...old }
  const inner = Object.hasOwn(old, part) ? (old as Record<string | number, unknown>)[part] : undefined
  const put = rest.length === 0 ? value : withValue(inner as Sample, rest, value)
  if (put === undefined) Reflect.deleteProperty(holder, part)
  else
    Object.defineProperty(holder, part, { value: put, enumerable: true, configurable: true, writable: true })
  return holder as Sample
}

/** With an example wherever something is missing: a text has its own name, a condition holds, a list has an item. */
export function withExamples(sample: Sample, places: readonly Place[]): Sample {
  let all = sample
  for (const { path, kind } of places) {
    if (valueAt(all, path) !== undefined) continue
    const example =
      kind === 'list'
        ? [{}]
        : kind === 'condition'
          ? true
          : String(path.findLast((part) => typeof part === 'string'))
    all = withValue(all, path, example)
  }
  return all
}

export const isHole = ({ value }: Place) => value === undefined

/** What the renderer writes in place of the missing names. */
const holePattern = (missing: readonly string[]) =>
  new RegExp(`\\{\\{(?:#each |#with )?(?:${missing.map(escapedName).join('|')})\\}\\}`, 'g')

const escapedName = (name: string) => name.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&')

/** The text cut at its holes; every second part is one. */
export function partsByHoles(text: string, missing: readonly string[]): string[] {
  if (missing.length === 0) return [text]
  const holes = text.match(holePattern(missing)) ?? []
  return text
    .split(holePattern(missing))
    .flatMap((part, at) => (at < holes.length ? [part, holes[at] ?? ''] : [part]))
}

/** The text as mail has it, in which a missing value is nothing. */
export const withoutHoles = (text: string, missing: readonly string[]) =>
  partsByHoles(text, missing)
    .filter((_, at) => at % 2 === 0)
    .join('')
