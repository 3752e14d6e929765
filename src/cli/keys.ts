import { printableLine } from '../base/printable.ts'
import { createClient } from './local/client.ts'
import { parseFlags, wrongArguments } from './usage.ts'

export const KEYS_USAGE = `sendwright keys list [--json]
sendwright keys create [--role admin|developer|support|basic|sending] [--domain NAME] [--description TEXT] [--json]
sendwright keys delete ID [--json]
`

/** `sendwright keys`: lists, makes and deletes API keys. A key's secret is printed once, when it is made. */
export async function keysCommand(args: string[]): Promise<void> {
  const { values, positionals } = parse(args)
  const [action, id, ...more] = positionals
  if (!isForm(action, id, more)) throw wrongArguments('keys', 'Name one of list, create and delete ID')
  if (values.role === 'sending' && !values.domain)
    throw wrongArguments('keys', '--role sending needs --domain')
  const client = createClient()
  if (action === 'list') {
    const { items } = (await client.call('GET', '/v1/keys')) as { items: Record<string, unknown>[] }
    if (values.json) process.stdout.write(`${JSON.stringify(items)}\n`)
    else for (const key of items) process.stdout.write(`${keyLine(key)}\n`)
  } else if (action === 'create') {
    const form = new FormData()
    const role = values.role ?? (values.domain ? 'sending' : 'admin')
    form.set('role', role)
    form.set('kind', values.domain ? 'domain' : 'user')
    if (values.domain) form.set('domain_name', values.domain)
    if (values.description) form.set('description', values.description)
    const { key } = (await client.call('POST', '/v1/keys', form)) as { key: Record<string, unknown> }
    process.stdout.write(`${values.json ? JSON.stringify(key) : key['secret']}\n`)
  } else if (id !== undefined) {
    await client.call('DELETE', `/v1/keys/${encodeURIComponent(id)}`)
    process.stdout.write(values.json ? `${JSON.stringify({ id, deleted: true })}\n` : `Deleted ${id}.\n`)
  }
}

/** `delete` has one argument, the others none. */
const isForm = (action: string | undefined, id: string | undefined, more: readonly string[]): boolean =>
  more.length === 0 && (action === 'delete' ? Boolean(id) : ['list', 'create'].includes(action ?? '') && !id)

const parse = (args: string[]) =>
  parseFlags('keys', {
    args,
    allowPositionals: true,
    options: {
      role: { type: 'string' },
      domain: { type: 'string' },
      description: { type: 'string' },
      json: { type: 'boolean' },
    },
  })

const keyLine = (key: Record<string, unknown>) =>
  [key['id'], key['kind'], key['role'], key['domain_name'] ?? '-', key['created_at'], key['description']]
    .map((value) => printableLine(String(value ?? '')))
    .join('  ')
