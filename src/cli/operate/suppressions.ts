/** `sendwright suppressions`: the addresses that a domain does not send to. */
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { parseWords, texts, wrongArguments } from '../usage.ts'
import { limitOf } from './queue.ts'
import {
  asFile,
  COMMON,
  COMMON_USAGE,
  clientFor,
  formOf,
  type Item,
  line,
  pagesOf,
  part,
  queryOf,
  show,
  table,
  when,
} from './service.ts'

export const usage = `sendwright suppressions list KIND --domain NAME [--term TEXT] [--limit NUMBER] [--json]
sendwright suppressions add|remove KIND ADDRESS --domain NAME [--reason TEXT] [--tag TAG] [--json]
sendwright suppressions import KIND FILE --domain NAME [--json]
sendwright suppressions export KIND --domain NAME [--json]

KIND is bounces, complaints, unsubscribes or allowlist.

  --term TEXT   only addresses that begin with it
  --reason TEXT why: the error of a bounce, the reason of an entry of the allowlist
  --tag TAG     only mail with this tag, of an unsubscribe
  import        takes a CSV file with a header line, plain or gzip, in the background
  export        writes the whole list as CSV to standard output, as import takes it
${COMMON_USAGE}`

/** What a person calls a list, and what it is in paths. */
const KINDS: Readonly<Record<string, string>> = {
  bounces: 'bounces',
  complaints: 'complaints',
  unsubscribes: 'unsubscribes',
  allowlist: 'whitelists',
}
/** Whether an address or a file follows the kind. */
const ACTIONS: Readonly<Record<string, boolean>> = {
  list: false,
  export: false,
  add: true,
  remove: true,
  import: true,
}

export async function run(args: string[]): Promise<void> {
  const { values, positionals } = parseWords('suppressions', args, {
    ...COMMON,
    ...texts('domain', 'term', 'limit', 'reason', 'tag'),
  })
  const [action = '', given = '', subject, ...more] = positionals
  if (!Object.hasOwn(ACTIONS, action))
    throw wrongArguments('suppressions', `Name one of ${Object.keys(ACTIONS).join(', ')}`)
  const kind = Object.hasOwn(KINDS, given) ? KINDS[given] : undefined
  if (kind === undefined)
    throw wrongArguments('suppressions', `Name a kind: ${Object.keys(KINDS).join(', ')}`)
  if (more.length > 0 || (subject !== undefined) !== ACTIONS[action])
    throw wrongArguments(
      'suppressions',
      `${action} takes ${ACTIONS[action] ? 'one argument' : 'nothing'} after the kind`,
    )
  if (values.domain === undefined)
    throw wrongArguments('suppressions', 'Name the sending domain with --domain')
  const client = clientFor(values)
  const path = `/v3/${part(values.domain)}/${kind}`
  const name = subject ?? ''
  switch (action) {
    case 'list': {
      const limit = limitOf(values.limit, 'suppressions')
      const query = queryOf({ limit: Math.min(limit, 1_000), term: values.term })
      const items = await pagesOf(client, path + query, limit)
      return show(values.json, items, () => recordsTable(items))
    }
    case 'export': {
      const csv = (await client.text(path + queryOf({ term: values.term }), 'text/csv')).replace('\uFEFF', '')
      return show(values.json, { csv }, () => asFile(csv))
    }
    case 'add': {
      const { reason, tag } = values
      const isDomain = kind === 'whitelists' && !name.includes('@')
      const form = formOf({ [isDomain ? 'domain' : 'address']: name, error: reason, reason, tag })
      const answer = await client.call('POST', path, form)
      return show(values.json, answer, () => line(answer['message']))
    }
    case 'remove': {
      const answer = await client.call('DELETE', `${path}/${part(name)}${queryOf({ tag: values.tag })}`)
      return show(values.json, answer, () => line(answer['message']))
    }
    case 'import': {
      const form = new FormData()
      form.set('file', new Blob([await readFile(name)]), basename(name))
      const answer = await client.call('POST', `${path}/import`, form)
      return show(values.json, answer, () => 'The file is being imported.\n')
    }
  }
}

function recordsTable(items: readonly Item[]): string {
  const rows = items.map((one) => [
    one['address'] ?? one['value'],
    when(one['created_at'] ?? one['createdAt']),
    (one['tags'] as string[] | undefined)?.join(', '),
    one['code'],
    one['error'] ?? one['reason'],
  ])
  return table(['ADDRESS', 'ADDED', 'TAGS', 'CODE', 'WHY'], rows, 'The list is empty.')
}
