/**
 * The routes by method and path, and the methods of a path, which distinguish a 405 from a 404.
 *
 * Templates are parts between slashes; a part in braces matches any text but the empty one. A fixed part takes precedence
 * over a variable one; where it leads to no route, the variable one is tried. Parts of a path are percent-decoded once.
 */

import { ownText, remember } from '../../base/flow/remember.ts'
import { BadRequest } from '../../base/process/errors.ts'

/** Fixed first parts under /v3 that take precedence over `{domain}` (auth-limits.md section 1, rule 11). */
const RESERVED_HEADS = new Set([
  ...['domains', 'ips', 'ip_pools', 'ip_warmups', 'dynamic_pools', 'routes', 'lists', 'stats'],
])
/** Percent-encoded paging tokens and addresses. */
const PART_MAX_LENGTH = 4 * 1024

export interface Found<T> {
  value: T
  /** The variable parts by their names, decoded. */
  path: Readonly<Record<string, string>>
}

interface Node<T> {
  fixed: Map<string, Node<T>>
  variable: Node<T> | null
  routes: Map<string, { value: T; names: readonly string[] }>
}

/** A path, or a part of one, is longer than any route can match. */
export class UriTooLong extends Error {}

/** Results that are remembered: an application uses the same few paths. */
const KNOWN_MAX = 1_000
const KNOWN_MAX_LENGTH = 256

export class PathTable<T> {
  readonly #root: Node<T> = emptyNode()
  readonly #known = new Map<string, Found<T>>()

  /** @throws Error if there is a route for this method and path */
  add(method: string, template: string, value: T): void {
    let node = this.#root
    const names: string[] = []
    for (const part of template.split('/')) {
      if (part.startsWith('{')) {
        names.push(part.slice(1, -1))
        node.variable ??= emptyNode()
        node = node.variable
      } else {
        const next: Node<T> = node.fixed.get(part) ?? emptyNode()
        node.fixed.set(part, next)
        node = next
      }
    }
    if (node.routes.has(method)) throw new Error(`two routes for ${method} ${template}`)
    node.routes.set(method, { value, names })
    this.#known.clear()
  }

  /** Null: no route. @param path without its query @throws BadRequest for broken escapes; UriTooLong */
  find(method: string, path: string): Found<T> | null {
    const name = `${method} ${path}`
    const known = this.#known.get(name)
    if (known !== undefined) return known
    if (path.length > KNOWN_MAX_LENGTH) return this.#find(method, path)
    const found = this.#find(method, ownText(path))
    return found === null ? null : remember(this.#known, KNOWN_MAX, name, found)
  }

  #find(method: string, path: string): Found<T> | null {
    const parts = partsOf(path)
    const values: string[] = []
    const route = this.#lookUp(this.#root, method, parts, 0, values)
    if (!route) return null
    const named: Record<string, string> = {}
    for (let at = 0; at < values.length; at++) named[route.names[at] as string] = values[at] as string
    return { value: route.value, path: Object.freeze(named) }
  }

  #lookUp(
    node: Node<T>,
    method: string,
    parts: readonly string[],
    at: number,
    values: string[],
  ): { value: T; names: readonly string[] } | null {
    const part = parts[at]
    if (part === undefined) return node.routes.get(method) ?? null
    const fixed = node.fixed.get(part)
    const found = fixed ? this.#lookUp(fixed, method, parts, at + 1, values) : null
    if (found || node.variable === null || !fits(parts, at)) return found
    values.push(part)
    const rest = this.#lookUp(node.variable, method, parts, at + 1, values)
    if (!rest) values.pop()
    return rest
  }

  /** Methods of every template that matches the path, HEAD with GET; empty: unknown path. */
  methodsOf(path: string): string[] {
    const parts = partsOf(path)
    const methods = new Set<string>()
    let nodes = [this.#root]
    for (let at = 0; at < parts.length; at++) {
      nodes = nodes.flatMap((node) =>
        [
          node.fixed.get(parts[at] as string) ?? [],
          node.variable && fits(parts, at) ? node.variable : [],
        ].flat(),
      )
    }
    for (const { routes } of nodes) for (const method of routes.keys()) methods.add(method)
    return [...methods].sort()
  }
}

const emptyNode = <T>(): Node<T> => ({ fixed: new Map(), variable: null, routes: new Map() })

/**
 * Whether the part at this position can be a variable one. An empty part would make `/v3/example.com/bounces/` mean one
 * bounce without an address, and the first part of another resource is never a domain.
 */
function fits(parts: readonly string[], at: number): boolean {
  const part = parts[at] as string
  if (part === '') return false
  return at !== 2 || parts[1] !== 'v3' || !RESERVED_HEADS.has(part.toLowerCase())
}

function partsOf(path: string): string[] {
  const parts = path.split('/')
  for (let at = 0; at < parts.length; at++) {
    const part = parts[at] as string
    if (part.includes('%')) parts[at] = decoded(part)
    if ((parts[at] as string).length > PART_MAX_LENGTH) throw new UriTooLong()
  }
  return parts
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch (error) {
    throw new BadRequest('Bad Request', { cause: error })
  }
}
