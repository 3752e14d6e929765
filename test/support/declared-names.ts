/**
 * Operations that fail when they read a parameter, or a member of a document, which they do not declare: a caller who gives it
 * would be told that it was ignored, and a strict account would be refused.
 */
import { isDeclaredName, type Operation } from '../../src/platform/http/operation.ts'

/** The methods through which all others read. */
const READERS = ['all', 'bodyText', 'files', 'value'] as const

export const readingDeclaredNames = (spec: Operation): Operation => ({
  ...spec,
  handler(context) {
    // What it takes from the list of given names is the caller's.
    const listed = new Set<string>()
    const check = (name: string) => {
      if (isDeclaredName(spec, name) || listed.has(name)) return
      throw new Error(`${spec.id} reads "${name}" and does not declare it`)
    }
    // A view of its own: calls without parameters share one object.
    const params: typeof context.params = Object.create(context.params)
    Object.assign(context, { params })
    const names = Object.getPrototypeOf(params).names()
    params.names = () => {
      for (const name of names) listed.add(name)
      return names
    }
    // `all` is private.
    const readers = params as unknown as Record<string, (name: string) => unknown>
    for (const reader of READERS) {
      const read = readers[reader]?.bind(params)
      readers[reader] = (name) => {
        check(name)
        return read?.(name)
      }
    }
    const document = params.json()
    if (typeof document === 'object' && document !== null && !Array.isArray(document))
      params.json = () =>
        new Proxy(document, {
          get(target, name) {
            if (typeof name === 'string') check(name)
            return Reflect.get(target, name)
          },
          ownKeys(target) {
            for (const name of Object.keys(target)) listed.add(name)
            return Reflect.ownKeys(target)
          },
        })
    return spec.handler(context)
  },
})
