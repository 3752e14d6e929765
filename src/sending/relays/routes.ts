/** Relays and relay rules over HTTP, for the operator (relays.md). */
import { Forbidden } from '../../base/process/errors.ts'
import { message } from '../../base/shape.ts'
import { type Operation, operation } from '../../platform/http/operation.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import type { Sealer } from '../../platform/store/secrets/sealing.ts'
import type { KnownRelays } from './known-relays.ts'
import type { AccessTokens } from './oauth/access-tokens.ts'
import { givenRelay, type Relay, relayView } from './relay.ts'
import { NEW_RELAY, RELAY, RELAY_BODY, RELAYS, RULES } from './shapes.ts'

const PATH = '/sendwright/v1/relays'
const ONE = `${PATH}/{name}` as const
const RULES_PATH = '/sendwright/v1/relay-rules'
const COMMON = { tag: 'Relays' } as const
const READ = { area: 'account', access: 'read', only: 'first' } as const
const WRITE = { area: 'account', access: 'write', only: 'first' } as const
const GIVEN = ['host', 'port', 'tls', 'allow_unverified', 'limits', 'alters', 'return_path', 'offered_to']
const NOT_FOUND = 'Relay not found'

interface RelayRouteParts {
  known: KnownRelays
  tokens: Pick<AccessTokens, 'stateOf'>
  sealer: Sealer
  firstAccountId: string
}

export function relayRoutes({ known, tokens, sealer, firstAccountId }: RelayRouteParts): Operation[] {
  /** @throws Forbidden for anyone but the operator */
  function checkOperator({ accountId, parentAccountId }: Caller): void {
    if (accountId !== firstAccountId || parentAccountId !== undefined) throw new Forbidden()
  }

  const viewOf = async (relay: Relay) => relayView(relay, await tokens.stateOf(relay))

  return [
    operation({
      ...COMMON,
      method: 'GET',
      path: PATH,
      id: 'listRelays',
      summary: 'List the relays',
      auth: READ,
      answers: { 200: RELAYS },
      async handler({ caller }) {
        checkOperator(caller)
        return { items: await Promise.all([...known.book().relays.values()].map(viewOf)) }
      },
    }),
    operation({
      ...COMMON,
      method: 'POST',
      path: PATH,
      id: 'createRelay',
      audit: { subject: ['name'], given: GIVEN },
      summary: 'Add a relay',
      description: 'No mail goes there before a relay rule or a message names it.',
      auth: WRITE,
      body: NEW_RELAY,
      answers: { 200: RELAY },
      async handler({ document, caller }) {
        checkOperator(caller)
        const { name, ...given } = document()
        return viewOf(await known.create(givenRelay(name, given, null, sealer)))
      },
    }),
    operation({
      ...COMMON,
      method: 'GET',
      path: ONE,
      id: 'readRelay',
      summary: 'Read a relay',
      auth: READ,
      answers: { 200: RELAY, 404: NOT_FOUND },
      async handler({ path, caller }) {
        checkOperator(caller)
        return viewOf(known.find(path.name))
      },
    }),
    operation({
      ...COMMON,
      method: 'PUT',
      path: ONE,
      id: 'replaceRelay',
      audit: { given: GIVEN },
      summary: 'Replace a relay; absent members return to their defaults',
      description:
        'Absent secrets stay, while they go to the same server: the password with host and user, the others with token URL and client.',
      auth: WRITE,
      body: RELAY_BODY,
      answers: { 200: RELAY, 404: NOT_FOUND, 409: 'It was changed meanwhile' },
      async handler({ document, path, caller }) {
        checkOperator(caller)
        const before = known.findStored(path.name)
        return viewOf(await known.replace(givenRelay(path.name, document(), before, sealer)))
      },
    }),
    operation({
      ...COMMON,
      method: 'DELETE',
      path: ONE,
      id: 'deleteRelay',
      summary: 'Remove a relay that no rule names',
      auth: WRITE,
      answers: { 200: message('success', 'Removed'), 404: NOT_FOUND, 409: 'A relay rule names it' },
      async handler({ path, caller }) {
        checkOperator(caller)
        await known.remove(known.findStored(path.name).name)
        return { message: 'success' }
      },
    }),
    operation({
      ...COMMON,
      method: 'GET',
      path: RULES_PATH,
      id: 'readRelayRules',
      summary: 'The rules that choose a relay',
      auth: READ,
      answers: { 200: RULES },
      async handler({ caller }) {
        checkOperator(caller)
        return { items: known.book().rules }
      },
    }),
    operation({
      ...COMMON,
      method: 'PUT',
      path: RULES_PATH,
      id: 'replaceRelayRules',
      audit: { given: ['items'] },
      summary: 'Replace the rules that choose a relay',
      auth: WRITE,
      body: RULES,
      answers: { 200: RULES },
      async handler({ document, caller }) {
        checkOperator(caller)
        await known.setRules(document().items)
        return { items: known.book().rules }
      },
    }),
  ]
}
