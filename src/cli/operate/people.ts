/** `sendwright people`: what is stored about one person, collected into an archive or erased. */
import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { targetFor } from '../local/client.ts'
import { CommandError, parseWords, switches, texts, wrongArguments } from '../usage.ts'
import { COMMON, COMMON_USAGE, clientFor, type Item, line, show, table } from './service.ts'

export const usage = `sendwright people export ADDRESS [--file FILE] [--json]
sendwright people erase ADDRESS [--yes] [--json]

  export  collects all that is stored about the address into FILE, a .tar.gz; without --file it only counts
  erase   removes it; without --yes it only counts

What is kept, and why, is in the report of the task, whose id is printed.
${COMMON_USAGE}`

const PATH = '/sendwright/v1/people'
const POLL_MS = 500

export async function run(args: string[]): Promise<void> {
  const { values, positionals } = parseWords('people', args, {
    ...COMMON,
    ...texts('file'),
    ...switches('yes'),
  })
  const [action = '', address, ...more] = positionals
  if (action !== 'export' && action !== 'erase') throw wrongArguments('people', 'Name one of export, erase')
  if (address === undefined || more.length > 0) throw wrongArguments('people', 'Name one address')
  const isFor = action === 'export' ? values.file !== undefined : values.yes === true
  const client = clientFor(values)
  const started = await client.call('POST', `${PATH}/${action}`, { address, dry_run: !isFor })
  const { id } = started['task'] as { id: string }
  const task = await ended(() => client.call('GET', `${PATH}/tasks/${id}`))
  if (task['state'] === 'failed') throw new CommandError(`The task failed: ${task['error']}`)
  if (action === 'export' && values.file !== undefined) {
    const { base, fetch, authorization } = targetFor(process.env, values)
    const answer = await fetch(`${base}${PATH}/tasks/${id}/download`, { headers: { authorization } })
    if (!answer.ok || !answer.body) throw new CommandError('Nothing is stored about this address')
    await pipeline(
      Readable.fromWeb(answer.body as never),
      createWriteStream(values.file, { flags: 'wx', mode: 0o600 }),
    )
  }
  show(values.json, task, () => countsTable(task))
}

async function ended(read: () => Promise<Item>): Promise<Item> {
  for (;;) {
    const task = await read()
    if (task['state'] === 'done' || task['state'] === 'failed') return task
    await sleep(POLL_MS)
  }
}

function countsTable(task: Item): string {
  const kinds = ['found', 'exported', 'erased', 'pseudonymised', 'kept']
  const rows = Object.entries(task['counts'] as Record<string, Item>).map(([store, counts]) => [
    store,
    ...kinds.map((kind) => counts[kind]),
  ])
  const heading = ['STORE', ...kinds.map((kind) => kind.toUpperCase())]
  const about = task['dry_run'] === true ? 'only counted' : 'done'
  return table(heading, rows, 'Nothing is stored about this address.') + line(`Task ${task['id']}: ${about}.`)
}
