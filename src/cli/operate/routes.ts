/** `sendwright routes`: the rules for received mail, and which of them an address would meet. */
import { Refused } from '../local/client.ts'
import { CommandError, parseWords, wrongArguments } from '../usage.ts'
import { COMMON, COMMON_USAGE, clientFor, type Item, pagesOf, queryOf, show, table } from './service.ts'

export const usage = `sendwright routes list [--json]
sendwright routes test ADDRESS [--json]

  test   shows the route that mail to the address meets first
${COMMON_USAGE}`

const ROUTES_MAX = 1_000

export async function run(args: string[]): Promise<void> {
  const { values, positionals } = parseWords('routes', args, COMMON)
  const [action = 'list', address, ...more] = positionals
  if (more.length > 0 || action !== (address === undefined ? 'list' : 'test'))
    throw wrongArguments('routes', 'Name list, or test and an address')
  const client = clientFor(values)
  if (address === undefined) {
    const routes = await pagesOf(client, `/v3/routes${queryOf({ limit: ROUTES_MAX })}`, ROUTES_MAX)
    return show(values.json, routes, () => routesTable(routes))
  }
  try {
    const { route } = await client.call('GET', `/v3/routes/match${queryOf({ address })}`)
    show(values.json, route, () => routesTable([route as Item]))
  } catch (error) {
    if (error instanceof Refused && error.status === 404)
      throw new CommandError(`No route takes mail to ${address}.`)
    throw error
  }
}

const routesTable = (routes: readonly Item[]): string =>
  table(
    ['PRIORITY', 'EXPRESSION', 'ACTIONS', 'DESCRIPTION', 'ID'],
    routes.map((one) => [
      one['priority'],
      one['expression'],
      (one['actions'] as string[]).join('; '),
      one['description'],
      one['id'],
    ]),
    'No routes.',
  )
