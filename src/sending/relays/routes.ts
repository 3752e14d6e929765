/** Relays and relay rules over HTTP, for the operator (relays.md). */
import { BadRequest, NotFound } from '../../base/process/errors.ts'
import { message } from '../../base/shape.ts'
import type { Core } from '../../core.ts'
import type { Overrides } from '../../mail/deliver/overrides/overrides.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { dateParam, untilOf, wordParam } from '../../platform/http/request/inputs.ts'
import type { Blocks } from '../ips/blocks/blocks.ts'
import { ANY_ADDRESS, type EngineRelays, siteOfRelay } from './engine-relays.ts'
import type { KnownRelays } from './known-relays.ts'
import { givenRelay } from './relay.ts'
import type { RelayStates } from './relay-states.ts'
import { NEW_RELAY, RELAY, RELAY_BODY, RELAYS, RULES, TEST_BODY, TEST_RESULT } from './shapes.ts'
import { tryRelay } from './trying.ts'

const PATH = '/sendwright/v1/relays'
const ONE = `${PATH}/{name}` as const
const RULES_PATH = '/sendwright/v1/relay-rules'
const api = operationsOf({ tag: 'Relays', auth: { area: 'account', only: 'first' } })
const GIVEN = ['host', 'port', 'tls', 'allow_unverified', 'limits', 'alters', 'return_path', 'offered_to']
const NOT_FOUND = 'Relay not found'

const REASON_LENGTH_MAX = 1_000

interface RelayRouteParts extends Pick<Core, 'sealer' | 'clock'> {
  known: KnownRelays
  states: RelayStates
  overrides: Overrides
  engineRelays: EngineRelays
  blocks: Pick<Blocks, 'clear'>
  /** For EHLO. */
  hostname: string
}

export function relayRoutes(parts: RelayRouteParts): Operation[] {
  return [...resourceRoutes(parts), ...operatingRoutes(parts), ...ruleRoutes(parts)]
}

/** What relays there are. */
function resourceRoutes(parts: RelayRouteParts): Operation[] {
  const { known, states, sealer, blocks, overrides } = parts
  return [
    api.get(PATH, {
      id: 'listRelays',
      summary: 'List the relays',
      answers: { 200: RELAYS },
      async handler() {
        return { items: await states.list() }
      },
    }),
    api.post(PATH, {
      id: 'createRelay',
      audit: { subject: ['name'], given: GIVEN },
      summary: 'Add a relay',
      description: 'No mail goes there before a relay rule or a message names it.',
      body: NEW_RELAY,
      answers: { 200: RELAY },
      async handler({ document }) {
        const { name, ...given } = document()
        await known.create(givenRelay(name, given, null, sealer))
        return states.one(name)
      },
    }),
    api.get(ONE, {
      id: 'readRelay',
      summary: 'Read a relay',
      answers: { 200: RELAY, 404: NOT_FOUND },
      async handler({ path }) {
        return states.one(path.name)
      },
    }),
    api.put(ONE, {
      id: 'replaceRelay',
      audit: { given: GIVEN },
      summary: 'Replace a relay; absent members return to their defaults',
      description:
        'Absent secrets stay, while they go to the same server: the password with host and user, the others with host, token URL and client. A relay that was closed is open again.',
      body: RELAY_BODY,
      answers: { 200: RELAY, 404: NOT_FOUND, 409: 'It was changed meanwhile' },
      async handler({ document, path }) {
        const before = known.findStored(path.name)
        await known.replace(givenRelay(path.name, document(), before, sealer))
        // Whatever closed it may have been mended.
        await blocks.clear(ANY_ADDRESS, siteOfRelay(path.name))
        return states.one(path.name)
      },
    }),
    api.delete(ONE, {
      id: 'deleteRelay',
      summary: 'Remove a relay that no rule names',
      answers: { 200: message('success', 'Removed'), 404: NOT_FOUND, 409: 'A relay rule names it' },
      async handler({ path }) {
        await known.remove(known.findStored(path.name).name)
        // Nothing of it is for another one of this name.
        const site = siteOfRelay(path.name)
        await blocks.clear(ANY_ADDRESS, site)
        await overrides.resume(site)
        await overrides.resetLimits(site)
        return { message: 'success' }
      },
    }),
  ]
}

/** A pause, and a test. */
function operatingRoutes(parts: RelayRouteParts): Operation[] {
  const { known, states, overrides, engineRelays, blocks, clock, hostname } = parts
  return [
    api.put(`${ONE}/pause`, {
      id: 'pauseRelay',
      audit: { given: ['reason', 'until'] },
      summary: 'Send nothing through a relay until that is ended',
      description: 'Its mail goes to the next choice of the rule; without one it waits.',
      params: {
        reason: wordParam('For the others; at most 1000 characters', shortReason),
        until: dateParam('When it ends by itself, within a year; without it somebody ends it'),
      },
      answers: { 200: RELAY, 404: NOT_FOUND },
      async handler({ input, path }) {
        const { name } = known.find(path.name)
        const { reason = '', until } = input()
        await overrides.pause(siteOfRelay(name), { reason, until: untilOf(until, clock.now()) })
        return states.one(name)
      },
    }),
    api.delete(`${ONE}/pause`, {
      id: 'resumeRelay',
      summary: 'Send through a relay again, at once',
      answers: { 200: RELAY, 404: 'There is no such relay, or it is not paused' },
      async handler({ path }) {
        const { name } = known.find(path.name)
        if (!(await overrides.resume(siteOfRelay(name)))) throw new NotFound('The relay is not paused')
        return states.one(name)
      },
    }),
    api.post(`${ONE}/test`, {
      id: 'testRelay',
      audit: { given: ['from', 'to'], made: ['result'] },
      summary: 'Send one message through a relay now, and read the dialogue',
      description:
        'Past queue, rules, limits and pause. A relay that was closed is open again if it accepts the message.',
      body: TEST_BODY,
      answers: { 200: TEST_RESULT, 404: NOT_FOUND },
      async handler({ document, path, signal }) {
        const { name } = known.find(path.name)
        const hop = engineRelays.byName(name)
        if (hop === null) throw new NotFound(NOT_FOUND)
        const result = await tryRelay(hop, document(), { clock, heloName: hostname, signal })
        if (result.accepted) await blocks.clear(ANY_ADDRESS, siteOfRelay(name))
        return result
      },
    }),
  ]
}

/** Which relay takes what. */
function ruleRoutes(parts: RelayRouteParts): Operation[] {
  const { known } = parts
  return [
    api.get(RULES_PATH, {
      id: 'readRelayRules',
      summary: 'The rules that choose a relay',
      answers: { 200: RULES },
      async handler() {
        return { items: known.book().rules }
      },
    }),
    api.put(RULES_PATH, {
      id: 'replaceRelayRules',
      audit: { given: ['items'] },
      summary: 'Replace the rules that choose a relay',
      body: RULES,
      answers: { 200: RULES },
      async handler({ document }) {
        await known.setRules(document().items)
        return { items: known.book().rules }
      },
    }),
  ]
}

function shortReason(text: string): string {
  if (text.length > REASON_LENGTH_MAX) throw new BadRequest(`reason: at most ${REASON_LENGTH_MAX} characters`)
  return text
}
