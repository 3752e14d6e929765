/** A route as it is stored, shown and applied (routes-inbound.md section 1). */

import type { Of } from '../../../base/shape.ts'
import { formatGmt } from '../../../base/time/dates.ts'
import { type Action, parseAction } from '../actions.ts'
import type { ROUTE } from '../shapes.ts'
import { type Expression, type ExpressionSizes, readExpression, sizesOf } from './expression.ts'

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
  sizes: ExpressionSizes
  actions: readonly Action[]
}

/** @throws ExpressionSyntaxError, PatternSyntaxError, ActionSyntaxError; never for a stored route */
export function compileRoute(route: Route): CompiledRoute {
  const expression = readExpression(route.expression)
  return { route, expression, sizes: sizesOf(expression), actions: route.actions.map(parseAction) }
}

export const routeView = ({ accountId: _, createdAt, ...shown }: Route): Of<typeof ROUTE> => ({
  ...shown,
  created_at: formatGmt(new Date(createdAt)),
})
