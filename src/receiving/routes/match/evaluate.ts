/** Which routes apply to a recipient, and what they do (routes-inbound.md section 3). */
import { destinationsIn, resolvedDestination } from '../actions.ts'
import { evaluate, type Subject } from './expression.ts'
import { matchCost, type PatternWork } from './pattern-work.ts'
import type { CompiledRoute, Route } from './route.ts'

/** What a matching route does with the message. */
export type Step =
  | { kind: 'post'; url: string; route: Route }
  | { kind: 'mail'; address: string; route: Route }
  | { kind: 'store'; route: Route }
  | { kind: 'notify'; url: string; route: Route }
  /** A destination that cannot be used with what was captured; `text` as written. */
  | { kind: 'unusable'; text: string; route: Route }

interface Evaluation {
  /** In order, each destination once (rule 4). */
  steps: readonly Step[]
  /** Routes that matched, in order. */
  matched: readonly Route[]
  /** Routes with a pattern that was too costly for its text. */
  tooCostly: readonly Route[]
}

/** Evaluates the routes, which are in list order. Other work runs in between. @throws TooMuchWork */
export async function routesFor(
  routes: Iterable<CompiledRoute>,
  subject: Pick<Subject, 'recipient' | 'headers' | 'work'>,
): Promise<Evaluation> {
  const steps: Step[] = []
  const matched: Route[] = []
  const tooCostly = new Set<Route>()
  for (const { route, expression, actions } of routes) {
    const verdict = await evaluate(expression, {
      ...subject,
      isFirstMatch: matched.length === 0,
      tooCostly: () => tooCostly.add(route),
    })
    if (verdict.kind !== 'true') continue
    matched.push(route)
    for (const action of actions) {
      if (action.kind === 'store') steps.push({ kind: 'store', route })
      for (const destination of destinationsIn(action)) {
        const to = resolvedDestination(destination, verdict.captures)
        if (to === null) steps.push({ kind: 'unusable', text: destination.text, route })
        else if (action.kind === 'store') steps.push({ kind: 'notify', url: to, route })
        else if (destination.kind === 'url') steps.push({ kind: 'post', url: to, route })
        else steps.push({ kind: 'mail', address: to, route })
      }
    }
    if (actions.some(({ kind }) => kind === 'stop')) break
  }
  return { steps: distinct(steps), matched, tooCostly: [...tooCostly] }
}

/** The first route that is true for the recipient without headers, or could be with some (`withHeaders`); else null. */
export async function firstRouteFor(
  routes: Iterable<CompiledRoute>,
  recipient: string,
  withHeaders: boolean,
  work: PatternWork,
): Promise<Route | null> {
  const headers = withHeaders ? null : NO_HEADERS
  for (const { route, expression } of routes) {
    const { kind } = await evaluate(expression, { recipient, headers, isFirstMatch: true, work })
    if (kind !== 'false') return route
  }
  return null
}

const NO_HEADERS = { match: async () => ({ captures: null, tooCostly: false }) }

/** What matching a recipient against all routes may take: to be reserved before they are evaluated for it. */
export const recipientCost = (routes: readonly CompiledRoute[], { length }: string): number =>
  routes.reduce((sum, { sizes }) => sum + matchCost(sizes.recipient, length, sizes.recipientCalls), 0)

function distinct(steps: readonly Step[]): Step[] {
  const seen = new Set<string>()
  return steps.filter((step) => {
    const key = stepKey(step)
    if (key === null) return true
    if (seen.has(key)) return false
    seen.add(key)
    return true
  })
}

function stepKey(step: Step): string | null {
  switch (step.kind) {
    case 'store':
      return 'store'
    case 'mail':
      return `mail ${step.address.toLowerCase()}`
    case 'post':
    case 'notify':
      return `${step.kind} ${step.url}`
    case 'unusable':
      return null
  }
}
