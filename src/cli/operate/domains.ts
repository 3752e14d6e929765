/** `sendwright domains`: sending domains, their DNS records and keys. */
import { parseWords, switches, wrongArguments } from '../usage.ts'
import {
  asFile,
  COMMON,
  COMMON_USAGE,
  clientFor,
  formOf,
  type Item,
  itemsOf,
  line,
  part,
  show,
  table,
  when,
} from './service.ts'

export const usage = `sendwright domains list [--json]
sendwright domains add|show|verify|keys|delete NAME [--json]
sendwright domains dns NAME [--zone] [--json]

  show     state and settings
  dns      the records to publish, what DNS has, and what to change; --zone: as text of a zone file
  verify   looks the records up now
  keys     DKIM keys
${COMMON_USAGE}`

const ACTIONS = ['add', 'show', 'dns', 'verify', 'keys', 'delete']
const DOMAINS_MAX = 1_000

export async function run(args: string[]): Promise<void> {
  const { values, positionals } = parseWords('domains', args, { ...COMMON, ...switches('zone') })
  const [action = 'list', name, ...more] = positionals
  const isList = action === 'list' && name === undefined
  if (more.length > 0 || !(isList || (ACTIONS.includes(action) && name !== undefined)))
    throw wrongArguments('domains', `Name one of list, or ${ACTIONS.join(', ')} and a domain`)
  const client = clientFor(values)
  const path = part(name ?? '')
  switch (action) {
    case 'list': {
      const items = itemsOf(await client.call('GET', `/v4/domains?limit=${DOMAINS_MAX}`))
      const rows = items.map((one) => [one['name'], one['state'], one['type'], when(one['created_at'])])
      return show(values.json, items, () => table(['DOMAIN', 'STATE', 'TYPE', 'ADDED'], rows, 'No domains.'))
    }
    case 'add': {
      const answer = await client.call('POST', '/v4/domains', formOf({ name }))
      return show(values.json, answer, () => recordsTable(answer))
    }
    case 'show': {
      const answer = await client.call('GET', `/v4/domains/${path}`)
      return show(values.json, answer, () => fieldsOf(answer['domain'] as Item))
    }
    case 'dns': {
      if (values.zone) {
        const zone = await client.text(`/sendwright/v1/domains/${path}/zone`, 'text/plain')
        return show(values.json, { zone }, () => asFile(zone))
      }
      const answer = await client.call('GET', `/sendwright/v1/domains/${path}/dns`)
      return show(values.json, answer, () => explained(answer))
    }
    case 'verify': {
      const answer = await client.call('PUT', `/v4/domains/${path}/verify`)
      return show(values.json, answer, () => recordsTable(answer))
    }
    case 'keys': {
      const items = itemsOf(await client.call('GET', `/v4/domains/${path}/keys`))
      const rows = items.map((key) => [
        key['selector'],
        key['signing_domain'],
        (key['dns_record'] as Item)['is_active'] ? 'signs' : 'does not sign',
        String((key['dns_record'] as Item)['valid']).toLowerCase(),
      ])
      const heading = ['SELECTOR', 'DOMAIN', 'USE', 'DNS']
      return show(values.json, items, () => table(heading, rows, 'No keys.'))
    }
    case 'delete': {
      const answer = await client.call('DELETE', `/v3/domains/${path}`)
      return show(values.json, answer, () => line(answer['message']))
    }
  }
}

/** The records of an answer about a domain, as they were found last. */
function recordsTable(answer: Item): string {
  const domain = answer['domain'] as Item
  const records = [
    ...(answer['sending_dns_records'] as Item[]),
    ...(answer['receiving_dns_records'] as Item[]),
  ]
  // An MX record has no name in the answer: it is the domain's own.
  const rows = records.map((one) => [
    one['valid'],
    one['record_type'],
    one['name'] ?? domain['name'],
    one['value'],
  ])
  return `${line(`${domain['name']} is ${domain['state']}.`)}\n${table(['DNS', 'TYPE', 'NAME', 'VALUE'], rows, 'No records.')}`
}

/** For each record what to publish, and what DNS said. */
function explained(answer: Item): string {
  const records = [...(answer['records'] as Item[]), answer['dmarc'] as Item | null]
  return records
    .filter((one) => one !== null)
    .map((one) => {
      const { type, name, value, purpose } = one['record'] as Item
      return line(purpose, type, name, value) + line('', one['valid'], one['sentence'] || 'not looked up yet')
    })
    .join('\n')
}

/** Members that are texts, numbers or switches, one a line. */
const fieldsOf = (value: Item): string =>
  Object.entries(value)
    .filter(([, one]) => typeof one !== 'object' || one === null)
    .map(([name, one]) => line(name.padEnd(30), one))
    .join('')
