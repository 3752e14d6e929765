/**
 * Calls of the official Go and Java clients as tables: what a client sends, and what it reads of the response. Each family
 * of operations has a file in `tables/` that exports its TABLE; tables.test.ts makes the calls of all of them at one service.
 */
import type { TestContext } from 'node:test'
import type { TestService } from '../../support/service.ts'

export interface CallTable {
  /** Starts what the operations need besides the service, and returns its settings. */
  surroundings?(t: TestContext): Promise<Record<string, string>>
  /** Makes what the calls read, and returns what `{name}` stands for in them; `{domain}` is the sandbox domain. */
  prepare?(service: TestService): Promise<Record<string, string>>
  calls: readonly ClientCall[]
}

export interface ClientCall {
  /** `go` sends forms and JSON only with a body, `java` names JSON as the content type of every request. */
  client: 'go' | 'java'
  /** The method of the client. */
  call: string
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Path and query, with `{name}` for what was prepared or kept. */
  path: string
  json?: unknown
  form?: Readonly<Record<string, string>>
  /** Default 200. */
  status?: number
  /** What the client reads, by name and type (`missingIn` of exchange.ts); undefined: nothing. */
  response?: unknown
  /** Names for later calls, with the member of the response that each stands for. */
  keep?: Readonly<Record<string, string>>
}

/** Replaces `{name}` in paths and bodies. @throws Error for a name that nothing stands for */
export function filled(text: string, names: ReadonlyMap<string, string>): string {
  return text.replaceAll(/\{([a-z_]+)\}/g, (_, name: string) => {
    const value = names.get(name)
    if (value === undefined) throw new Error(`{${name}} is not known`)
    return value
  })
}
