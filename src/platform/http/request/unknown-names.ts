/**
 * Names of parameters that an operation does not know. A call with such names is carried out without them, and its answer names
 * them; an account may have such calls refused instead (wire-conventions.md rule 8, decision 177).
 */

import { nearestName } from '../../../base/nearest-name.ts'
import { BadRequest } from '../../../base/process/errors.ts'
import { isPlainObject } from '../../../base/values.ts'
import { type Operation, pathNames } from '../operation.ts'
import type { Params } from './params.ts'

/** A list of names goes into a header field and into an event of each recipient, and anybody may send 10,000 of them. */
const SHOWN_MAX = 10
const SHOWN_LENGTH_MAX = 64
/** In place of the names beyond those. */
const MORE = '...'

interface KnownNames {
  names: ReadonlySet<string>
  /** Of names that end as the caller likes: `h:<name>` is declared, `h:X-Any` is known. */
  prefixes: readonly string[]
}

const NONE: readonly never[] = []
const KNOWN = new WeakMap<Operation, KnownNames | null>()

/** The unknown names of a call as `shownNames` writes them; none for operations that take a document of any form. */
export function unknownNames(spec: Operation, params: Params): readonly string[] {
  const known = knownNames(spec)
  if (known === null) return NONE
  let unknown: string[] | undefined
  for (const names of [params.names(), params.fileNames()]) {
    for (const name of names) {
      if (isKnown(known, name) || unknown?.includes(name)) continue
      unknown ??= []
      if (unknown.push(name) > SHOWN_MAX) return shownNames(unknown)
    }
  }
  return unknown === undefined ? NONE : shownNames(unknown)
}

/** Whether the operation declares the name. Any name is declared by one that takes a document of any form. */
export function isDeclaredName(spec: Operation, name: string): boolean {
  const known = knownNames(spec)
  return known === null || isKnown(known, name)
}

function knownNames(spec: Operation): KnownNames | null {
  let known = KNOWN.get(spec)
  if (known === undefined) {
    known = declaredNames(spec)
    KNOWN.set(spec, known)
  }
  return known
}

function declaredNames({ params, path, body }: Operation): KnownNames | null {
  const members = body?.schema['properties']
  if (body !== undefined && !isPlainObject(members)) return null
  const declared = [...params.map(({ name }) => name), ...Object.keys(members ?? {}), ...pathNames(path)]
  return {
    names: new Set(declared),
    prefixes: declared.flatMap((name) => /^(.+)<\w+>$/.exec(name)?.[1] ?? []),
  }
}

const isKnown = ({ names, prefixes }: KnownNames, name: string): boolean =>
  names.has(name) || prefixes.some((prefix) => name.length > prefix.length && name.startsWith(prefix))

/**
 * Names of a stranger as they may stand in a header field, an event and a text: at most 10 of at most 64 visible ASCII
 * characters, others and `%`, `,`, `"`, `\` percent-encoded; then `...` if there are more.
 */
export function shownNames(names: readonly string[]): string[] {
  const shown = names.slice(0, SHOWN_MAX).map(shownName)
  return names.length > SHOWN_MAX ? [...shown, MORE] : shown
}

const shownName = (name: string): string =>
  name
    .slice(0, SHOWN_LENGTH_MAX)
    .toWellFormed()
    .replace(/[^!-~]|[%,"\\]/gu, (character) => encodeURIComponent(character))
    .slice(0, SHOWN_LENGTH_MAX)
    .replace(/%.?$/, '')

/** `Unknown parameter: o:trackng (did you mean o:tracking?)`; `unknown` as `unknownNames` returns it. */
export function unknownParameters(spec: Operation, unknown: readonly string[]): BadRequest {
  const known = knownNames(spec)?.names ?? new Set<string>()
  const named = unknown.map((name) => {
    const near = nearestName(name, known)
    return near === null ? name : `${name} (did you mean ${near}?)`
  })
  return new BadRequest(`Unknown parameter${unknown.length === 1 ? '' : 's'}: ${named.join(', ')}`)
}
