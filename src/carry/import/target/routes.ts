import { ActionSyntaxError, parseAction } from '../../../receiving/routes/actions.ts'
import { ExpressionSyntaxError, parseExpression } from '../../../receiving/routes/match/expression.ts'
import { errorText } from '../api-client.ts'
import type { RouteEntry } from '../entry.ts'
import {
  existing,
  made,
  oneByOne,
  type Result,
  refused,
  skippedItems,
  type Writer,
  type WriterParts,
} from './result.ts'

/** Routes have no name: one that is the same in all its fields exists. */
export function createRouteWriter({ client, isDryRun }: WriterParts): Writer<RouteEntry> {
  let known: Set<string> | null = null

  async function loadRoutes(): Promise<Set<string>> {
    const routes = new Set<string>()
    for await (const route of skippedItems<RouteEntry>(client, '/v3/routes')) routes.add(fieldsKey(route))
    return routes
  }

  async function write(entry: RouteEntry): Promise<Result> {
    known ??= await loadRoutes()
    if (known.has(fieldsKey(entry))) return existing
    const fault = faultOf(entry)
    if (fault !== null) return refused(fault)
    if (!isDryRun) {
      const { priority, description, expression, actions } = entry
      const form = { priority: String(priority), description, expression, action: actions }
      const answer = await client.call('POST', '/v3/routes', { form })
      if (answer.status !== 200) return refused(errorText(answer))
    }
    known.add(fieldsKey(entry))
    return made
  }

  return oneByOne(write)
}

const fieldsKey = ({ priority, description, expression, actions }: RouteEntry) =>
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
