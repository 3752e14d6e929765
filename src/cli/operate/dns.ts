/** `sendwright dns`: the records of domains, written at their DNS providers. */
import { CommandError, lists, parseWords, secretIn, switches, texts, wrongArguments } from '../usage.ts'
import {
  COMMON,
  COMMON_USAGE,
  clientFor,
  type Item,
  itemsOf,
  line,
  part,
  print,
  printJson,
  show,
  table,
  when,
} from './service.ts'

export const usage = `sendwright dns apply DOMAIN [--dry-run] [--provider NAME] [--replace PURPOSE...] [--json]
sendwright dns undo DOMAIN [--change ID] [--dry-run] [--json]
sendwright dns changes DOMAIN [--json]
sendwright dns link DOMAIN [--json]
sendwright dns providers [--json]
sendwright dns set NAME --kind KIND --secret-file FILE [--server HOST[:PORT] --key-name NAME [--algorithm NAME]]
                        [--access-key-id ID] [--api-url URL] [--json]
sendwright dns unset NAME [--json]

  apply      writes the records that the domain asks for, and then looks them up; records of others are left
  undo       takes the last change back, or another one
  changes    what was written
  link       a link to the DNS provider that makes the records, where it takes part in Domain Connect
  providers  where records can be written
  set        makes a provider, or replaces it: rfc2136 (a name server, with a TSIG key), cloudflare, route53, desec, hetzner
  unset      removes a provider; records stay

  --dry-run  only shows what would be written: + added, ~ changed, - removed, = there already, ! left, and why
  --replace  records of others that are replaced: mx, dkim, tracking, return-path-mx, mta-sts, mta-sts-host
${COMMON_USAGE}`

const ACTIONS = ['apply', 'undo', 'changes', 'link', 'set', 'unset']
/** Options that are fields of a provider, there with underscores. */
const SETTINGS = ['kind', 'server', 'key-name', 'algorithm', 'access-key-id', 'api-url'] as const
const PROVIDERS = '/sendwright/v1/dns-providers'

export async function run(args: string[]): Promise<void> {
  const { values, positionals } = parseWords('dns', args, {
    ...COMMON,
    ...texts('provider', 'change', 'secret-file', ...SETTINGS),
    ...lists('replace'),
    ...switches('dry-run'),
  })
  const [action = 'providers', name, ...more] = positionals
  const isList = action === 'providers' && name === undefined
  if (more.length > 0 || !(isList || (ACTIONS.includes(action) && name !== undefined)))
    throw wrongArguments('dns', `Name providers, or ${ACTIONS.join(', ')} and a domain or a provider`)
  const client = clientFor(values)
  const path = part(name ?? '')
  const changes = `/sendwright/v1/domains/${path}/dns-changes`
  const dryRun = values['dry-run'] ?? false
  switch (action) {
    case 'providers': {
      const items = itemsOf(await client.call('GET', PROVIDERS))
      return show(values.json, items, () => providersTable(items))
    }
    case 'set': {
      const file = values['secret-file']
      const provider = await client.call('PUT', `${PROVIDERS}/${path}`, {
        ...Object.fromEntries(SETTINGS.map((name) => [name.replaceAll('-', '_'), values[name]])),
        secret: file === undefined ? undefined : secretIn(file, `the secret in "${file}"`),
      })
      return show(values.json, provider, () => providersTable([provider]))
    }
    case 'unset': {
      const answer = await client.call('DELETE', `${PROVIDERS}/${path}`)
      return show(values.json, answer, () => line(answer['message']))
    }
    case 'changes': {
      const items = itemsOf(await client.call('GET', changes))
      return show(values.json, items, () => items.map(changeText).join('\n') || 'Nothing was written.\n')
    }
    case 'link': {
      const link = await client.call('GET', `/sendwright/v1/domains/${path}/dns-link`)
      return show(values.json, link, () => line(link['url'] ?? link['reason']))
    }
    case 'undo': {
      const id = values.change ?? lastOf(itemsOf(await client.call('GET', changes)))
      return showChange(
        await client.call('POST', `${changes}/${part(id)}/undo`, { dry_run: dryRun }),
        values.json,
      )
    }
    case 'apply': {
      const { provider, replace } = values
      const change = await client.call('POST', changes, { provider, replace, dry_run: dryRun })
      showChange(change, values.json)
      if (change['state'] !== 'done' || values.json) return
      const { domain } = await client.call('PUT', `/v4/domains/${path}/verify`)
      print(line(`${name} is ${(domain as Item)['state']}.`))
    }
  }
}

/** The newest change that can be taken back. @throws CommandError */
function lastOf(items: readonly Item[]): string {
  const last = items.find((one) => one['undoes'] === null && one['state'] !== 'undone')
  if (last === undefined) throw new CommandError('There is no change to take back.')
  return String(last['id'])
}

/** @throws CommandError if some of it failed */
function showChange(change: Item, json: boolean | undefined): void {
  if (json) printJson(change)
  else print(changeText(change))
  if (change['state'] === 'failed') throw new CommandError(`Not all was written: ${change['error']}`)
}

const SIGNS: Readonly<Record<string, string>> = {
  add: '+',
  change: '~',
  remove: '-',
  unchanged: '=',
  left: '!',
}
const STATES: Readonly<Record<string, string>> = {
  planned: 'Nothing was written: this is what would be.',
  unchanged: 'There is nothing to write.',
}

function changeText(change: Item): string {
  const entries = (change['entries'] as Item[]).map((entry) => {
    const { action, purpose, type, name, reason, written } = entry
    const state = action === 'left' ? `left: ${reason}` : written === false ? 'not written' : ''
    const values = [
      ...(entry['remove'] as string[]).map((value) => line('     -', value)),
      ...(entry['add'] as string[]).map((value) => line('     +', value)),
    ]
    return (
      line(SIGNS[String(action)], purpose, type, name, ...(state === '' ? [] : [state])) + values.join('')
    )
  })
  const { id, provider, state, created_at: at } = change
  return entries.join('') + line(STATES[String(state)] ?? `${state}: ${when(at)} at ${provider}, ${id}`)
}

function providersTable(items: readonly Item[]): string {
  const rows = items.map((one) => [
    ...[one['name'], one['kind'], one['server'] ?? one['api_url'], one['key_name'] ?? one['access_key_id']],
    when(one['updated_at']),
  ])
  return table(['NAME', 'KIND', 'SERVER', 'KEY', 'CHANGED'], rows, 'No DNS providers: sendwright dns set')
}
