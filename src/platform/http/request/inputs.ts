/**
 * Parameters, declared once: the API description shows them, and `input()` of a handler reads and checks them all, in the
 * order of their declaration.
 *
 *     params: { limit: integerParam('Page size', { min: 1, max: 1000, default: 100 }), term: textParam('Begins with') }
 *     handler: async ({ input }) => { const { limit, term } = input() ... }   // number, string | undefined
 */
import { BadRequest } from '../../../base/process/errors.ts'
import { DAY_MS } from '../../../base/time/durations.ts'
import type { IntegerRule, Params, UploadedFile } from './params.ts'

/** One documented parameter. */
export interface ParamDoc {
  name: string
  /** Default: `path` for a name in the path, `query` for GET and DELETE, else `form`. The handler reads a
   *  parameter from either. */
  in?: 'path' | 'query' | 'form'
  /** `date`: RFC 2822 or Unix seconds. `json`: JSON as text. `file`: an upload, multipart only. */
  type: 'string' | 'integer' | 'number' | 'boolean' | 'date' | 'json' | 'file'
  description: string
  required?: boolean
  repeated?: boolean
  values?: readonly string[]
  default?: string | number | boolean
  /** A value that most calls would give, though it is not required. */
  example?: string
}

/** What the description needs, and how to read the value. */
export interface Input<T> extends Omit<ParamDoc, 'name'> {
  /** @throws BadRequest in the contract's words */
  read(params: Params, name: string): T
}

export type Inputs = Readonly<Record<string, Input<unknown>>>

/** The values of declared parameters. */
export type InputOf<I> = { readonly [K in keyof I]: I[K] extends Input<infer T> ? T : never }

export function readInputs<I extends Inputs>(inputs: I, params: Params): InputOf<I> {
  const values: Record<string, unknown> = {}
  for (const [name, input] of Object.entries(inputs)) values[name] = input.read(params, name)
  return values as InputOf<I>
}

/** Without what was not given, so that it stays unchanged. */
export const given = <V extends object>(values: V) =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [K in keyof V]?: Exclude<V[K], undefined>
  }

type Doc = Partial<Pick<ParamDoc, 'in' | 'example' | 'values' | 'type'>>
/** `missing`: text of the 400; default `Missing mandatory parameter: <name>`. */
type Must = { required: true; missing?: string }

const declare = <T>(
  type: ParamDoc['type'],
  description: string,
  about: Doc & Partial<Must> & { default?: unknown; repeated?: boolean },
  read: Input<T>['read'],
): Input<T> => {
  const { in: place, example, values, required, repeated, default: preset } = about
  return {
    type: about.type ?? type,
    description,
    ...(place !== undefined && { in: place }),
    ...(example !== undefined && { example }),
    ...(values !== undefined && { values }),
    ...(required === true && { required }),
    ...(repeated === true && { repeated }),
    ...(isPreset(preset) && { default: preset }),
    read(params, name) {
      const value = read(params, name)
      if (value !== undefined && !(repeated === true && required === true && isEmpty(value))) return value
      if (required === true) throw new BadRequest(about.missing ?? `Missing mandatory parameter: ${name}`)
      return (value ?? preset) as T
    },
  }
}

const isPreset = (value: unknown): value is string | number | boolean =>
  ['string', 'number', 'boolean'].includes(typeof value)
const isEmpty = (value: unknown) => Array.isArray(value) && value.length === 0

/** Text; an empty one counts as absent. */
export function textParam(description: string, about: Doc & (Must | { default: string })): Input<string>
export function textParam(description: string, about?: Doc): Input<string | undefined>
export function textParam(description: string, about: Doc = {}): Input<string | undefined> {
  return declare('string', description, about, (params, name) => params.text(name))
}

/** Text as given, also an empty one, which clears a value; undefined: not given. */
export const givenParam = (description: string, about: Doc = {}): Input<string | undefined> =>
  declare('string', description, about, (params, name) => params.given(name))

/** A repeatable text; empty values are left out. */
export const textsParam = (description: string, about: Doc & Partial<Must> = {}): Input<string[]> =>
  declare('string', description, { ...about, repeated: true }, (params, name) => params.texts(name))

/** Yes or no in any of the contract's spellings. */
export function flagParam(description: string, about: Doc & (Must | { default: boolean })): Input<boolean>
export function flagParam(description: string, about?: Doc): Input<boolean | undefined>
export function flagParam(description: string, about: Doc = {}): Input<boolean | undefined> {
  return declare('boolean', description, about, (params, name) => params.boolean(name))
}

