/** Which routes apply to a recipient, and what they do (routes-inbound.md section 3). */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { destinationsIn, resolvedDestination } from './actions.ts'
import { type Expression, evaluate, type Subject } from './expression.ts'
import type { CompiledRoute, Route } from './route.ts'

/** What a matching route does with the message. */
export type Step =
  | { kind: 'post'; url: string; route: Route }
  | { kind: 'mail'; address: string; route: Route }
  | { kind: 'store'; route: Route }
  | { kind: 'notify'; url: string; route: Route }
  /** A destination that cannot be used with what was captured; `text` as written. */
  | { kind: 'unusable'; text: string; route: Route }

export interface Evaluation {
  /** In order, each destination once (rule 4). */
  steps: readonly Step[]
  /** Routes that matched, in order. */
  matched: readonly Route[]
  /** Routes with a pattern that was too costly for its text. */
  tooCostly: readonly Route[]
}

/** Work after which other work may run: about 10 ms. */
const WORK_PER_TURN = 200_000

/** Evaluates the routes, which are in list order. A large list yields to other work in between. */
export async function routesFor(
  routes: Iterable<CompiledRoute>,
  subject: Pick<Subject, 'recipient'> & { headers(name: string): readonly string[] },
): Promise<Evaluation> {
  const steps: Step[] = []
  const matched: Route[] = []
  const tooCostly = new Set<Route>()
  for await (const { route, expression, actions } of inTurns(routes, subject)) {
    const verdict = evaluate(expression, {
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
): Promise<Route | null> {
  const headers = withHeaders ? null : () => []
  for await (const { route, expression } of inTurns(routes, { recipient })) {
    const { kind } = evaluate(expression, { recipient, headers, isFirstMatch: true })
    if (kind !== 'false') return route
  }
  return null
}

async function* inTurns(
  routes: Iterable<CompiledRoute>,
  { recipient }: Pick<Subject, 'recipient'>,
): AsyncGenerator<CompiledRoute> {
  let work = 0
  for (const compiled of routes) {
    yield compiled
    work += workOf(compiled.expression, recipient.length)
    if (work < WORK_PER_TURN) continue
    await nextTurn()
    work = 0
  }
}

/** Of a header's pattern: as if its text were a long line. */
const HEADER_LENGTH = 1_000

function workOf(expression: Expression, recipientLength: number): number {
  switch (expression.kind) {
    case 'catch-all':
      return 1
    case 'not':
      return workOf(expression.of, recipientLength)
    case 'and':
    case 'or':
      return expression.of.reduce((sum, one) => sum + workOf(one, recipientLength), 0)
    case 'recipient':
      return expression.pattern.size * recipientLength
    case 'header':
      return expression.pattern.size * HEADER_LENGTH
  }
}

function distinct(steps: readonly Step[]): Step[] {
  const seen = new Set<string>()
  return steps.filter((step) => {
    const key = keyOf(step)
    if (key === null) return true
    if (seen.has(key)) return false
    seen.add(key)
    return true
  })
}

function keyOf(step: Step): string | null {
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
