/** The variables of previews and tests, kept in the browser for each template: they are examples, not part of it. */
import { TEXT } from './text.ts'

/** Longer texts are not kept: the browser has 5 MB for everything. */
const KEPT_MAX_CHARS = 100_000

const keyOf = (domain: string, name: string) => `template-variables:${domain}:${name}`

export function keptVariables(domain: string, name: string): string {
  try {
    return window.localStorage.getItem(keyOf(domain, name)) ?? '{}'
  } catch {
    return '{}' // storage is switched off
  }
}

export function keepVariables(domain: string, name: string, text: string): void {
  if (text.length > KEPT_MAX_CHARS) return
  try {
    window.localStorage.setItem(keyOf(domain, name), text)
  } catch {
    // Full or switched off: they stay on the page.
  }
}

/** The object that the text is, or why it is none. An empty text is an empty object. */
export function readVariables(text: string): { value: Record<string, unknown> } | { fault: string } {
  if (text.trim() === '') return { value: {} }
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return { value: value as Record<string, unknown> }
    return { fault: TEXT.notObject }
  } catch (error) {
    return { fault: TEXT.notJson(error instanceof Error ? error.message : String(error)) }
  }
}

/** The variables with an example for each missing name, such as `user.name`; names that exist are left alone. */
export function withExamples(variables: Record<string, unknown>, missing: readonly string[]): object {
  const all = structuredClone(variables)
  for (const name of missing) {
    const path = name.split('.')
    const last = path.pop() ?? name
    let at: Record<string, unknown> = all
    for (const key of path) {
      const next = Object.hasOwn(at, key) ? at[key] : undefined
      const isObject = typeof next === 'object' && next !== null && !Array.isArray(next)
      const inner = isObject ? (next as Record<string, unknown>) : {}
      Object.defineProperty(at, key, { value: inner, enumerable: true, configurable: true, writable: true })
      at = inner
    }
    if (!Object.hasOwn(at, last))
      Object.defineProperty(at, last, { value: last, enumerable: true, configurable: true, writable: true })
  }
  return all
}
