/**
 * Brevo: contacts as CSV, whose columns depend on the account, or as JSON (`GET /v3/contacts`), and blocked transactional
 * contacts as JSON (`GET /v3/smtp/blockedContacts`). Who is on the blocklist is unsubscribed here. A CSV file without a
 * column that says so is refused, so that nobody is written to again by mistake.
 */
import { booleanOf } from '../../../base/values.ts'
import { type Entry, objectOf, textOf, Unreadable } from '../entry.ts'
import { columnName } from '../input-file.ts'
import {
  addressIn,
  type Columns,
  columnsOf,
  contactEntries,
  itemsOf,
  type Shape,
  type ShapeContext,
  suppression,
  textIn,
} from './shape.ts'

/** Names of the column in exports and in the API, in the form of `columnName`. */
const BLOCKLIST_COLUMNS = [
  'emailblacklisted',
  'emailblacklist',
  'emailblocklisted',
  'blacklisted',
  'blocklisted',
  'emailmarketing',
  'emailmarketingstatus',
  'emailsubscriptionstatus',
]
/** The value of `--blocklist-column` for a file in which nobody is blocked. */
const NO_COLUMN = 'none'
const BLOCKED_WORDS = ['blocklisted', 'blacklisted', 'unsubscribed', 'blocked']
const FREE_WORDS = ['subscribed', 'nevertold', 'never subscribed', 'not blocklisted']
const COMPLAINT_CODES = ['contactFlaggedAsSpam']
const BOUNCE_CODES = ['hardBounce']

export const BREVO: Shape = {
  contents: ['contacts', 'blocked'],
  lists: ['contacts'],
  items(record, context) {
    const name = (record.value as Record<string, unknown> | null)?.['email']
    const kind = context.list === null ? 'unsubscribe' : 'member'
    return itemsOf(record, kind, name, () =>
      context.content === 'blocked' ? blocked(record.value, context) : contact(record.value, context),
    )
  },
  checkColumns(columns, { blocklistColumn }) {
    if (blocklistColumn === NO_COLUMN) return
    const wanted = blocklistColumn === null ? BLOCKLIST_COLUMNS : [columnName(blocklistColumn)]
    if (!wanted.some((name) => columns.includes(name)))
      throw new Unreadable(
        `no column says who is blocklisted: name it with --blocklist-column, or give --blocklist-column ${NO_COLUMN}`,
      )
  },
}

function contact(value: unknown, context: ShapeContext): Entry[] {
  const columns = columnsOf(value)
  const address = addressIn(columns, 'email', 'emailaddress')
  const isBlocked = isBlocklisted(columns, context.blocklistColumn)
  const at = textIn(columns, 'modifiedtime', 'modifiedat')
  const attributes = columns.get('attributes')
  const row = attributes === undefined ? objectOf(value) : objectOf(attributes)
  const column = context.blocklistColumn === null ? BLOCKLIST_COLUMNS : [columnName(context.blocklistColumn)]
  return [
    ...contactEntries(row, address, { list: context.list, subscribed: !isBlocked, leftOut: column }),
    ...(isBlocked ? [suppression('unsubscribe', context, { address, tags: ['*'] }, at)] : []),
  ]
}

/** Empty is no. @throws Unreadable for a word that may mean either, and if nothing says it */
function isBlocklisted(columns: Columns, column: string | null): boolean {
  if (column === NO_COLUMN) return false
  const names = (column === null ? BLOCKLIST_COLUMNS : [columnName(column)]).filter((name) =>
    columns.has(name),
  )
  if (names.length === 0) throw new Unreadable('does not say whether it is blocklisted')
  for (const name of names) {
    const value = columns.get(name)
    if (typeof value === 'boolean') return value
    const text = textOf(value).trim().toLowerCase()
    if (text === '') continue
    if (BLOCKED_WORDS.includes(text)) return true
    if (FREE_WORDS.includes(text)) return false
    const flag = booleanOf(text)
    if (flag === undefined) throw new Unreadable(`has "${text}" as its blocklist value`)
    // `email_marketing: yes` says that mail is allowed, `blacklisted: yes` that it is not.
    return name.includes('marketing') || name.includes('subscription') ? !flag : flag
  }
  return false
}

function blocked(value: unknown, context: ShapeContext): Entry[] {
  const columns = columnsOf(value)
  const address = addressIn(columns, 'email')
  const { code = '', message } = objectOf(columns.get('reason') ?? {})
  const at = columns.get('blockedat')
  const reason = textOf(code)
  if (BOUNCE_CODES.includes(reason))
    return [suppression('bounce', context, { address, error: textOf(message) }, at)]
  if (COMPLAINT_CODES.includes(reason)) return [suppression('complaint', context, { address }, at)]
  return [suppression('unsubscribe', context, { address, tags: ['*'] }, at)]
}
