import { printableLine } from '../base/printable.ts'
import { createClient } from './local/client.ts'
import { formOf, type Item, itemsOf, part, show } from './operate/service.ts'
import { parseWords, switches, texts, wrongArguments } from './usage.ts'

export const usage = `sendwright keys list [--json]
sendwright keys create [--role admin|developer|support|basic|sending] [--domain NAME] [--description TEXT] [--json]
sendwright keys delete ID [--json]
`

/** `sendwright keys`: lists, makes and deletes API keys. A key's secret is printed once, when it is made. */
export async function run(args: string[]): Promise<void> {
  const { values, positionals } = parseWords('keys', args, {
    ...texts('role', 'domain', 'description'),
    ...switches('json'),
  })
  const [action, id, ...more] = positionals
  if (!isForm(action, id, more)) throw wrongArguments('keys', 'Name one of list, create and delete ID')
  if (values.role === 'sending' && !values.domain)
    throw wrongArguments('keys', '--role sending needs --domain')
  const client = createClient()
  if (action === 'list') {
    const items = itemsOf(await client.call('GET', '/v1/keys'))
    show(values.json, items, () => items.map(keyLine).join(''))
  } else if (action === 'create') {
    const { domain, description } = values
    const form = formOf({
      role: values.role ?? (domain ? 'sending' : 'admin'),
      kind: domain ? 'domain' : 'user',
      domain_name: domain || undefined,
      description: description || undefined,
    })
    const { key } = (await client.call('POST', '/v1/keys', form)) as { key: Item }
    show(values.json, key, () => `${key['secret']}\n`)
  } else if (id !== undefined) {
    await client.call('DELETE', `/v1/keys/${part(id)}`)
    show(values.json, { id, deleted: true }, () => `Deleted ${id}.\n`)
  }
}

/** `delete` has one argument, the others none. */
const isForm = (action: string | undefined, id: string | undefined, more: readonly string[]): boolean =>
  more.length === 0 && (action === 'delete' ? Boolean(id) : ['list', 'create'].includes(action ?? '') && !id)

const keyLine = (key: Item): string =>
  `${[key['id'], key['kind'], key['role'], key['domain_name'] ?? '-', key['created_at'], key['description']]
    .map((value) => printableLine(String(value ?? '')))
    .join('  ')}\n`
