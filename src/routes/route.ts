/** A route as it is stored, shown and applied (routes-inbound.md section 1). */
import { formatGmt } from '../base/dates.ts'
import { type Action, parseAction } from './actions.ts'
import { type Expression, parseExpression } from './expression.ts'

export interface Route {
  /** 24 hex digits. */
  id: string
  accountId: string
  priority: number
  description: string
  expression: string
  actions: readonly string[]
  /** Unix milliseconds. */
  createdAt: number
}

/** A route ready for evaluation. */
export interface CompiledRoute {
  route: Route
  expression: Expression
  actions: readonly Action[]
}

/** @throws ExpressionSyntaxError, PatternSyntaxError, ActionSyntaxError; never for a stored route */
export const compileRoute = (route: Route): CompiledRoute => ({
  route,
  expression: parseExpression(route.expression),
  actions: route.actions.map(parseAction),
})

export const routeView = ({ id, priority, description, expression, actions, createdAt }: Route) => ({
  id,
  priority,
  description,
  expression,
  actions,
  created_at: formatGmt(new Date(createdAt)),
})
