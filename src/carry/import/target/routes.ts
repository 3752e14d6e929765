import { ActionSyntaxError, parseAction } from '../../../receiving/routes/actions.ts'
import { ExpressionSyntaxError, parseExpression } from '../../../receiving/routes/match/expression.ts'
import { errorText } from '../api-client.ts'
import type { RouteEntry } from '../entry.ts'
import { readOrFail } from './pages.ts'
import { existing, made, type Result, refused, type Writer, type WriterParts } from './result.ts'

const ROUTES_PER_PAGE = 1_000

/** Routes have no name: one that is the same in all its fields exists. */
export function createRouteWriter({ client, isDryRun }: WriterParts): Writer<RouteEntry> {
  let known: Set<string> | null = null

  async function loadRoutes(): Promise<Set<string>> {
    const routes = new Set<string>()
    for (let skip = 0; ; ) {
      const { items } = await readOrFail(client, `/v3/routes?limit=${ROUTES_PER_PAGE}&skip=${skip}`)
      const found = items as RouteEntry[]
      if (found.length === 0) return routes
      for (const route of found) routes.add(keyOf(route))
      skip += found.length
    }
  }

  async function write(entry: RouteEntry): Promise<Result> {
    known ??= await loadRoutes()
    if (known.has(keyOf(entry))) return existing
    const fault = faultOf(entry)
    if (fault !== null) return refused(fault)
    if (!isDryRun) {
      const { priority, description, expression, actions } = entry
      const form = { priority: String(priority), description, expression, action: actions }
      const answer = await client.call('POST', '/v3/routes', { form })
      if (answer.status !== 200) return refused(errorText(answer))
    }
    known.add(keyOf(entry))
    return made
  }

  return async (entries) => {
    const results: Result[] = []
    for (const entry of entries) results.push(await write(entry))
    return results
  }
}

const keyOf = ({ priority, description, expression, actions }: RouteEntry) =>
  JSON.stringify([priority, description, expression, actions])

function faultOf({ expression, actions }: RouteEntry): string | null {
  try {
    parseExpression(expression)
    for (const action of actions) parseAction(action)
    return null
  } catch (error) {
    if (error instanceof ExpressionSyntaxError || error instanceof ActionSyntaxError) return error.message
    throw error
  }
}
