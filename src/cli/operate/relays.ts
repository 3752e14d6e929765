/** `sendwright relays`: the servers that take mail for others, and whether they do. */
import { printableLine } from '../../base/printable.ts'
import { CommandError, parseWords, texts, wrongArguments } from '../usage.ts'
import {
  COMMON,
  COMMON_USAGE,
  clientFor,
  type Item,
  itemsOf,
  part,
  print,
  printJson,
  show,
  table,
  when,
} from './service.ts'

export const usage = `sendwright relays list [--json]
sendwright relays test NAME --from ADDRESS --to ADDRESS [--json]
sendwright relays pause NAME [--reason TEXT] [--json]
sendwright relays resume NAME [--json]

  test   sends one message through it at once, and shows the dialogue; exit code 1 if it was not taken
${COMMON_USAGE}`

const ACTIONS = ['test', 'pause', 'resume']

export async function run(args: string[]): Promise<void> {
  const { values, positionals } = parseWords('relays', args, { ...COMMON, ...texts('from', 'to', 'reason') })
  const [action = 'list', name, ...more] = positionals
  const isList = action === 'list' && name === undefined
  if (more.length > 0 || !(isList || (ACTIONS.includes(action) && name !== undefined)))
    throw wrongArguments('relays', `Name list, or ${ACTIONS.join(', ')} and a relay`)
  const client = clientFor(values)
  const path = `/sendwright/v1/relays/${part(name ?? '')}`
  if (isList) {
    const relays = itemsOf(await client.call('GET', '/sendwright/v1/relays'))
    return show(values.json, relays, () => relaysTable(relays))
  }
  if (action === 'test') {
    const { from, to } = values
    if (from === undefined || to === undefined) throw wrongArguments('relays', 'test needs --from and --to')
    const answer = await client.call('POST', `${path}/test`, { from, to })
    if (values.json) printJson(answer)
    else print(dialogue(answer))
    if (!answer['accepted']) throw new CommandError(`${name} did not take the message: ${answer['result']}`)
    return
  }
  const relay =
    action === 'pause'
      ? await client.call('PUT', `${path}/pause`, { reason: values.reason ?? '' })
      : await client.call('DELETE', `${path}/pause`)
  show(values.json, relay, () => relaysTable([relay]))
}

const dialogue = (answer: Item): string =>
  [
    ...(answer['lines'] as Item[]).map(
      ({ ms, direction, line }) => `${String(ms).padStart(7)} ms ${direction === 'sent' ? '>' : '<'} ${line}`,
    ),
    `TLS ${answer['tls'] ? (answer['verified'] ? 'with a valid certificate' : 'with a certificate that is not valid') : 'was not used'}.`,
  ]
    .map((line) => `${printableLine(line)}\n`)
    .join('')

function relaysTable(relays: readonly Item[]): string {
  const rows = relays.map((relay) => {
    const state = relay['state'] as Item
    const pause = relay['pause'] as Item | null
    const counts = relay['since_start'] as Item
    return [
      relay['name'],
      `${relay['host']}:${relay['port']}`,
      pause ? 'paused' : state['word'],
      when(pause ? pause['until'] : state['until']),
      relay['used_today'],
      counts['accepted'],
      counts['failed'],
      pause ? pause['reason'] : state['why'],
    ]
  })
  const heading = ['RELAY', 'SERVER', 'STATE', 'UNTIL', 'TODAY', 'TAKEN', 'FAILED', 'WHY']
  return table(heading, rows, 'No relays: mail goes to the servers of its recipients.')
}
