/** The rules for routes: what may be stored, and which one is true for an address (routes-inbound.md section 1). */

import { Turns } from '../../base/flow/gate.ts'
import { randomHex } from '../../base/ids.ts'
import { BadRequest, NotFound, QuotaExceeded } from '../../base/process/errors.ts'
import type { Clock } from '../../base/time/clock.ts'
import { quotable } from '../../base/values.ts'
import { type HttpClient, storedUrlFault } from '../../platform/posts/http-client.ts'
import { AddressSyntaxError, bareAddress, type Mailbox, parseMailbox } from '../../protocols/mime/address.ts'
import { bareUrl } from '../../watching/webhooks/webhook-url.ts'
import { type Action, ActionSyntaxError, destinationsIn, parseAction, urlsOf } from './actions.ts'
import { firstRouteFor, recipientCost } from './match/evaluate.ts'
import {
  ExpressionSyntaxError,
  parseExpression,
  readExpression,
  sizesOf,
  TEXT_LENGTH_MAX,
} from './match/expression.ts'
import { PatternSyntaxError } from './match/pattern-syntax.ts'
import { PatternWork, TooMuchWork, type WorkTurns } from './match/pattern-work.ts'
import type { Route } from './match/route.ts'
import { type KnownRoutes, ROUTES_MAX, type RouteStore } from './store.ts'

/** Undefined members stay as they are. */
export interface RouteChanges {
  priority: number | undefined
  description: string | undefined
  expression: string | undefined
  /** Undefined: none given. */
  actions: readonly string[] | undefined
}

export type Routes = ReturnType<typeof createRoutes>

interface RoutesParts {
  table: RouteStore
  known: KnownRoutes
  client: Pick<HttpClient, 'fault'>
  clock: Clock
  turns: WorkTurns
}

const ACTIONS_MAX = 20
/** Destinations of one route: each is called for each mail. */
const DESTINATIONS_MAX = 20
/** Instructions of the patterns of all routes of an account: a hundred for each of a thousand routes. */
const PATTERNS_MAX = 100_000

export function createRoutes({ table, known, client, clock, turns: workTurns }: RoutesParts) {
  const turns = new Turns()

  /** @throws NotFound */
  async function read(accountId: string, id: string): Promise<Route> {
    const route = await table.find(accountId, id)
    if (!route) throw new NotFound('Route not found')
    return route
  }

  /** @param expression of a new route, or of the route `id` */
  async function checkPatterns(accountId: string, expression: string, id: string | null): Promise<void> {
    const others = (await known.of(accountId)).filter(({ route }) => route.id !== id)
    const sizes = [sizesOf(readExpression(expression)), ...others.map((route) => route.sizes)]
    if (sizes.reduce((sum, { all }) => sum + all, 0) > PATTERNS_MAX)
      throw new BadRequest(`The patterns of an account's routes have at most ${PATTERNS_MAX} instructions`)
  }

  async function check({ description, expression, actions }: RouteChanges): Promise<void> {
    if ((description?.length ?? 0) > TEXT_LENGTH_MAX || description?.includes('\0'))
      throw new BadRequest(`description is longer than ${TEXT_LENGTH_MAX} characters, or has a NUL`)
    if (expression !== undefined) checkExpression(expression)
    if (actions !== undefined) await checkActions(client, actions)
  }

  return {
    read,
    /** @throws BadRequest, QuotaExceeded */
    async create(
      accountId: string,
      given: RouteChanges & { expression: string; actions: readonly string[] },
    ): Promise<Route> {
      await check(given)
      // In turn, so that two requests cannot both be the last one.
      return turns.run(accountId, async () => {
        const { total } = await table.list(accountId, { limit: 1, skip: 0 })
        if (total >= ROUTES_MAX) throw new QuotaExceeded(`An account has at most ${ROUTES_MAX} routes`)
        await checkPatterns(accountId, given.expression, null)
        const route: Route = {
          id: randomHex(12),
          accountId,
          priority: given.priority ?? 0,
          description: given.description ?? '',
          expression: given.expression,
          actions: given.actions,
          createdAt: Math.floor(clock.now()),
        }
        await table.insert(route)
        known.changed(accountId)
        return route
      })
    },
    /** @throws BadRequest, NotFound */
    async update(accountId: string, id: string, changes: RouteChanges): Promise<Route> {
      await read(accountId, id)
      await check(changes)
      return turns.run(accountId, async () => {
        const present = await read(accountId, id)
        if (changes.expression !== undefined) await checkPatterns(accountId, changes.expression, id)
        const given = Object.entries(changes).filter(([, value]) => value !== undefined)
        const route: Route = { ...present, ...Object.fromEntries(given) }
        if (!(await table.update(route))) throw new NotFound('Route not found')
        known.changed(accountId)
        return route
      })
    },
    /** @throws NotFound */
    async remove(accountId: string, id: string): Promise<void> {
      await read(accountId, id)
      if (!(await table.remove(accountId, id))) throw new NotFound('Route not found')
      known.changed(accountId)
    },
    /** The first route that is true for a mail to that address without headers. @throws BadRequest, NotFound */
    async match(accountId: string, address: string): Promise<Route> {
      const recipient = bareAddress(readAddress(address))
      const routes = await known.of(accountId)
      const work = new PatternWork(workTurns)
      try {
        work.reserve(recipientCost(routes, recipient))
      } catch (error) {
        throw error instanceof TooMuchWork ? new BadRequest(TOO_COSTLY) : error
      }
      const route = await firstRouteFor(routes, recipient, false, work)
      if (!route) throw new NotFound('Route not found')
      return route
    },
  }
}

const TOO_COSTLY = 'The routes need too much work for this address'

function readAddress(text: string): Mailbox {
  try {
    return parseMailbox(text)
  } catch (error) {
    if (!(error instanceof AddressSyntaxError)) throw error
    throw new BadRequest(`'${quotable(text)}' is not a valid address`, { cause: error })
  }
}

function checkExpression(expression: string): void {
  try {
    if (expression.includes('\0')) throw new ExpressionSyntaxError('it has a NUL')
    parseExpression(expression)
  } catch (error) {
    const isSyntax = error instanceof ExpressionSyntaxError || error instanceof PatternSyntaxError
    if (!isSyntax) throw error
    throw new BadRequest(`Invalid expression: ${quotable(error.message)}`, { cause: error })
  }
}

async function checkActions(client: Pick<HttpClient, 'fault'>, texts: readonly string[]): Promise<void> {
  if (texts.length > ACTIONS_MAX) throw new BadRequest(`A route has at most ${ACTIONS_MAX} actions`)
  const actions = texts.map(readAction)
  if (actions.flatMap(destinationsIn).length > DESTINATIONS_MAX)
    throw new BadRequest(`A route has at most ${DESTINATIONS_MAX} destinations`)
  await Promise.all(
    actions.map(async (action, at) => {
      // Each attempt checks again (section 4 rule 5).
      const faults = await Promise.all(urlsOf(action).map((url) => storedUrlFault(client, bareUrl(url))))
      if (faults.some((fault) => fault !== null))
        throw new BadRequest(`Invalid action: ${quotable(texts[at] as string)}`)
    }),
  )
}

function readAction(text: string): Action {
  try {
    return parseAction(text)
  } catch (error) {
    if (!(error instanceof ActionSyntaxError)) throw error
    throw new BadRequest(`Invalid action: ${quotable(text)}`, { cause: error })
  }
}