type IntegerBounds = Omit<IntegerRule, 'default'>
/** A whole number; a value outside of its bounds is refused or cut, as the rule says. */
export function integerParam(
  description: string,
  about: Doc & IntegerBounds & (Must | { default: number }),
): Input<number>
export function integerParam(description: string, about?: Doc & IntegerBounds): Input<number | undefined>
export function integerParam(
  description: string,
  about: Doc & IntegerBounds = {},
): Input<number | undefined> {
  const { min, max, above, tooLarge, invalid } = about
  const rule = Object.fromEntries(
    Object.entries({ min, max, above, tooLarge, invalid }).filter(([, value]) => value !== undefined),
  ) as IntegerRule
  return declare('integer', description, about, (params, name) => params.integer(name, rule))
}

/** The size of a page, from 1 to `max`. */
export const limitParam = (
  preset: number,
  max: number,
  about: Pick<IntegerBounds, 'above' | 'tooLarge'> = {},
) =>
  integerParam(`Page size, 1 to ${max}${about.above === 'cut' ? '; a larger one means the largest' : ''}`, {
    min: 1,
    max,
    default: preset,
    ...about,
  })

/** Items to leave out at the beginning of a list. */
export const skipParam = () => integerParam('Items to leave out', { min: 0, default: 0 })

/** One of some words. */
export function choiceParam<const V extends string>(
  description: string,
  values: readonly V[],
  about: Doc & (Must | { default: V }),
): Input<V>
export function choiceParam<const V extends string>(
  description: string,
  values: readonly V[],
  about?: Doc,
): Input<V | undefined>
export function choiceParam<const V extends string>(
  description: string,
  values: readonly V[],
  about: Doc = {},
): Input<V | undefined> {
  return declare('string', description, { ...about, values }, (params, name) => params.oneOf(name, values))
}

/** RFC 2822 or Unix seconds. */
export function dateParam(description: string, about: Doc & Must): Input<Date>
export function dateParam(description: string, about?: Doc): Input<Date | undefined>
export function dateParam(description: string, about: Doc = {}): Input<Date | undefined> {
  return declare('date', description, about, (params, name) => params.date(name))
}

/** What lasts longer than this has no end. */
const UNTIL_MAX_MS = 366 * DAY_MS

/** The end of a pause, Unix milliseconds; null for none. @throws BadRequest unless it is in the future, and within a year */
export function untilOf(date: Date | undefined, now: number): number | null {
  if (date === undefined) return null
  const until = date.getTime()
  if (until <= now || until > now + UNTIL_MAX_MS)
    throw new BadRequest('until must be in the future, and within a year')
  return until
}

/** The uploads of a field. */
export const filesParam = (description: string, about: Doc & Partial<Must> = {}): Input<UploadedFile[]> =>
  declare('file', description, { ...about, repeated: true }, (params, name) => params.files(name))

/** The first upload of a field. */
export function fileParam(description: string, about: Doc & Must): Input<UploadedFile>
export function fileParam(description: string, about?: Doc): Input<UploadedFile | undefined>
export function fileParam(description: string, about: Doc = {}): Input<UploadedFile | undefined> {
  return declare('file', description, about, (params, name) => params.files(name)[0])
}

/** Any other form of value: `read` takes it from the parameters and returns undefined where it is absent. */
export function parsedParam<T>(
  description: string,
  read: (params: Params, name: string) => T,
  about: Doc & Partial<Must> & { default?: string | number | boolean; repeated?: boolean } = {},
): Input<T> {
  return declare('string', description, about, read)
}

/** Text that a function turns into the value. @param parse throws BadRequest for a bad one */
export function wordParam<T>(
  description: string,
  parse: (text: string, name: string) => T,
  about: Doc & Must,
): Input<T>
export function wordParam<T>(
  description: string,
  parse: (text: string, name: string) => T,
  about?: Doc,
): Input<T | undefined>
export function wordParam<T>(
  description: string,
  parse: (text: string, name: string) => T,
  about: Doc = {},
): Input<T | undefined> {
  return declare('string', description, about, (params, name) => {
    const text = params.text(name)
    return text === undefined ? undefined : parse(text, name)
  })
}

/** Documented only: a part of the path, read elsewhere, or ignored on purpose. */
export const otherParam = (
  description: string,
  doc: Partial<Omit<ParamDoc, 'name' | 'description'>> = {},
): Input<undefined> => ({ type: 'string', ...doc, description, read: unread })

const unread = () => undefined
export const isRead = ({ read }: Input<unknown>) => read !== unread
